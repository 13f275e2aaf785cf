//! Trees of files: what sysctl.d says, and what other hosts have.
use doctor::{Finding, Limits, Report, Sample, Severity, Source, Window, sources};
use std::path::PathBuf;

/// A folder with these files, gone with this value.
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

/// A host whose files say what it does.
const HEALTHY: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "6.18.0\n"),
    ("proc/sys/net/core/netdev_max_backlog", "1000\n"),
    ("proc/sys/net/core/somaxconn", "4096\n"),
    ("proc/sys/net/ipv4/tcp_fin_timeout", "60\n"),
    ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t33554432\n"),
    ("etc/sysctl.conf", "# nothing\n"),
    ("etc/sysctl.d/60-tcp.conf", "net.ipv4.tcp_fin_timeout = 60\n"),
];

#[test]
fn lines_of_sysctl_d_are_judged_by_the_kernel_that_runs() {
    let healthy = Tree::new("healthy", HEALTHY);
    assert_eq!(found(&healthy.read()), []);
    let tuned = Tree::new("tuned", HEALTHY);
    let lines =
        "net.ipv4.tcp_tw_recycle = 1\nnet.ipv4.tcp_rmem = 4096 87380 16777216\nnet.core.somaxconn=1024\n";
    std::fs::write(tuned.0.join("etc/sysctl.d/99-tuning.conf"), lines).unwrap();
    let found = found(&tuned.read());
    let told: Vec<(&str, &str)> =
        found.iter().map(|finding| (finding.id.as_str(), finding.evidence[0].name.as_str())).collect();
    let (recycle, rmem, somaxconn) = (
        "/etc/sysctl.d/99-tuning.conf, line 1",
        "/etc/sysctl.d/99-tuning.conf, line 2",
        "/etc/sysctl.d/99-tuning.conf, line 3",
    );
    let expected =
        [("ST-12", somaxconn), ("ST-12", rmem), ("WIN-15", somaxconn), ("WIN-15", rmem), ("ST-11", recycle)];
    assert_eq!(told, expected);
    // Its fix, for the file of this tree.
    let dead = found.iter().find(|finding| finding.id == "ST-11").unwrap();
    let root = tuned.0.display();
    let command = dead.fix.steps[0].command.replace("/etc/", &format!("{root}/etc/"));
    crate::shell(&command);
    let after = self::found(&tuned.read());
    assert!(!after.iter().any(|finding| finding.id == "ST-11"), "{after:#?}");
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
    assert_eq!(found[0].fix.steps[0].undo.as_deref(), Some("sysctl -w net.ipv4.tcp_fin_timeout=\"60\""));
}

#[test]
fn gauges_bonds_and_columns_are_read_from_proc() {
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
    let sample = tree.read();
    assert_eq!((sample.softnet[0].processed, sample.softnet[0].flow_limited), (255, 7));
    let found = found(&sample);
    let ids: Vec<_> = found.iter().map(|finding| (finding.id.as_str(), finding.severity)).collect();
    let critical = Severity::Critical;
    assert_eq!(ids, [("TX-08", critical), ("ST-05", critical), ("WIN-14", critical)]);
    assert_eq!(found[0].formula, "eth1 down");
    // As many as a limit allows, and no member down.
    let sockstat = "sockets: used 3\nTCP: inuse 2 orphan 4000 tw 4 alloc 5 mem 150\n";
    std::fs::write(tree.0.join("proc/net/sockstat"), sockstat).unwrap();
    std::fs::write(tree.0.join("proc/net/bonding/bond0"), bond.replace("down", "up")).unwrap();
    assert_eq!(self::found(&tree.read()), []);
}
