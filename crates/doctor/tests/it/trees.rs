//! Trees of files: the contents of sysctl.d, and other hosts.
use crate::ids;
use crate::shown::Show;
use doctor::{Finding, Limits, Report, Sample, Severity, Source, Window, sources};
use std::path::{Path, PathBuf};

/// A directory with these files. It is deleted when the value is dropped.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str, files: &[(&str, &str)]) -> Tree {
        let root = std::env::temp_dir().join(format!("doctor-{name}-{}", std::process::id()));
        for (file, text) in files {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Tree(root)
    }

    fn read(&self) -> Sample {
        sources::tree(&self.0)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn found(sample: &Sample) -> Vec<Finding> {
    let report = Report::of(&Window::since_boot(sample).by(Limits::USUAL));
    assert!(!report.unread.iter().any(|unread| unread.source == Source::Settings), "{:?}", report.unread);
    report.findings
}

/// Files of a host that match its settings.
const HEALTHY: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "6.18.0\n"),
    ("proc/sys/net/core/netdev_max_backlog", "1000\n"),
    ("proc/sys/net/core/somaxconn", "4096\n"),
    ("proc/sys/net/ipv4/tcp_fin_timeout", "60\n"),
    ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t33554432\n"),
    ("etc/sysctl.conf", "# nothing\n"),
    ("etc/sysctl.d/60-tcp.conf", "net.ipv4.tcp_fin_timeout = 60\n"),
];

/// Creates a host with this file and the settings of this thread's namespace, as if it were the
/// first one, the only one that files apply to.
fn on_this_kernel(name: &str, lines: &str) -> Tree {
    let first = ("proc/sys/net/core/netdev_max_backlog", "1000\n");
    let tree = Tree::new(name, &[("etc/sysctl.d/99-tuning.conf", lines), first]);
    for name in ["kernel", "net/core/somaxconn", "net/ipv4"] {
        let [kernel, here] = [Path::new("/proc/sys"), &tree.0.join("proc/sys")].map(|root| root.join(name));
        std::os::unix::fs::symlink(kernel, here).unwrap();
    }
    tree
}

pub(crate) fn lines_of_sysctl_d_are_judged_by_the_kernel_that_runs(show: &Show) {
    const RULES: &[&str] = &["ST-11", "ST-12", "WIN-15"];
    testnet::in_namespace(|| {
        let fine = on_this_kernel("fine", "net.core.somaxconn = 4096\nnet.ipv4.tcp_fin_timeout = 60\n");
        let silent = found(&fine.read());
        show.silent(RULES, &silent);
        // The second line is effective, and the fourth overrides the third.
        let lines = "net.ipv4.tcp_tw_recycle = 1\nnet.ipv4.tcp_fin_timeout = 30\nnet.core.somaxconn=4096\nnet.core.somaxconn=1024\n";
        let tuned = on_this_kernel("tuned", lines);
        let first = found(&tuned.read());
        let line = |finding: &Finding| finding.evidence[0].name.rsplit(' ').next().unwrap().to_owned();
        let told: Vec<(&str, String)> = first
            .iter()
            .filter(|finding| RULES.contains(&finding.id.as_str()))
            .map(|finding| (finding.id.as_str(), line(finding)))
            .collect();
        let expected = [("ST-12", "4"), ("ST-12", "2"), ("WIN-15", "4"), ("ST-11", "1")];
        assert_eq!(told, expected.map(|(id, line)| (id, line.to_owned())));
        show.fires(RULES, &first);
        // The file's values would make other rules fire, so the kernel's values stay. The commands
        // edit the file of this tree.
        let root = tuned.0.display();
        show.run_as(RULES, |command| command.replace("/etc/", &format!("{root}/etc/")));
        assert_eq!(testnet::read_sysctl("net.core.somaxconn"), "4096");
        show.gone(RULES, &found(&tuned.read()));
        let lines = tuned.read().configured.into_iter().map(|line| format!("{} {}", line.name, line.value));
        assert_eq!(lines.collect::<Vec<_>>(), ["net.ipv4.tcp_fin_timeout 60"]);
    });
}

/// A setting that not even root can read, like those of BPF's compiler for ordinary users.
#[test]
fn a_line_for_a_setting_that_may_not_be_read_is_no_line_for_one_that_is_missing() {
    let lines = ("etc/sysctl.d/70-bpf.conf", "net.core.bpf_jit_harden = 2\nnet.core.bpf_jit_soften = 2\n");
    let tree = Tree::new("unreadable", &[HEALTHY, &[lines]].concat());
    let setting = tree.0.join("proc/sys/net/core/bpf_jit_harden");
    std::os::unix::fs::symlink("/proc/sys/net/ipv4/route/flush", setting).unwrap();
    let sample = tree.read();
    assert_eq!(sample.unreadable, ["net.core.bpf_jit_harden".to_owned()].into());
    let found = found(&sample);
    let formulas: Vec<&str> = found.iter().map(|finding| finding.formula.as_str()).collect();
    assert_eq!(formulas, ["net.core.bpf_jit_soften is not in /proc/sys"]);
}

#[test]
fn the_later_file_wins_and_etc_hides_usr() {
    let tree = Tree::new("order", HEALTHY);
    for (file, value) in
        [("usr/lib/sysctl.d/10-a.conf", 10), ("etc/sysctl.d/10-a.conf", 20), ("run/sysctl.d/70-b.conf", 60)]
    {
        std::fs::create_dir_all(tree.0.join(file).parent().unwrap()).unwrap();
        std::fs::write(tree.0.join(file), format!("net.ipv4.tcp_fin_timeout = {value}\n")).unwrap();
    }
    assert_eq!(found(&tree.read()), []);
    assert!(!tree.read().configured.iter().any(|line| line.value == "10"));
    std::fs::write(tree.0.join("etc/sysctl.conf"), "net/ipv4/tcp_fin_timeout=30\n").unwrap();
    let found = found(&tree.read());
    assert_eq!((found[0].id.as_str(), found[0].severity), ("ST-12", Severity::Warning));
    let step = &found[0].fix.steps[0];
    let sed = |value| {
        format!("sed -i '1{{/tcp_fin_timeout/s/.*/net.ipv4.tcp_fin_timeout = {value}/}}' /etc/sysctl.conf")
    };
    assert_eq!((&step.command, step.undo.as_ref()), (&sed(60), Some(&sed(30))));
}

/// Debian's 99-sysctl.conf is a link to /etc/sysctl.conf. An edit in place would replace the link
/// by a file, and every line would be found twice.
#[test]
fn a_link_is_the_file_that_it_leads_to() {
    let tree = Tree::new("link", HEALTHY);
    std::fs::write(tree.0.join("etc/sysctl.conf"), "net.ipv4.tcp_tw_recycle = 1\n").unwrap();
    for (to, from) in [
        ("../sysctl.conf", "99-sysctl.conf"),
        ("/etc/sysctl.conf", "98-other.conf"),
        ("/dev/null", "60-tcp.conf"),
    ] {
        let from = tree.0.join("etc/sysctl.d").join(from);
        let _ = std::fs::remove_file(&from);
        std::os::unix::fs::symlink(to, from).unwrap();
    }
    let found = found(&tree.read());
    let commands: Vec<&str> =
        found.iter().flat_map(|finding| &finding.fix.steps).map(|step| step.command.as_str()).collect();
    assert_eq!(
        (ids(&found), commands),
        (vec!["ST-11"], vec!["sed -i '1{/tcp_tw_recycle/s/^[^#]/# &/}' /etc/sysctl.conf"])
    );
}

/// A thread may be in another namespace than the first one of its process.
#[test]
fn bonds_are_those_of_the_namespace_that_is_read() {
    let down = "Bonding Mode: fault-tolerance (active-backup)\n\nSlave Interface: eth0\nMII Status: down\n";
    let files = [("proc/net/bonding/bond0", down), ("proc/thread-self/net/bonding/bond1", down)];
    let bonds = |name: &str, files: &[(&str, &str)]| {
        let bonds = Tree::new(name, files).read().bonds;
        bonds.into_iter().map(|bond| bond.name).collect::<Vec<_>>()
    };
    assert_eq!(bonds("bonds", &files), ["bond1"]);
    assert_eq!(bonds("one-bond", &files[..1]), ["bond0"]);
}

pub(crate) fn gauges_and_bonds_are_read_from_proc(show: &Show) {
    const RULES: &[&str] = &["ST-05", "TX-08", "WIN-14"];
    let bond = "Ethernet Channel Bonding Driver: v6.1\n\nBonding Mode: load balancing (round-robin)\nMII Status: up\n\n\
                Slave Interface: eth0\nMII Status: up\n\nSlave Interface: eth1\nMII Status: down\n";
    let files = [
        ("proc/net/sockstat", "sockets: used 3\nTCP: inuse 2 orphan 9000 tw 4 alloc 5 mem 500\n"),
        ("proc/sys/net/ipv4/tcp_max_orphans", "16384\n"),
        ("proc/sys/net/ipv4/tcp_mem", "100 200 400\n"),
        ("proc/net/bonding/bond0", bond),
        ("proc/net/snmp", "Tcp: OutSegs\nTcp: 5\n"),
        ("proc/net/netstat", "TcpExt: ListenDrops\nTcpExt: 0\n"),
        ("proc/net/softnet_stat", "000000ff 00000000 00000001 0 0 0 0 0 0 0 00000007 0 00000000 0 0\n"),
    ];
    let tree = Tree::new("gauges", &[HEALTHY, &files].concat());
    let sockstat = |orphans, pages| {
        let text = format!("sockets: used 3\nTCP: inuse 2 orphan {orphans} tw 4 alloc 5 mem {pages}\n");
        std::fs::write(tree.0.join("proc/net/sockstat"), text).unwrap();
    };
    let bonded = |text: &str| std::fs::write(tree.0.join("proc/net/bonding/bond0"), text).unwrap();
    sockstat(4000, 150);
    bonded(&bond.replace("down", "up"));
    let sample = tree.read();
    assert_eq!((sample.softnet[0].processed, sample.softnet[0].flow_limited), (255, 7));
    let silent = found(&sample);
    assert_eq!(silent, []);
    show.silent(RULES, &silent);
    // Above the limit, with a member down.
    sockstat(9000, 380);
    bonded(bond);
    let found = found(&tree.read());
    show.fires(RULES, &found);
    let ids: Vec<_> = found.iter().map(|finding| (finding.id.as_str(), finding.severity)).collect();
    let critical = Severity::Critical;
    assert_eq!(ids, [("TX-08", critical), ("ST-05", critical), ("WIN-14", critical)]);
    assert_eq!(found[0].formula, "eth1 down");
    // After the commands, with the member up again.
    let write = |file, text: &str| std::fs::write(tree.0.join(file), text).unwrap();
    write("proc/sys/net/ipv4/tcp_mem", "200 400 800\n");
    show.recorded("WIN-14", &["sysctl -w net.ipv4.tcp_mem=\"200 400 800\""]);
    bonded(&bond.replace("down", "up"));
    show.recorded("TX-08", &[]);
    write("proc/sys/net/ipv4/tcp_max_orphans", "36000\n");
    show.recorded("ST-05", &["sysctl -w net.ipv4.tcp_max_orphans=\"36000\""]);
    let after = self::found(&tree.read());
    assert_eq!(after, []);
    show.gone(RULES, &after);
}
