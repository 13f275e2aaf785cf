//! A healthy host, and for each rule that has a command a change that makes it fire.
use doctor::Sample;
use doctor::sample::{
    Address, ByteLimit, Configured, Conntrack, Device, Info, Interrupt, Memory, PathMetrics, Pool, Queue,
    Rings, Route, RouteMetrics, Socket, Softnet, state,
};
use std::net::Ipv4Addr;

/// A fault of the host, in the later sample or in both.
pub(crate) struct Case {
    pub(crate) rule: &'static str,
    pub(crate) spoil: fn(&mut Sample, &mut Sample),
}

const fn case(rule: &'static str, spoil: fn(&mut Sample, &mut Sample)) -> Case {
    Case { rule, spoil }
}

/// Settings of Linux 6.18 in its first namespace.
const SETTINGS: &str = "\
net.core.default_qdisc=fq_codel net.core.netdev_budget=300 net.core.netdev_budget_usecs=8000 net.core.netdev_max_backlog=1000
net.core.rmem_max=4194304 net.core.somaxconn=4096 net.core.wmem_max=4194304 net.ipv4.conf.all.rp_filter=0
net.ipv4.conf.eth0.rp_filter=0 net.ipv4.conf.eth1.rp_filter=0 net.ipv4.tcp_abort_on_overflow=0 net.ipv4.tcp_adv_win_scale=1
net.ipv4.tcp_early_retrans=3 net.ipv4.tcp_fack=0 net.ipv4.tcp_fastopen=1 net.ipv4.tcp_fastopen_blackhole_timeout_sec=0
net.ipv4.tcp_fin_timeout=60 net.ipv4.tcp_limit_output_bytes=4194304 net.ipv4.tcp_low_latency=0 net.ipv4.tcp_max_orphans=16384
net.ipv4.tcp_max_syn_backlog=512 net.ipv4.tcp_max_tw_buckets=65536 net.ipv4.tcp_moderate_rcvbuf=1 net.ipv4.tcp_mtu_probing=0
net.ipv4.tcp_no_metrics_save=0 net.ipv4.tcp_no_ssthresh_metrics_save=1 net.ipv4.tcp_orphan_retries=0 net.ipv4.tcp_recovery=1
net.ipv4.tcp_rto_max_ms=120000 net.ipv4.tcp_sack=1 net.ipv4.tcp_slow_start_after_idle=1 net.ipv4.tcp_synack_retries=5
net.ipv4.tcp_syn_linear_timeouts=4 net.ipv4.tcp_syn_retries=6 net.ipv4.tcp_syncookies=1 net.ipv4.tcp_timestamps=1
net.ipv4.tcp_tw_reuse=2 net.ipv4.tcp_window_scaling=1 net.ipv4.tcp_congestion_control=cubic";

/// Returns a server without faults, and the same server five seconds later.
pub(crate) fn host() -> (Sample, Sample) {
    let mut settings: std::collections::BTreeMap<String, String> = SETTINGS
        .split_whitespace()
        .map(|setting| setting.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let several = [
        ("net.ipv4.ip_local_port_range", "32768\t60999"),
        ("net.ipv4.tcp_allowed_congestion_control", "reno cubic"),
        ("net.ipv4.tcp_available_congestion_control", "reno cubic"),
        ("net.ipv4.tcp_mem", "100000\t200000\t400000"),
        ("net.ipv4.tcp_rmem", "4096\t131072\t33554432"),
        ("net.ipv4.tcp_wmem", "4096\t16384\t4194304"),
        ("net.ipv4.tcp_fastopen_key", "set with a backup"),
    ];
    settings.extend(several.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let device = |name: &str, index| Device {
        name: name.to_owned(),
        index,
        up: true,
        parent: Some(format!("0000:00:0{index}.0")),
        mtu: 1500,
        tx_queue_len: 1000,
        addresses: 1,
        speed: Some(1000),
        rings: Some(Rings { rx: Pool { now: 256, max: 4096 }, tx: Pool { now: 256, max: 4096 } }),
        channels: Some(Pool { now: 1, max: 2 }),
        features: [("rx-gro".to_owned(), true), ("tx-tcp-segmentation".to_owned(), true)].into(),
        byte_limits: vec![ByteLimit {
            queue: "tx-0".to_owned(),
            limit: 3000,
            limit_max: 1 << 30,
            stall_cnt: 0,
        }],
        interrupts: vec![Interrupt { number: 40, name: format!("{name}-rx-0"), cpus: "0".to_owned() }],
        ..Device::default()
    };
    let queue = |device: &str| Queue {
        device: device.to_owned(),
        root: true,
        kind: "fq_codel".to_owned(),
        ..Queue::default()
    };
    let route = Route {
        route: "default via 10.0.0.1 dev eth0".to_owned(),
        device: "eth0".to_owned(),
        default: true,
        family: 4,
        ..Route::default()
    };
    let before = Sample {
        kernel: "6.18.0".to_owned(),
        uptime: 1000.0,
        settings,
        sockets: vec![listener(80, 4095)],
        devices: vec![device("eth0", 2), device("eth1", 3)],
        queues: vec![queue("eth0"), queue("eth1")],
        queue_kinds: vec!["fq_codel".to_owned()],
        routes: vec![route],
        softnet: vec![Softnet::default(); 2],
        net_rx: vec![0; 2],
        sockstat: [("TCP mem".to_owned(), 10), ("TCP orphan".to_owned(), 0)].into(),
        ..Sample::default()
    };
    let now = Sample { uptime: 1005.0, ..before.clone() };
    (before, now)
}

fn listener(port: u16, backlog: u32) -> Socket {
    Socket {
        state: state::LISTEN,
        local_port: port,
        send_queue: backlog,
        inode: u32::from(port),
        memory: Some(Memory::default()),
        ..Socket::default()
    }
}

/// Returns a connection of this host's port 80, or of another local port if `local` names one.
fn connection(state: u8, local: u16, peer: u8, mut info: Info) -> Socket {
    if info.snd_ssthresh == 0 {
        // TCP_INFINITE_SSTHRESH.
        info.snd_ssthresh = 0x7fff_ffff;
    }
    Socket {
        state,
        local: Address(Ipv4Addr::new(10, 0, 0, 5).into()),
        local_port: local,
        peer: Address(Ipv4Addr::new(10, 0, 1, peer).into()),
        peer_port: 443,
        inode: u32::from(local),
        info: Some(info),
        memory: Some(Memory { rcvbuf: 131_072, sndbuf: 87_040, ..Memory::default() }),
        ..Socket::default()
    }
}

fn both(before: &mut Sample, now: &mut Sample, spoil: impl Fn(&mut Sample)) {
    spoil(before);
    spoil(now);
}

fn set(before: &mut Sample, now: &mut Sample, name: &str, value: &str) {
    both(before, now, |sample| drop(sample.settings.insert(name.to_owned(), value.to_owned())));
}

fn count(now: &mut Sample, name: &str, grown: u64) {
    *now.counters.entry(name.to_owned()).or_default() += grown;
}

fn configured(before: &mut Sample, now: &mut Sample, file: &str, name: &str, value: &str) {
    both(before, now, |sample| {
        let line = u32::try_from(sample.configured.len()).unwrap() + 1;
        sample.configured.push(Configured {
            file: file.to_owned(),
            line,
            name: name.to_owned(),
            value: value.to_owned(),
        });
    });
}

fn path(peer: u8, ssthresh: u32, rtt: u32, fo_syn_drops: u32) -> PathMetrics {
    PathMetrics {
        peer: Address(Ipv4Addr::new(10, 0, 1, peer).into()),
        ssthresh,
        rtt,
        fo_syn_drops,
        ..PathMetrics::default()
    }
}

/// A listener on port 81 that dropped packets, its queue full, its backlog the host's limit.
fn full(before: &mut Sample, now: &mut Sample) {
    set(before, now, "net.core.somaxconn", "128");
    let of = |recv_queue, drops| Socket {
        recv_queue,
        memory: Some(Memory { drops, ..Memory::default() }),
        ..listener(81, 128)
    };
    before.sockets.push(of(100, 0));
    now.sockets.push(of(129, 40));
    count(now, "TcpExtListenOverflows", 40);
    count(now, "TcpExtListenDrops", 40);
}

/// A half-open connection whose SYN-ACK nobody answers.
fn half_open(port: u16, peer: u8, peer_port: u16) -> Socket {
    let socket = connection(state::SYN_RECEIVED, port, peer, Info::default());
    Socket { retransmits: 2, inode: 0, peer_port, ..socket }
}

const SYSCTL_CONF: &str = "/etc/sysctl.conf";

pub(crate) const CASES: &[Case] = &[
    case("ACC-01", full),
    case("ACC-04", |b, n| {
        set(b, n, "net.core.somaxconn", "1024");
        both(b, n, |sample| sample.sockets.push(listener(82, 1024)));
    }),
    case("ACC-04", |b, n| {
        let of = |recv_queue, drops| Socket {
            recv_queue,
            memory: Some(Memory { drops, ..Memory::default() }),
            ..listener(83, 4096)
        };
        b.sockets.push(of(4000, 0));
        n.sockets.push(of(4097, 7));
        count(n, "TcpExtListenOverflows", 7);
    }),
    case("ACC-06", |b, n| set(b, n, "net.ipv4.tcp_abort_on_overflow", "1")),
    case("ACC-07", |b, n| {
        both(b, n, |sample| {
            sample.sockets.push(listener(85, 20));
            sample.sockets.extend((1..=20).map(|peer| half_open(85, peer, 10_000)));
        });
    }),
    case("ACC-14", |b, n| {
        set(b, n, "net.core.somaxconn", "128");
        count(n, "TcpExtTCPReqQFullDoCookies", 500);
    }),
    case("ACC-08", |b, n| {
        set(b, n, "net.ipv4.tcp_syncookies", "0");
        count(n, "TcpExtTCPReqQFullDrop", 500);
        count(n, "TcpExtListenDrops", 500);
    }),
    case("ACC-09", |b, n| set(b, n, "net.ipv4.tcp_syncookies", "0")),
    // With cookies on, the large tcp_max_syn_backlog becomes useless.
    case("ACC-09", |b, n| {
        set(b, n, "net.ipv4.tcp_syncookies", "0");
        set(b, n, "net.ipv4.tcp_max_syn_backlog", "65536");
    }),
    case("ACC-10", |b, n| set(b, n, "net.ipv4.tcp_syncookies", "2")),
    case("ACC-11", |b, n| set(b, n, "net.ipv4.tcp_max_syn_backlog", "65536")),
    case("ACC-12", |b, n| {
        both(b, n, |sample| {
            sample.sockets.push(listener(84, 20));
            sample.sockets.extend((1..=20).map(|port| half_open(84, 200, 10_000 + port)));
        });
    }),
    case("ACC-13", |b, n| {
        full(b, n);
        count(n, "TcpExtSyncookiesRecv", 5);
    }),
    case("CC-01", |b, n| {
        set(b, n, "net.ipv4.tcp_no_ssthresh_metrics_save", "0");
        both(b, n, |sample| sample.paths.push(path(9, 10, 40_000, 0)));
    }),
    case("CC-02", |b, n| set(b, n, "net.ipv4.tcp_no_ssthresh_metrics_save", "0")),
    case("CC-03", |b, n| {
        set(b, n, "net.ipv4.tcp_no_ssthresh_metrics_save", "0");
        let info = Info {
            snd_ssthresh: 20,
            snd_cwnd: 30,
            min_rtt: 40_000,
            rtt: 40_000,
            options: 7,
            ..Info::default()
        };
        both(b, n, |sample| {
            sample.paths.push(path(8, 20, 40_000, 0));
            sample.sockets.push(connection(state::ESTABLISHED, 40_001, 8, info));
        });
    }),
    case("CC-04", |b, n| {
        both(b, n, |sample| {
            let metrics = sample.routes[0].metrics;
            sample.routes[0].metrics = RouteMetrics { cwnd: 20, cwnd_locked: true, ..metrics };
        });
    }),
    case("CC-04", |b, n| both(b, n, |sample| sample.routes[0].metrics.ssthresh = 30)),
    case("CC-05", |b, n| both(b, n, |sample| sample.routes[0].metrics.initcwnd = 2)),
    case("CC-06", |b, n| {
        let info = Info {
            snd_cwnd: 100,
            min_rtt: 40_000,
            rtt: 40_000,
            rto: 240_000,
            last_data_sent: 9000,
            options: 7,
            ..Info::default()
        };
        both(b, n, |sample| {
            sample.sockets.extend((1..=5).map(|peer| connection(state::ESTABLISHED, 80, 100 + peer, info)))
        });
    }),
    case("CC-08", |b, n| set(b, n, "net.ipv4.tcp_early_retrans", "0")),
    case("CC-08", |b, n| set(b, n, "net.ipv4.tcp_recovery", "0")),
    case("CC-10", |b, n| set(b, n, "net.ipv4.tcp_available_congestion_control", "reno cubic bbr")),
    case("CC-11", |b, n| {
        let info = Info {
            snd_mss: 1448,
            backoff: 4,
            unacked: 2,
            rtt: 1000,
            min_rtt: 1000,
            options: 7,
            ..Info::default()
        };
        let stuck = Socket { send_queue: 2896, ..connection(state::ESTABLISHED, 80, 120, info) };
        both(b, n, |sample| sample.sockets.push(stuck.clone()));
    }),
    case("CC-13", |b, n| {
        let waits = Socket { retransmits: 3, ..connection(state::SYN_SENT, 40_002, 121, Info::default()) };
        both(b, n, |sample| sample.sockets.push(waits.clone()));
    }),
    case("RX-01", |_, n| n.softnet[0].dropped = 50),
    case("RX-02", |_, n| {
        n.softnet[0] = Softnet { processed: n.softnet[0].processed + 1000, squeezed: 20, ..n.softnet[0] }
    }),
    case("RX-04", |_, n| n.devices[0].rx_missed_errors = 70),
    case("RX-06", |_, n| {
        n.devices[0].rx_packets = 500_000;
        n.net_rx = vec![90_000, 10];
    }),
    case("RX-06", |b, n| {
        both(b, n, |sample| sample.devices[1].channels = None);
        n.devices[1].rx_packets = 500_000;
        n.net_rx = vec![90_000, 10];
    }),
    case("RX-07", |b, n| {
        set(b, n, "net.ipv4.conf.all.rp_filter", "1");
        set(b, n, "net.ipv4.conf.eth0.rp_filter", "1");
        set(b, n, "net.ipv4.conf.eth1.rp_filter", "1");
        count(n, "TcpExtIPReversePathFilter", 9);
    }),
    case("RX-08", |b, n| set(b, n, "net.ipv4.conf.all.rp_filter", "1")),
    case("RX-10", |b, n| {
        both(b, n, |sample| {
            sample.devices[0].features.insert("rx-gro".to_owned(), false);
        })
    }),
    case("RX-13", |b, n| {
        set(b, n, "net.netfilter.nf_conntrack_max", "65536");
        let table = Conntrack { count: 60_000, max: 65_536, ..Conntrack::default() };
        both(b, n, |sample| sample.conntrack = Some(table));
        n.conntrack = Some(Conntrack { drop: 9, ..table });
    }),
    case("ST-03", |b, n| {
        let held = |peer| Socket {
            inode: 0,
            probing: true,
            ..connection(state::FIN_WAIT_1, 80, peer, Info::default())
        };
        both(b, n, |sample| sample.sockets.extend((130..=141).map(held)));
    }),
    case("ST-05", |b, n| {
        both(b, n, |sample| {
            sample.sockstat.insert("TCP orphan".to_owned(), 15_000);
        })
    }),
    case("ST-06", |_, n| count(n, "TcpExtTCPTimeWaitOverflow", 3)),
    case("ST-06", |b, n| {
        set(b, n, "net.ipv4.tcp_max_tw_buckets", "262144");
        count(n, "TcpExtTCPTimeWaitOverflow", 3);
    }),
    case("ST-07", |b, n| {
        set(b, n, "net.ipv4.ip_local_port_range", "40000 40009");
        both(b, n, |sample| {
            sample.sockets.extend(
                (40_000..40_009).map(|port| connection(state::ESTABLISHED, port, 150, Info::default())),
            )
        });
    }),
    case("ST-08", |b, n| {
        set(b, n, "net.ipv4.ip_local_port_range", "40000 40009");
        let waits = |port| Socket { inode: 0, ..connection(state::TIME_WAIT, port, 151, Info::default()) };
        both(b, n, |sample| sample.sockets.extend((40_000..40_006).map(waits)));
    }),
    case("ST-10", |b, n| set(b, n, "net.ipv4.tcp_fin_timeout", "15")),
    case("ST-11", |b, n| configured(b, n, SYSCTL_CONF, "net.ipv4.tcp_tw_recycle", "1")),
    case("ST-11", |b, n| configured(b, n, "/usr/lib/sysctl.d/60-old.conf", "net.ipv4.tcp_tw_recycle", "1")),
    // First the file is right and the host is not, then the other way round.
    case("ST-12", |b, n| {
        configured(b, n, SYSCTL_CONF, "net.ipv4.tcp_syncookies", "1");
        set(b, n, "net.ipv4.tcp_syncookies", "2");
    }),
    case("ST-12", |b, n| configured(b, n, SYSCTL_CONF, "net.ipv4.tcp_syncookies", "0")),
    case("ST-12", |b, n| configured(b, n, SYSCTL_CONF, "net.ipv4.tcp_orphan_retries", "7")),
    // An earlier line sets another value.
    case("WIN-15", |b, n| {
        configured(b, n, SYSCTL_CONF, "net.core.somaxconn", "512");
        configured(b, n, SYSCTL_CONF, "net.core.somaxconn", "1024");
    }),
    case("WIN-15", |b, n| {
        set(b, n, "net.ipv4.tcp_rmem", "4096 131072 67108864");
        configured(b, n, "/usr/lib/sysctl.d/50-tuning.conf", "net.ipv4.tcp_rmem", "4096 87380 6291456");
    }),
    case("WIN-15", |b, n| {
        set(b, n, "net.core.somaxconn", "128");
        configured(b, n, SYSCTL_CONF, "net.core.somaxconn", "128");
    }),
    case("TFO-01", |b, n| set(b, n, "net.ipv4.tcp_fastopen", "2")),
    case("TFO-02", |_, n| count(n, "TcpExtTCPFastOpenCookieReqd", 4)),
    case("TFO-05", |b, n| both(b, n, |sample| sample.paths.push(path(7, 0, 4000, 3)))),
    case("TFO-10", |b, n| set(b, n, "net.ipv4.tcp_fastopen", "515")),
    case("TFO-11", |b, n| set(b, n, "net.ipv4.tcp_fastopen", "2305")),
    case("TFO-12", |b, n| set(b, n, "net.ipv4.tcp_fastopen", "1025")),
    case("TFO-13", |b, n| {
        set(b, n, "net.ipv4.tcp_fastopen_blackhole_timeout_sec", "3600");
        count(n, "TcpExtTCPFastOpenBlackhole", 1);
    }),
    case("TFO-14", |b, n| {
        set(b, n, "net.ipv4.tcp_fastopen", "3");
        set(b, n, "net.ipv4.tcp_syncookies", "2");
    }),
    case("TX-02", |b, n| {
        both(b, n, |sample| {
            let shaper = Queue {
                kind: "tbf".to_owned(),
                handle: (1, 0),
                rate: Some(250_000),
                backlog: 30_000,
                ..sample.queues[0].clone()
            };
            sample.queues[0] = shaper;
        });
        n.queues[0].bytes += 1_000_000;
    }),
    case("TX-02", |b, n| {
        both(b, n, |sample| {
            sample.queues[1].kind = "pfifo_fast".to_owned();
            sample.queues[1].backlog = 300_000;
        });
        n.queues[1].bytes += 1_000_000;
    }),
    case("TX-03", |b, n| {
        set(b, n, "net.core.default_qdisc", "pfifo_fast");
        both(b, n, |sample| {
            sample.devices[1].speed = Some(10);
            sample.devices[1].rings = None;
            sample.queues[1].kind = "pfifo_fast".to_owned();
        });
    }),
    case("TX-04", |b, n| both(b, n, |sample| sample.devices[0].byte_limits[0].limit_max = 1000)),
    case("TX-05", |b, n| {
        both(b, n, |sample| {
            sample.devices[1].speed = Some(10);
            sample.devices[1].byte_limits.clear();
        });
    }),
    case("TX-06", |b, n| set(b, n, "net.ipv4.tcp_limit_output_bytes", "4096")),
    case("TX-09", |b, n| both(b, n, |sample| sample.devices[0].mtu = 1400)),
    case("WIN-01", |b, n| set(b, n, "net.ipv4.tcp_window_scaling", "0")),
    case("WIN-04", |b, n| {
        set(b, n, "net.ipv4.tcp_rmem", "4096 131072 6291456");
        both(b, n, |sample| sample.paths.push(path(6, 0, 200_000, 0)));
    }),
    case("WIN-05", |b, n| both(b, n, |sample| sample.paths.push(path(5, 0, 200_000, 0)))),
    case("WIN-08", |b, n| set(b, n, "net.ipv4.tcp_moderate_rcvbuf", "0")),
    case("WIN-12", |b, n| set(b, n, "net.ipv4.tcp_sack", "0")),
    case("WIN-12", |b, n| set(b, n, "net.ipv4.tcp_timestamps", "0")),
    case("WIN-13", |b, n| set(b, n, "net.ipv4.tcp_adv_win_scale", "2")),
    case("WIN-13", |b, n| set(b, n, "net.ipv4.tcp_low_latency", "1")),
    case("WIN-14", |b, n| {
        both(b, n, |sample| {
            sample.sockstat.insert("TCP mem".to_owned(), 390_000);
        })
    }),
    case("WIN-14", |b, n| {
        both(b, n, |sample| {
            sample.sockstat.insert("TCP mem".to_owned(), 410_000);
        })
    }),
];
