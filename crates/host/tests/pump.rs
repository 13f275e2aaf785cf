//! Two hosts, two pumps, a wire in memory and a virtual clock: no runtime.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
extern crate firstbyte_host as host;

use bytes::Bytes;
use device::{Device, memory};
use host::{Clock, Error, Host, Phase, Pump, VirtualClock};
use proto::{
    CloseReason, Config, ConnId, ConnectError, ConnectOptions, FastOpen, Instant, ListenOptions, ListenerId,
    Outcome, ReadError, SocketOption, Stack, State,
};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use wire::{Capabilities, RxBatch, RxPacket, TxPacket};

const WIRE: Capabilities = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };

/// Counts wake-ups.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

struct Side {
    host: Arc<Host<Arc<VirtualClock>>>,
    pump: Pump<memory::MemoryDevice, Host<Arc<VirtualClock>>>,
    /// Calls of the notify hook.
    notified: Arc<Count>,
}

impl Side {
    fn new(device: memory::MemoryDevice, clock: &Arc<VirtualClock>, address: &str, config: Config) -> Side {
        let mut stack = Stack::new(config, device.capabilities(), [7; 32]);
        stack.add_address(address.parse().unwrap(), 24);
        let notified = Arc::new(Count::default());
        let hook = notified.clone();
        let host = Arc::new(Host::new(stack, clock.clone(), move || hook.clone().wake()));
        Side { pump: Pump::new(host.clone(), device), host, notified }
    }

    fn listen(&self, options: ListenOptions) -> ListenerId {
        self.host.listen(server_addr(), options).unwrap()
    }

    fn connect(&self, options: ConnectOptions) -> ConnId {
        self.host.connect(server_addr(), options).unwrap()
    }
}

/// A server and a client with the same virtual time.
struct Pair {
    server: Side,
    client: Side,
    clock: Arc<VirtualClock>,
}

impl Pair {
    fn new() -> Pair {
        Pair::with_queue(memory::QUEUE_LEN)
    }

    fn with_queue(queue_len: usize) -> Pair {
        let clock = Arc::new(VirtualClock::new(Instant::from_nanos(1_000_000_000)));
        let (left, right) = memory::pair_with(WIRE, WIRE, queue_len);
        let server = Side::new(left, &clock, "10.0.0.1", Config::default());
        let client = Side::new(right, &clock, "10.0.0.2", Config::default());
        Pair { server, client, clock }
    }

    /// Steps both until neither has anything to do at this time.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            let now = self.clock.now();
            let mut rests = true;
            for side in [&mut self.server, &mut self.client] {
                let step = side.pump.step(true).unwrap();
                rests &= step.is_drained && !step.has_more && step.deadline.is_none_or(|at| at > now);
            }
            if rests && [&self.server, &self.client].iter().all(|side| side.pump.device().backlog() == 0) {
                return;
            }
        }
        panic!("the two sides never come to rest");
    }

    /// Opens a connection.
    fn connected(&mut self) -> (ConnId, ConnId) {
        let listener = self.server.listen(ListenOptions::default());
        let client = self.client.connect(ConnectOptions::default());
        self.settle();
        let (server, _) = self.server.host.try_accept(listener).unwrap();
        (client, server)
    }
}

fn server_addr() -> SocketAddr {
    "10.0.0.1:80".parse().unwrap()
}

/// Returns a waker, and its counter.
fn waker() -> (Waker, Arc<Count>) {
    let count = Arc::new(Count::default());
    (Waker::from(count.clone()), count)
}

#[test]
fn a_connection_opens_carries_and_closes() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    assert_eq!(pair.client.host.try_write(client, b"hello"), Ok(5));
    assert_eq!(pair.client.host.shutdown(client), Ok(()));
    pair.settle();
    let mut buf = [0; 8];
    assert_eq!(pair.server.host.try_read(server, &mut buf), Ok(5));
    assert_eq!(&buf[..5], b"hello");
    assert_eq!(pair.server.host.try_read(server, &mut buf), Ok(0));
    pair.server.host.close(server);
    pair.settle();
    pair.client.host.close(client);
    pair.settle();
    for side in [&pair.server, &pair.client] {
        assert_eq!(side.host.inspect(|stack| stack.table_sizes().connections), 0);
    }
}

#[test]
fn wakers_fire_once_and_only_for_what_they_wait_for() {
    let mut pair = Pair::new();
    let listener = pair.server.listen(ListenOptions::default());
    let ((accept_waker, accepts), (reader, reads), (writer, writes)) = (waker(), waker(), waker());
    for _ in 0..3 {
        let mut cx = Context::from_waker(&accept_waker);
        assert!(pair.server.host.poll_accept(&mut cx, listener).is_pending());
    }
    assert_eq!(pair.server.host.waiting_count(), 1);
    let client = pair.client.connect(ConnectOptions::default());
    pair.settle();
    assert_eq!((accepts.take(), pair.server.host.waiting_count()), (1, 0));
    let (server, _) = pair.server.host.try_accept(listener).unwrap();

    let mut buf = [0; 8];
    assert!(pair.server.host.poll_read(&mut Context::from_waker(&reader), server, &mut buf).is_pending());
    while pair.server.host.poll_write(&mut Context::from_waker(&writer), server, &[0; 65_536]).is_ready() {}
    pair.settle();
    // The client does not read: both buffers are full, and the reader has nothing to read.
    while pair.server.host.poll_write(&mut Context::from_waker(&writer), server, &[0; 65_536]).is_ready() {
        pair.settle();
    }
    writes.take();
    assert_eq!(reads.take(), 0);
    pair.client.host.try_write(client, b"data").unwrap();
    pair.settle();
    assert_eq!((reads.take(), writes.take()), (1, 0));
    while pair.client.host.try_read(client, &mut [0; 65_536]).is_ok() {
        pair.settle();
    }
    assert_eq!((reads.take(), writes.take()), (0, 1));
}

#[test]
fn every_task_that_waits_is_woken() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    let waiting: Vec<_> = (0..5).map(|_| waker()).collect();
    for (waker, _) in &waiting {
        assert!(pair.server.host.poll_readable(&mut Context::from_waker(waker), server).is_pending());
    }
    pair.client.host.try_write(client, b"x").unwrap();
    pair.settle();
    assert!(waiting.iter().all(|(_, count)| count.take() == 1));
}

#[test]
fn wakers_of_dropped_futures_do_not_pile_up() {
    let mut pair = Pair::new();
    let (_, server) = pair.connected();
    let readable = |waker: &Waker| pair.server.host.poll_readable(&mut Context::from_waker(waker), server);
    let (live, count) = waker();
    let mut asked = 0;
    let mut dropped = Vec::new();
    // A thousand futures are dropped in each of a hundred seconds.
    for _ in 0..100 {
        assert!(readable(&live).is_pending());
        for _ in 0..1000 {
            let (waker, count) = waker();
            assert!(readable(&waker).is_pending());
            dropped.push(count);
        }
        asked += count.take();
        pair.clock.advance(Duration::from_secs(1));
    }
    let held = dropped.iter().filter(|count| Arc::strong_count(count) > 1).count();
    // The live one returns in time, each second.
    assert_eq!((held, asked), (2000, 99));
}

/// Any number of waiters: they do not wake each other forever, and all get their events.
#[test]
fn thousands_may_accept_from_one_listener() {
    let mut pair = Pair::new();
    let listener = pair.server.listen(ListenOptions::default());
    let acceptors: Vec<_> = (0..3000).map(|_| waker()).collect();
    // Polls like a runtime, from its queue: all at the start, then the woken ones.
    let mut queue: VecDeque<usize> = (0..acceptors.len()).collect();
    let (mut polls, mut accepted) = (Vec::new(), 0);
    for _ in 0..4 {
        let mut polled = 0;
        while let Some(next) = queue.pop_front() {
            polled += 1;
            assert!(polled < 100_000, "they wake one another for ever");
            let mut cx = Context::from_waker(&acceptors[next].0);
            while pair.server.host.poll_accept(&mut cx, listener).is_ready() {
                accepted += 1;
            }
            queue.extend((0..acceptors.len()).filter(|&other| acceptors[other].1.take() > 0));
        }
        polls.push(polled);
        pair.clock.advance(Duration::from_millis(500));
        pair.client.connect(ConnectOptions::default());
        pair.settle();
        queue.extend((0..acceptors.len()).filter(|&other| acceptors[other].1.take() > 0));
        assert_eq!(queue.len(), acceptors.len());
    }
    // Once per second the first 1,024 are checked.
    assert_eq!((polls, accepted), (vec![4024, 3000, 4024, 3000], 3));
}

#[test]
fn the_pump_is_told_once_until_it_comes() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    pair.client.host.set_option(client, proto::SocketOption::NoDelay(true)).unwrap();
    pair.settle();
    pair.client.notified.take();
    for _ in 0..5 {
        pair.client.host.try_write(client, b"x").unwrap();
    }
    assert_eq!(pair.client.notified.take(), 1);
    pair.settle();
    pair.client.host.try_write(client, b"x").unwrap();
    assert_eq!(pair.client.notified.take(), 1);
    pair.settle();
    // Reading few or no bytes does not announce a window (once the first read has made it large).
    assert_eq!(pair.server.host.try_read(server, &mut [0; 5]), Ok(5));
    pair.settle();
    pair.server.notified.take();
    assert_eq!(pair.server.host.try_read(server, &mut [0; 16]), Ok(1));
    assert_eq!(pair.server.host.try_read(server, &mut [0; 16]), Err(Error::Stack(ReadError::Blocked)));
    assert_eq!(pair.server.notified.take(), 0);
}

#[test]
fn a_verb_does_not_transmit() {
    let mut pair = Pair::new();
    let (client, _) = pair.connected();
    pair.client.host.try_write(client, b"x").unwrap();
    assert_eq!(pair.server.pump.device().backlog(), 0);
    pair.client.pump.step(true).unwrap();
    assert_eq!(pair.server.pump.device().backlog(), 1);
}

#[test]
fn the_deadline_of_a_step_is_exact() {
    let mut pair = Pair::new();
    let start = pair.clock.now();
    pair.client.connect(ConnectOptions::default());
    let step = pair.client.pump.step(true).unwrap();
    assert_eq!(pair.server.pump.device().backlog(), 1);
    assert_eq!(step.deadline, Some(start + Duration::from_secs(1)));
    pair.clock.advance_to(start + Duration::from_millis(999));
    pair.client.pump.step(true).unwrap();
    assert_eq!(pair.server.pump.device().backlog(), 1);
    pair.clock.advance_to(start + Duration::from_secs(1));
    pair.client.pump.step(true).unwrap();
    assert_eq!(pair.server.pump.device().backlog(), 2);
}

#[test]
fn a_device_that_takes_nothing_stops_the_stack_and_loses_nothing() {
    let mut pair = Pair::with_queue(2);
    let (client, server) = pair.connected();
    let data: Vec<u8> = (0..40_000u32).map(|i| i as u8).collect();
    let mut sent = pair.client.host.try_write(client, &data).unwrap();
    let step = pair.client.pump.step(true).unwrap();
    assert!(step.is_blocked);
    assert!(!step.has_more);
    let mut received = Vec::new();
    let mut buf = [0; 4096];
    for _ in 0..10_000 {
        pair.settle();
        while let Ok(len) = pair.server.host.try_read(server, &mut buf) {
            received.extend_from_slice(&buf[..len]);
        }
        sent += pair.client.host.try_write(client, &data[sent..]).unwrap_or(0);
        if received.len() == data.len() {
            break;
        }
        pair.clock.advance(Duration::from_millis(1));
    }
    assert!(received == data);
    assert_eq!(pair.client.host.info(client).unwrap().total_retrans, 0);
}

/// A server with Fast Open, 20 ms away, whose client has its cookie.
fn with_cookie() -> (Pair, ListenerId) {
    let mut pair = Pair::new();
    let listener = pair.server.listen(ListenOptions { fast_open: Some(16), ..ListenOptions::default() });
    let first =
        pair.client.connect(ConnectOptions { fast_open: FastOpen::Auto, ..ConnectOptions::default() });
    for _ in 0..3 {
        pair.client.pump.step(true).unwrap();
        pair.clock.advance(Duration::from_millis(10));
        pair.server.pump.step(true).unwrap();
        pair.clock.advance(Duration::from_millis(10));
    }
    assert_eq!(pair.client.host.outcome(first), Some(Outcome::CookieRequested { granted: true }));
    let (server, _) = pair.server.host.try_accept(listener).unwrap();
    for (side, id) in [(&pair.client, first), (&pair.server, server)] {
        side.host.abort(id);
    }
    pair.settle();
    (pair, listener)
}

fn visit(pair: &Pair) -> ConnId {
    let first_bytes = Bytes::from_static(b"GET!");
    pair.client.connect(ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes,
        ..ConnectOptions::default()
    })
}

#[test]
fn an_answer_in_the_same_poll_rides_on_the_syn_ack() {
    let (mut pair, listener) = with_cookie();
    let client = visit(&pair);
    pair.client.pump.step(true).unwrap();
    pair.server.pump.step(true).unwrap();
    assert_eq!(pair.client.pump.device().backlog(), 0, "the SYN-ACK is held");
    let (server, _) = pair.server.host.try_accept(listener).unwrap();
    assert_eq!(pair.server.host.try_read(server, &mut [0; 16]), Ok(4));
    assert_eq!(pair.server.host.try_write(server, b"reply"), Ok(5));
    assert_eq!(pair.server.host.shutdown(server), Ok(()));
    pair.server.pump.step(true).unwrap();
    assert_eq!(pair.client.pump.device().backlog(), 1);
    pair.client.pump.step(true).unwrap();
    let mut reply = [0; 16];
    assert_eq!(pair.client.host.try_read(client, &mut reply), Ok(5));
    assert_eq!(pair.client.host.try_read(client, &mut reply), Ok(0));
    assert_eq!(pair.client.host.outcome(client), Some(Outcome::Accepted));
    assert_eq!(pair.server.host.info(server).unwrap().synack_data_len, 5);
    // One FIN-ACK answers SYN-ACK, data and FIN.
    pair.client.host.close(client);
    pair.client.pump.step(true).unwrap();
    assert_eq!(pair.server.pump.device().backlog(), 1);
}

#[test]
fn without_an_answer_the_syn_ack_leaves_at_its_deadline() {
    let (mut pair, _listener) = with_cookie();
    visit(&pair);
    pair.client.pump.step(true).unwrap();
    let held_since = pair.clock.now();
    let step = pair.server.pump.step(true).unwrap();
    let deadline = step.deadline.unwrap();
    let hold = deadline.since(held_since);
    assert_eq!(hold, Duration::from_millis(1));
    pair.clock.advance_to(deadline);
    pair.server.pump.step(true).unwrap();
    assert_eq!(pair.client.pump.device().backlog(), 1);
}

#[test]
fn packets_nobody_claims_are_handed_back() {
    let mut pair = Pair::new();
    let (sender, receiver) = std::sync::mpsc::channel::<RxPacket>();
    pair.server.pump.on_unclaimed(move |packet| sender.send(packet).unwrap());
    // An IPv4 packet with a UDP datagram of 4 bytes to 10.0.0.1, with a valid header checksum.
    let mut udp = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1];
    let sum: u32 = udp.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    udp[10..12].copy_from_slice(&checksum.to_be_bytes());
    udp.extend([0x30, 0x39, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
    let packet = wire::TxPacket::new(&udp, smallvec::SmallVec::new());
    pair.client.pump.device_mut().send(&mut [packet].into()).unwrap();
    pair.server.pump.step(true).unwrap();
    assert_eq!(receiver.try_recv().unwrap().data, udp);
}

#[test]
fn a_stopped_host_tells_everyone() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    let (reader, reads) = waker();
    assert!(pair.client.host.poll_readable(&mut Context::from_waker(&reader), client).is_pending());
    pair.client.host.stop();
    assert_eq!(pair.client.host.phase(), Phase::Stopped);
    assert_eq!((reads.take(), pair.client.host.waiting_count()), (1, 0));
    let readable = pair.client.host.poll_readable(&mut Context::from_waker(&reader), client);
    assert_eq!(readable, Poll::Ready(Err(Error::Stopped)));
    let again: Result<_, Error<ConnectError>> =
        pair.client.host.connect(server_addr(), ConnectOptions::default());
    assert_eq!(again, Err(Error::Stopped));
    pair.settle();
    // Open connections are reset, so that the peer does not wait forever.
    assert_eq!(pair.server.host.close_reason(server), Some(CloseReason::Reset));
}

#[test]
fn a_shutdown_delivers_first() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    pair.client.host.try_write(client, b"last words").unwrap();
    pair.client.host.begin_shutdown();
    assert_eq!(pair.client.host.phase(), Phase::Closing);
    assert!(!pair.client.host.is_delivered());
    pair.settle();
    // The ACK of the FIN may be delayed.
    pair.clock.advance(Duration::from_millis(500));
    pair.settle();
    assert!(pair.client.host.is_delivered());
    pair.client.host.stop();
    pair.settle();
    let mut buf = [0; 16];
    assert_eq!(pair.server.host.try_read(server, &mut buf), Ok(10));
    assert_eq!(pair.server.host.try_read(server, &mut buf), Ok(0));
    assert_eq!(pair.server.host.info(server).unwrap().state, State::CloseWait);
}

#[test]
fn what_came_before_a_device_died_is_handled_first() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    pair.client.host.try_write(client, b"last words").unwrap();
    pair.client.pump.step(true).unwrap();
    let Pair { server: mut side, client: gone, .. } = pair;
    drop(gone);
    assert!(!side.pump.step(true).unwrap().is_drained);
    assert_eq!(side.host.try_read(server, &mut [0; 16]), Ok(10));
    assert_eq!(side.pump.step(true).unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn a_dead_device_ends_the_pump() {
    let pair = Pair::new();
    let Pair { server, mut client, .. } = pair;
    drop(server);
    assert_eq!(client.pump.step(true).unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
}

/// A device that fails to send while told to.
struct Failing {
    wire: memory::MemoryDevice,
    fails: bool,
}

impl Device for Failing {
    fn capabilities(&self) -> Capabilities {
        self.wire.capabilities()
    }

    fn recv(&mut self, batch: &mut RxBatch, max: usize) -> std::io::Result<usize> {
        self.wire.recv(batch, max)
    }

    fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> std::io::Result<usize> {
        if self.fails { Err(std::io::Error::other("no buffers")) } else { self.wire.send(batch) }
    }

    fn as_fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }
}

/// The packets go back to the stack, which retries: no retransmission, no timeout.
#[test]
fn what_a_device_fails_to_send_is_not_lost() {
    let clock = Arc::new(VirtualClock::new(Instant::from_nanos(1_000_000_000)));
    let (left, right) = memory::pair(WIRE);
    let mut server = Side::new(left, &clock, "10.0.0.1", Config::default());
    let mut stack = Stack::new(Config::default(), WIRE, [7; 32]);
    stack.add_address("10.0.0.2".parse().unwrap(), 24);
    let client = Arc::new(Host::new(stack, clock.clone(), || {}));
    let mut pump = Pump::new(client.clone(), Failing { wire: right, fails: false });
    let listener = server.listen(ListenOptions::default());
    let id = client.connect(server_addr(), ConnectOptions::default()).unwrap();
    for _ in 0..4 {
        pump.step(true).unwrap();
        server.pump.step(true).unwrap();
    }
    let (accepted, _) = server.host.try_accept(listener).unwrap();
    pump.device_mut().fails = true;
    assert_eq!(client.try_write(id, &[1; 4000]), Ok(4000));
    let step = pump.step(false).unwrap();
    assert!(pump.send_errors() > 0 && !step.is_blocked);
    assert_eq!(step.deadline, Some(Instant::ZERO), "the deadlines are others");
    assert_eq!(client.inspect(|stack| stack.info(id).unwrap().flight_size), 0);
    let step = pump.step(false).unwrap();
    clock.advance_to(step.deadline.unwrap());
    pump.device_mut().fails = false;
    for _ in 0..4 {
        pump.step(true).unwrap();
        server.pump.step(true).unwrap();
    }
    assert_eq!(server.host.try_read(accepted, &mut [0; 8000]), Ok(4000));
    let counters = client.inspect(|stack| stack.counters().clone());
    assert_eq!((counters.retrans_segs, counters.timeouts), (0, 0));
}

/// Every write that leaves work, now or later, notifies the pump.
#[test]
fn a_write_that_has_to_wait_tells_the_pump_of_its_deadline() {
    for situation in ["closed window", "cork", "Nagle"] {
        let mut pair = Pair::new();
        let (client, _server) = pair.connected();
        match situation {
            "closed window" => {
                let (waker, _) = waker();
                let mut cx = Context::from_waker(&waker);
                // Nobody reads.
                while let Poll::Ready(written) = pair.client.host.poll_write(&mut cx, client, &[7; 10_000]) {
                    written.unwrap();
                    pair.settle();
                }
            }
            "cork" => pair.client.host.set_option(client, SocketOption::Cork(true)).unwrap(),
            _ => {
                assert_eq!(pair.client.host.try_write(client, b"unacknowledged"), Ok(14));
                pair.client.pump.step(true).unwrap();
            }
        }
        let step = pair.client.pump.step(true).unwrap();
        pair.client.notified.take();
        let (waker, _) = waker();
        let mut cx = Context::from_waker(&waker);
        let _ = pair.client.host.poll_write(&mut cx, client, b"x");
        let told = pair.client.notified.take();
        let pending = pair.client.host.inspect(|stack| stack.is_transmit_pending());
        let deadline = pair.client.host.configure(|stack, _| stack.poll_timeout());
        assert!(told == 1 || (!pending && deadline == step.deadline), "{situation}: {deadline:?}");
    }
}

/// The clock jumps over a thousand timeouts: each step handles some of them and asks for another
/// step, so that other users of the lock get it in between.
#[test]
fn many_timeouts_take_many_steps() {
    let mut pair = Pair::new();
    for host in 0..4 {
        for port in 1..=250 {
            let nobody = SocketAddr::new([10, 0, 1, host].into(), port);
            pair.client.host.connect(nobody, ConnectOptions::default()).unwrap();
        }
    }
    pair.settle();
    pair.clock.advance(Duration::from_secs(1));
    let retransmitted = |side: &Side| side.host.inspect(|stack| stack.counters().syn_retrans);
    let mut after_steps = Vec::new();
    while retransmitted(&pair.client) < 1000 {
        let before = retransmitted(&pair.client);
        let step = pair.client.pump.step(true).unwrap();
        let handled = retransmitted(&pair.client) - before;
        assert!(handled <= Stack::EXPIRED_AT_ONCE as u64, "{handled}");
        assert_eq!(step.deadline.unwrap() <= pair.clock.now(), before + handled < 1000);
        pair.server.pump.step(true).unwrap();
        after_steps.push(before + handled);
    }
    assert_eq!(after_steps, [256, 512, 768, 1000]);
}
