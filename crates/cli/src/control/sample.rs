//! Samples a running stack in the doctor's format: same names, same units as a Linux host.
use super::{grouped, settings};
use doctor::sample::{Address, Info, Memory, PathMetrics, Route, RouteMetrics as Metrics, Socket, Unread};
use doctor::{Sample, Source};
use firstbyte::fast_open::Network;
use firstbyte::paths::PathRecord;
use firstbyte::{
    CaState, CongestionControl, ConnectionInfo, Instant, ListenerInfo, NotAcknowledged, RejectRoute,
    RouteMetrics, RunningTimer, SocketInfo, Stack, StackHandle, State, TimerKind,
};
use std::net::SocketAddr;
use std::time::Duration;

/// Most sockets in one sample: the stack is locked while they are read.
const SOCKETS_MAX: usize = 65_536;
/// Size of a page of `tcp_mem`, bytes.
const PAGE: u64 = 4096;
/// No slow-start threshold (TCP_INFINITE_SSTHRESH, include/net/tcp.h).
const NO_THRESHOLD: u32 = 0x7fff_ffff;
/// Number of the table `main` of `ip route`.
const MAIN: u32 = 254;
/// TCP_LISTEN (include/net/tcp_states.h).
const LISTEN: u8 = 10;

/// Reads everything that the doctor judges.
pub(super) fn of(net: &StackHandle, begun: Instant) -> Sample {
    let paths = net.paths().paths.iter().map(path).collect();
    let mut sample = net.inspect_at(|stack, now| of_stack(stack, now, begun));
    sample.paths = paths;
    sample
}

fn of_stack(stack: &Stack, now: Instant, begun: Instant) -> Sample {
    let mut all = stack.sockets();
    let sockets: Vec<Socket> = all.by_ref().take(SOCKETS_MAX).map(|info| socket(&info, now)).collect();
    let more = all.count();
    let reason = format!("sockets: only {SOCKETS_MAX} of {}", SOCKETS_MAX + more);
    let unread = Unread { source: Source::Sockets, reason, root_would_read: false };
    let gauges = [
        ("TCP mem", stack.memory().div_ceil(PAGE)),
        ("TCP orphan", stack.orphans() as u64),
        ("TCP tw", stack.states().of(State::TimeWait) as u64),
    ];
    Sample {
        of_stack: true,
        kernel: format!("firstbyte {}", env!("CARGO_PKG_VERSION")),
        uptime: now.since(begun).as_secs_f64(),
        sockets,
        counters: stack.counters().all().map(|(name, value)| (grouped(name), value)).collect(),
        settings: settings(stack).into_iter().collect(),
        routes: stack.routes().map(|(to, metrics)| route(&to, &metrics)).collect(),
        sockstat: gauges.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        unread: if more > 0 { vec![unread] } else { Vec::new() },
        ..Sample::default()
    }
}

fn socket(info: &SocketInfo, now: Instant) -> Socket {
    match info {
        SocketInfo::Listener(listener) => of_listener(listener),
        SocketInfo::Connection(connection) => of_connection(connection, now),
        SocketInfo::Numbers { state, local, peer, timer } => {
            Socket { state: number(*state), ..timed(ends(*local, *peer), *timer, now) }
        }
    }
}

fn ends(local: SocketAddr, peer: SocketAddr) -> Socket {
    Socket {
        local: Address(local.ip()),
        local_port: local.port(),
        peer: Address(peer.ip()),
        peer_port: peer.port(),
        ..Socket::default()
    }
}

fn timed(socket: Socket, timer: Option<RunningTimer>, now: Instant) -> Socket {
    let Some(RunningTimer { kind, expires_at, expirations }) = timer else { return socket };
    Socket {
        timed: true,
        probing: kind == TimerKind::Persist,
        keepalive: kind == TimerKind::Keepalive,
        retransmits: if kind == TimerKind::Retransmission { expirations } else { 0 },
        expires: millis(expires_at.since(now)),
        ..socket
    }
}

fn of_listener(listener: &ListenerInfo) -> Socket {
    let drops = small(listener.drops.dropped);
    let mut anybody = listener.local;
    anybody.set_ip(match listener.local {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    });
    anybody.set_port(0);
    Socket {
        state: LISTEN,
        recv_queue: small(listener.accept_queue as u64),
        send_queue: listener.backlog,
        inode: HELD,
        memory: Some(Memory { drops, ..Memory::default() }),
        ..ends(listener.local, anybody)
    }
}

/// Stands for the inode of a socket, which the kernel sets for sockets that a process holds.
const HELD: u32 = 1;

fn of_connection(connection: &ConnectionInfo, now: Instant) -> Socket {
    let memory = Memory {
        rcvbuf: connection.recv_buffer,
        sndbuf: connection.send_buffer,
        rmem_alloc: small(connection.recv_queue as u64),
        wmem_queued: small(connection.send_buffer_used),
        ..Memory::default()
    };
    let socket = Socket {
        state: number(connection.state),
        recv_queue: small(connection.recv_queue as u64),
        send_queue: small(connection.send_queue as u64),
        inode: if connection.orphan { 0 } else { HELD },
        congestion: congestion(connection.congestion).into(),
        memory: Some(memory),
        info: Some(known(connection, now)),
        ..ends(connection.local, connection.peer)
    };
    timed(socket, connection.timer, now)
}

fn known(connection: &ConnectionInfo, now: Instant) -> Info {
    let tcp = &connection.tcp_info;
    let mss = u32::from(connection.snd_mss).max(1);
    let segments = |bytes: u32| bytes.div_ceil(mss);
    let ago = |at: Option<Instant>| at.map_or(0, |at| millis(now.since(at)));
    let options = [
        (connection.timestamps, 1),
        (connection.sack, 2),
        (connection.window_scaling, 4),
        (connection.ecn, 8),
        (tcp.ecn_seen, 16),
        (connection.syn_data_acked > 0 || connection.early_data.len > 0, 32),
    ];
    Info {
        options: options.iter().filter(|(agreed, _)| *agreed).map(|(_, bit)| bit).sum(),
        ca_state: match tcp.ca_state {
            CaState::Open => 0,
            CaState::Disorder => 1,
            CaState::Reducing => 2,
            CaState::Recovery => 3,
            CaState::Loss => 4,
        },
        snd_wscale: connection.snd_wscale,
        rcv_wscale: connection.rcv_wscale,
        backoff: tcp.backoff,
        probes: tcp.probes,
        app_limited: connection.delivery_rate_app_limited,
        fastopen_client_fail: tcp.fastopen_client_fail.map_or(0, |why| match why {
            NotAcknowledged::Lost | NotAcknowledged::TooBig | NotAcknowledged::OldConnection => 3,
            _ => 2,
        }),
        rto: micros(connection.rto),
        ato: micros(tcp.ato),
        snd_mss: mss,
        rcv_mss: tcp.rcv_mss.into(),
        advmss: tcp.advmss.into(),
        pmtu: tcp.pmtu.into(),
        unacked: segments(connection.flight_size),
        sacked: segments(tcp.sacked),
        lost: segments(tcp.lost),
        retrans: segments(tcp.retrans),
        snd_cwnd: connection.cwnd / mss,
        snd_ssthresh: if connection.ssthresh == u32::MAX { NO_THRESHOLD } else { connection.ssthresh / mss },
        snd_wnd: connection.snd_wnd,
        rtt: micros(connection.srtt.unwrap_or_default()),
        rttvar: micros(connection.rttvar),
        min_rtt: micros(connection.min_rtt.unwrap_or_default()),
        rcv_ssthresh: tcp.rcv_ssthresh.min(connection.recv_buffer),
        rcv_rtt: micros(tcp.rcv_rtt.unwrap_or_default()),
        rcv_space: tcp.rcv_space.unwrap_or(0),
        reordering: tcp.reordering,
        last_data_sent: ago(tcp.last_data_sent),
        last_data_recv: ago(tcp.last_data_recv),
        last_ack_recv: ago(tcp.last_ack_recv),
        bytes_sent: tcp.bytes_sent,
        bytes_retrans: tcp.bytes_retrans,
        bytes_acked: connection.bytes_acked,
        bytes_received: connection.bytes_received,
        segs_out: tcp.segs_out,
        segs_in: tcp.segs_in,
        data_segs_out: tcp.data_segs_out,
        data_segs_in: tcp.data_segs_in,
        delivered: segments(tcp.delivered),
        dsack_dups: tcp.dsack_dups,
        reord_seen: tcp.reord_seen,
        rcv_ooopack: tcp.rcv_ooopack,
        notsent_bytes: tcp.notsent_bytes,
        total_retrans: connection.total_retrans,
        busy_time: wide_micros(connection.limits.busy_time(now)),
        rwnd_limited: wide_micros(connection.limits.rwnd_limited(now)),
        sndbuf_limited: wide_micros(connection.limits.sndbuf_limited(now)),
        delivery_rate: connection.delivery_rate.unwrap_or(0),
        pacing_rate: connection.pacing_rate.unwrap_or(0),
    }
}

fn route(to: &Network, metrics: &RouteMetrics) -> Route {
    let route = to.to_string();
    let value = |metric: Option<firstbyte::Metric>| metric.map_or(0, |metric| metric.value);
    let lock = |metric: Option<firstbyte::Metric>, bit: u32| match metric {
        Some(metric) if metric.locked => 1 << bit,
        _ => 0,
    };
    let RouteMetrics { congctl, fastopen_no_cookie, .. } = *metrics;
    Route {
        default: route.ends_with("/0"),
        family: if route.contains(':') { 6 } else { 4 },
        kind: metrics.reject.map_or("", reject).to_owned(),
        table: MAIN,
        metrics: Metrics {
            mtu: value(metrics.mtu),
            advmss: metrics.advmss.unwrap_or(0).into(),
            cwnd: value(metrics.cwnd),
            cwnd_locked: metrics.cwnd.is_some_and(|metric| metric.locked),
            ssthresh: value(metrics.ssthresh),
            initcwnd: metrics.initcwnd.unwrap_or(0),
            initrwnd: metrics.initrwnd.unwrap_or(0),
            rto_min: metrics.rto_min.map_or(0, millis),
            quickack: metrics.quickack.into(),
            // RTAX_MTU, RTAX_SSTHRESH, RTAX_CWND (include/uapi/linux/rtnetlink.h).
            locked: lock(metrics.mtu, 2) | lock(metrics.ssthresh, 6) | lock(metrics.cwnd, 7),
        },
        other_metrics: RouteMetrics { congctl, fastopen_no_cookie, ..RouteMetrics::default() }.to_string(),
        route,
        ..Route::default()
    }
}

fn reject(kind: RejectRoute) -> &'static str {
    match kind {
        RejectRoute::Blackhole => "blackhole",
        RejectRoute::Unreachable => "unreachable",
        RejectRoute::Prohibit => "prohibit",
    }
}

fn congestion(control: CongestionControl) -> &'static str {
    match control {
        CongestionControl::Reno => "reno",
        CongestionControl::Cubic => "cubic",
        CongestionControl::Vegas => "vegas",
        CongestionControl::Tahoe => "tahoe",
        CongestionControl::Bbr => "bbr",
        _ => "other",
    }
}

fn path(path: &PathRecord) -> PathMetrics {
    PathMetrics {
        peer: Address(path.peer),
        source: Address(path.local),
        age: path.age.as_millis().try_into().unwrap_or(u64::MAX),
        ssthresh: path.ssthresh.unwrap_or(0),
        cwnd: path.cwnd.unwrap_or(0),
        rtt: micros(path.rtt.unwrap_or_default()),
        rttvar: micros(path.rttvar),
        reordering: path.reordering.unwrap_or(0),
        fo_mss: path.mss.unwrap_or(0).into(),
        fo_syn_drops: path.syn_drops,
        fo_syn_drop_age: path.last_syn_drop.map_or(0, |age| age.as_millis().try_into().unwrap_or(u64::MAX)),
        fo_cookie: path.cookie.is_some(),
        ..PathMetrics::default()
    }
}

/// Returns the kernel's number of a state (include/net/tcp_states.h).
fn number(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

fn small(value: u64) -> u32 {
    value.try_into().unwrap_or(u32::MAX)
}

fn millis(time: Duration) -> u32 {
    time.as_millis().try_into().unwrap_or(u32::MAX)
}

fn micros(time: Duration) -> u32 {
    time.as_micros().try_into().unwrap_or(u32::MAX)
}

fn wide_micros(time: Duration) -> u64 {
    time.as_micros().try_into().unwrap_or(u64::MAX)
}
