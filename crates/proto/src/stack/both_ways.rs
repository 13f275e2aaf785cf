//! Conversations at random, on two pairs of hosts at once: on one ordinary segments may take their short way, on the other none does. Every
//! packet is the same, and so is all that the connections know after every step.

mod answering;
mod openings;
mod trouble;

use super::Stack;
use crate::rng::Rng;
use crate::{
    Config, ConnId, ConnectOptions, Instant, ListenOptions, RxBatch, RxPacket, SocketOption, SocketOptions,
    WriteFlags,
};
use core::fmt::Debug;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use wire::Capabilities;

/// So many conversations, of so many steps.
const CONVERSATIONS: u8 = 100;
const STEPS: u32 = 120;
/// Bytes written and not acknowledged, beyond which nothing more is written: all of them are compared.
const MOST_WAITING: usize = 8_000;

/// What may be otherwise than usual.
const SETTINGS: &[(&str, &str)] = &[
    ("net.ipv4.tcp_sack", "0"),
    ("net.ipv4.tcp_timestamps", "0"),
    ("net.ipv4.tcp_ecn", "1"),
    ("net.ipv4.tcp_ecn", "3"),
    ("net.ipv4.tcp_early_retrans", "0"),
    ("net.ipv4.tcp_slow_start_after_idle", "0"),
    ("net.ipv4.tcp_congestion_control", "reno"),
    ("net.ipv4.tcp_congestion_control", "bbr"),
    ("net.ipv4.tcp_workaround_signed_windows", "1"),
    ("net.ipv4.tcp_window_scaling", "0"),
    ("net.ipv4.tcp_rmem", "4096 6000 8000"),
    ("firstbyte.pacing", "1"),
    ("firstbyte.hystart", "0"),
    ("firstbyte.initcwnd", "1"),
    ("firstbyte.lull_at_writes", "1"),
    ("firstbyte.new_data_sets_probe", "1"),
    ("firstbyte.probe_by_oldest", "1"),
    ("firstbyte.write_by_segment", "1"),
    ("firstbyte.push_bursts", "1"),
    ("firstbyte.fill_small_windows", "1"),
    ("firstbyte.count_segments", "1"),
    ("firstbyte.receive_accounting", "packets"),
    ("firstbyte.ack_habit", "quickstart"),
    ("firstbyte.resend_into_closed_window", "1"),
    ("firstbyte.resend_before_text", "1"),
    ("firstbyte.probe_bursts", "1"),
];

#[test]
fn ordinary_segments_leave_alike_by_either_way() {
    let mut ordinary = 0;
    for seed in 0..CONVERSATIONS {
        ordinary += Conversation::begin(seed).go_on();
    }
    let all = u32::from(CONVERSATIONS) * STEPS;
    assert!(ordinary > all / 8, "no more than {ordinary} segments were ordinary, in {all} steps");
}

/// One host, twice: with the short way, and without.
struct Host([Stack; 2]);

impl Host {
    /// Both do the same.
    fn both<T: PartialEq + Debug>(&mut self, mut act: impl FnMut(&mut Stack) -> T) -> T {
        let [short, long] = &mut self.0;
        let (done, expected) = (act(short), act(long));
        assert_eq!(done, expected);
        done
    }
}

struct Conversation {
    hosts: [Host; 2],
    ids: [ConnId; 2],
    rng: Rng,
    now: Instant,
    /// Packets on their way: when each arrives, and at whom.
    network: Vec<(Instant, usize, Vec<u8>)>,
    /// Of a hundred packets so many are lost, so many come twice, and the least time on the way.
    loss: u64,
    twice: u64,
    delay: Duration,
    patient: bool,
}

impl Conversation {
    fn begin(seed: u8) -> Conversation {
        let mut rng = Rng::new([seed ^ 0x5a; 32]);
        let mut config = Config::default();
        if rng.next_u64().is_multiple_of(5) {
            // The window is full with every segment, and in congestion avoidance.
            config.set("firstbyte.initcwnd", "1").unwrap();
            config.set("firstbyte.initial_ssthresh", "1").unwrap();
        }
        for (name, value) in SETTINGS {
            if rng.next_u64().is_multiple_of(32) {
                config.set(name, value).unwrap();
            }
        }
        let v6 = rng.next_u64().is_multiple_of(8);
        let addresses: [IpAddr; 2] = match v6 {
            true => ["fd00::1", "fd00::2"].map(|address| address.parse().unwrap()),
            false => ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap()),
        };
        let tx_checksum = !rng.next_u64().is_multiple_of(4);
        let gso_max_size = if rng.next_u64().is_multiple_of(2) { 60_000 } else { 0 };
        let capabilities = Capabilities { mtu: 1500, gso_max_size, tx_checksum };
        let hosts = addresses.map(|address| {
            Host([Some(0), None].map(|short_ways| {
                let mut stack = Stack::new(config.clone(), capabilities, [seed; 32]);
                stack.add_address(address, 24);
                stack.shared.short_ways = short_ways;
                stack
            }))
        });
        let (loss, twice) = ([0, 0, 0, 0, 5][draw(&mut rng, 5)], [0, 0, 3][draw(&mut rng, 3)]);
        let delay = Duration::from_micros([0, 50, 2_000, 40_000][draw(&mut rng, 4)]);
        let nodelay = !rng.next_u64().is_multiple_of(3);
        let patient = rng.next_u64().is_multiple_of(2);
        let nobody = ConnId { index: 0, generation: 0 };
        let now = Instant::from_nanos(1_000_000_000);
        let ids = [nobody; 2];
        let mut talk =
            Conversation { hosts, ids, rng, now, network: Vec::new(), loss: 0, twice: 0, delay, patient };
        let server = SocketAddr::new(addresses[1], 80);
        let socket = SocketOptions { nodelay, ..SocketOptions::default() };
        let listener = talk.hosts[1].both(|stack| {
            stack
                .listen(now, server, ListenOptions { socket: socket.clone(), ..ListenOptions::default() })
                .unwrap()
        });
        talk.ids[0] = talk.hosts[0].both(|stack| {
            stack
                .connect(now, server, ConnectOptions { socket: socket.clone(), ..ConnectOptions::default() })
                .unwrap()
        });
        while talk.hosts[1].both(|stack| stack.accept_queue(listener)) == 0 {
            talk.send();
            talk.move_on(Duration::from_millis(1));
        }
        talk.ids[1] = talk.hosts[1].both(|stack| stack.accept(talk.now, listener).unwrap().0);
        (talk.loss, talk.twice) = (loss, twice);
        talk
    }

    /// Returns how many segments with data went that were ordinary.
    fn go_on(mut self) -> u32 {
        for _ in 0..STEPS {
            self.act();
            self.send();
            let wait = [0, 0, 30, 900, 5_000, 45_000][draw(&mut self.rng, 6)];
            let wait = if self.patient && draw(&mut self.rng, 40) == 0 { 2_000_000 } else { wait };
            self.move_on(Duration::from_micros(wait));
            self.compare();
        }
        for who in 0..2 {
            let (now, id) = (self.now, self.ids[who]);
            let _ = self.hosts[who].both(|stack| stack.write(now, id, b"the last words"));
            let _ = self.hosts[who].both(|stack| stack.shutdown(now, id));
            self.send();
            self.compare();
            self.move_on(Duration::from_millis(100));
            self.compare();
        }
        for who in 0..2 {
            let (now, id) = (self.now, self.ids[who]);
            self.hosts[who].both(|stack| stack.close(now, id));
            self.compare();
            self.move_on(Duration::from_millis(100));
            self.compare();
        }
        self.hosts.iter().filter_map(|host| host.0[0].shared.short_ways).sum()
    }

    /// Something that applications do.
    fn act(&mut self) {
        let who = draw(&mut self.rng, 2);
        let (now, id, host) = (self.now, self.ids[who], &mut self.hosts[who]);
        match draw(&mut self.rng, 100) {
            0..50 => {
                let len = [1, 10, 10, 100, 100, 100, 500, 1448, 3000][draw(&mut self.rng, 9)];
                let flags = match draw(&mut self.rng, 200) {
                    0..4 => WriteFlags::MORE,
                    4..8 => WriteFlags::END_OF_RECORD,
                    8 => WriteFlags::URGENT,
                    _ => WriteFlags::empty(),
                };
                let data = vec![len as u8; len];
                let waits = host.both(|stack| stack.connection(id).map_or(0, |held| held.snd.queue.len()));
                if waits < MOST_WAITING {
                    let _ = host.both(|stack| match flags.is_empty() {
                        true => stack.write(now, id, &data),
                        false => stack.write_with(now, id, &data, flags),
                    });
                }
            }
            50..95 => {
                let mut buf = vec![0; [50, 50_000, 50_000][draw(&mut self.rng, 3)]];
                let _ = host.both(|stack| stack.read(now, id, &mut buf));
            }
            95 => {
                let on = draw(&mut self.rng, 2) == 0;
                let option = match draw(&mut self.rng, 12) {
                    0 => SocketOption::Cork(on),
                    1 => SocketOption::QuickAck(on),
                    _ => SocketOption::NoDelay(on),
                };
                let _ = host.both(|stack| stack.set_option(now, id, option));
            }
            96 => host.both(|stack| stack.push(now, id)),
            97 if draw(&mut self.rng, 6) == 0 => {
                let _ = host.both(|stack| stack.shutdown(now, id));
            }
            98 if draw(&mut self.rng, 20) == 0 => host.both(|stack| stack.close(now, id)),
            _ => {}
        }
    }

    /// What both ways have to send goes on its way.
    fn send(&mut self) {
        for who in 0..2 {
            let now = self.now;
            while let Some(packets) = self.hosts[who].both(|stack| {
                stack
                    .poll_transmit(now)
                    .map(|packet| (packet.header().to_vec(), packet.gso_size, packet.segments()))
            }) {
                for packet in packets.2 {
                    self.put_on_its_way(1 - who, &packet);
                }
            }
        }
    }

    fn put_on_its_way(&mut self, to: usize, packet: &[u8]) {
        if self.rng.next_u64() % 100 < self.loss {
            return;
        }
        let copies = if self.rng.next_u64() % 100 < self.twice { 2 } else { 1 };
        for _ in 0..copies {
            let late = if self.loss > 0 { self.rng.next_u64() % 3_000 } else { 0 };
            let arrives = self.now + self.delay + Duration::from_micros(late);
            self.network.push((arrives, to, packet.to_vec()));
        }
    }

    /// Time passes, and what is due in it happens.
    fn move_on(&mut self, by: Duration) {
        let end = self.now + by;
        loop {
            self.send();
            let timeouts = self.hosts.iter_mut().filter_map(|host| host.both(Stack::poll_timeout));
            let arrivals = self.network.iter().map(|(at, ..)| *at);
            let Some(next) = timeouts.chain(arrivals).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            let now = self.now;
            for who in 0..2 {
                let due = self.network.extract_if(.., |(at, to, _)| *at <= now && *to == who);
                let due: Vec<RxPacket> = due.map(|(.., packet)| RxPacket::new(packet.into())).collect();
                self.hosts[who].both(|stack| {
                    stack.handle_timeout(now);
                    stack.handle_packets(now, &mut arriving(stack, &due));
                });
            }
        }
        self.now = end;
    }

    /// Both know the same.
    fn compare(&mut self) {
        for host in &mut self.hosts {
            host.both(|stack| {
                while stack.poll_event().is_some() {}
                (connections_of(stack), stack.shared.counters.clone(), stack.poll_timeout())
            });
        }
    }
}

/// All that they know; where a text lies, and in how many parts, is nobody's concern.
fn connections_of(stack: &mut Stack) -> Vec<String> {
    let indices: Vec<u32> = stack.connections.iter().map(|(index, _)| index).collect();
    let shown = |index| {
        let connection = stack.connections.get_mut(index).unwrap();
        let open = connection.snd.queue.lay_in_segment();
        let shown = format!("{index} {connection:?}");
        connection.snd.queue.lay_apart(open);
        shown.replace("\", b\"", "")
    };
    indices.into_iter().map(shown).collect()
}

/// For who takes short ways these packets lie in memory that is used again, for the other each in its own.
fn arriving(stack: &Stack, packets: &[RxPacket]) -> RxBatch {
    if !stack.shared.takes_short_ways() {
        return packets.iter().cloned().collect();
    }
    let mut batch = RxBatch::default();
    packets.iter().for_each(|packet| batch.copy(&packet.data, packet.checksum, packet.gso_size));
    batch
}

fn draw(rng: &mut Rng, below: usize) -> usize {
    (rng.next_u64() % below as u64) as usize
}
