//! A host on this kernel: a network namespace, and a mount namespace with its own /etc that has
//! files like Debian's. The commands run exactly as printed.
use crate::{Random, commands, judged, places, restarts};
use doctor::{Finding, Sample, sources};
use rustix::thread::UnshareFlags;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Wrong values of settings. Those of a file are below.
const SETTINGS: [(&str, &str); 15] = [
    ("net.core.somaxconn", "100"),
    ("net.ipv4.conf.all.rp_filter", "1"),
    ("net.ipv4.tcp_abort_on_overflow", "1"),
    ("net.ipv4.tcp_adv_win_scale", "2"),
    ("net.ipv4.tcp_early_retrans", "0"),
    ("net.ipv4.tcp_fastopen", "3846"),
    ("net.ipv4.tcp_fin_timeout", "15"),
    ("net.ipv4.tcp_limit_output_bytes", "4096"),
    ("net.ipv4.tcp_max_syn_backlog", "65536"),
    ("net.ipv4.tcp_moderate_rcvbuf", "0"),
    ("net.ipv4.tcp_no_ssthresh_metrics_save", "0"),
    ("net.ipv4.tcp_recovery", "0"),
    ("net.ipv4.tcp_sack", "0"),
    ("net.ipv4.tcp_syncookies", "0"),
    ("net.ipv4.tcp_window_scaling", "0"),
];

/// Debian's /etc/sysctl.d/99-sysctl.conf links to this file.
const SYSCTL_CONF: &str = "\
# Recipes of many years.
net.ipv4.tcp_tw_recycle = 1
net.core.somaxconn = 1024
net.ipv4.tcp_syncookies = 0
net.ipv4.tcp_rmem = 4096 87380 6291456
net/ipv4/tcp_fin_timeout = 15
net.ipv4.tcp_orphan_retries = 5
net.ipv4.tcp_max_syn_backlog = 65536
";

/// A file that is read earlier, with a line that the later file overrides.
const TUNING: &str = "net.core.somaxconn = 512\nnet.ipv4.tcp_fack = 1\n";

/// Settings that a package installs.
const PACKAGED: &str = "net.ipv4.tcp_sack = 0\n";

/// Runs a test in a namespace with its own /etc, which disappears with the thread.
fn on_a_host(test: impl FnOnce() + Send) {
    testnet::in_namespace(|| {
        #[expect(
            deprecated,
            reason = "CLONE_FILES would be unsound; CLONE_NEWNS shares no descriptor table"
        )]
        rustix::thread::unshare(UnshareFlags::NEWNS).unwrap();
        // The following mounts do not reach the machine's own, and disappear with the thread.
        shell(
            "mount --make-rprivate / && mount -t tmpfs tmpfs /etc && mount -t tmpfs tmpfs /usr/lib/sysctl.d",
        );
        shell("mkdir /etc/sysctl.d && ln -s ../sysctl.conf /etc/sysctl.d/99-sysctl.conf");
        std::fs::write("/etc/sysctl.conf", SYSCTL_CONF).unwrap();
        std::fs::write("/etc/sysctl.d/10-tuning.conf", TUNING).unwrap();
        std::fs::write("/usr/lib/sysctl.d/20-package.conf", PACKAGED).unwrap();
        for (name, value) in SETTINGS {
            testnet::sysctl(name, value);
        }
        testnet::sysctl("net.ipv6.conf.default.disable_ipv6", "1");
        shell("ip link add v0 type veth peer name v1; ip link add w0 type veth peer name w1");
        shell("ip addr add 10.1.0.1/24 dev v0; ip addr add 10.2.0.1/24 dev w0");
        shell("for link in v0 v1 w0 w1; do ip link set $link up; done");
        shell(
            "ip link set v0 mtu 1400; ip route add default via 10.1.0.2 dev v0 ssthresh 9 cwnd lock 20 initcwnd 3",
        );
        if testnet::has_program("ethtool") {
            shell("ethtool -K v0 tx-generic-segmentation off");
        }
        test();
    });
}

fn shell(command: &str) {
    let output = testnet::command("sh").args(["-c", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Reads this host as if its namespace were the first one, the only one that files apply to.
fn read() -> Sample {
    let root = Root::new();
    let mut sample = sources::here();
    sample.configured = sources::tree(&root.0).configured;
    sample.settings.insert("net.core.netdev_max_backlog".to_owned(), "1000".to_owned());
    sample
}

/// A tree with this thread's /etc and /usr.
struct Root(PathBuf);

impl Root {
    fn new() -> Root {
        let name = std::thread::current().name().unwrap_or_default().replace(':', "-");
        let root = std::env::temp_dir().join(format!("doctor-fixes-{}-{name}", std::process::id()));
        std::fs::create_dir_all(root.join("proc/sys/net/core")).unwrap();
        std::fs::write(root.join("proc/sys/net/core/netdev_max_backlog"), "1000\n").unwrap();
        for folder in ["etc", "usr"] {
            std::os::unix::fs::symlink(Path::new("/").join(folder), root.join(folder)).unwrap();
        }
        Root(root)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the findings of a short window.
fn found() -> Vec<Finding> {
    let before = read();
    std::thread::sleep(Duration::from_millis(20));
    // Other programs may cause findings about the whole machine.
    let of_machine = ["RX-01", "RX-02", "RX-03", "CC-10", "ST-05", "WIN-14"];
    judged(&before, &read())
        .into_iter()
        .filter(|finding| !of_machine.contains(&finding.id.as_str()))
        .collect()
}

/// A program that asks for the largest backlog, and can be restarted.
struct Program(Option<TcpListener>);

impl Program {
    fn start() -> Program {
        Program(Some(listener()))
    }

    fn restart(&mut self) {
        self.0 = None;
        self.0 = Some(listener());
    }
}

fn listener() -> TcpListener {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    rustix::net::listen(&listener, 65_535).unwrap();
    listener
}

/// Runs fixes, and returns findings that remain or are new.
fn fix(before: &[Finding], fixes: &[&Finding], program: &mut Program) -> Vec<String> {
    for command in fixes.iter().flat_map(|finding| commands(finding)) {
        shell(command);
    }
    if fixes.iter().any(|finding| restarts(finding)) {
        program.restart();
    }
    let link = std::fs::read_link("/etc/sysctl.d/99-sysctl.conf");
    assert_eq!(link.ok().as_deref(), Some(Path::new("../sysctl.conf")), "Debian's file is still a link");
    let known = places(before);
    let fixed: BTreeSet<(String, String)> = fixes
        .iter()
        .filter(|finding| !commands(finding).is_empty())
        .map(|finding| (finding.id.clone(), finding.scope.to_string()))
        .collect();
    let after = found();
    let wrong = after.iter().filter(|finding| {
        let place = (finding.id.clone(), finding.scope.to_string());
        !known.contains(&place) || fixed.contains(&place)
    });
    // A rule may have several findings in one place, and only some of them may remain.
    let count = |findings: &[Finding], id: &str| findings.iter().filter(|finding| finding.id == id).count();
    let wrong = wrong.filter(|finding| count(&after, &finding.id) + fixes.len() > count(before, &finding.id));
    wrong.map(|finding| format!("{} [{}] {}", finding.id, finding.scope, finding.formula)).collect()
}

/// Rules that the faults of the host must trigger.
const EXPECTED: [&str; 24] = [
    "ACC-04", "ACC-06", "ACC-09", "CC-02", "CC-04", "CC-05", "CC-08", "RX-08", "RX-09", "ST-10", "ST-11",
    "ST-12", "TFO-01", "TFO-10", "TFO-11", "TFO-12", "TX-06", "TX-09", "WIN-01", "WIN-08", "WIN-12",
    "WIN-13", "WIN-15", "TFO-08",
];

#[test]
fn on_this_kernel_every_fix_alone_leaves_nothing_and_brings_nothing() {
    let mut count = 0;
    on_a_host(|| {
        let _program = Program::start();
        let found = found();
        let ids: BTreeSet<&str> = found.iter().map(|finding| finding.id.as_str()).collect();
        let missing: Vec<&&str> = EXPECTED.iter().filter(|id| !ids.contains(**id)).collect();
        assert!(missing.is_empty(), "{missing:?} do not fire: {ids:?}");
        count = found.len();
    });
    for at in 0..count {
        on_a_host(|| {
            let mut program = Program::start();
            let found = found();
            let finding = &found[at];
            let wrong = fix(&found, &[finding], &mut program);
            assert!(wrong.is_empty(), "{} alone, {:#?}: {wrong:#?}", finding.id, commands(finding));
        });
    }
}

#[test]
fn on_this_kernel_all_fixes_together_agree_in_any_order() {
    for seed in 1..=3_u64 {
        on_a_host(|| {
            let mut program = Program::start();
            let found = found();
            let mut fixes: Vec<&Finding> = found.iter().collect();
            Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).shuffle(&mut fixes);
            let wrong = fix(&found, &fixes, &mut program);
            let done: Vec<&str> = fixes.iter().flat_map(|finding| commands(finding)).collect();
            assert!(wrong.is_empty(), "seed {seed}: {wrong:#?} after {done:#?}");
        });
    }
}
