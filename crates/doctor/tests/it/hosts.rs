//! Hosts that this machine cannot be, as samples.
use crate::shown::Show;
use crate::{has, ids};
use doctor::sample::{
    Address, ByteLimit, Conntrack, Device, Interrupt, Memory, PathMetrics, Pool, Queue, Rings, Socket,
    Softnet, state,
};
use doctor::{Finding, Report, Sample, Severity, Window};

/// Returns a host without faults and with one fast device, and the same host 5 s later.
fn host() -> (Sample, Sample) {
    let device = Device {
        name: "eth0".to_owned(),
        index: 2,
        up: true,
        parent: Some("0000:00:03.0".to_owned()),
        mtu: 1500,
        tx_queue_len: 1000,
        addresses: 1,
        speed: Some(10_000),
        rings: Some(Rings { rx: Pool { now: 256, max: 4096 }, tx: Pool { now: 256, max: 4096 } }),
        channels: Some(Pool { now: 1, max: 4 }),
        features: [("rx-gro".to_owned(), true), ("tx-tcp-segmentation".to_owned(), true)].into(),
        byte_limits: vec![ByteLimit {
            queue: "tx-0".to_owned(),
            limit: 3000,
            limit_max: 1 << 30,
            stall_cnt: 0,
        }],
        interrupts: vec![Interrupt { number: 40, name: "eth0-rx-0".to_owned(), cpus: "0".to_owned() }],
        ..Device::default()
    };
    let queue =
        Queue { device: "eth0".to_owned(), root: true, kind: "pfifo_fast".to_owned(), ..Queue::default() };
    let before = Sample {
        kernel: "6.18.0".to_owned(),
        uptime: 100.0,
        devices: vec![device],
        queues: vec![queue],
        queue_kinds: vec!["fq_codel".to_owned()],
        settings: [("max_backlog", "1000"), ("budget", "300"), ("budget_usecs", "8000")]
            .map(|(name, value)| (format!("net.core.netdev_{name}"), value.to_owned()))
            .into(),
        softnet: vec![Softnet::default(); 4],
        net_rx: vec![0; 4],
        ..Sample::default()
    };
    let now = Sample { uptime: 105.0, ..before.clone() };
    (before, now)
}

/// Returns the findings after a change of the later sample, without those of the unchanged host.
fn with(change: impl FnOnce(&mut Sample)) -> Vec<Finding> {
    let (before, mut now) = host();
    assert_eq!(Report::of(&Window::between(&before, &now)).findings, [], "a host at rest is silent");
    change(&mut now);
    Report::of(&Window::between(&before, &now)).findings
}

/// Shows a rule by records: the host without faults, the host with the fault, and the host after
/// these commands (or after the advice, if there are none). `fixed` changes both samples of the
/// last host, or only the later one.
fn shown(
    show: &Show,
    id: &str,
    commands: &[&str],
    goes_on: impl FnOnce(&mut Sample),
    fixed: impl FnOnce(&mut Sample, &mut Sample),
) {
    let found = |before: &Sample, now: &Sample| Report::of(&Window::between(before, now)).findings;
    let (before, mut now) = host();
    show.silent(&[id], &found(&before, &now));
    goes_on(&mut now);
    show.fires(&[id], &found(&before, &now));
    show.recorded(id, commands);
    let (mut after, mut later) = (now.clone(), now);
    later.uptime += 5.0;
    fixed(&mut after, &mut later);
    show.gone(&[id], &found(&after, &later));
}

fn counters(sample: &mut Sample, counters: &[(&str, u64)]) {
    sample.counters.extend(counters.iter().map(|(name, value)| ((*name).to_owned(), *value)));
}

pub(crate) fn a_receive_ring_that_overflows_is_found_and_enlarged(show: &Show) {
    let lost = |now: &mut Sample| now.devices[0].rx_missed_errors = 70;
    let enlarged = |after: &mut Sample, _: &mut Sample| {
        after.devices[0].rings = Some(Rings { rx: Pool { now: 4096, max: 4096 }, ..Rings::default() });
    };
    shown(show, "RX-04", &["ethtool -G eth0 rx 4096"], lost, enlarged);
    let found = with(|now| {
        now.devices[0].rx_fifo_errors = 70;
        now.devices[0].rings = Some(Rings { rx: Pool { now: 4096, max: 4096 }, ..Rings::default() });
    });
    assert!(found[0].fix.steps[0].obstacle.is_some(), "no larger ring to be had");
}

pub(crate) fn budgets_and_flow_limits_are_found(show: &Show) {
    let squeezed =
        |now: &mut Sample| now.softnet[0] = Softnet { processed: 1000, squeezed: 20, ..Softnet::default() };
    let larger = |after: &mut Sample, later: &mut Sample| {
        for sample in [after, &mut *later] {
            sample.settings.insert("net.core.netdev_budget".to_owned(), "600".to_owned());
            sample.settings.insert("net.core.netdev_budget_usecs".to_owned(), "16000".to_owned());
        }
        later.softnet[0] = Softnet { processed: 101_000, squeezed: 40, ..Softnet::default() };
    };
    let commands =
        ["sysctl -w net.core.netdev_budget=\"600\"", "sysctl -w net.core.netdev_budget_usecs=\"16000\""];
    shown(show, "RX-02", &commands, squeezed, larger);
    let limited = |now: &mut Sample| now.softnet[0].flow_limited = 3;
    // Spread over more connections, the same number of packets stays within the limit.
    let spread = |_: &mut Sample, later: &mut Sample| later.softnet[0].processed = 101_000;
    shown(show, "RX-03", &[], limited, spread);
}

pub(crate) fn one_cpu_that_receives_everything_is_found(show: &Show) {
    let busy = |now: &mut Sample| {
        now.devices[0].rx_packets = 500_000;
        now.net_rx = vec![90_000, 10, 10, 10];
    };
    let more_queues = |after: &mut Sample, later: &mut Sample| {
        for sample in [after, &mut *later] {
            let device = &mut sample.devices[0];
            device.channels = Some(Pool { now: 4, max: 4 });
            device.interrupts = (0..4)
                .map(|n| Interrupt { number: 40 + n, name: format!("eth0-rx-{n}"), cpus: n.to_string() })
                .collect();
        }
        later.devices[0].rx_packets = 1_000_000;
        later.net_rx = vec![112_500, 22_510, 22_510, 22_510];
    };
    shown(show, "RX-06", &["ethtool -L eth0 combined 4"], busy, more_queues);
    let found = with(|now| {
        busy(now);
        now.devices[0].channels = Some(Pool { now: 1, max: 1 });
    });
    assert_eq!(found[0].fix.steps[0].command, "echo f > /sys/class/net/eth0/queues/rx-0/rps_cpus");
    let found = with(|now| {
        busy(now);
        now.devices[0].rps = true;
    });
    assert_eq!(found, [], "steering spreads it");
}

#[test]
fn offloads_that_are_off_are_told_of_fast_devices() {
    let off = |now: &mut Sample| {
        now.devices[0].features.insert("rx-gro".to_owned(), false);
    };
    let found = with(off);
    assert_eq!(ids(&found), ["RX-10"]);
    assert_eq!(found[0].fix.steps[0].command, "ethtool -K eth0 rx-gro on");
    let found = with(|now| {
        off(now);
        now.devices[0].speed = Some(100);
    });
    assert!(!has(&found, "RX-10"), "{:?}", ids(&found));
}

#[test]
fn a_deep_fifo_is_told_of_a_slow_link_and_only_what_the_kernel_has_is_offered() {
    let slow = |now: &mut Sample| now.devices[0].speed = Some(10);
    let found = with(slow);
    assert_eq!(ids(&found), ["TX-03"]);
    assert_eq!(found[0].fix.steps[0].command, "tc qdisc replace dev eth0 root fq_codel");
    assert_eq!(found[0].fix.steps[0].obstacle, None);
    let found = with(|now| {
        slow(now);
        now.queue_kinds = vec!["tbf".to_owned()];
    });
    assert!(found[0].fix.steps[0].obstacle.is_some());
}

pub(crate) fn byte_queue_limits_that_are_missing_or_forgotten_are_found(show: &Show) {
    const FILE: &str = "/sys/class/net/eth0/queues/tx-0/byte_queue_limits/limit_max";
    let forgotten = |now: &mut Sample| now.devices[0].byte_limits[0].limit_max = 1000;
    let restored = |after: &mut Sample, later: &mut Sample| {
        for sample in [after, later] {
            sample.devices[0].byte_limits[0].limit_max = 1_879_048_192;
        }
    };
    shown(show, "TX-04", &[&format!("echo 1879048192 > {FILE}")], forgotten, restored);
    let found = with(|now| now.devices[0].byte_limits[0].stall_cnt = 2);
    assert_eq!(ids(&found), ["TX-04"]);
    let found = with(|now| now.devices[0].byte_limits.clear());
    assert_eq!(ids(&found), ["TX-04"], "a ring of 256 packets is short at 10 Gbit/s");
    let slow = |now: &mut Sample| {
        now.devices[0].byte_limits.clear();
        now.devices[0].speed = Some(100);
        now.queues.clear();
    };
    let shorter = |_: &mut Sample, later: &mut Sample| {
        later.devices[0].rings.as_mut().unwrap().tx.now = 64;
    };
    shown(show, "TX-05", &["ethtool -G eth0 tx 64"], slow, shorter);
}

#[test]
fn bonds_are_judged_by_what_tcp_sees() {
    let bond = |mode: &str, partner: Option<&str>| doctor::sample::Bond {
        name: "bond0".to_owned(),
        mode: mode.to_owned(),
        partner: partner.map(str::to_owned),
        ..doctor::sample::Bond::default()
    };
    let found = with(|now| now.bonds.push(bond("load balancing (round-robin)", None)));
    assert_eq!(found, [], "nothing is reordered");
    let found = with(|now| {
        now.bonds.push(bond("load balancing (round-robin)", None));
        counters(now, &[("TcpExtTCPSACKReorder", 25)]);
    });
    assert_eq!(ids(&found), ["TX-08", "CC-09"]);
    let found =
        with(|now| now.bonds.push(bond("IEEE 802.3ad Dynamic link aggregation", Some("00:00:00:00:00:00"))));
    assert_eq!(ids(&found), ["TX-08"]);
}

pub(crate) fn a_congestion_control_that_containers_cannot_have_is_told(show: &Show) {
    let settings = |now: &mut Sample, allowed: &str| {
        for (name, value) in [("tcp_available", "reno cubic bbr"), ("tcp_allowed", allowed)] {
            now.settings.insert(format!("net.ipv4.{name}_congestion_control"), value.to_owned());
        }
        now.settings.insert("net.ipv4.tcp_congestion_control".to_owned(), "bbr".to_owned());
    };
    let command = "sysctl -w net.ipv4.tcp_allowed_congestion_control=\"reno cubic bbr\"";
    let allowed = |_: &mut Sample, later: &mut Sample| settings(later, "reno cubic bbr");
    shown(show, "CC-10", &[command], |now| settings(now, "reno bbr"), allowed);
    let found = with(|now| settings(now, "reno bbr"));
    assert_eq!(found[0].formula, "cubic not allowed");
    assert_eq!(found[0].fix.steps[0].obstacle, None);
}

/// A namespace other than the host's first can read the list but not write it.
#[test]
fn a_list_of_the_whole_host_is_not_to_be_changed_in_a_namespace() {
    testnet::in_namespace(|| {
        let name = "net.ipv4.tcp_allowed_congestion_control";
        let path = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
        let allowed = testnet::read_sysctl(name);
        assert!(std::fs::write(path, &allowed).is_err());
        let mut now = doctor::sources::here();
        let lists = [(name, "reno"), ("net.ipv4.tcp_available_congestion_control", "reno cubic")];
        let default = [("net.ipv4.tcp_congestion_control", "reno")];
        now.settings
            .extend(lists.into_iter().chain(default).map(|(name, list)| (name.to_owned(), list.to_owned())));
        let report = Report::of(&Window::between(&now, &now));
        let reason = &report.not_judged.iter().find(|rule| rule.id == "CC-10").unwrap().reason;
        assert!(reason.contains("first network namespace"), "{reason}");
    });
}

/// Checks on this kernel what such a record means.
#[test]
fn a_namespace_cannot_have_what_is_not_allowed() {
    testnet::in_namespace(|| {
        let list = |name: &str| testnet::read_sysctl(&format!("net.ipv4.tcp_{name}_congestion_control"));
        let allowed = list("allowed");
        for name in list("available").split_whitespace() {
            let has = std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", name).is_ok();
            assert_eq!(has, allowed.split_whitespace().any(|other| other == name), "{name} of {allowed}");
        }
    });
}

pub(crate) fn a_connection_tracking_table_that_fills_is_found(show: &Show) {
    const MAX: &str = "net.netfilter.nf_conntrack_max";
    let table = |now: &mut Sample, count, max: u64, drop| {
        now.settings.insert(MAX.to_owned(), max.to_string());
        now.conntrack = Some(Conntrack { count, max, drop, ..Conntrack::default() });
    };
    let larger = |after: &mut Sample, later: &mut Sample| {
        for sample in [after, later] {
            table(sample, 230_000, 524_288, 0);
        }
    };
    let command = "sysctl -w net.netfilter.nf_conntrack_max=\"524288\"";
    shown(show, "RX-13", &[command], |now| table(now, 230_000, 262_144, 0), larger);
    let found = with(|now| table(now, 230_000, 262_144, 7));
    assert_eq!(
        (found[0].id.as_str(), found[0].severity),
        ("RX-13", Severity::Warning),
        "drops of another day"
    );
    let (mut before, mut now) = host();
    table(&mut before, 262_144, 262_144, 0);
    table(&mut now, 262_144, 262_144, 7);
    let found = Report::of(&Window::between(&before, &now)).findings;
    assert_eq!((found[0].severity, ids(&found)), (Severity::Critical, vec!["RX-13"]));
    assert!(found[0].symptom.contains("drops new connections"), "{}", found[0].symptom);
}

/// The counters belong to a namespace: another namespace's connections do not show.
#[test]
fn connection_tracking_is_read_of_this_namespace() {
    if !testnet::has_program("nft") {
        return;
    }
    testnet::in_namespace(|| {
        let tracked = || doctor::sources::here().conntrack.map(|table| table.count);
        if tracked().is_none() {
            return;
        }
        assert_eq!(tracked(), Some(0));
        crate::shell(
            "nft 'add table ip t; add chain ip t c { type filter hook input priority 0; }; add rule ip t c ct state new accept'",
        );
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(tracked(), Some(1));
    });
}

#[test]
fn devices_are_shown_healthy_or_not() {
    let (mut sample, _) = host();
    sample.bonds.push(doctor::sample::Bond {
        name: "bond0".to_owned(),
        mode: "802.3ad".to_owned(),
        ..Default::default()
    });
    sample.conntrack = Some(Conntrack { count: 12, max: 262_144, ..Conntrack::default() });
    let text = doctor::show::nics::text(None, &sample);
    for line in [
        "eth0: up, 0000:00:03.0, 10000 Mbit/s, mtu 1500, txqueuelen 1000",
        "    rings      rx 256 of at most 4096, tx 256 of at most 4096",
        "    queues     1 of at most 4",
        "    offloads   rx-gro on, tx-tcp-segmentation on",
        "    interrupt  40 eth0-rx-0 to CPU 0",
        "    qdisc      pfifo_fast (root), 0 bytes wait, 0 dropped",
        "bond bond0: 802.3ad, no member down",
        "CPU 3: 0 packets handled; 0 dropped, 0 times out of budget, 0 over the flow limit",
        "connection tracking: 12 of at most 262144; 0 dropped, 0 dropped early, 0 inserts failed, 0 invalid",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    let json = doctor::show::nics::json(Some("eth0"), &sample);
    assert_eq!(json["devices"][0]["rings"]["rx"]["max"], 4096);
    assert!(!doctor::show::nics::text(Some("eth0"), &sample).contains("CPU 3"));
}

/// One counter has two causes: while memory is free, resets are those of orphans.
#[test]
fn resets_without_a_want_of_memory_are_those_of_orphans() {
    let reset = |used| {
        with(|now| {
            now.settings.insert("net.ipv4.tcp_mem".to_owned(), "1000 2000 3000".to_owned());
            now.sockstat.insert("TCP mem".to_owned(), used);
            counters(now, &[("TcpExtTCPAbortOnMemory", 5)]);
        })
    };
    assert_eq!(reset(2500)[0].symptom, "TCP is short of memory");
    let found = reset(100);
    assert_eq!((ids(&found), found[0].severity), (vec!["WIN-14"], Severity::Critical));
    assert!(found[0].symptom.starts_with("connections are reset: too many orphans"), "{found:#?}");
    assert!(!found[0].fix.steps.iter().any(|step| step.command.contains("tcp_mem")), "{found:#?}");
}

#[test]
fn fast_open_paused_for_everyone_is_found() {
    let found = with(|now| {
        now.settings.insert("net.ipv4.tcp_fastopen_blackhole_timeout_sec".to_owned(), "3600".to_owned());
        counters(now, &[("TcpExtTCPFastOpenBlackhole", 1)]);
    });
    assert_eq!(ids(&found), ["TFO-13"]);
}

#[test]
fn maxima_below_what_a_path_holds_are_told_and_the_fix_raises_them() {
    let far = |now: &mut Sample, rmem: &str| {
        now.devices[0].speed = Some(1000);
        now.settings.insert("net.ipv4.tcp_rmem".to_owned(), rmem.to_owned());
        now.settings.insert("net.ipv4.tcp_wmem".to_owned(), "4096 16384 4194304".to_owned());
        let peer = Address("192.0.2.1".parse().unwrap());
        now.paths.push(PathMetrics { peer, rtt: 100_000, ..PathMetrics::default() });
    };
    let found = with(|now| far(now, "4096 131072 6291456"));
    assert_eq!(ids(&found), ["WIN-04", "WIN-05"]);
    assert_eq!(found[0].fix.steps[0].command, "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 25000000\"");
    assert_eq!(found[0].severity, Severity::Info);
    let found = with(|now| {
        far(now, "4096 131072 6291456");
        let memory = Some(Memory { rcvbuf: 6_291_456, ..Memory::default() });
        now.sockets.push(Socket { memory, state: state::ESTABLISHED, ..Socket::default() });
    });
    assert_eq!(found[0].severity, Severity::Warning, "a connection has reached the maximum");
    assert_eq!(ids(&with(|now| far(now, "4096 131072 25000000"))), ["WIN-05"]);
}
