//! The same of servers: whatever SYNs come, and whatever becomes of the answers, with many connections at once and applications that are
//! slow, in a hurry, or gone.

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

/// So many pairs of hosts, and so many steps of each.
const PAIRS: u8 = 80;
const STEPS: u32 = 40;
/// Connections of a client at a time.
const MOST: usize = 3;
/// No key is the stack's by chance.
const OTHER_KEY: &str = "00000001-00000002-00000003-00000004";

/// What may be otherwise than usual.
const SETTINGS: &[(&str, &str)] = &[
    ("net.ipv4.tcp_sack", "0"),
    ("net.ipv4.tcp_timestamps", "0"),
    ("net.ipv4.tcp_timestamps", "2"),
    ("net.ipv4.tcp_window_scaling", "0"),
    ("net.ipv4.tcp_ecn", "1"),
    ("net.ipv4.tcp_ecn", "3"),
    ("net.ipv4.tcp_workaround_signed_windows", "1"),
    ("net.ipv4.tcp_rmem", "4096 6000 8000"),
    ("net.ipv4.tcp_fastopen", "0x207"),
    ("net.ipv4.tcp_fastopen", "0x1"),
    ("net.ipv4.tcp_syncookies", "0"),
    ("net.ipv4.tcp_syncookies", "2"),
    ("net.ipv4.tcp_abort_on_overflow", "1"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.tcp_congestion_control", "bbr"),
    ("net.ipv4.ip_no_pmtu_disc", "1"),
    ("net.ipv4.tcp_reflect_tos", "1"),
    ("firstbyte.initcwnd", "1"),
    ("firstbyte.window_slow_start", "1"),
    ("firstbyte.write_by_segment", "1"),
    ("firstbyte.count_segments", "1"),
    ("firstbyte.lull_at_writes", "1"),
    ("firstbyte.receive_accounting", "packets"),
    ("firstbyte.ack_habit", "quickstart"),
    ("firstbyte.synack_data", "0"),
    ("firstbyte.synack_hold", "0"),
    ("firstbyte.synack_hold", "50ms"),
    ("firstbyte.fast_open_child_as_request", "1"),
    ("firstbyte.fast_open_key_rotation", "1s"),
    ("firstbyte.cookie_on_overflow", "0"),
    ("firstbyte.replay_guard", "0"),
    ("firstbyte.replay_guard_entries", "4"),
    ("firstbyte.syn_fin", "0"),
    ("firstbyte.early_shutdown", "0"),
    ("firstbyte.resend_after_synack", "0"),
];

#[test]
fn servers_answer_alike_by_either_way() {
    let short: u32 = (0..PAIRS).map(|seed| Servers::of(seed).go_on()).sum();
    let all = u32::from(PAIRS) * STEPS;
    assert!(short > all / 4, "no more than {short} steps of servers took a short way, in {all} of theirs");
}

struct Servers {
    /// The client's, and the server's.
    hosts: [Host; 2],
    ids: [Vec<ConnId>; 2],
    listener: ListenerId,
    server: SocketAddr,
    rng: Rng,
    now: Instant,
    path: Path,
    delay: Duration,
    /// The server takes what there is, and answers, as soon as it comes.
    prompt: bool,
    network: Vec<(Instant, usize, RxPacket)>,
}

impl Servers {
    fn of(seed: u8) -> Servers {
        let mut rng = Rng::new([seed ^ 0x3c; 32]);
        let mut config = Config::default();
        for (name, value) in SETTINGS {
            if rng.next_u64().is_multiple_of(40) {
                config.set(name, value).unwrap();
            }
        }
        let addresses: [IpAddr; 2] = match draw(&mut rng, 8) {
            0 => ["fd00::1", "fd00::2"].map(|address| address.parse().unwrap()),
            _ => ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap()),
        };
        let capabilities = Capabilities {
            mtu: [1500, 1500, 1280, 9000][draw(&mut rng, 4)],
            gso_max_size: 60_000,
            tx_checksum: draw(&mut rng, 4) > 0,
        };
        let mut hosts = addresses.map(|address| {
            Host([Some(0), None].map(|short_ways| {
                let mut stack = Stack::new(config.clone(), capabilities, [seed; 32]);
                stack.add_address(address, 24);
                stack.shared.short_ways = short_ways;
                stack
            }))
        });
        let (now, server) = (Instant::from_nanos(1_000_000_000), SocketAddr::new(addresses[1], 80));
        let options = listen_options(&mut rng);
        let listener = hosts[1].both(|stack| stack.listen(now, server, options.clone()).unwrap());
        let path = Path::of(&mut rng);
        let delay = Duration::from_micros([0, 300, 20_000][draw(&mut rng, 3)]);
        let prompt = draw(&mut rng, 3) > 0;
        let (ids, network) = ([Vec::new(), Vec::new()], Vec::new());
        Servers { hosts, ids, listener, server, rng, now, path, delay, prompt, network }
    }

    /// Returns how often the server took a short way.
    fn go_on(mut self) -> u32 {
        for _ in 0..STEPS {
            match draw(&mut self.rng, 8) {
                0..3 => self.open(),
                3..5 => self.act(0),
                _ => self.serve(),
            }
            self.send();
            let wait = [0, 10, 400, 1_500, 25_000, 60_000, 2_000_000][draw(&mut self.rng, 7)];
            self.move_on(Duration::from_micros(wait));
            self.compare();
        }
        self.hosts[1].0[0].shared.short_ways.unwrap_or(0)
    }

    fn open(&mut self) {
        let (now, server, options) = (self.now, self.server, connect_options(&mut self.rng));
        if self.ids[0].len() == MOST {
            let oldest = self.ids[0].remove(0);
            self.hosts[0].both(|stack| stack.close(now, oldest));
        }
        if let Ok(id) = self.hosts[0].both(|stack| stack.connect(now, server, options.clone())) {
            self.ids[0].push(id);
        }
    }

    /// The server's application accepts, or does something to what it has accepted.
    fn serve(&mut self) {
        let (now, listener) = (self.now, self.listener);
        if draw(&mut self.rng, 60) == 0 {
            let options = listen_options(&mut self.rng);
            self.hosts[1].both(|stack| stack.set_listen_options(now, listener, options.clone()));
        }
        if draw(&mut self.rng, 100) == 0 {
            self.hosts[1].both(|stack| stack.set_fast_open_key(OTHER_KEY.parse().unwrap()));
        }
        if self.prompt || draw(&mut self.rng, 2) == 0 {
            while let Ok((id, _)) = self.hosts[1].both(|stack| stack.accept(now, listener)) {
                self.ids[1].push(id);
                if self.prompt {
                    self.answer(id);
                }
            }
        }
        self.act(1);
    }

    /// What servers mostly do.
    fn answer(&mut self, id: ConnId) {
        let (now, host) = (self.now, &mut self.hosts[1]);
        let _ = host.both(|stack| stack.read(now, id, &mut [0; 20_000]));
        let answer = vec![b'a'; [1, 100, 100, 100, 1_400, 3_000][draw(&mut self.rng, 6)]];
        let _ = host.both(|stack| stack.write(now, id, &answer));
        match draw(&mut self.rng, 8) {
            0 => host.both(|stack| stack.push(now, id)),
            1 => _ = host.both(|stack| stack.shutdown(now, id)),
            2 => host.both(|stack| stack.close(now, id)),
            _ => _ = host.both(|stack| stack.read(now, id, &mut [0; 20_000])),
        }
    }

    /// An application does something to one of its connections.
    fn act(&mut self, who: usize) {
        let (now, rng) = (self.now, &mut self.rng);
        let (host, ids) = (&mut self.hosts[who], &mut self.ids[who]);
        if ids.is_empty() {
            return;
        }
        let at = draw(rng, ids.len());
        let (id, cork) = (ids[at], draw(rng, 2) == 0);
        match draw(rng, 16) {
            0..5 => _ = host.both(|stack| stack.read(now, id, &mut [0; 20_000])),
            5..9 => {
                let data = vec![b'd'; [1, 100, 100, 700, 3_000][draw(rng, 5)]];
                let _ = host.both(|stack| stack.write(now, id, &data));
            }
            9 => _ = host.both(|stack| stack.shutdown(now, id)),
            10 => host.both(|stack| stack.push(now, id)),
            11 => _ = host.both(|stack| stack.set_option(now, id, SocketOption::NoDelay(true))),
            12 => _ = host.both(|stack| stack.set_option(now, id, SocketOption::Cork(cork))),
            13 => _ = host.both(|stack| stack.set_option(now, id, SocketOption::QuickAck(false))),
            14 => {
                ids.remove(at);
                host.both(|stack| stack.close(now, id));
            }
            _ if draw(rng, 4) == 0 => {
                ids.remove(at);
                host.both(|stack| stack.abort(now, id));
            }
            _ => {}
        }
    }

    fn send(&mut self) {
        for who in 0..2 {
            let now = self.now;
            while let Some(packets) = self.hosts[who].both(|stack| {
                stack.poll_transmit(now).map(|packet| (packet.header().to_vec(), packet.segments()))
            }) {
                for packet in packets.1 {
                    let arrivals = self.path.arrivals(&mut self.rng, RxPacket::new(packet));
                    let at = self.now + self.delay;
                    self.network
                        .extend(arrivals.into_iter().map(|(late, packet)| (at + late, 1 - who, packet)));
                }
            }
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
                let due: Vec<RxPacket> = due.map(|(.., packet)| packet).collect();
                self.hosts[who].both(|stack| {
                    stack.handle_timeout(now);
                    stack.handle_packets(now, &mut arriving(stack, &due));
                });
            }
            if self.prompt {
                self.serve();
            }
        }
        self.now = end;
    }

    /// Both know the same.
    fn compare(&mut self) {
        let listener = self.listener;
        for host in &mut self.hosts {
            host.both(|stack| {
                let events: Vec<_> = core::iter::from_fn(|| stack.poll_event()).collect();
                let connections = connections_of(stack);
                let requests = stack.requests.iter().map(|(index, held)| format!("{index} {held:?}"));
                let requests: Vec<String> = requests.collect();
                let told = format!("{:?} {:?}", stack.drops, stack.listener_info(listener));
                let sizes = (stack.table_sizes(), stack.guard.len(), stack.memory());
                (
                    events,
                    connections,
                    requests,
                    told,
                    sizes,
                    stack.poll_timeout(),
                    stack.shared.counters.clone(),
                )
            });
        }
    }
}

fn listen_options(rng: &mut Rng) -> ListenOptions {
    let usual = SocketOptions { nodelay: draw(rng, 2) == 0, ..SocketOptions::default() };
    let socket = match draw(rng, 30) {
        0 => SocketOptions { cork: true, ..usual },
        1 => SocketOptions { max_segment: Some(600), ..usual },
        2 => SocketOptions { recv_buffer: Some(3_000), ..usual },
        3 => SocketOptions { keepalive: true, ..usual },
        4 => SocketOptions { dscp: 10, hop_limit: Some(9), ..usual },
        5 => SocketOptions { save_syn: true, ..usual },
        _ => usual,
    };
    ListenOptions {
        backlog: [1, 1024, 1024, 1024][draw(rng, 4)],
        fast_open: [None, Some(1), Some(16), Some(16), Some(16), Some(16)][draw(rng, 6)],
        fast_open_no_cookie: draw(rng, 8) == 0,
        synack_hold: [None, None, None, Some(Duration::ZERO)][draw(rng, 4)],
        defer_accept: Duration::from_secs([0, 0, 0, 0, 0, 3][draw(rng, 6)]),
        socket,
        ..ListenOptions::default()
    }
}

fn connect_options(rng: &mut Rng) -> ConnectOptions {
    let fast_open = [FastOpen::Off, FastOpen::Off, FastOpen::Auto, FastOpen::Force, FastOpen::NoCookie];
    let len = [0, 1, 100, 100, 100, 1_380, 1_500, 9_000][draw(rng, 8)];
    ConnectOptions {
        fast_open: fast_open[draw(rng, 5)],
        first_bytes: vec![b'q'; len].into(),
        fin: draw(rng, 4) == 0,
        syn_fin: draw(rng, 2) == 0,
        data_less: draw(rng, 4) == 0,
        ..ConnectOptions::default()
    }
}
