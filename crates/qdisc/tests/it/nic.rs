//! A card's rings, limits and interrupts, in virtual time.
use qdisc::{DqlConfig, Fifo, Limit, Nic, NicConfig, NicEvent, Packet, Parcel, RingStats};
use std::num::NonZeroU64;

const US: u64 = 1000;
const MS: u64 = 1_000_000;

#[derive(Clone, Debug, PartialEq)]
struct Text {
    flow: u32,
    frames: Vec<usize>,
}

impl Packet for Text {
    fn flow_hash(&self) -> u32 {
        self.flow
    }
}

impl Parcel for Text {
    type Frame = (u32, usize);

    fn len(&self) -> usize {
        self.frames.iter().sum()
    }

    fn frame_count(&self) -> usize {
        self.frames.len()
    }

    fn frame_len(&self, n: usize) -> usize {
        self.frames[n]
    }

    fn take_frame(&mut self, n: usize) -> (u32, usize) {
        (self.flow, n)
    }
}

fn packet(flow: u32) -> Text {
    Text { flow, frames: vec![1500] }
}

fn card(config: NicConfig, waiting: usize) -> Nic<Text, Fifo<Text>> {
    Nic::new(config, (0..config.queues).map(|_| Fifo::new(Limit::packets(waiting))))
}

/// 100 Mbit/s, 256 descriptors.
fn fast_ethernet(bql: Option<DqlConfig>) -> NicConfig {
    NicConfig { rate: NonZeroU64::new(100_000_000), interrupt_after: 50 * US, bql, ..NicConfig::default() }
}

/// Keeps the discipline full for this long.
fn keep_busy(nic: &mut Nic<Text, Fifo<Text>>, span: u64) -> (RingStats, Vec<u64>) {
    let (mut now, mut sent) = (0, Vec::new());
    while now < span {
        while nic.enqueue(now, packet(0)) == qdisc::Verdict::Queued {}
        nic.drain_dropped().count();
        now = nic.next_event().expect("the line is busy");
        while let Some(event) = nic.poll(now) {
            if let NicEvent::Sent { at, .. } = event {
                sent.push(at);
            }
        }
    }
    (nic.stats().next().expect("there is a ring"), sent)
}

#[test]
fn a_full_ring_holds_a_packet_for_thirty_milliseconds_and_a_byte_limit_for_less_than_one() {
    let (without, sent_without) = keep_busy(&mut card(fast_ethernet(None), 1000), 3000 * MS);
    assert_eq!((without.used_peak, without.bytes_peak), (256, 384_000));
    assert!(without.wait_max.abs_diff(30_720 * US) < 300 * US, "{}", without.wait_max);
    let (with, sent) = keep_busy(&mut card(fast_ethernet(Some(DqlConfig::default())), 1000), 3000 * MS);
    assert!(with.wait_max < MS, "{}", with.wait_max);
    assert!((1500..=6000).contains(&with.limit), "{}", with.limit);
    let lost_time = sent_without.len().abs_diff(sent.len());
    assert!(lost_time * 1000 < sent_without.len(), "{} of {}", sent.len(), sent_without.len());
}

#[test]
fn a_ring_that_is_too_small_for_its_interrupts_starves() {
    let config = NicConfig { descriptors: 2, interrupt_after: 500 * US, ..fast_ethernet(None) };
    let (stats, sent) = keep_busy(&mut card(config, 100), 1000 * MS);
    // Two packets in 240 µs, then nothing until 620 µs after the first of them began.
    assert!(stats.starved > 550 * MS && stats.starved < 650 * MS, "{}", stats.starved);
    assert!(sent.len().abs_diff(2 * 1_000_000 / 620) < 5, "{}", sent.len());
}

#[test]
fn what_finds_no_descriptor_waits_in_the_discipline_and_what_does_not_fit_there_is_dropped() {
    let mut nic = card(NicConfig { descriptors: 4, ..fast_ethernet(None) }, 3);
    let verdicts: Vec<bool> = (0..9).map(|_| nic.enqueue(0, packet(0)) == qdisc::Verdict::Queued).collect();
    assert_eq!(verdicts, [true, true, true, true, true, true, true, false, false]);
    assert_eq!(nic.drain_dropped().count(), 2);
    let stats = nic.stats().next().unwrap();
    assert_eq!((stats.used_peak, stats.backlog_peak, stats.dropped), (4, 3, 2));
}

#[test]
fn rings_take_turns_and_a_flow_keeps_its_ring() {
    let config = NicConfig { queues: 2, ..fast_ethernet(None) };
    let mut nic = card(config, 100);
    for flow in [0, 0, 0, u32::MAX, u32::MAX, u32::MAX] {
        nic.enqueue(0, packet(flow));
    }
    let mut flows = Vec::new();
    while let Some(at) = nic.next_event() {
        while let Some(event) = nic.poll(at) {
            if let NicEvent::Sent { frame: (flow, _), .. } = event {
                flows.push(flow);
            }
        }
    }
    assert_eq!(flows, [0, u32::MAX, 0, u32::MAX, 0, u32::MAX]);
    let packets: Vec<u64> = nic.stats().map(|ring| ring.packets).collect();
    assert_eq!(packets, [3, 3]);
}

#[test]
fn a_long_packet_is_one_descriptor_and_many_frames() {
    let mut nic = card(fast_ethernet(None), 10);
    nic.enqueue(0, Text { flow: 0, frames: vec![1500, 1500, 700] });
    let mut seen = Vec::new();
    while let Some(at) = nic.next_event() {
        while let Some(event) = nic.poll(at) {
            seen.push(match event {
                NicEvent::Sent { frame: (_, n), at } => (n as i32, at / US),
                NicEvent::Completed { at, .. } => (-1, at / US),
            });
        }
    }
    assert_eq!(seen, [(0, 120), (1, 240), (2, 296), (-1, 346)]);
    let stats = nic.stats().next().unwrap();
    assert_eq!((stats.packets, stats.frames, stats.bytes, stats.used_peak), (1, 3, 3700, 1));
}
