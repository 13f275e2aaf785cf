//! Flows that share one link in virtual time: each has a host of its own, all talk to one receiver, the way back is only long.
//!
//! ```text
//!  sender 0 ─┐
//!  sender 1 ─┼─► loss ─► queue ─► rate ─► delay ─► receiver
//!  …         │                                        │
//!            ◄──────────────── delay ─────────────────┘
//! ```

use core::time::Duration;
use proto::*;
use qdisc::{Limit, Link, LinkConfig, Loss, Probability};
use std::net::SocketAddr;

/// What the flows share.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    pub(crate) bits_per_second: u64,
    pub(crate) rtt_ms: u64,
    /// Queue, in round trips of the link's rate, percent.
    pub(crate) queue_percent: u64,
    /// Random loss in front of it, percent.
    pub(crate) loss: f64,
}

impl Path {
    /// Bytes that fill the pipe.
    pub(crate) fn bdp(&self) -> u64 {
        self.bits_per_second / 8 * self.rtt_ms / 1000
    }
}

pub(crate) struct Flow {
    stack: Stack,
    id: ConnId,
    child: Option<ConnId>,
    /// Bytes that have arrived.
    pub(crate) received: u64,
}

pub(crate) struct Bottleneck {
    pub(crate) now: Instant,
    pub(crate) flows: Vec<Flow>,
    receiver: Stack,
    begun: bool,
    forward: Link<bytes::Bytes>,
    back: Link<bytes::Bytes>,
}

fn capabilities() -> Capabilities {
    Capabilities { mtu: 1500, gso_max_size: 65_536, tx_checksum: false }
}

fn sender_address(flow: usize) -> String {
    format!("10.0.{flow}.1")
}

impl Bottleneck {
    /// One flow per element of `algorithms`; once all are open they begin to send, and never stop.
    pub(crate) fn new(path: Path, algorithms: &[CongestionControl], seed: u64) -> Bottleneck {
        Bottleneck::with(path, algorithms, seed, &Config::default())
    }

    /// Its senders with these settings.
    pub(crate) fn with(
        path: Path,
        algorithms: &[CongestionControl],
        seed: u64,
        config: &Config,
    ) -> Bottleneck {
        let half = path.rtt_ms * 500_000;
        let queue = (path.bdp() * path.queue_percent / 100).max(3000);
        let forward = LinkConfig::new()
            .rate(path.bits_per_second)
            .delay(half)
            .limit(Limit::bytes(queue))
            .loss(Loss::Random(Probability::percent(path.loss)));
        let mut receiver = Stack::new(Config::default(), capabilities(), [9; 32]);
        receiver.add_address("10.9.0.2".parse().unwrap(), 8);
        let now = Instant::ZERO + Duration::from_secs(1000);
        let server: SocketAddr = "10.9.0.2:80".parse().unwrap();
        let socket = SocketOptions { recv_buffer: Some(16 << 20), ..SocketOptions::default() };
        let listener =
            receiver.listen(now, server, ListenOptions { socket, ..ListenOptions::default() }).unwrap();
        let mut it = Bottleneck {
            now,
            flows: Vec::new(),
            receiver,
            begun: false,
            forward: Link::new(forward, seed),
            back: Link::new(LinkConfig::new().delay(half), seed),
        };
        for (number, algorithm) in algorithms.iter().enumerate() {
            it.open((number, *algorithm), server, listener, (seed, config));
        }
        it.begun = true;
        it
    }

    fn open(
        &mut self,
        (number, algorithm): (usize, CongestionControl),
        server: SocketAddr,
        listener: ListenerId,
        (seed, config): (u64, &Config),
    ) {
        let mut stack = Stack::new(config.clone(), capabilities(), [seed as u8 ^ (number + 1) as u8; 32]);
        stack.add_address(sender_address(number).parse().unwrap(), 24);
        let socket = SocketOptions {
            congestion: Some(algorithm),
            send_buffer: Some(16 << 20),
            ..SocketOptions::default()
        };
        let options = ConnectOptions { socket, ..ConnectOptions::default() };
        let id = stack.connect(self.now, server, options).unwrap();
        self.flows.push(Flow { stack, id, child: None, received: 0 });
        let child = loop {
            self.step();
            if let Ok((child, _)) = self.receiver.accept(self.now, listener) {
                break child;
            }
        };
        self.flows[number].child = Some(child);
    }

    /// Sends what may be sent, and waits for what happens next.
    fn step(&mut self) {
        self.flush();
        let timers = self.flows.iter_mut().filter_map(|flow| flow.stack.poll_timeout());
        let links = [self.forward.next_event(), self.back.next_event()].into_iter().flatten();
        let next = timers.chain(self.receiver.poll_timeout()).chain(links.map(Instant::from_nanos)).min();
        self.now = next.expect("something always happens").max(self.now);
        self.receiver.handle_timeout(self.now);
        for flow in &mut self.flows {
            flow.stack.handle_timeout(self.now);
        }
        let at = self.now.as_nanos();
        while let Some(arrived) = self.forward.poll(at) {
            let reply = self.receiver.handle_packet(self.now, RxPacket::new(arrived.packet));
            assert!(reply.is_none());
        }
        while let Some(arrived) = self.back.poll(at) {
            let number = usize::from(arrived.packet[18]);
            assert!(
                self.flows[number].stack.handle_packet(self.now, RxPacket::new(arrived.packet)).is_none()
            );
        }
    }

    fn flush(&mut self) {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let at = self.now.as_nanos();
        for flow in &mut self.flows {
            let mut write = || {
                let mut zeros = bytes::Bytes::from_static(&ZEROS);
                flow.stack.write_bytes(self.now, flow.id, &mut zeros)
            };
            while self.begun && write().is_ok() {}
            while let Some(packet) = flow.stack.poll_transmit(self.now) {
                for segment in packet.segments() {
                    let len = segment.len();
                    self.forward.enqueue(at, segment, len);
                }
            }
            let mut buf = [0; 1 << 16];
            while let Some(child) = flow.child
                && let Ok(n @ 1..) = self.receiver.read(self.now, child, &mut buf)
            {
                flow.received += n as u64;
            }
        }
        while let Some(packet) = self.receiver.poll_transmit(self.now) {
            for segment in packet.segments() {
                let len = segment.len();
                self.back.enqueue(at, segment, len);
            }
        }
    }

    pub(crate) fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while self.now < end {
            self.step();
        }
    }

    /// How often each flow had to repair losses.
    pub(crate) fn recoveries(&self) -> Vec<u64> {
        self.flows.iter().map(|flow| flow.stack.counters().sack_recovery).collect()
    }

    /// Runs for `ms`; bits per second that each flow delivered meanwhile.
    pub(crate) fn goodput(&mut self, ms: u64) -> Vec<u64> {
        let before: Vec<u64> = self.flows.iter().map(|flow| flow.received).collect();
        self.run(ms);
        self.flows.iter().zip(before).map(|(flow, before)| (flow.received - before) * 8000 / ms).collect()
    }
}

/// Jain's index of fairness, in thousandths.
pub(crate) fn jain(rates: &[u64]) -> u64 {
    let sum: u128 = rates.iter().map(|rate| u128::from(*rate)).sum();
    let squares: u128 = rates.iter().map(|rate| u128::from(*rate).pow(2)).sum();
    (sum * sum * 1000 / (rates.len() as u128 * squares).max(1)) as u64
}
