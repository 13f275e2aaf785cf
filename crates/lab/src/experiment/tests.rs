use super::*;
use crate::report::Report;

const FILE: &str = "# Does a request take two round trips?
chapter = \"Opening\"
lesson = \"A handshake, then the request.\"
[path]
rtt = \"100ms\"
[client]
steps = [\"connect\", \"write 100\", \"read 500\", \"close\"]
[server]
steps = [\"read 100\", \"write 500\", \"read to end\", \"close\"]
[[expect]]
what = \"time of a request\"
that = \"time()\"
is = \"200 ms\"
";

#[test]
fn a_file_is_run_and_judged() {
    let outcome = Experiment::parse(FILE).unwrap().run().unwrap();
    assert_eq!(outcome.findings()[0].ours, "200 ms");
    assert!(outcome.holds());
    let wrong = FILE.replace("200 ms", "210 ms");
    assert!(!Experiment::parse(&wrong).unwrap().run().unwrap().holds());
}

#[test]
fn another_discipline_is_put_before_the_bottleneck_of_runs_that_say_none() {
    let narrow =
        FILE.replace("500", "50kB").replace("rtt = \"100ms\"", "rtt = \"100ms\"\nrate = \"1mbit\"").replace(
            "[[expect]]",
            "[[run]]\nname = \"a\"\n[[run]]\nname = \"b\"\npath.qdisc = \"codel\"\n[[expect]]",
        );
    let narrow = narrow.replace("time()", "drops(a)").replace("200 ms", "0");
    let with = |text: &str, words: &str| Experiment::parse(text).unwrap().with_qdisc(words);
    // A reply of several packets does not fit a queue of one byte.
    let outcome = with(&narrow, "bfifo limit 1b").unwrap().run().unwrap();
    assert!(outcome.findings()[0].value.unwrap() > 0.0, "{:?}", outcome.findings());
    assert!(outcome.holds() && Report::findings(&outcome).is_empty(), "nothing is expected of it any more");
    assert!(outcome.json()["changed"].as_str().unwrap().contains("of the run `a` is `bfifo limit 1b`"));
    let mut page = crate::report::Page::new(Default::default());
    outcome.render(&mut page);
    assert!(
        page.into_text().contains("in the units of the file"),
        "names may be of the discipline that is no longer there"
    );
    assert!(with(FILE, "codel").unwrap_err().contains("neither its path nor a card has a rate"));
    let own = narrow.replace("name = \"a\"", "name = \"a\"\npath.qdisc = \"pfifo\"");
    assert!(with(&own, "codel").unwrap_err().contains("every run has its own discipline"));
}

#[test]
fn another_discipline_is_put_on_the_card_where_the_line_is_the_bottleneck() {
    let card = FILE.replace("500", "50kB").replace("[server]\n", "[server]\ndevice = { rate = \"1mbit\" }\n");
    let card = card.replace("time()", "device(server, tx_dropped)").replace("200 ms", "0");
    let dropped = |experiment: Experiment| experiment.run().unwrap().findings()[0].value;
    let experiment = Experiment::parse(&card).unwrap();
    assert_eq!(dropped(experiment.clone()), Some(0.0));
    assert!(dropped(experiment.with_qdisc("bfifo limit 1b").unwrap()).unwrap() > 0.0);
}

#[test]
fn mistakes_are_told_with_line_and_nearest_word() {
    let told = |from: &str, to: &str| Experiment::parse(&FILE.replace(from, to)).unwrap_err();
    let cases = [
        ("rtt =", "rt =", "line 5"),
        ("rtt =", "rt =", "did you mean `rtt`?"),
        ("100ms", "100", "write e.g. 35ms"),
        ("write 100", "wriet 100", "unknown step"),
        ("time()", "tme()", "did you mean `time`?"),
        ("# Does", "Does", "line 1"),
        ("is = ", "at_least = \"5 apples\" #", "not a quantity"),
        ("200 ms", "10 MB", "the formula is a time, such as 340 ms"),
        ("time()", "time(foo)", "expected a run or a number from 1 on, found `foo`"),
        ("time()", "time(0)", "a number from 1 on"),
        ("time()", "drops(run, 5)", "unexpected `5`: `drops` takes only a run"),
        ("time()", "read(run, peer)", "unknown end `peer`"),
        ("time()", "wait(200)", "from 0 to 100"),
        ("time()", "mark(begn)", "no program has the step `mark begn`"),
    ];
    for (from, to, part) in cases {
        let text = told(from, to);
        assert!(text.contains(part), "{to}: {text}");
    }
}

/// A file with two runs that uses most keys.
const TWO_RUNS: &str = "# How long?
chapter = \"x\"
lesson = \"y\"
[path]
rtt = \"100ms\"
rate = \"10mbit\"
qdisc = \"fq_codel target 5ms\"
[client]
steps = [
    \"connect\",
    \"write 100\",
    \"read 500\",
    \"close\",
]
set = { \"net.ipv4.tcp_sack\" = 0 }
[server]
route = [
    \"default initcwnd 20\",
    \"192.0.2.0/24 initcwnd 30\",
]
steps = [\"read 100\", \"mark begun\", \"write 500\", \"read to end\", \"close\"]
[server.device]
rate = \"100mbit\"
qdisc = \"codel\"
[[run]]
name = \"usual\"
[[run]]
name = \"other\"
path.box = \"duplicate\"
server.set.\"net.core.somaxconn\" = 10
[[run.event]]
at = \"1s\"
do = \"path up\"
[[event]]
at = \"2s\"
do = \"set client net.ipv4.tcp_sack 1\"
[[expect]]
what = \"saved\"
that = \"time(usual) - time(other)\"
at_most = \"90 ms\"
[[expect]]
what = \"counted\"
that = \"count(other, server, TcpPassiveOpens)\"
at_least = 0
";

/// The first words are those in whose line the mistake is.
#[test]
fn every_mistake_has_its_line_what_was_expected_and_the_nearest_word() {
    Experiment::parse(TWO_RUNS).unwrap().check_hosts().unwrap();
    for (from, to, at, parts) in [
        (
            "time(usual)",
            "tme(usual)",
            "tme(",
            &["expect \"saved\"", "unknown measure `tme`", "did you mean `time`"][..],
        ),
        (
            "time(usual)",
            "time(usal)",
            "usal",
            &["no run `usal`", "did you mean `usual`", "runs are: usual, other"],
        ),
        ("time(other)", "mark(other, begn)", "begn", &["did you mean `begun`"]),
        ("time(other)", "read(other, serer)", "serer", &["client or server", "did you mean `server`"]),
        (
            "time(other)",
            "state(other, server, CLOSE-WAT)",
            "WAT",
            &["CLOSE-WAIT, ", "did you mean `CLOSE-WAIT`"],
        ),
        ("time(other)", "limited(other, cwd)", "cwd", &["cwnd, rwnd", "did you mean `cwnd`"]),
        ("time(other)", "device(other, server, ring_mx)", "ring_mx", &["did you mean `ring_max`"]),
        ("time(other)", "device(other, client, ring_max)", "ring_max", &["no `device`"]),
        ("TcpPassiveOpens", "TcpPasiveOpens", "TcpPas", &["run `other`", "did you mean `TcpPassiveOpens`"]),
        (
            "90 ms",
            "90 mss",
            "90 mss",
            &["`90 mss` is not a quantity", "did you mean `ms`", "write e.g. 5, 340 ms"],
        ),
        ("90 ms", "90 MB", "90 MB", &["is a number of bytes; the formula is a time, such as 340 ms"]),
        ("at_most = \"90 ms\"", "within = \"5%\"", "within", &["add `is`"]),
        ("at_most = \"90 ms\"", "", "[[expect]]", &["add `is`, `at_least` or `at_most`"]),
        ("what = \"counted\"", "what = \"saved\"", "", &["line 42,", "duplicate `what`"]),
        ("name = \"other\"", "name = \"usual\"", "", &["duplicate name"]),
        (
            "tcp_sack\" = 0",
            "tcp_sak\" = 0",
            "tcp_sak",
            &["unknown setting", "Linux's names", "did you mean `net.ipv4.tcp_sack`"],
        ),
        (
            "somaxconn\" = 10",
            "somaxcon\" = 10",
            "somaxcon",
            &["run `other`", "did you mean `net.core.somaxconn`"],
        ),
        ("tcp_sack 1", "tcp_sak 1", "tcp_sak", &["did you mean `net.ipv4.tcp_sack`"]),
        ("fq_codel target", "fq_codl target", "fq_codl", &["expected pfifo, ", "did you mean `fq_codel`"]),
        ("fq_codel target", "fq_codel targt", "targt", &["qdisc: What is \"targt\""]),
        ("qdisc = \"codel\"", "qdisc = \"codl\"", "codl", &["device: qdisc: ", "did you mean `codel`"]),
        ("write 100", "wrte 100", "wrte", &["unknown step", "did you mean `write`", "steps are: connect"]),
        ("write 100", "write 100 kbyte", "kbyte", &["unknown step"]),
        ("write 100", "write 100kb0", "100kb0", &["did you mean `kB`"]),
        ("24 initcwnd", "24 initcwd", "initcwd", &["is not one of: mtu", "did you mean `initcwnd`"]),
        ("24 initcwnd", "24 vai", "vai", &["did you mean `via`"]),
        ("192.0.2.0/24", "192.0.2.0/24 via 1.2.3.4", "via", &["need a `router`"]),
        (
            "\"duplicate\"",
            "\"nat\"",
            "nat",
            &["expected one of `drop-syn-data`", "did you mean `alternating-nat`"],
        ),
        ("\"duplicate\"", "\"duplcate\"", "duplcate", &["did you mean `duplicate`"]),
        ("path.box", "path.bx", "path.bx", &["did you mean `box`"]),
        ("\"100ms\"", "\"100 mss\"", "100 mss", &["not a time", "did you mean `ms`", "write e.g. 35ms"]),
        ("\"10mbit\"", "\"10Mbps\"", "10Mbps", &["not a rate", "did you mean `mbit`", "write e.g. 100mbit"]),
        (
            "[client]",
            "bond = \"balance-r\"\n[client]",
            "balance-r",
            &["did you mean `balance-rr`", "modes are"],
        ),
        ("[client]", "mtu = 20\n[client]", "mtu", &["from 68 to 65535"]),
        ("[client]", "skew = \"1ms\"\n[client]", "skew", &["add its mode"]),
        ("[client]", "queue = \"5\"\n[client]", "queue", &["expected a whole number"]),
        ("[client]", "[client]\nprofile = \"linus\"", "linus", &["did you mean `linux`"]),
        ("[client]", "[client]\nclients = 0", "clients", &["from 1 to 100000"]),
        ("[client]", "[client]\nbacklog = 1", "backlog", &["belongs to [server]"]),
        ("[client]", "[client]\ndevice = 5", "device", &["expected a table"]),
        ("\"duplicate\"", "5", "= 5", &["expected a string in quotes"]),
        ("path up", "pat up", "pat up", &["did you mean `path`", "events are: path down"]),
        ("path up", "link 7 up", "link 7", &["run `other`", "no `bond`"]),
        ("do = \"path up\"", "", "[[run.event]]", &["missing field `do`"]),
        ("rtt", "rtt: ", "rtt:", &["expected"]),
        ("at = \"2s\"", "at = \"2h\"", "2h", &["not a time", "write e.g. 35ms"]),
        ("at = \"2s\"", "at = \"2000s\"", "2000s", &["the run ends after 600s; change `for`"]),
    ] {
        let text = TWO_RUNS.replacen(from, to, 1);
        assert_ne!(text, TWO_RUNS, "{from}");
        let checked = Experiment::parse(&text).and_then(|experiment| experiment.check_hosts());
        let told = checked.expect_err(to);
        let found = text.lines().position(|line| line.contains(at)).unwrap() + 1;
        assert!(at.is_empty() || told.starts_with(&format!("line {found}, column ")), "{to}: {told}");
        for part in parts {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}

#[test]
fn a_mistake_of_the_whole_file_is_not_that_of_its_first_run() {
    let told = |from: &str, to: &str| {
        let experiment = Experiment::parse(&TWO_RUNS.replacen(from, to, 1));
        experiment.and_then(|experiment| experiment.check_hosts()).unwrap_err()
    };
    let whole = told("fq_codel", "fq_codl");
    assert!(whole.starts_with("line 7, column 1\n") && !whole.contains("run `"), "{whole}");
    assert!(
        whole.contains("\n7 | qdisc = \"fq_codl target 5ms\"\n  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"),
        "{whole}"
    );
    let own = told("path.box", "path.qdisc = \"codl\"\npath.box");
    assert!(own.starts_with("line 29,") && own.contains("run `other`: qdisc"), "{own}");
    let some = told("[[expect]]", "[[event]]\nat = \"1s\"\ndo = \"link 2 up\"\n[[expect]]");
    let saved = TWO_RUNS
        .replacen("path.box", "path.qdisc = \"codel\"\npath.box", 1)
        .replacen("fq_codel", "fq_codl", 1);
    let saved = Experiment::parse(&saved).unwrap().check_hosts().unwrap_err();
    assert!(saved.starts_with("line 7,") && !saved.contains("run `"), "{saved}");
    // The bond of the other run has two links.
    let some_text = TWO_RUNS.replacen("path.box", "path.bond = \"balance-rr\"\npath.box", 1);
    assert!(some.contains("\n39 | ") && !some.contains("run `"), "{some}");
    let event = "[[event]]\nat = \"1s\"\ndo = \"link 2 up\"\n[[expect]]";
    let some = Experiment::parse(&some_text.replacen("[[expect]]", event, 1)).unwrap_err();
    assert!(some.contains("\n40 | ") && some.contains("run `usual`: there is no link 2"), "{some}");
}

/// The counter is looked up in the counters of the hosts.
#[test]
fn a_counter_that_nobody_has_is_told_before_the_run() {
    let text = FILE.replace("time()", "count(server, TcpExtTCPTimeout)").replace("200 ms", "0");
    let told = Experiment::parse(&text).unwrap().check_hosts().unwrap_err();
    assert!(told.contains("did you mean `TcpExtTCPTimeouts`?"), "{told}");
}

#[test]
fn the_page_about_files_is_true() {
    let page = include_str!("../../../../docs/experiments.md");
    for (name, ..) in measure::MEASURES {
        assert!(page.contains(&format!("\n| `{name}` |")), "{name} is not on the page");
    }
    for name in device::COUNTERS {
        assert!(page.contains(&format!("`{name}`")), "{name} is not on the page");
    }
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(Experiment::parse(example).unwrap().run().unwrap().holds());
}

/// Results, packets and pictures depend on the seed alone.
#[test]
fn an_experiment_comes_out_the_same_each_time() {
    use crate::report::{Report, document, write_pcapng};
    let text =
        FILE.replace("rtt =", "loss = \"10%\"\nrtt =").replace("500", "500000").replace("is =", "at_least =");
    let bytes = |seed| {
        let outcome = Experiment::parse(&text).unwrap().with_seed(seed).run().unwrap();
        let mut packets = Vec::new();
        write_pcapng(&mut packets, &outcome.recordings()).unwrap();
        (packets, document("x", "?", &outcome).to_html())
    };
    assert!(bytes(3) == bytes(3));
    assert!(bytes(3) != bytes(4));
}

/// Hosts that do not disturb each other have the same packets and reports, however many there are.
/// Hosts and paths are handled no more often per host.
#[test]
fn turns_and_records_of_a_crowd_are_in_proportion_to_its_hosts() {
    let of = |clients: usize| {
        let crowd = format!("[client]\nclients = {clients}\nstagger = \"2ms\"");
        let text = FILE.replace("rtt =", "router = \"10ms\"\nrtt =").replace("[client]", &crowd);
        let experiment = Experiment::parse(&text).unwrap();
        let variant = Variant::of(&experiment.file, &experiment.runs[0]);
        let (mut network, hosts, peers) = variant.build([true; 2]).unwrap();
        variant.run(&mut network, &hosts, &peers).unwrap();
        let capture = network.take_capture();
        let connections = crate::exchange::exchanges_of(&capture, &hosts.clients);
        let own: Vec<usize> = connections.iter().map(|one| one.packets()).collect();
        assert_eq!(own.len(), clients);
        assert!(own.iter().all(|packets| *packets == own[0]), "each has its own packets: {own:?}");
        assert_eq!(own[0] * clients * 2, capture.observations().len(), "seen at both ends, once");
        (own[0], capture.traced().len(), network.turns)
    };
    let [few, many] = [of(50), of(1000)];
    assert_eq!(few.0, many.0);
    assert_eq!(few.1 * 20, many.1, "what the stacks tell");
    // Packets of several hosts that reach the router at the same time take one turn together.
    assert!(many.2 <= few.2 * 20, "turns: {} of 50 clients, {} of 1000", few.2, many.2);
}

/// Curves beyond the maximum of a graph are counted on it.
#[test]
fn runs_that_are_not_drawn_are_told() {
    let note = |runs: usize| {
        let runs: String = (0..runs).map(|number| format!("[[run]]\nname = \"{number}\"\n")).collect();
        let text = FILE.replace("[client]", "[client]\nconnections = 20\n").replace("time()", "time(0)");
        let outcome = Experiment::parse(&format!("{text}{runs}")).unwrap().run().unwrap();
        outcome.graphs()[0].note.clone()
    };
    assert_eq!(note(7), "");
    assert_eq!(note(9), "the first 7 of 9 runs");
}

#[test]
fn parts_of_a_path_that_do_not_fit_are_told() {
    let told = |from: &str, to: &str| {
        let outcome = Experiment::parse(&FILE.replace(from, to)).and_then(|experiment| experiment.run());
        outcome.unwrap_err()
    };
    for (from, to, part) in [
        ("[client]", "[client]\nclients = 0", "from 1 to 100000"),
        ("[client]", "[client]\nconnections = 0", "at least 1"),
        ("[client]", "[client]\nset = { tcp_synretries = 1 }", "did you mean `net.ipv4.tcp_syn_retries`?"),
        ("[server]", "[server]\nports = 2000", "from 1 to 1000"),
        ("rtt = \"100ms\"", "mtu = 20", "from 68 to 65535"),
        ("[client]", "second = \"20ms\"\n[client]", "needs a `router`"),
        ("[server]", "[server]\nroute = \"default via 198.51.100.254\"", "need a `router`"),
    ] {
        let text = told(from, to);
        assert!(text.contains(part), "{to}: {text}");
    }
    let two =
        FILE.replace("[client]", "router = \"1ms\"\n[client]").replace("[server]", "[server]\nservers = 2");
    let text = Experiment::parse(&two).unwrap().run().unwrap_err();
    assert!(text.contains("supports one server"), "{text}");
}

/// Two routers' addresses, one for each of the server's devices. The routing table chooses the next
/// hop.
const DUAL_HOMED: &str = "# Which way does an answer take?
chapter = \"Routes\"
lesson = \"The way that the server's table says.\"
for = \"10s\"
[path]
router = \"20ms\"
rtt = \"40ms\"
second = \"100ms\"
[client]
profile = \"linux\"
steps = [\"connect\", \"write 100\", \"read 500\", \"close\"]
[server]
profile = \"linux\"
route = \"ROUTE\"
set = { \"net.ipv4.conf.all.rp_filter\" = 0 }
steps = [\"read 100\", \"write 500\", \"close\"]
[[expect]]
what = \"connected\"
that = \"connected()\"
is = \"1\"
";

/// The first byte takes half the round trip of each path twice: 30 ms there, and back over 20 or 50
/// ms beyond the router.
#[test]
fn an_answer_goes_to_the_next_hop_of_its_route() {
    let first_byte = |route: &str| {
        let played =
            Experiment::parse(&DUAL_HOMED.replace("ROUTE", route)).unwrap().play_all().unwrap().remove(0);
        let exchanges = crate::exchange::exchanges_of(&played.capture, &played.clients);
        exchanges[0].time_to_first_byte().map(|time| time.as_millis())
    };
    let (short, long) = (Some(120), Some(180));
    for (route, expected) in [
        ("default initcwnd 20", short),
        ("default via 198.51.100.254", short),
        ("default via 198.18.0.254", long),
        ("default via 198.18.0.254 dev eth1 initcwnd 20", long),
        ("192.0.2.0/24 via 198.18.0.254", long),
        // The next hop does not answer, there is no next hop, or there is no route.
        ("default via 198.18.0.9", None),
        ("default dev eth1", None),
        ("unreachable default", None),
    ] {
        assert_eq!(first_byte(route), expected, "{route}");
    }
    let two =
        DUAL_HOMED.replace("\"ROUTE\"", "[\"default via 198.18.0.254\", \"192.0.2.1 via 198.51.100.254\"]");
    let played = Experiment::parse(&two).unwrap().play_all().unwrap().remove(0);
    let exchanges = crate::exchange::exchanges_of(&played.capture, &played.clients);
    assert_eq!(
        exchanges[0].time_to_first_byte().map(|time| time.as_millis()),
        short,
        "the longest prefix holds"
    );
}

#[test]
fn a_next_hop_that_is_not_on_a_link_is_told() {
    let told = |route: &str| {
        let outcome =
            Experiment::parse(&DUAL_HOMED.replace("ROUTE", route)).and_then(|experiment| experiment.run());
        outcome.unwrap_err()
    };
    for (route, part) in [
        (
            "default via 203.0.113.1",
            "the next hop 203.0.113.1 is not on a link; eth0 is on 198.51.100.0/24, eth1 is on 198.18.0.0/24",
        ),
        ("default via 198.18.0.254 dev eth0", "is on the link of eth1, not of eth0"),
        ("default dev eth2", "there is no eth2; the host has eth0, eth1"),
        ("default via nowhere", "line 14"),
    ] {
        let text = told(route);
        assert!(text.contains(part), "{route}: {text}");
    }
}

/// The connection attempt continues while the server is fixed: its next SYN is answered.
#[test]
fn a_route_and_a_filter_can_be_changed_during_a_run() {
    let strict =
        DUAL_HOMED.replace("ROUTE", "default via 198.18.0.254").replace("rp_filter\" = 0", "rp_filter\" = 1");
    let connected = |event: &str| {
        let text = format!("{strict}[[event]]\nat = \"2s\"\ndo = \"{event}\"\n");
        Experiment::parse(&text).unwrap().run().unwrap().holds()
    };
    assert!(!Experiment::parse(&strict).unwrap().run().unwrap().holds());
    assert!(connected("set server net.ipv4.conf.eth0.rp_filter 2"));
    assert!(connected("route server default via 198.51.100.254"));
    assert!(!connected("route server default via 198.18.0.9"));
}

#[test]
fn numbers_need_no_quotes_and_a_byte_order_mark_is_no_mistake() {
    let text = FILE.replace("time()", "packets()").replace("\"200 ms\"", "8");
    let outcome = Experiment::parse(&format!("\u{feff}{text}")).unwrap().run().unwrap();
    assert!(outcome.findings()[0].criterion.contains('8'), "{:?}", outcome.findings());
    let told = Experiment::parse(&FILE.replace("\"200 ms\"", "true")).unwrap_err();
    assert!(told.contains("a quantity with its unit in quotes, or a number"), "{told}");
}

#[test]
fn runs_have_different_names() {
    let text = format!("{FILE}[[run]]\nname = \"a\"\n[[run]]\nname = \"a\"\n").replace("time()", "time(a)");
    assert!(Experiment::parse(&text).unwrap_err().contains("run `a`: duplicate name"));
}

#[test]
fn a_seed_of_the_file_counts() {
    let lossy = FILE.replace("500", "50kB").replace("[client]", "loss = \"10%\"\n[client]");
    let took = |experiment: Experiment| experiment.run().unwrap().findings()[0].value;
    let of = |seed: u64| {
        Experiment::parse(&lossy.replacen("chapter", &format!("seed = {seed}\nchapter"), 1)).unwrap()
    };
    assert_ne!(took(of(1)), took(of(2)));
    assert_eq!(took(of(1).with_seed(2)), took(of(2)));
}

/// At 10 Mbit/s the shortest full-sized packet takes 1.2 ms, and an acknowledgment in the other
/// direction a twentieth of that.
#[test]
fn what_waited_is_what_went_the_way_of_the_queue() {
    let text = FILE.replace("500", "2MB").replace("[client]", "rate = \"10mbit\"\nqueue = 100\n[client]");
    let measured = |text: &str, that: &str| {
        let text = text.replace("time()", that).replace("200 ms", "0");
        Experiment::parse(&text).unwrap().run().unwrap().findings()[0].value.unwrap()
    };
    assert!(measured(&text, "wait(10)") >= 0.0012);
    assert!(measured(&text, "queue()") > 50.0);
    // Only acknowledgments go in that direction, and none of them waits for another.
    let other = text.replace("queue = 100", "towards = \"server\"");
    assert!(measured(&other, "wait(90)") < 0.0012);
    assert!(measured(&other, "queue()") <= 2.0);
}

/// A download alone, at the same time as another, and after others.
#[test]
fn what_limits_a_connection_is_told_of_each() {
    let text = FILE.replace("500", "2MB").replace("[client]\n", "[client]\nrcvbuf = \"64KiB\"\n");
    let limited = |clients: &str, reason: &str| {
        let text = text.replace("[client]\n", &format!("[client]\n{clients}\n"));
        let text = text.replace("time()", &format!("limited({reason})")).replace("200 ms", "0");
        Experiment::parse(&text).unwrap().run().unwrap().findings()[0].value.unwrap()
    };
    let reasons = ["cwnd", "rwnd", "sndbuf", "app"];
    let alone = reasons.map(|reason| limited("", reason));
    assert!((alone.iter().sum::<f64>() - 1.0).abs() < 1e-9, "shares of the same time: {alone:?}");
    for clients in ["clients = 2\nstagger = \"50ms\"", "clients = 3\nstagger = \"3s\""] {
        let several = reasons.map(|reason| limited(clients, reason));
        let differs = alone.iter().zip(&several).any(|(alone, several)| (alone - several).abs() > 1e-6);
        assert!(!differs, "{clients}: {several:?}, alone {alone:?}");
    }
}

#[test]
fn uploads_to_several_ports_are_added_up() {
    let upload = FILE.replace("write 100\"", "write 1MB\"").replace("read 100\"", "read 1MB\"");
    let upload = upload.replace("[client]\n", "[client]\nconnections = 4\nat_once = 4\n");
    let goodput = |ports: usize| {
        let text = upload.replace("[server]\n", &format!("[server]\nports = {ports}\n"));
        let text = text.replace("time()", "goodput()").replace("200 ms", "1 MB/s");
        Experiment::parse(&text).unwrap().run().unwrap().findings()[0].value.unwrap()
    };
    assert_eq!(goodput(1), goodput(4));
}

#[test]
fn a_window_that_never_changed_is_not_told_as_nothing() {
    let text = FILE.replace("time()", "cwnd()").replace("200 ms", "1 B");
    let value =
        |text: &str| Experiment::parse(text).unwrap().run().map(|outcome| outcome.findings()[0].value);
    let short = text.replace("write 500", "write 1").replace("read 500", "read 1");
    assert!(value(&short).is_err_and(|told| told.contains("no congestion window ever changed")));
    assert!(value(&text.replace("500", "50kB")).unwrap() > Some(10_000.0));
}

#[test]
fn counters_of_devices_and_links_are_those_of_all_hosts() {
    let crowd = FILE.replace("[client]\n", "bond = \"balance-rr\"\n[client]\nclients = 4\n");
    let crowd = crowd.replace("[server]\n", "[server]\nservers = 4\ndevice = { rate = \"100mbit\" }\n");
    for (part, whole) in [
        ("device(server, rx_packets)", "count(server, TcpInSegs)"),
        ("device(server, tx_packets)", "count(server, TcpOutSegs)"),
        ("(link(1) + link(2))", "count(server, TcpOutSegs)"),
    ] {
        let text = crowd.replace("time()", &format!("{part} / {whole}")).replace("200 ms", "1");
        let outcome = Experiment::parse(&text).unwrap().run().unwrap();
        assert!(outcome.holds(), "{part}: {}", outcome.findings()[0].ours);
    }
}

#[test]
fn losses_of_an_event_are_on_the_way_of_the_path_and_on_every_link() {
    let upload = FILE.replace("write 100\"", "write 200kB\"").replace("read 100\"", "read 200kB\"");
    let upload = format!("{upload}[[event]]\nat = \"0s\"\ndo = \"loss 20%\"\n");
    let holds = |text: &str, that: &str, is: &str| {
        let text = text.replace("time()", that).replace("\"200 ms\"", is);
        Experiment::parse(&text).unwrap().run().unwrap().holds()
    };
    let towards_server = upload.replace("[client]", "towards = \"server\"\n[client]");
    assert!(!holds(&towards_server, "resent()", "0"));
    let bond = upload.replace("[client]", "bond = \"balance-rr\"\n[client]").replace("20%", "100%");
    assert!(holds(&bond, "done()", "0"));
}

/// The result is the same behind a router as without one.
#[test]
fn an_event_at_an_end_is_one_at_every_host_of_it() {
    let crowd = FILE.replace("[client]\n", "[client]\nclients = 3\nstagger = \"1s\"\n");
    let both = |event: &str| {
        let text = format!("{crowd}[[event]]\nat = \"500ms\"\ndo = \"{event}\"\n");
        let run = |text: &str| Experiment::parse(text).unwrap().play_all().unwrap().remove(0);
        [run(&text), run(&text.replace("[client]", "router = \"0ms\"\n[client]"))]
    };
    for played in both("set client net.ipv4.tcp_window_scaling 0") {
        let scale_of = |one: &crate::exchange::Exchange| one.journeys[0].segment()?.tcp.options.window_scale;
        let exchanges = crate::exchange::exchanges_of(&played.capture, &played.clients);
        let scales: Vec<bool> = exchanges.iter().map(|one| scale_of(one).is_some()).collect();
        assert_eq!(scales, [true, false, false], "those that began after the event");
    }
    for played in both("spoof 10 SYNs") {
        let injected = played.capture.journeys().iter().filter(|way| way.injected_by.is_some()).count();
        assert_eq!(injected, 10);
    }
}

#[test]
fn what_would_happen_after_the_end_is_refused() {
    let told = |to: &str| Experiment::parse(&format!("{FILE}{to}")).unwrap_err();
    let short = "[[run]]\nname = \"a\"\nfor = \"1s\"\n";
    let late =
        told(&format!("{short}event = [{{ at = \"500ms\", do = \"probe 1000000 every 9999999s\" }}]\n"));
    assert!(late.contains("the last probe would be at"), "{late}");
    let late = told(&format!("{short}event = [{{ at = \"5s\", do = \"path up\" }}]\n"));
    assert!(late.ends_with("run `a`: an event at 5s, but the run ends after 1s; change `for`"), "{late}");
    for stagger in ["1s", "15000000000000000000s"] {
        let late = told(&format!("{short}client.clients = 3\nclient.stagger = \"{stagger}\"\n"));
        assert!(late.contains("the last client would start after"), "{late}");
    }
}

#[test]
fn servers_with_keys_of_their_own_have_others_after_a_change_too() {
    let text = FILE.replace("\"connect\", \"write 100\"", "\"connect with 100\"");
    let text = text.replace("[client]\n", "[client]\nconnections = 40\n");
    let own = |servers: usize| format!("[server]\nfast_open = 16\nown_keys = true\nservers = {servers}\n");
    let text = text.replace("time()", "count(server, TcpExtTCPFastOpenPassiveFail)");
    let text = text.replace("is = \"200 ms\"", "at_least = 1");
    let changed = format!("{text}[[event]]\nat = \"0s\"\ndo = \"new key\"\n");
    for text in [&text, &changed] {
        assert!(Experiment::parse(&text.replace("[server]\n", &own(2))).unwrap().run().unwrap().holds());
    }
    assert!(Experiment::parse(&text.replace("[server]\n", &own(255))).unwrap().check_hosts().is_ok());
}

#[test]
fn what_would_have_no_effect_is_refused() {
    let told = |from: &str, to: &str| {
        let experiment = Experiment::parse(&FILE.replacen(from, to, 1));
        experiment.and_then(|experiment| experiment.check_hosts()).unwrap_err()
    };
    for (from, to, part) in [
        ("[client]", "[client]\nbacklog = 1", "`backlog` has no meaning in [client]"),
        ("[server]", "[server]\nclients = 2", "`clients` has no meaning in [server]"),
        ("is = \"200 ms\"", "at_least = \"200 ms\"\nwithin = \"5%\"", "`within` is the tolerance"),
        ("[client]", "bond = \"balance-rr\"\nlinks = 0\n[client]", "write at least 1"),
        ("[client]", "queue = 1\n[client]", "needs a `rate`"),
        (
            "[[expect]]",
            "[[event]]\nat = \"1s\"\ndo = \"set client net.ipv4.tcp_sacks 1\"\n[[expect]]",
            "tcp_sack`?",
        ),
        ("[[expect]]", "[[event]]\nat = \"1s\"\ndo = \"link 7 down\"\n[[expect]]", "the path has no `bond`"),
        ("time()\"\nis = \"200 ms\"", "link(9)\"\nis = 1", "the path has no `bond`"),
        ("time()\"\nis = \"200 ms\"", "device(server, tx_packets)\"\nis = 1", "has no `device`"),
    ] {
        let text = told(from, to);
        assert!(text.contains(part), "{to}: {text}");
    }
    let same = FILE.split_once("[[expect]]").unwrap().1;
    let twice = Experiment::parse(&format!("{FILE}[[expect]]{same}")).unwrap_err();
    assert!(twice.contains("duplicate `what`"), "{twice}");
}
