//! The in-memory pair.

use crate::packets::{Flow, parse};
use device::{Device, memory};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wire::{Capabilities, RxBatch, RxChecksum, RxPacket, SeqNum, TxPacket};

const PLAIN: Capabilities = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
const OFFLOADS: Capabilities = Capabilities { mtu: 1500, gso_max_size: 65_435, tx_checksum: true };

fn received(device: &mut impl Device) -> Vec<RxPacket> {
    let mut batch = RxBatch::default();
    let count = device.recv(&mut batch, usize::MAX).unwrap();
    assert_eq!(count, batch.len());
    batch.drain().collect()
}

#[test]
fn what_one_sends_the_other_receives_in_order() {
    let (mut a, mut b) = memory::pair(PLAIN);
    let packets: Vec<TxPacket> = (1..=3).map(|n| Flow::v4().data(vec![n; 100], 0, false)).collect();
    let mut out: VecDeque<TxPacket> = packets.iter().cloned().collect();
    assert_eq!(a.send(&mut out).unwrap(), 3);
    assert!(out.is_empty());
    assert_eq!(b.backlog(), 3);
    let mut batch = RxBatch::default();
    assert_eq!(b.recv(&mut batch, 2).unwrap(), 2);
    assert_eq!(b.recv(&mut batch, 2).unwrap(), 1);
    assert_eq!(b.recv(&mut batch, 2).unwrap(), 0);
    for (sent, got) in packets.iter().zip(batch.drain()) {
        assert_eq!(got.data, sent.to_bytes());
        assert_eq!((got.checksum, got.gso_size, got.truesize), (RxChecksum::Verify, 0, 140));
    }
    assert!(received(&mut a).is_empty(), "nothing came back");
    assert_eq!(
        (a.stats().tx_packets, a.stats().tx_bytes, b.stats().rx_packets, b.stats().rx_bytes),
        (3, 420, 3, 420)
    );
}

#[test]
fn a_full_queue_pushes_back_and_calls_when_there_is_room() {
    let (mut a, mut b) = memory::pair_with(PLAIN, PLAIN, 2);
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    a.set_notify(Arc::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    }));
    let mut out: VecDeque<TxPacket> = (1..=5).map(|n| Flow::v4().data(vec![n], 0, false)).collect();
    assert_eq!(a.send(&mut out).unwrap(), 2);
    assert_eq!(a.send(&mut out).unwrap(), 0);
    assert_eq!((out.len(), calls.load(Ordering::Relaxed)), (3, 0));
    assert_eq!(received(&mut b).len(), 2);
    assert_eq!(calls.load(Ordering::Relaxed), 1, "room was made");
    assert_eq!(a.send(&mut out).unwrap(), 2);
    assert_eq!(received(&mut b).len(), 2);
    assert_eq!(a.send(&mut out).unwrap(), 1);
    assert_eq!(parse(&received(&mut b)[0].data).2, [5]);
    assert_eq!(calls.load(Ordering::Relaxed), 2, "nobody waited for room any more");
}

/// The backlog works like `net.core.netdev_max_backlog`: packets that find no room are dropped and
/// counted.
#[test]
fn with_a_backlog_what_comes_on_top_is_dropped() {
    let (mut a, b) = memory::pair_with(PLAIN, PLAIN, 2);
    let mut b = b.with_backlog(3);
    let mut send = |count: u8| {
        let mut out: VecDeque<TxPacket> = (1..=count).map(|n| Flow::v4().data(vec![n], 0, false)).collect();
        a.send(&mut out).unwrap()
    };
    assert_eq!(send(5), 5);
    assert_eq!((b.backlog(), b.stats().rx_dropped), (3, 2));
    assert_eq!(send(1), 1);
    assert_eq!(b.stats().rx_dropped, 3);
    let kept: Vec<Vec<u8>> = received(&mut b).iter().map(|packet| parse(&packet.data).2.to_vec()).collect();
    assert_eq!(kept, [[1], [2], [3]]);
    assert_eq!(send(2), 2);
    assert_eq!((b.backlog(), b.stats().rx_dropped, b.stats().rx_packets), (2, 3, 3));
}

#[test]
fn arriving_packets_call_the_receiver() {
    let (mut a, mut b) = memory::pair(PLAIN);
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    b.set_notify(Arc::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    }));
    a.send(&mut VecDeque::new()).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    a.send(&mut VecDeque::from([Flow::v4().data(vec![1], 0, false), Flow::v4().data(vec![2], 0, false)]))
        .unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 1, "once per batch");
    drop(a);
    assert_eq!(calls.load(Ordering::Relaxed), 2, "the end is news too");
}

#[test]
fn a_gso_packet_arrives_merged_where_that_is_understood() {
    for flow in [Flow::v4(), Flow::v6()] {
        let (mut a, mut b) = memory::pair(OFFLOADS);
        let data: Vec<u8> = (0..5000u32).map(|n| n as u8).collect();
        a.send(&mut VecDeque::from([flow.data(data.clone(), 1400, true)])).unwrap();
        let [packet] = received(&mut b).try_into().unwrap();
        assert_eq!((packet.gso_size, packet.checksum), (1400, RxChecksum::Trusted));
        assert_eq!(parse(&packet.data).2, data);
        assert_eq!((a.stats().tx_gso, b.stats().rx_merged), (1, 1));
    }
}

#[test]
fn a_gso_packet_is_cut_for_a_peer_that_does_not_merge() {
    for flow in [Flow::v4(), Flow::v6()] {
        let (mut a, mut b) = memory::pair_with(OFFLOADS, PLAIN, 16);
        let data: Vec<u8> = (0..3000u32).map(|n| n as u8).collect();
        a.send(&mut VecDeque::from([flow.data(data.clone(), 1400, true)])).unwrap();
        let segments: Vec<_> =
            received(&mut b).iter().map(|packet| (packet.gso_size, parse(&packet.data))).collect();
        let lengths: Vec<usize> = segments.iter().map(|(_, (_, _, payload))| payload.len()).collect();
        let seqs: Vec<SeqNum> = segments.iter().map(|(_, (_, tcp, _))| tcp.seq).collect();
        assert_eq!((lengths, seqs), (vec![1400, 1400, 200], vec![SeqNum(1), SeqNum(1401), SeqNum(2801)]));
        assert!(segments.iter().all(|(gso_size, _)| *gso_size == 0));
        assert_eq!(segments.into_iter().flat_map(|(_, (_, _, payload))| payload).collect::<Vec<u8>>(), data);
    }
}

#[test]
fn what_cannot_be_sent_is_counted_and_does_not_block_the_rest() {
    let (mut a, mut b) = memory::pair(OFFLOADS);
    let flow = Flow::v4();
    let mut out = VecDeque::from([
        flow.data(vec![0; 1461], 0, false),
        flow.data(vec![0; 5000], 1461, true),
        TxPacket::new(b"not IP", Default::default()),
        flow.data(vec![7; 1460], 0, false),
        flow.data(vec![8; 5000], 1460, true),
    ]);
    assert_eq!(a.send(&mut out).unwrap(), 5);
    assert_eq!(received(&mut b).len(), 2);
    assert_eq!((a.stats().tx_oversize, a.stats().tx_invalid, a.stats().tx_packets), (2, 1, 2));
}

#[test]
fn a_dropped_end_is_an_error_after_its_last_packet() {
    let (mut a, mut b) = memory::pair(PLAIN);
    a.send(&mut VecDeque::from([Flow::v4().data(vec![1], 0, false)])).unwrap();
    drop(a);
    assert_eq!(received(&mut b).len(), 1);
    assert_eq!(b.recv(&mut RxBatch::default(), 1).unwrap_err().kind(), ErrorKind::BrokenPipe);
    let mut out = VecDeque::from([Flow::v4().data(vec![1], 0, false)]);
    assert_eq!(b.send(&mut out).unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(out.len(), 1);
}

#[test]
fn two_threads_lose_nothing_and_no_wake_up() {
    const COUNT: u32 = 20_000;
    let (mut a, mut b) = memory::pair_with(PLAIN, PLAIN, 7);
    let unpark = |thread: std::thread::Thread| Arc::new(move || thread.unpark());
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            b.set_notify(unpark(std::thread::current()));
            let mut batch = RxBatch::default();
            while batch.len() < COUNT as usize {
                if b.recv(&mut batch, 3).unwrap() == 0 {
                    std::thread::park();
                }
            }
            let numbers =
                batch.drain().map(|packet| u32::from_be_bytes(packet.data[40..44].try_into().unwrap()));
            assert!(numbers.eq(0..COUNT));
        });
        a.set_notify(unpark(std::thread::current()));
        let mut out: VecDeque<TxPacket> =
            (0..COUNT).map(|n| Flow::v4().data(n.to_be_bytes().to_vec(), 0, false)).collect();
        while !out.is_empty() {
            if a.send(&mut out).unwrap() == 0 {
                std::thread::park();
            }
        }
        receiver.join().unwrap();
    });
}

proptest! {
    /// For any sizes, the received bytes are the sent bytes.
    #[test]
    fn the_stream_survives_any_cut(
        payloads in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..4000), 500u16..1400), 1..12),
        merges: bool,
        queue_len in 1usize..5,
    ) {
        let peer = if merges { OFFLOADS } else { PLAIN };
        let (mut a, mut b) = memory::pair_with(OFFLOADS, peer, queue_len);
        let mut out: VecDeque<TxPacket> =
            payloads.iter().map(|(payload, size)| Flow::v6().data(payload.clone(), *size, true)).collect();
        let mut arrived = Vec::new();
        while !out.is_empty() {
            let sent = a.send(&mut out).unwrap();
            prop_assert!(sent > 0);
            arrived.extend(received(&mut b).iter().flat_map(|packet| parse(&packet.data).2));
        }
        prop_assert_eq!(arrived, payloads.into_iter().flat_map(|(payload, _)| payload).collect::<Vec<u8>>());
    }
}

/// A driver can keep any device in a task or thread.
#[test]
fn devices_can_be_boxed_and_sent_to_a_thread() {
    let (a, mut b) = memory::pair(PLAIN);
    let capture = device::tap::PcapngWriter::new(Vec::new()).unwrap();
    let capture = device::tap::Capture::new(a, "a", capture, Box::new(|| 0)).unwrap();
    let mut boxed: Box<dyn Device + Send> = Box::new(capture);
    let sender = std::thread::spawn(move || {
        assert!(boxed.as_fd().is_none() && boxed.capabilities() == PLAIN);
        boxed.send(&mut VecDeque::from([Flow::v4().data(vec![1], 0, false)])).unwrap();
        boxed
    });
    let mut boxed = sender.join().unwrap();
    assert_eq!(boxed.recv(&mut RxBatch::default(), 1).unwrap(), 0);
    assert_eq!(received(&mut b).len(), 1);
}
