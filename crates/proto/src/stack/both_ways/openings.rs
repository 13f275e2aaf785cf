//! The same of openings: whatever is asked of a connection, and whatever becomes of its SYN and of the SYN-ACK, it opens (or does not) by
//! the short ways as by those of all.

use super::trouble::Path;
use super::{Host, arriving, connections_of, draw};
use crate::rng::Rng;
use crate::stack::Stack;
use crate::{
    Config, ConnId, ConnectOptions, FastOpen, Instant, ListenOptions, ListenerId, RxPacket, SocketOption,
    SocketOptions,
};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use wire::Capabilities;

/// So many hosts, each of which opens so many connections, one after the other.
const HOSTS: u8 = 120;
const OPENINGS: u32 = 16;

/// What may be otherwise than usual.
const SETTINGS: &[(&str, &str)] = &[
    ("net.ipv4.tcp_sack", "0"),
    ("net.ipv4.tcp_timestamps", "0"),
    ("net.ipv4.tcp_timestamps", "2"),
    ("net.ipv4.tcp_window_scaling", "0"),
    ("net.ipv4.tcp_ecn", "0"),
    ("net.ipv4.tcp_ecn", "1"),
    ("net.ipv4.tcp_ecn", "3"),
    ("net.ipv4.tcp_mtu_probing", "2"),
    ("net.ipv4.tcp_congestion_control", "reno"),
    ("net.ipv4.tcp_congestion_control", "bbr"),
    ("net.ipv4.tcp_workaround_signed_windows", "1"),
    ("net.ipv4.tcp_rmem", "4096 6000 8000"),
    ("net.ipv4.tcp_fastopen", "0x7"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.tcp_no_ssthresh_metrics_save", "0"),
    ("net.ipv4.tcp_min_snd_mss", "1400"),
    ("firstbyte.pacing", "1"),
    ("firstbyte.hystart", "0"),
    ("firstbyte.initcwnd", "1"),
    ("firstbyte.window_slow_start", "1"),
    ("firstbyte.fill_small_windows", "1"),
    ("firstbyte.count_segments", "1"),
    ("firstbyte.receive_accounting", "packets"),
    ("firstbyte.ack_habit", "quickstart"),
    ("firstbyte.fast_open_verdicts", "0"),
    ("firstbyte.syn_data_room", "exact"),
];

#[test]
fn connections_open_alike_by_either_way() {
    let short: u32 = (0..HOSTS).map(|seed| Openings::of(seed).go_on()).sum();
    let all = u32::from(HOSTS) * OPENINGS;
    assert!(short > all / 4, "no more than {short} of {all} connections opened by the short way");
}

struct Openings {
    client: Host,
    server: Host,
    /// The server's address.
    peer: SocketAddr,
    listener: ListenerId,
    rng: Rng,
    now: Instant,
    path: Path,
    delay: Duration,
    /// Packets on their way: when each arrives, and whether at the client.
    network: Vec<(Instant, bool, RxPacket)>,
    /// The server answers at once, and ends with it.
    answers: bool,
    ends: bool,
    short: u32,
}

impl Openings {
    fn of(seed: u8) -> Openings {
        let mut rng = Rng::new([seed ^ 0xa5; 32]);
        let mut config = Config::default();
        for (name, value) in SETTINGS {
            if rng.next_u64().is_multiple_of(60) {
                config.set(name, value).unwrap();
            }
        }
        let capabilities = Capabilities {
            mtu: [1500, 1500, 1280, 9000][draw(&mut rng, 4)],
            gso_max_size: 60_000,
            tx_checksum: !rng.next_u64().is_multiple_of(4),
        };
        let addresses: [&str; 2] = match rng.next_u64().is_multiple_of(6) {
            true => ["fd00::1", "fd00::2"],
            false => ["10.0.0.1", "10.0.0.2"],
        };
        let [own, peer] = addresses.map(|address| address.parse::<IpAddr>().unwrap());
        let peer = SocketAddr::new(peer, 80);
        let host = |address| {
            Host([Some(0), None].map(|short_ways| {
                let mut stack = Stack::new(config.clone(), capabilities, [seed; 32]);
                stack.add_address(address, 24);
                stack.shared.short_ways = short_ways;
                stack
            }))
        };
        let (client, mut server) = (host(own), host(peer.ip()));
        let now = Instant::from_nanos(1_000_000_000);
        let fast_open = [None, Some(16), Some(16), Some(16)][draw(&mut rng, 4)];
        let options = ListenOptions { fast_open, ..ListenOptions::default() };
        let listener = server.both(|stack| stack.listen(now, peer, options.clone()).unwrap());
        let path = Path::of(&mut rng);
        let delay = Duration::from_micros([0, 300, 20_000][draw(&mut rng, 3)]);
        let (answers, ends) = (draw(&mut rng, 3) > 0, draw(&mut rng, 3) == 0);
        let network = Vec::new();
        Openings { client, server, peer, listener, rng, now, path, delay, network, answers, ends, short: 0 }
    }

    /// Returns how many SYN-ACKs took the short way.
    fn go_on(mut self) -> u32 {
        for _ in 0..OPENINGS {
            let (now, peer, options) = (self.now, self.peer, self.options());
            if let Ok(id) = self.client.both(|stack| stack.connect(now, peer, options.clone())) {
                self.live(id);
            }
        }
        self.short
    }

    /// What a connection is opened with.
    fn options(&mut self) -> ConnectOptions {
        let rng = &mut self.rng;
        let fast_open = [FastOpen::Off, FastOpen::Auto, FastOpen::Auto, FastOpen::Force, FastOpen::NoCookie]
            [draw(rng, 5)];
        let len = [0, 1, 100, 100, 100, 1_380, 1_500, 9_000][draw(rng, 8)];
        let usual = SocketOptions { nodelay: draw(rng, 2) == 0, ..SocketOptions::default() };
        let socket = match draw(rng, 24) {
            0 => SocketOptions { cork: true, ..usual },
            1 => SocketOptions { quickack: Some(draw(rng, 2) == 0), ..usual },
            2 => SocketOptions { max_segment: Some(600), ..usual },
            3 => SocketOptions { recv_buffer: Some(3_000), ..usual },
            4 => SocketOptions { keepalive: true, ..usual },
            _ => usual,
        };
        ConnectOptions {
            fast_open,
            first_bytes: vec![b'q'; len].into(),
            fin: draw(rng, 4) == 0,
            syn_fin: draw(rng, 2) == 0,
            syn_only: draw(rng, 8) == 0,
            data_less: draw(rng, 4) == 0,
            socket,
            ..ConnectOptions::default()
        }
    }

    /// A connection opens, and soon ends.
    fn live(&mut self, id: ConnId) {
        for _ in 0..[3, 6, 12][draw(&mut self.rng, 3)] {
            self.sometimes(id);
            self.compare();
            let wait = [0, 10, 400, 25_000, 60_000][draw(&mut self.rng, 5)];
            self.move_on(Duration::from_micros(wait));
            self.compare();
            self.serve();
        }
        let (now, abort) = (self.now, draw(&mut self.rng, 8) == 0);
        self.client.both(|stack| if abort { stack.abort(now, id) } else { stack.close(now, id) });
        self.compare();
        let rest = [50, 50, 4_000][draw(&mut self.rng, 3)];
        self.move_on(Duration::from_millis(rest));
        self.compare();
    }

    /// What an application does before, or soon after, its connection is open.
    fn sometimes(&mut self, id: ConnId) {
        let (now, client) = (self.now, &mut self.client);
        match draw(&mut self.rng, 12) {
            0 => drop(client.both(|stack| stack.write(now, id, &[b'w'; 700]))),
            1 => drop(client.both(|stack| stack.shutdown(now, id))),
            2 => drop(client.both(|stack| stack.set_option(now, id, SocketOption::NoDelay(true)))),
            3 => drop(client.both(|stack| stack.set_option(now, id, SocketOption::QuickAck(false)))),
            _ => drop(client.both(|stack| stack.read(now, id, &mut [0; 5_000]))),
        }
    }

    /// The server's application takes what has come.
    fn serve(&mut self) {
        let (now, listener) = (self.now, self.listener);
        while let Ok((id, _)) = self.server.both(|stack| stack.accept(now, listener)) {
            let _ = self.server.both(|stack| stack.read(now, id, &mut [0; 20_000]));
            if self.answers {
                let answer = vec![b'a'; [10, 1_000, 3_000][draw(&mut self.rng, 3)]];
                let _ = self.server.both(|stack| stack.write(now, id, &answer));
            }
            if self.ends {
                self.server.both(|stack| stack.close(now, id));
            }
        }
    }

    fn send(&mut self) {
        for at_client in [true, false] {
            let (now, host) = (self.now, if at_client { &mut self.server } else { &mut self.client });
            while let Some(packets) = host.both(|stack| {
                stack.poll_transmit(now).map(|packet| (packet.header().to_vec(), packet.segments()))
            }) {
                for packet in packets.1 {
                    let arrivals = self.path.arrivals(&mut self.rng, RxPacket::new(packet));
                    let at = now + self.delay;
                    self.network
                        .extend(arrivals.into_iter().map(|(late, packet)| (at + late, at_client, packet)));
                }
            }
        }
    }

    /// Time passes, and what is due in it happens; the server answers meanwhile.
    fn move_on(&mut self, by: Duration) {
        let end = self.now + by;
        loop {
            self.send();
            let timeouts = [&mut self.client, &mut self.server].map(|host| host.both(Stack::poll_timeout));
            let arrivals = self.network.iter().map(|(at, ..)| *at);
            let next = timeouts.into_iter().flatten().chain(arrivals).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            let now = self.now;
            for at_client in [true, false] {
                let due = self.network.extract_if(.., |(at, to, _)| *at <= now && *to == at_client);
                let due: Vec<RxPacket> = due.map(|(.., packet)| packet).collect();
                let host = if at_client { &mut self.client } else { &mut self.server };
                host.both(|stack| stack.handle_timeout(now));
                let before = host.0[0].shared.short_ways;
                host.both(|stack| stack.handle_packets(now, &mut arriving(stack, &due)));
                if at_client && host.0[0].shared.short_ways > before {
                    self.short += 1;
                }
            }
            self.serve();
        }
        self.now = end;
    }

    /// Both know the same.
    fn compare(&mut self) {
        for host in [&mut self.client, &mut self.server] {
            host.both(|stack| {
                let events: Vec<_> = core::iter::from_fn(|| stack.poll_event()).collect();
                let connections = connections_of(stack);
                let paths = format!("{:?}", stack.path_cache().iter().collect::<Vec<_>>());
                let told = (stack.memory(), stack.poll_timeout(), stack.shared.counters.clone());
                (events, connections, paths, told)
            });
        }
    }
}
