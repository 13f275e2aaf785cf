//! The path between two ends, in real time.
//!
//! A thread reads whole IP packets from both ends, shows each to a [`Hook`], holds it for the
//! path's delay and hands it to the other end. Everything it saw is in a [`Record`]. An end is a
//! descriptor with packet semantics: a TUN device, or one side of a packet socket pair. It has no
//! rate and no queue limit; time comes from the monotonic clock.
use crate::direction::Direction;
use crate::hook::{Hook, Verdict, pass};
use crate::record::{Fate, Packet, Record};
use crate::segment::Segment;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A running path. Dropping it ends the thread.
pub struct Wire {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    wake: OwnedFd,
    start: Instant,
}

struct State {
    hook: Hook,
    delay: Duration,
    record: Record,
    injected: Vec<(Direction, Vec<u8>)>,
    stop: bool,
}

impl Wire {
    /// Joins two ends with `one_way` delay in each direction.
    pub fn new(client: OwnedFd, server: OwnedFd, one_way: Duration) -> Wire {
        let state = State {
            hook: pass(),
            delay: one_way,
            record: Record::default(),
            injected: Vec::new(),
            stop: false,
        };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("eventfd");
        let shared = Arc::new(Shared { state: Mutex::new(state), wake, start: Instant::now() });
        let pump = Pump {
            ends: [client, server],
            shared: shared.clone(),
            waiting: BinaryHeap::new(),
            entered: 0,
            buffer: Box::new([0; 65536]),
        };
        let thread = thread::Builder::new().name("wire".into()).spawn(move || pump.run()).expect("a thread");
        Wire { shared, thread: Some(thread) }
    }

    /// Changes what happens to packets from now on.
    pub fn set_hook(&self, hook: Hook) {
        self.shared.lock().hook = hook;
    }

    /// Sends a packet of the test's own, as if it had just entered in this direction. No hook sees
    /// it.
    pub fn inject(&self, direction: Direction, packet: Vec<u8>) {
        self.shared.lock().injected.push((direction, packet));
        self.shared.wake();
    }

    /// Takes what crossed so far and starts an empty record.
    pub fn take_record(&self) -> Record {
        std::mem::take(&mut self.shared.lock().record)
    }

    /// Waits until nothing has entered for `quiet` (at most 10 s) and takes the record.
    pub fn settle(&self, quiet: Duration) -> Record {
        let begun = Instant::now();
        loop {
            let last = self.shared.lock().record.last_at().unwrap_or_default().max(begun - self.shared.start);
            let idle = self.shared.start.elapsed().saturating_sub(last);
            if idle >= quiet || begun.elapsed() > Duration::from_secs(10) {
                return self.take_record();
            }
            thread::sleep(quiet - idle);
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        rustix::io::write(&self.wake, &1u64.to_ne_bytes()).expect("eventfd takes a 1");
    }
}

/// A packet on its way: when it arrives, its number (keeps order among equals), where to, its
/// bytes.
type InFlight = Reverse<(Instant, u64, Direction, Vec<u8>)>;

struct Pump {
    ends: [OwnedFd; 2],
    shared: Arc<Shared>,
    waiting: BinaryHeap<InFlight>,
    entered: u64,
    buffer: Box<[u8; 65536]>,
}

impl Pump {
    fn run(mut self) {
        precise_timers();
        let shared = self.shared.clone();
        while !shared.lock().stop {
            self.deliver_due();
            self.wait();
            self.take_injected();
            for direction in [Direction::ToServer, Direction::ToClient] {
                self.take_from(direction);
            }
        }
    }

    fn deliver_due(&mut self) {
        while self.waiting.peek().is_some_and(|Reverse((due, ..))| *due <= Instant::now()) {
            let Some(Reverse((_, _, direction, packet))) = self.waiting.pop() else { return };
            let end = match direction {
                Direction::ToServer => &self.ends[1],
                Direction::ToClient => &self.ends[0],
            };
            if rustix::io::write(end, &packet).is_err() {
                self.shared.lock().record.undelivered += 1;
            }
        }
    }

    fn wait(&self) {
        let due = self.waiting.peek().map(|Reverse((due, ..))| due.saturating_duration_since(Instant::now()));
        let timeout =
            due.map(|due| Timespec { tv_sec: due.as_secs() as i64, tv_nsec: i64::from(due.subsec_nanos()) });
        let [client, server] = &self.ends;
        let mut fds = [client.as_fd(), server.as_fd(), self.shared.wake.as_fd()]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
        if fds[2].revents().contains(PollFlags::IN) {
            rustix::io::read(&self.shared.wake, &mut [0; 8]).expect("eventfd");
        }
        if fds[..2].iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR)) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn take_from(&mut self, direction: Direction) {
        for _ in 0..64 {
            match rustix::io::read(&self.ends[direction as usize], &mut self.buffer[..]) {
                Ok(0) | Err(_) => return,
                Ok(len) => self.enter(direction, self.buffer[..len].to_vec()),
            }
        }
    }

    fn take_injected(&mut self) {
        let injected = std::mem::take(&mut self.shared.lock().injected);
        for (direction, packet) in injected {
            self.note(direction, &packet, Fate::Injected);
            self.send(direction, packet, Duration::ZERO);
        }
    }

    /// A packet of an end enters the path.
    fn enter(&mut self, direction: Direction, packet: Vec<u8>) {
        let verdict = match Segment::decode(&packet) {
            Some(segment) => (self.shared.lock().hook)(direction, &segment, &packet),
            None => Verdict::Pass,
        };
        match verdict {
            Verdict::Pass => {
                self.note(direction, &packet, Fate::Passed);
                self.send(direction, packet, Duration::ZERO);
            }
            Verdict::Drop => self.note(direction, &packet, Fate::Dropped),
            Verdict::Replace(other) => {
                self.note(direction, &packet, Fate::Changed);
                self.send(direction, other, Duration::ZERO);
            }
            Verdict::Duplicate { after } => {
                self.note(direction, &packet, Fate::Passed);
                self.send(direction, packet.clone(), Duration::ZERO);
                self.send(direction, packet, after);
            }
        }
    }

    fn note(&self, direction: Direction, packet: &[u8], fate: Fate) {
        let at = self.shared.start.elapsed();
        if let Some(segment) = Segment::decode(packet) {
            let bytes = packet.to_vec();
            self.shared.lock().record.packets.push(Packet { at, direction, segment, fate, bytes });
        }
    }

    fn send(&mut self, direction: Direction, packet: Vec<u8>, extra: Duration) {
        let due = Instant::now() + self.shared.lock().delay + extra;
        self.entered += 1;
        self.waiting.push(Reverse((due, self.entered, direction, packet)));
    }
}

/// Lowers this thread's timer slack from 50 µs to 1 ns.
pub(crate) fn precise_timers() {
    let thread = rustix::thread::gettid().as_raw_nonzero();
    std::fs::write(format!("/proc/{thread}/timerslack_ns"), "1").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SocketDevice;
    use device::Device as _;

    const DELAY: Duration = Duration::from_millis(4);

    /// Packets come out in order and no more than a fraction of a millisecond late, but for those
    /// that a busy machine holds up.
    #[test]
    fn delays_precisely() {
        const ROUNDS: usize = 20;
        let (_client, client_end) = SocketDevice::new(1500);
        let (mut server, server_end) = SocketDevice::new(1500);
        let wire = Wire::new(client_end, server_end, DELAY);
        let mut rounds = (0..ROUNDS).map(|_| latenesses(&wire, &mut server));
        let precise = rounds.find(|late| late[4] < Duration::from_micros(200));
        assert!(
            precise.is_some(),
            "a fifth were later in each of {ROUNDS} rounds: {:?}",
            latenesses(&wire, &mut server)
        );
    }

    /// How much more than the delay each of some packets took, sorted.
    fn latenesses(wire: &Wire, server: &mut SocketDevice) -> Vec<Duration> {
        let pass = |number| {
            let sent = Instant::now();
            wire.inject(Direction::ToServer, vec![number; 40]);
            let mut batch = wire::RxBatch::default();
            while server.recv(&mut batch, 1).unwrap() == 0 {
                assert!(sent.elapsed() < Duration::from_secs(5), "packet {number} is lost");
                thread::yield_now();
            }
            assert_eq!(batch.data(0), Some(&[number; 40][..]));
            sent.elapsed().checked_sub(DELAY).expect("no packet is early")
        };
        let mut late: Vec<Duration> = (0..21).map(pass).collect();
        late.sort();
        late
    }
}
