//! The path of a goodput run: one bottleneck with delay each way, in real time.
//!
//! Two [`qdisc::Link`]s between two TUN devices. The forward one (towards the receiver of the data)
//! loses segments with data by a seeded draw for each, counted from the first: the same seed loses
//! the same ones whoever sends. Acknowledgements are never lost. A link keeps its rate to the
//! nanosecond whatever the thread's sleep; packets come out at most some ten microseconds late on a
//! quiet machine.
use qdisc::{Limit, Link, LinkConfig, LinkStats, Probability, Rng};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Properties of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Round-trip time without a queue.
    pub rtt: Duration,
    /// Rate of each direction, bit/s.
    pub rate: u64,
    /// Probability that a segment with data is lost.
    pub loss: Probability,
    /// Which ones are.
    pub seed: u64,
}

impl Path {
    /// Rate times round-trip time, bytes. The queue of the bottleneck holds as much.
    pub fn bandwidth_delay_product(&self) -> u64 {
        let bits = u128::from(self.rate) * self.rtt.as_nanos() / 1_000_000_000;
        (bits / 8) as u64
    }
}

/// Traffic that crossed a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crossed {
    /// Segments with data that entered.
    pub data_segments: u64,
    /// Lost by the draw.
    pub lost: u64,
    /// Towards the receiver.
    pub forward: LinkStats,
    /// Packets the receiver's device refused.
    pub undelivered: u64,
}

/// A path at work. [`Bottleneck::end`] ends it.
#[derive(Debug)]
pub struct Bottleneck {
    stop: Arc<OwnedFd>,
    thread: JoinHandle<Crossed>,
}

impl Bottleneck {
    /// Joins the sender's device with the receiver's.
    pub fn start(sender: OwnedFd, receiver: OwnedFd, path: Path) -> Bottleneck {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).expect("eventfd"));
        let pump = Pump::new([sender, receiver], stop.clone(), path);
        let thread = thread::Builder::new().name("bottleneck".into()).spawn(|| pump.run()).expect("a thread");
        Bottleneck { stop, thread }
    }

    /// Cuts the path; what crossed it.
    pub fn end(self) -> Crossed {
        rustix::io::write(&*self.stop, &1u64.to_ne_bytes()).expect("eventfd takes a 1");
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Least time between two deliveries of the thread: beyond it, packets come out in small batches.
const TICK: Duration = Duration::from_micros(60);

struct Pump {
    /// Of the sender, of the receiver.
    devices: [OwnedFd; 2],
    stop: Arc<OwnedFd>,
    /// From the sender, from the receiver.
    links: [Link<Vec<u8>>; 2],
    loss: Probability,
    rng: Rng,
    start: Instant,
    buffer: Vec<u8>,
    crossed: Crossed,
}

impl Pump {
    fn new(devices: [OwnedFd; 2], stop: Arc<OwnedFd>, path: Path) -> Pump {
        let config = LinkConfig::new()
            .rate(path.rate)
            .delay(path.rtt.as_nanos() as u64 / 2)
            .limit(Limit::bytes(path.bandwidth_delay_product()));
        Pump {
            devices,
            stop,
            links: [Link::new(config.clone(), 0), Link::new(config, 0)],
            loss: path.loss,
            rng: Rng::new(path.seed),
            start: Instant::now(),
            buffer: vec![0; 65_536],
            crossed: Crossed::default(),
        }
    }

    fn run(mut self) -> Crossed {
        crate::path::precise_timers();
        while self.wait() {
            self.take(0);
            self.take(1);
            self.deliver(0);
            self.deliver(1);
        }
        Crossed { forward: self.links[0].stats(), ..self.crossed }
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Sleeps until there is something to do. `false`: the path is cut.
    fn wait(&self) -> bool {
        let due = self.links.iter().filter_map(Link::next_event).min();
        let timeout = due.map(|due| {
            let nanos = due.saturating_sub(self.now()).max(TICK.as_nanos() as u64);
            Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
        });
        let [sender, receiver] = &self.devices;
        let mut fds = [sender.as_fd(), receiver.as_fd(), self.stop.as_fd()]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => fds[2].revents().is_empty(),
            Err(error) => panic!("poll: {error}"),
        }
    }

    /// Everything that a device sends enters its link.
    fn take(&mut self, side: usize) {
        while let Ok(len) = rustix::io::read(&self.devices[side], &mut self.buffer[..]) {
            let packet = &self.buffer[..len];
            if side == 0 && carries_data(packet) {
                self.crossed.data_segments += 1;
                if self.rng.chance(self.loss) {
                    self.crossed.lost += 1;
                    continue;
                }
            }
            let packet = packet.to_vec();
            let now = self.now();
            self.links[side].enqueue(now, packet, len);
        }
    }

    fn deliver(&mut self, side: usize) {
        let now = self.now();
        while let Some(delivery) = self.links[side].poll(now) {
            if rustix::io::write(&self.devices[1 - side], &delivery.packet).is_err() {
                self.crossed.undelivered += 1;
            }
        }
    }
}

/// Is it a TCP segment over IPv4 with a payload?
fn carries_data(packet: &[u8]) -> bool {
    let [0x45, _, high, low, ..] = packet else { return false };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    let header_len = packet.get(32).map(|byte| usize::from(byte >> 4) * 4);
    packet[9] == 6 && header_len.is_some_and(|header_len| length > 20 + header_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(payload: usize) -> Vec<u8> {
        let mut packet = vec![0; 40 + payload];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(40 + payload as u16).to_be_bytes());
        packet[9] = 6;
        packet[32] = 0x50;
        packet
    }

    #[test]
    fn only_segments_with_data_are_drawn() {
        assert!(carries_data(&segment(1)) && !carries_data(&segment(0)));
        let mut udp = segment(9);
        udp[9] = 17;
        assert!(!carries_data(&udp) && !carries_data(&[0x45]) && !carries_data(&[]));
    }

    /// At 8 Mbit/s a packet of 1000 bytes takes 1 ms and the queue of a BDP holds twenty. A busy
    /// machine may hold a thread up.
    #[test]
    fn rate_delay_and_queue_are_kept() {
        let path = Path { rtt: Duration::from_millis(20), rate: 8_000_000, loss: Probability::ZERO, seed: 1 };
        assert_eq!(path.bandwidth_delay_product(), 20_000);
        let mut tries = Vec::new();
        let kept = (0..10).any(|_| {
            let (crossed, arrivals) = thirty_cross(path);
            let kept = crossed.undelivered == 0
                && crossed.forward.drops_queue + arrivals.len() as u64 == 30
                && (21..=23).contains(&arrivals.len())
                && arrivals[0] >= Duration::from_millis(11)
                && arrivals[20] - arrivals[0] >= Duration::from_millis(19);
            tries.push((crossed, arrivals));
            kept
        });
        assert!(kept, "what crossed, and when each arrived: {tries:?}");
    }

    /// Thirty packets of 1000 bytes enter at once: what became of them, and when they arrived
    /// within 200 ms.
    fn thirty_cross(path: Path) -> (Crossed, Vec<Duration>) {
        let (sender, sender_end) = crate::socket_device::pair();
        let (receiver, receiver_end) = crate::socket_device::pair();
        let begun = Instant::now();
        let bottleneck = Bottleneck::start(sender_end, receiver_end, path);
        for _ in 0..30 {
            while rustix::io::write(&sender, &segment(960)) == Err(Errno::AGAIN) {
                thread::yield_now();
            }
        }
        let mut arrivals = Vec::new();
        while begun.elapsed() < Duration::from_millis(200) {
            if rustix::io::read(&receiver, &mut [0; 2000]).is_ok() {
                arrivals.push(begun.elapsed());
            }
            thread::sleep(Duration::from_micros(200));
        }
        let crossed = bottleneck.end();
        assert_eq!((crossed.data_segments, crossed.lost), (30, 0));
        (crossed, arrivals)
    }

    /// The draw depends on the seed and the number of the segment alone.
    #[test]
    fn the_same_seed_loses_the_same_segments() {
        let lost = |seed| {
            let path = Path { rtt: Duration::ZERO, rate: 0, loss: Probability::percent(10.0), seed };
            let (_, a) = crate::socket_device::pair();
            let (_, b) = crate::socket_device::pair();
            let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).expect("eventfd"));
            let mut pump = Pump::new([a, b], stop, path);
            (0..100).map(|_| pump.rng.chance(pump.loss)).collect::<Vec<_>>()
        };
        assert_eq!(lost(5), lost(5));
        assert_ne!(lost(5), lost(6));
    }
}
