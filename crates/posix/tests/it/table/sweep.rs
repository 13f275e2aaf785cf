//! Every option of every level, set to many values and read back in every state: of the kernel's sockets and of ours.
//!
//! What differs is in [`EXCEPTIONS`], with the reason, and nothing else may. Each of them must still be met.

use super::stage::{STATES, Stage, State};
use super::{Calls, Given, Kernel, Ours};
use core::ptr::{null, null_mut};
use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, SOL_SOCKET, c_int};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;

/// The options there may be.
const OPTIONS: c_int = 90;
const LEVELS: [(&str, c_int); 4] =
    [("SOL_SOCKET", SOL_SOCKET), ("TCP", IPPROTO_TCP), ("IP", IPPROTO_IP), ("IPV6", IPPROTO_IPV6)];

/// How far an exception goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Excused {
    /// The value that is read; its length is the same.
    Value,
    /// Whatever is done with it.
    All,
}

/// Level, option, how far, and why.
type Exception = (c_int, c_int, Excused, &'static str);

const EXCEPTIONS: &[Exception] = &[
    (
        SOL_SOCKET,
        libc::SO_SNDBUF,
        Excused::Value,
        "the kernel's buffer grows with segments and their bookkeeping, ours with bytes",
    ),
    (SOL_SOCKET, libc::SO_PEERNAME, Excused::Value, "the port differs"),
    (SOL_SOCKET, libc::SO_INCOMING_CPU, Excused::Value, "our packets come by no CPU's queue"),
    (
        SOL_SOCKET,
        libc::SO_ATTACH_BPF,
        Excused::All,
        "no programs are run, so that it is not looked whether a number is one",
    ),
    (SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_EBPF, Excused::All, "no programs are run"),
    (SOL_SOCKET, 55, Excused::Value, "SO_MEMINFO: the kernel charges its packet buffers"),
    (SOL_SOCKET, 57, Excused::Value, "SO_COOKIE: a number that no other socket has"),
    (
        SOL_SOCKET,
        62,
        Excused::All,
        "SO_BINDTOIFINDEX: the kernel takes numbers of devices that do not exist; our only device has none",
    ),
    (SOL_SOCKET, 71, Excused::Value, "SO_NETNS_COOKIE: the number of a namespace"),
    (IPPROTO_TCP, libc::TCP_INFO, Excused::Value, "times, and what follows from them"),
    (
        IPPROTO_TCP,
        libc::TCP_WINDOW_CLAMP,
        Excused::Value,
        "where none was set the kernel tells of its window's present bound",
    ),
    (IPPROTO_TCP, libc::TCP_QUICKACK, Excused::Value, "2 asks for one acknowledgement, if one is on its way"),
    (IPPROTO_TCP, libc::TCP_TIMESTAMP, Excused::Value, "the time"),
    (
        IPPROTO_TCP,
        libc::TCP_FASTOPEN_KEY,
        Excused::All,
        "our key is drawn at the start, the kernel's when it is first needed",
    ),
    (IPPROTO_TCP, 44, Excused::Value, "TCP_RTO_MAX_MS: the kernel's time-outs are whole ticks"),
    (IPPROTO_TCP, 45, Excused::Value, "TCP_RTO_MIN_US: whole ticks"),
    (IPPROTO_TCP, 46, Excused::Value, "TCP_DELACK_MAX_US: whole ticks"),
    (IPPROTO_IP, 4, Excused::All, "IP_OPTIONS: none are sent"),
    (IPPROTO_IP, 16, Excused::All, "IP_IPSEC_POLICY: no IPsec"),
    (IPPROTO_IP, 17, Excused::All, "IP_XFRM_POLICY: no IPsec"),
    (IPPROTO_IP, libc::IP_MULTICAST_TTL, Excused::Value, "the kernel keeps the hop limit of the SYN there"),
    (IPPROTO_IP, 41, Excused::All, "IP_MSFILTER: no multicast"),
    (IPPROTO_IP, 52, Excused::Value, "IP_PROTOCOL is the local port"),
    (IPPROTO_IP, 64, Excused::All, "netfilter's"),
    (IPPROTO_IP, 65, Excused::All, "netfilter's"),
    (IPPROTO_IP, 66, Excused::All, "netfilter's"),
    (IPPROTO_IP, 67, Excused::All, "netfilter's"),
    (IPPROTO_IP, 80, Excused::All, "netfilter's"),
    (IPPROTO_IP, 83, Excused::All, "netfilter's"),
    (IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, Excused::Value, "the kernel keeps the device of the SYN there"),
    (
        IPPROTO_IPV6,
        libc::IPV6_MULTICAST_HOPS,
        Excused::Value,
        "the kernel keeps the hop limit of the SYN there",
    ),
    (IPPROTO_IPV6, 32, Excused::All, "IPV6_FLOWLABEL_MGR: flow labels are not given out"),
    (IPPROTO_IPV6, 34, Excused::All, "IPV6_IPSEC_POLICY: no IPsec"),
    (IPPROTO_IPV6, 35, Excused::All, "IPV6_XFRM_POLICY: no IPsec"),
    (IPPROTO_IPV6, libc::IPV6_HOPOPTS, Excused::All, "no extension headers are sent"),
    (IPPROTO_IPV6, 55, Excused::All, "IPV6_RTHDRDSTOPTS: no extension headers are sent"),
    (IPPROTO_IPV6, libc::IPV6_DSTOPTS, Excused::All, "no extension headers are sent"),
    (IPPROTO_IPV6, 64, Excused::All, "netfilter's"),
    (IPPROTO_IPV6, 65, Excused::All, "netfilter's"),
    (IPPROTO_IPV6, 68, Excused::All, "netfilter's"),
    (IPPROTO_IPV6, 69, Excused::All, "netfilter's"),
    (IPPROTO_IPV6, 80, Excused::All, "netfilter's"),
];

/// What one step was, and what it gave: for reads the value apart.
struct Step {
    what: String,
    given: Given,
    len: Option<u32>,
    value: Vec<u8>,
}

/// Makes every call about one option.
fn steps(calls: &dyn Calls, fd: c_int, option: (c_int, c_int)) -> Vec<Step> {
    let mut all = Vec::new();
    let read = |what: &str, fill: u8, room: u32, null_value: bool| {
        let mut value = vec![fill; 512];
        let mut len = room;
        let to = if null_value { null_mut() } else { value.as_mut_ptr().cast() };
        let given = calls.getsockopt(fd, option, to, &raw mut len);
        value.truncate((len as usize).min(512));
        if given.is_err() {
            value.clear();
        }
        Step { what: format!("{what} into {room}"), given, len: Some(len), value }
    };
    let full = |all: &mut Vec<Step>| all.push(read("get", 0, 16, false));
    for room in [0, 1, 2, 3, 4, 5, 8, 12, 16, 20, 64, 280, 300, u32::MAX] {
        all.push(read("get", 0, room, false));
        all.push(read("get filled", 0xee, room, false));
    }
    for room in [0, 4, 64] {
        all.push(read("get null", 0, room, true));
    }
    all.push(Step {
        what: "get without length".into(),
        given: calls.getsockopt(fd, option, null_mut(), null_mut()),
        len: None,
        value: Vec::new(),
    });
    let write = |all: &mut Vec<Step>, number: i32, len: u32| {
        let mut value = [0_u8; 64];
        value[..4].copy_from_slice(&number.to_ne_bytes());
        let given = calls.setsockopt(fd, option, value.as_ptr().cast(), len);
        all.push(Step { what: format!("set {number} of {len}"), given, len: None, value: Vec::new() });
        full(all);
    };
    for number in
        [0, 1, -1, 2, 3, 5, 31, 87, 100, 255, 256, 1000, 5000, 65_535, 65_536, 200_000, i32::MAX, i32::MIN]
    {
        write(&mut all, number, 4);
    }
    for len in [0, 1, 2, 3, 5, 8, 12, 16, 20, 40, 64, u32::MAX] {
        write(&mut all, 1, len);
    }
    for len in [0, 1, 4, 16, 40] {
        let given = calls.setsockopt(fd, option, null(), len);
        all.push(Step { what: format!("set null of {len}"), given, len: None, value: Vec::new() });
        full(&mut all);
    }
    all
}

impl Step {
    fn line(&self) -> String {
        let mut line = format!("{} = ", self.what);
        match self.given {
            Ok(value) => write!(line, "{value}"),
            Err(errno) => write!(line, "{:?}", posix::Errno(errno)),
        }
        .unwrap();
        if let Some(len) = self.len {
            write!(line, " len {len} {:?}", self.value).unwrap();
        }
        line
    }

    fn excused(&self, own: &Step, excused: Excused) -> bool {
        match excused {
            Excused::All => true,
            Excused::Value => self.given == own.given && self.len == own.len,
        }
    }
}

/// The kernel's time is real: where a busy machine lets an acknowledgement come late, a FIN is retransmitted, and its connection reports another MSS.
const ATTEMPTS: usize = 3;

/// In what the kernel and we answer to this option differently, but for `EXCEPTIONS`, which it adds to those that were met.
fn differences(
    domain: c_int,
    state: State,
    option: (c_int, c_int),
    at: &str,
    met: &mut BTreeSet<(c_int, c_int)>,
) -> Vec<String> {
    let ours = Ours::new();
    let [theirs, own] = [&Kernel as &dyn Calls, &ours].map(|calls| {
        let stage = Stage::set(calls, domain, state);
        steps(calls, stage.fd, option)
    });
    let mut differing = Vec::new();
    for (theirs, own) in theirs.iter().zip(&own) {
        let (one, other) = (theirs.line(), own.line());
        if one == other {
            continue;
        }
        let excused = EXCEPTIONS
            .iter()
            .find(|(level, number, how, _)| (*level, *number) == option && theirs.excused(own, *how));
        match excused {
            Some(exception) => _ = met.insert((exception.0, exception.1)),
            None => differing.push(format!("{at}: the kernel: {one}\n{at}:       ours: {other}")),
        }
    }
    differing
}

#[test]
fn every_option_answers_as_the_kernels_do() {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if !release.starts_with("6.18.") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs Linux 6.18, whose options these are");
        return;
    }
    testnet::in_namespace(|| {
        super::leave_descriptors();
        testnet::sysctl("net.ipv4.tcp_fastopen", "1");
        // As they are on a machine of middling size, and ours.
        testnet::sysctl("net.ipv4.tcp_rmem", "4096 131072 33554432");
        testnet::sysctl("net.ipv4.tcp_wmem", "4096 16384 4194304");
        super::set_loopback_mtu(65_535);
        let (mut differing, mut met) = (Vec::new(), BTreeSet::new());
        for domain in [libc::AF_INET, libc::AF_INET6] {
            for state in STATES {
                for (level_name, level) in LEVELS {
                    for number in 0..=OPTIONS {
                        let at = format!("{domain} {state:?} {level_name} {number}");
                        let mut answers = || differences(domain, state, (level, number), &at, &mut met);
                        let mut found = answers();
                        for _ in 1..ATTEMPTS {
                            if found.is_empty() {
                                break;
                            }
                            found = answers();
                        }
                        differing.extend(found);
                    }
                }
            }
        }
        if let Ok(file) = std::env::var("FIRSTBYTE_DIFFERENCES") {
            std::fs::write(file, differing.join("\n")).unwrap();
        }
        assert!(
            differing.is_empty(),
            "{} differ:\n{}",
            differing.len(),
            differing[..differing.len().min(200)].join("\n")
        );
        for (level, number, _, why) in EXCEPTIONS {
            assert!(met.contains(&(*level, *number)), "{level} {number} differs no more: {why}");
        }
    });
}
