//! Samples that are saved and judged elsewhere.
use crate::ids;
use doctor::sample::{
    Address, Configured, Device, Info, Memory, Owner, Queue, Route, RouteMetrics, Socket, Softnet, state,
};
use doctor::{Mask, Policy, Record, Report, Sample, sources};

pub(crate) fn host() -> (Sample, Sample) {
    let mut before = Sample { kernel: "6.18.0".to_owned(), uptime: 100.0, ..Sample::default() };
    let (device, kind) = ("eth0".to_owned(), "tbf".to_owned());
    before.queues.push(Queue { device, handle: (1, 0), kind, backlog: 145_000, ..Queue::default() });
    before.softnet.push(Softnet::default());
    let mut now = Sample { uptime: 105.0, ..before.clone() };
    now.queues[0].bytes = 6_250_000;
    now.queues[0].drops = 72;
    now.softnet[0].dropped = 23_806;
    for (counter, value) in [
        ("TcpRetransSegs", 60),
        ("TcpOutSegs", 1000),
        ("TcpExtIPReversePathFilter", 2),
        ("TcpExtTCPReqQFullDrop", 5),
        ("TcpExtTCPFastOpenListenOverflow", 5),
        ("TcpExtTCPFastOpenPassiveFail", 10),
        ("TcpExtTCPFastOpenPassiveAltKey", 1),
        ("TcpExtTCPSynRetrans", 20),
        ("TcpExtTCPAbortOnClose", 20),
        ("TcpExtRcvPruned", 1),
    ] {
        now.counters.insert(counter.to_owned(), value);
    }
    (before, now)
}

#[test]
fn what_no_namespace_can_provoke_is_found_in_a_record() {
    let (before, now) = host();
    let mut found: Vec<String> = Report::of(&Record::new(Some(before), now).window())
        .findings
        .into_iter()
        .map(|finding| finding.id)
        .collect();
    found.sort();
    let expected = [
        "ACC-08", "CC-07", "RX-01", "RX-07", "ST-09", "TFO-06", "TFO-07", "TFO-09", "TX-01", "TX-02",
        "WIN-11",
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_same_host_at_rest_is_silent() {
    let (_, now) = host();
    let later = Sample { uptime: 110.0, ..now.clone() };
    let mut rest = later.clone();
    rest.queues[0].backlog = 0;
    let record = Record::new(Some(now), rest);
    assert_eq!(ids(&Report::of(&record.window()).findings), Vec::<&str>::new());
}

#[test]
fn a_record_read_back_is_judged_alike() {
    let (before, now) = host();
    let record = Record::new(Some(before), now);
    assert_eq!(Record::parse(&record.text()).unwrap(), record);
    let error = Record::parse("{}").unwrap_err();
    assert!(error.contains("not a record of `doctor --record`"), "{error}");
}

#[test]
fn masked_addresses_are_the_same_for_the_same() {
    let socket = |local: &str, peer: &str| Socket {
        state: state::ESTABLISHED,
        local: Address(local.parse().unwrap()),
        peer: Address(peer.parse().unwrap()),
        ..Socket::default()
    };
    let sockets = vec![socket("10.1.2.3", "2a00::1"), socket("10.1.2.3", "127.0.0.1")];
    let route = "10.0.0.0/8 via 10.1.2.3 dev eth0".to_owned();
    let routes = vec![Route { route, source: Some(sockets[0].local), ..Route::default() }];
    let mut record = Record::new(None, Sample { sockets, routes, ..Sample::default() });
    record.mask();
    let [first, second] = &record.now.sockets[..] else { panic!() };
    let ends = |socket: &Socket| (socket.local.to_string(), socket.peer.to_string());
    assert_eq!(ends(first), ("198.18.0.1".to_owned(), "2001:db8::2".to_owned()));
    assert_eq!(ends(second), ("198.18.0.1".to_owned(), "127.0.0.1".to_owned()));
    let route = &record.now.routes[0];
    assert_eq!(
        (route.source, route.route.as_str()),
        (Some(first.local), "198.18.0.3/8 via 198.18.0.1 dev eth0")
    );
}

/// A record may come from anybody.
#[test]
fn names_in_a_record_reach_neither_the_terminal_nor_the_script_as_commands() {
    let (before, mut now) = host();
    now.kernel = "6.18\u{1b}]0;owned\u{7}\nno warning".to_owned();
    let device = Device { name: "a;b\u{1b}[2J\nreboot".to_owned(), mtu: 1400, ..Device::default() };
    let route = format!("default via 10.0.0.1 dev {}", device.name);
    now.routes.push(Route { route, device: device.name.clone(), default: true, ..Route::default() });
    now.devices.push(device);
    let (file, name, value) = ("/etc/a b", "net.ipv4.tcp_fin_timeout", "$(reboot)\nreboot");
    let [file, name, value] = [file, name, value].map(str::to_owned);
    now.settings.insert(name.clone(), "60".to_owned());
    now.configured.push(Configured { file, line: 1, name, value });
    let leaked = Socket { state: state::CLOSE_WAIT, inode: 7, ..Socket::default() };
    now.sockets = vec![leaked; 200];
    now.owners.insert(7, Owner { pid: 1, name: "x\u{1b}[31m\nHACK".to_owned() });
    let report = Report::of(&Record::new(Some(before), now).window());
    let found = ids(&report.findings);
    assert!(["TX-09", "ST-01", "ST-12"].iter().all(|id| found.contains(id)), "{found:?}");
    for text in [report.text(), report.script()] {
        assert!(!text.contains(|c: char| c != '\n' && c.is_control()), "{text:?}");
        assert!(!text.lines().any(|line| ["reboot", "HACK", "no warning"].contains(&line)), "{text}");
    }
    let script = report.script();
    assert!(script.contains("ip route change default via 10.0.0.1 dev 'a;b"), "{script}");
    assert!(script.contains("tcp_fin_timeout='$(reboot)"), "{script}");
}

#[test]
fn fixes_of_a_stacks_routes_are_commands_that_it_takes() {
    let metrics = RouteMetrics { initcwnd: 5, ..RouteMetrics::default() };
    let step = |metrics| {
        let route = Route { route: "10.0.0.0/8".to_owned(), metrics, ..Route::default() };
        let sample = Sample { of_stack: true, routes: vec![route], ..Sample::default() };
        let report = Report::of(&Record::new(None, sample).window());
        report.findings.into_iter().find(|finding| finding.id == "CC-05").unwrap().fix.steps.remove(0)
    };
    let only = step(metrics);
    assert_eq!(only.command, "firstbyte route del --stack 10.0.0.0/8");
    assert_eq!(only.undo.unwrap(), "firstbyte route set --stack 10.0.0.0/8 initcwnd 5");
    assert_eq!(only.persist.unwrap(), "the same route in the --route options of firstbyte serve");
    let kept = step(RouteMetrics { mtu: 1400, locked: 1 << 2, quickack: 1, ..metrics });
    assert_eq!(kept.command, "firstbyte route set --stack 10.0.0.0/8 mtu lock 1400 quickack 1");
}

#[test]
fn one_mask_gives_an_address_the_same_name_in_every_sample() {
    let sample = |peers: &[&str]| {
        let socket = |peer: &&str| Socket { peer: Address(peer.parse().unwrap()), ..Socket::default() };
        Sample { sockets: peers.iter().map(socket).collect(), ..Sample::default() }
    };
    let mut samples = [sample(&["10.0.0.1", "10.0.0.2"]), sample(&["10.0.0.2"])];
    let mut mask = Mask::default();
    samples.iter_mut().for_each(|sample| mask.apply(sample));
    assert_eq!(samples[0].sockets[1], samples[1].sockets[0]);
}

#[test]
fn what_a_tree_does_not_have_is_not_judged() {
    let root = std::env::temp_dir().join(format!("doctor-tree-{}", std::process::id()));
    std::fs::create_dir_all(root.join("proc/sys/net/ipv4")).unwrap();
    std::fs::write(root.join("proc/sys/net/ipv4/tcp_window_scaling"), "0\n").unwrap();
    let sample = sources::tree(&root);
    std::fs::remove_dir_all(&root).unwrap();
    let report = Report::of(&Record::new(None, sample).window());
    assert!(
        ["ACC-01", "CC-07", "RX-01", "ST-12"]
            .iter()
            .all(|id| report.not_judged.iter().any(|rule| rule.id == *id))
    );
    let reason = |id: &str| report.not_judged.iter().find(|rule| rule.id == id).unwrap().reason.as_str();
    assert!(reason("ACC-01").contains("sockets (inet_diag)"), "{}", reason("ACC-01"));
    assert!(reason("ST-12").contains("settings (/proc/sys/net)"), "{}", reason("ST-12"));
    assert!(report.text().contains("not judged: ACC-01, "), "{}", report.text());
}

#[test]
fn a_threshold_can_be_set_and_a_rule_silenced_with_a_reason() {
    let (before, now) = host();
    let record = Record::new(Some(before), now);
    let policy = Policy::parse("[CC-07]\nshare = 7\n[TX-01]\nsilent = 'a lab'").unwrap();
    let report = Report::by(&record.window().by(policy.limits()), &policy);
    let found = ids(&report.findings);
    assert!(!found.contains(&"CC-07") && !found.contains(&"TX-01"), "{found:?}");
    assert_eq!((report.silenced[0].id.as_str(), report.silenced[0].reason.as_str()), ("TX-01", "a lab"));
    assert!(report.text().contains("silenced: TX-01 (1 finding): a lab"));
}

/// A healthy sample of another namespace, at one time: rules that it cannot judge are named, and do
/// not count as judged.
#[test]
fn what_one_sample_of_another_namespace_does_not_tell_is_not_judged() {
    let Some(now) = testnet::in_namespace(sources::here) else { return };
    let report = Report::of(&Record::new(None, now.clone()).window());
    let reason = |report: &Report, id: &str| {
        report.not_judged.iter().find(|rule| rule.id == id).map_or(String::new(), |rule| rule.reason.clone())
    };
    for id in ["RX-01", "RX-02", "RX-03", "RX-04", "RX-05", "TX-01", "TX-02"] {
        assert_eq!(reason(&report, id), "two samples are needed, and there is only one", "{id}");
    }
    for id in ["ST-11", "ST-12", "WIN-15"] {
        assert!(reason(&report, id).contains("files in sysctl.d apply to"), "{id}: {}", reason(&report, id));
    }
    assert!(reason(&report, "CC-10").contains("one for the whole host"), "{}", reason(&report, "CC-10"));
    assert!(
        reason(&report, "WIN-14").contains("a setting of the whole host"),
        "{}",
        reason(&report, "WIN-14")
    );
    assert_eq!(report.judged + report.not_judged.len(), doctor::RULES.len());
    // With a second sample, only rules that this namespace does not show are left.
    let later = Sample { uptime: now.uptime + 5.0, ..now.clone() };
    let report = Report::of(&Record::new(Some(now), later).window());
    assert_eq!(reason(&report, "RX-01"), "");
    // An older kernel has no such setting.
    let old = Sample { kernel: "3.2.0".to_owned(), ..Sample::default() };
    let report = Report::of(&Record::new(None, old).window());
    assert_eq!(reason(&report, "TFO-01"), "it applies to Linux 3.6 and later");
}

/// A problem that ended before the first sample leaves counters.
#[test]
fn no_warning_points_to_what_was_counted_before() {
    let (_, now) = host();
    let mut later = Sample { uptime: 110.0, ..now.clone() };
    later.queues[0].backlog = 0;
    let record = Record::new(Some(now), later);
    let report = Report::of(&record.window());
    assert!(report.text().starts_with("no warning\n"), "{}", report.text());
    let report = report.look_back(&record.now, &Policy::default());
    let first = report.text().lines().next().unwrap().to_owned();
    assert!(
        first
            .starts_with("no warning in the last 5.0 s; since boot: SYNs dropped, SYN queue full (ACC-08), "),
        "{first}"
    );
    assert!(first.ends_with(" …; see `firstbyte doctor --since-boot`"), "{first}");
    // A present problem comes first, without the past ones.
    let (before, now) = host();
    let record = Record::new(Some(before), now);
    assert_eq!(Report::of(&record.window()).look_back(&record.now, &Policy::default()).since_boot, []);
}

/// Returns a connection that receives: buffer, window and bytes read per round trip at both times,
/// and the bytes received between them.
fn receiving(rcvbuf: u32, rcv_ssthresh: [u32; 2], rcv_space: u32, came: u64) -> Record {
    let sample = |uptime, rcv_ssthresh, bytes_received| {
        let memory = Memory { rcvbuf, ..Memory::default() };
        let info = Info { rcv_ssthresh, rcv_space, bytes_received, min_rtt: 28_000, ..Info::default() };
        let socket =
            Socket { state: state::ESTABLISHED, memory: Some(memory), info: Some(info), ..Socket::default() };
        let settings = [("net.ipv4.tcp_rmem", "4096 131072 33554432"), ("net.ipv4.tcp_moderate_rcvbuf", "1")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Sample { uptime, settings, sockets: vec![socket], ..host().0 }
    };
    Record::new(Some(sample(100.0, rcv_ssthresh[0], 0)), sample(100.3, rcv_ssthresh[1], came))
}

#[test]
fn a_busy_sender_below_the_window_does_not_make_a_receive_buffer_fixed() {
    let found = |record: Record| {
        let findings = Report::of(&record.window()).findings;
        ids(&findings).contains(&"WIN-07")
    };
    // Read on a machine with thirty times its load: windows that did not grow, or not for a moment.
    assert!(!found(receiving(131_072, [79_056, 80_480], 14_480, 623_120)));
    assert!(!found(receiving(254_508, [157_627, 157_627], 33_168, 1_096_000)));
    // With SO_RCVBUF of 16384.
    assert!(found(receiving(32_768, [19_040, 19_040], 14_480, 169_416)));
}
