//! The fast path of an expected segment leaves behind what the slow path would: random conversations go both ways, side by side, and after
//! each step everything is compared.

use super::*;
use crate::rng::Rng;
use crate::{
    AckHabit, Config, CongestionControl, ConnectOptions, Counters, Events, ListenOptions, SocketId,
    WriteFlags,
};
use alloc::string::String;
use core::net::IpAddr;
use wire::Capabilities;

const MS: u64 = 1_000_000;
const BEGIN: u64 = 1_000 * MS;

/// Two hosts with one connection between them, the steps of both counted.
struct Conversation {
    ends: [Stack; 2],
    ids: [ConnId; 2],
    /// Packets take the slow path.
    long: bool,
    /// Segments that were expected: where both directions were open, and where one of them was not, or ended.
    predicted: [usize; 2],
    now: u64,
}

/// What applications do beside reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// They seldom end a direction.
    Talkative,
    /// They soon do.
    Brief,
}

/// What goes wrong on the way.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// One packet in so many is lost, comes late, comes twice; or has a bit changed, and nobody notices.
    lost: u64,
    late: u64,
    twice: u64,
    changed: u64,
    /// The bits of ECN are others when it arrives, and the checksum of the IP header is right.
    marked: u64,
}

const CLEAN: Path = Path { lost: 0, late: 0, twice: 0, changed: 0, marked: 0 };
const ROUGH: Path = Path { lost: 20, late: 20, twice: 30, changed: 0, marked: 0 };
const MARKING: Path = Path { marked: 4, ..CLEAN };
const HOSTILE: Path = Path { lost: 40, late: 40, twice: 40, changed: 6, marked: 0 };

struct Dice(Rng);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0.next_u64() % most.max(1)
    }

    /// Once in so many times; 0: never.
    fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.below(times) == 0
    }
}

impl Conversation {
    fn open(config: &Config, gso_max_size: usize, hosts: [IpAddr; 2], long: bool) -> Conversation {
        let capabilities = Capabilities { mtu: 1500, gso_max_size, tx_checksum: true };
        let ends = hosts.map(|host| {
            let mut stack = Stack::new(config.clone(), capabilities, [u8::from(host == hosts[1]); 32]);
            stack.add_address(host, 24);
            stack
        });
        let none = ConnId { index: 0, generation: 0 };
        let mut it = Conversation { ends, ids: [none; 2], long, predicted: [0; 2], now: BEGIN };
        let (now, address) = (Instant::from_nanos(it.now), (hosts[1], 80).into());
        let listener = it.ends[1].listen(now, address, ListenOptions::default()).unwrap();
        it.ids[0] = it.ends[0].connect(now, address, ConnectOptions::default()).unwrap();
        for from in [0, 1, 0, 1] {
            it.now += MS;
            for packet in it.sent(from) {
                it.arrives(1 - from, packet);
            }
        }
        it.ids[1] = it.ends[1].accept(it.instant(), listener).unwrap().0;
        it
    }

    fn instant(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    /// What an end sends now, as it arrives.
    fn sent(&mut self, from: usize) -> Vec<RxPacket> {
        let mut packets = Vec::new();
        while let Some(packet) = self.ends[from].poll_transmit(self.instant()) {
            packets.extend(packet.segments().into_iter().map(RxPacket::new));
        }
        packets
    }

    fn arrives(&mut self, to: usize, mut packet: RxPacket) {
        let (now, end) = (self.instant(), &mut self.ends[to]);
        if self.long {
            end.take_any(now, &mut (&mut packet).into());
            return;
        }
        let verify = packet.checksum == RxChecksum::Verify;
        let plain = PlainSegment::read_v4(&packet.data, verify);
        if let Some((plain, layout)) = plain.or_else(|| PlainSegment::read_v6(&packet.data, verify))
            && layout.options.is_empty()
            && let Some(connection) = end.connections.get(self.ids[to].index)
        {
            let segment = (&plain).into();
            let expected = connection.predicts(&end.shared, &segment);
            self.predicted[usize::from(connection.ends_with(&segment))] += usize::from(expected);
        }
        end.handle_packet(now, packet);
    }

    /// One step; `packets` are on their way to each end.
    fn step(&mut self, dice: &mut Dice, path: Path, habit: Habit, packets: &mut [Vec<RxPacket>; 2]) {
        let end = dice.below(2) as usize;
        let (id, now) = (self.ids[end], self.instant());
        if habit == Habit::Brief && dice.once_in(20) {
            return self.ends(dice, end);
        }
        match dice.below(16) {
            0..=2 => {
                let len = [100, 100, 700, 1448, 3000, 9000][dice.below(6) as usize];
                let flags = if dice.once_in(6) { WriteFlags::MORE } else { WriteFlags::empty() };
                let _ = self.ends[end].write_with(now, id, &vec![b'a' + end as u8; len], flags);
            }
            3..=5 => {
                let most = [1, 500, 30_000][dice.below(3) as usize];
                let _ = self.ends[end].read(now, id, &mut vec![0; most]);
            }
            6 => self.sometimes(dice, end),
            7..=8 => {
                self.now += dice.below(40) * MS / 4;
                self.wake();
            }
            9 if dice.once_in(20) => {
                self.now += dice.below(2_000) * MS;
                self.wake();
            }
            _ => {
                packets[1 - end].extend(self.sent(end));
                let arriving: Vec<_> = packets[end].drain(..).collect();
                for packet in arriving {
                    self.travels(dice, path, end, packet, packets);
                }
            }
        }
    }

    /// An application ends its direction, or lets go.
    fn ends(&mut self, dice: &mut Dice, end: usize) {
        let (id, now) = (self.ids[end], self.instant());
        match dice.below(8) {
            0..=3 => drop(self.ends[end].shutdown(now, id)),
            4 => self.ends[end].shutdown_read(now, id),
            _ => self.ends[end].close(now, id),
        }
    }

    /// What applications do now and then.
    fn sometimes(&mut self, dice: &mut Dice, end: usize) {
        let (id, now, on) = (self.ids[end], self.instant(), dice.once_in(2));
        let option = match dice.below(40) {
            0..=5 => SocketOption::NoDelay(on),
            6..=9 => SocketOption::QuickAck(on),
            10..=12 => SocketOption::Cork(on),
            13 => SocketOption::RecvBuffer(20_000),
            14 => {
                self.ends[end].push(now, id);
                return;
            }
            15 => {
                let _ = self.ends[end].shutdown(now, id);
                return;
            }
            _ => return,
        };
        let _ = self.ends[end].set_option(now, id, option);
    }

    fn travels(
        &mut self,
        dice: &mut Dice,
        path: Path,
        to: usize,
        mut packet: RxPacket,
        packets: &mut [Vec<RxPacket>; 2],
    ) {
        if dice.once_in(path.lost) {
            return;
        }
        if dice.once_in(path.late) {
            return packets[to].push(packet);
        }
        if dice.once_in(path.twice) {
            packets[to].push(packet.clone());
        }
        if dice.once_in(path.changed) {
            let mut data = packet.data.to_vec();
            let bit = dice.below(52 * 8) as usize;
            // The reader of the IP header would notice.
            let at = 20 + (bit / 8) % (data.len() - 20).min(32);
            data[at] ^= 1 << (bit % 8);
            packet = RxPacket { data: data.into(), checksum: RxChecksum::Trusted, ..packet };
        }
        if dice.once_in(path.marked) {
            packet.data = with_ecn(&packet.data, dice.below(4) as u8).into();
        }
        self.arrives(to, packet);
    }

    /// The timers that are due have fired.
    fn wake(&mut self) {
        let now = self.instant();
        self.ends.iter_mut().for_each(|end| end.handle_timeout(now));
    }

    /// What an application hears, and the driver.
    fn counted(&mut self, end: usize) -> (Vec<(SocketId, Events)>, Option<Instant>, u64, Counters) {
        let it = &mut self.ends[end];
        let events = core::iter::from_fn(|| it.poll_event()).collect();
        (events, it.poll_timeout(), it.memory(), it.counters().clone())
    }

    /// All that can be seen of an end, and much that cannot.
    fn state(&self, end: usize) -> String {
        let (it, id) = (&self.ends[end], self.ids[end]);
        let entries: Vec<_> = it.time_wait.iter().map(|(entry, _)| entry).collect();
        format!("{:?} {:?} {entries:?} {:?}", it.connections.get(id.index), it.info(id), it.drops())
    }
}

/// A copy of the packet with these ECN bits (RFC 3168 §5).
fn with_ecn(packet: &[u8], bits: u8) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet[0] >> 4 == 6 {
        packet[1] = packet[1] & !0x30 | bits << 4;
        return packet;
    }
    packet[1] = packet[1] & !3 | bits;
    packet[10..12].fill(0);
    let mut sum = wire::Checksum::new();
    sum.add(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.finish().to_be_bytes());
    packet
}

fn assert_same(short: &str, long: &str, what: &str) {
    if short == long {
        return;
    }
    let differs = short.bytes().zip(long.bytes()).take_while(|(short, long)| short == long).count();
    let around = |text: &str| text.chars().skip(differs.saturating_sub(200)).take(300).collect::<String>();
    panic!("{what}:\n{}\n\n{}", around(short), around(long));
}

/// Plays one conversation on the fast and on the slow path; returns how many segments were expected (see [`Conversation`]).
fn converse(config: &Config, (path, gso_max_size): (Path, usize), habit: Habit, seed: u8) -> [usize; 2] {
    let (steps, pace) = if habit == Habit::Brief { (120, 4) } else { (240, 16) };
    let hosts = if seed.is_multiple_of(2) { ["10.0.0.1", "10.0.0.2"] } else { ["fd00::1", "fd00::2"] };
    let hosts = hosts.map(|host| host.parse().unwrap());
    let mut both = [false, true].map(|long| Conversation::open(config, gso_max_size, hosts, long));
    let mut dice = [(); 2].map(|()| Dice(Rng::new([seed; 32])));
    let mut packets = [(); 2].map(|()| [Vec::new(), Vec::new()]);
    for step in 0..steps {
        for way in 0..2 {
            both[way].step(&mut dice[way], path, habit, &mut packets[way]);
        }
        for end in 0..2 {
            let what = format!("end {end} after step {step} of {seed}");
            let [short, long] = both.each_mut().map(|it| it.counted(end));
            assert_eq!(short, long, "{what}");
            if step % pace == pace - 1 {
                let [short, long] = both.each_ref().map(|it| it.state(end));
                assert_same(&short, &long, &what);
            }
            let [short, long] = packets
                .each_ref()
                .map(|packets| packets[end].iter().map(|packet| packet.data.clone()).collect::<Vec<_>>());
            assert!(short == long, "packets to end {end} after step {step} of {seed}");
        }
    }
    both[0].predicted
}

fn configs() -> Vec<Config> {
    let ours = Config::default;
    vec![
        ours(),
        Config { ack_habit: AckHabit::QuickStart, ..ours() },
        Config { tcp_timestamps: 0, ..ours() },
        Config { tcp_sack: false, ..ours() },
        Config { tcp_ecn: 1, ..ours() },
        Config { tcp_ecn: 3, ..ours() },
        Config { tcp_rmem: [4096, 30_000, 60_000], window_slow_start: true, ..ours() },
        Config { tcp_rmem: [4096, 6000, 8000], ..ours() },
        Config { tcp_congestion_control: CongestionControl::Bbr, pacing: true, ..ours() },
        Config { tcp_congestion_control: CongestionControl::Reno, acks_use_window: true, ..ours() },
        Config {
            tcp_congestion_control: CongestionControl::Vegas,
            reduction_rules: crate::ReductionRules::Kernel,
            ..ours()
        },
        Config { window_unit: crate::WindowUnit::Segments, ..ours() },
        Config { tcp_wmem: [4096, 9_000, 20_000], write_rules: crate::WriteRules::BySegment, ..ours() },
        Config { rtt_of_first: true, rtt_variation: crate::RttVariation::Windowed, ..ours() },
        Config {
            probe_rules: crate::ProbeRules::Kernel,
            loss_rules: crate::LossRules::Kernel,
            write_rules: crate::WriteRules::BySegment,
            sndbuf_overhead: 832,
            peer_window_rules: crate::PeerWindowRules::Kernel,
            paws_slack: 1,
            ..ours()
        },
        Config { receive_accounting: crate::ReceiveAccounting::Packets, ..ours() },
    ]
}

#[test]
fn nobody_can_tell_which_way_a_segment_took() {
    for (number, config) in configs().iter().enumerate() {
        let mut predicted = 0;
        for seed in 0..4 {
            for how in [(CLEAN, 0), (CLEAN, 65_000), (MARKING, 0), (ROUGH, 0), (HOSTILE, 0)] {
                predicted += converse(config, how, Habit::Talkative, seed)[0];
            }
        }
        assert_eq!(predicted < 40, expects_none(config), "configuration {number}: {predicted} were expected");
    }
}

#[test]
fn nobody_can_tell_which_way_an_end_came() {
    for (number, config) in configs().iter().enumerate() {
        let mut predicted = 0;
        for seed in 0..8 {
            for how in [(CLEAN, 0), (CLEAN, 65_000), (ROUGH, 0), (HOSTILE, 0)] {
                predicted += converse(config, how, Habit::Brief, seed)[1];
            }
        }
        assert_eq!(predicted < 10, expects_none(config), "configuration {number}: {predicted} were expected");
    }
}

/// No segment is expected.
fn expects_none(config: &Config) -> bool {
    config.receive_accounting == crate::ReceiveAccounting::Packets
        || matches!(config.tcp_ecn, 1 | 3)
        || config.window_unit == crate::WindowUnit::Segments
        || config.peer_window_rules == crate::PeerWindowRules::Kernel
        || !config.tcp_sack
}
