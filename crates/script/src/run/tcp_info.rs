//! What snippets ask: Linux's `tcp_info` by the names of its fields, `SO_MEMINFO` by packetdrill's, counters by `nstat`'s names, and the constants that are compared
//! with them.

use crate::run::Runner;
use crate::run::failure::Failure;
use std::collections::BTreeMap;

/// Where fields begin, how long each is, and their names in the order of the structure.
const FIELDS: &[(usize, usize, &[&str])] = &[
    (0, 1, &["state", "ca_state", "retransmits", "probes", "backoff", "options"]),
    (
        8,
        4,
        &[
            "rto",
            "ato",
            "snd_mss",
            "rcv_mss",
            "unacked",
            "sacked",
            "lost",
            "retrans",
            "fackets",
            "last_data_sent",
            "last_ack_sent",
            "last_data_recv",
            "last_ack_recv",
            "pmtu",
            "rcv_ssthresh",
            "rtt",
            "rttvar",
            "snd_ssthresh",
            "snd_cwnd",
            "advmss",
            "reordering",
            "rcv_rtt",
            "rcv_space",
            "total_retrans",
        ],
    ),
    (104, 8, &["pacing_rate", "max_pacing_rate", "bytes_acked", "bytes_received"]),
    (136, 4, &["segs_out", "segs_in", "notsent_bytes", "min_rtt", "data_segs_in", "data_segs_out"]),
    (160, 8, &["delivery_rate", "busy_time", "rwnd_limited", "sndbuf_limited"]),
    (192, 4, &["delivered", "delivered_ce"]),
    (200, 8, &["bytes_sent", "bytes_retrans"]),
    (216, 4, &["dsack_dups", "reord_seen", "rcv_ooopack", "snd_wnd", "rcv_wnd", "rehash"]),
    (240, 2, &["total_rto", "total_rto_recoveries"]),
    (
        244,
        4,
        &[
            "total_rto_time",
            "received_ce",
            "delivered_e1_bytes",
            "delivered_e0_bytes",
            "delivered_ce_bytes",
            "received_e1_bytes",
            "received_e0_bytes",
            "received_ce_bytes",
        ],
    ),
    (276, 2, &["accecn_fail_mode", "accecn_opt_seen"]),
];

/// `SO_MEMINFO`'s numbers, in their order, by packetdrill's names.
const MEMINFO: [&str; 9] = [
    "RMEM_ALLOC",
    "RCVBUF",
    "WMEM_ALLOC",
    "SNDBUF",
    "FWD_ALLOC",
    "WMEM_QUEUED",
    "OPTMEM",
    "BACKLOG",
    "DROPS",
];
/// Linux's number, which libc does not name for every target.
const SO_MEMINFO: i32 = 55;

const CONSTANTS: &[(&str, i128)] = &[
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_OPT_ECN", 8),
    ("TCPI_OPT_ECN_SEEN", 16),
    ("TCPI_OPT_SYN_DATA", 32),
    ("TCPI_OPT_USEC_TS", 64),
    ("TCPI_OPT_TFO_CHILD", 128),
    ("TCP_INFINITE_SSTHRESH", 0x7fff_ffff),
];

impl Runner<'_> {
    /// Runs a snippet on the socket under test. Counters count from where `nstat` last did.
    pub(super) fn code(&mut self, line: usize, code: &str) -> Result<(), Failure> {
        let info = self.tcp_info();
        let counters: BTreeMap<String, u64> = self.world.sockets.stack().counters().nstat().collect();
        let before: BTreeMap<String, u64> = self.counted.nstat().collect();
        let known = |name: &str| {
            let constant = CONSTANTS.iter().find(|(constant, _)| *constant == name).map(|(_, value)| *value);
            let counted = || {
                let now = counters.get(name)?;
                Some(i128::from(*now) - i128::from(before.get(name).copied().unwrap_or(0)))
            };
            constant.or_else(|| info.get(name).copied()).or_else(counted)
        };
        self.variables.run(code, &known).map_err(|message| {
            let none = code.contains("tcpi_") && info.is_empty();
            let hint = if none { ": there is no socket under test, or it was not accepted yet" } else { "" };
            Failure::new(line, format!("{message}{hint}"))
        })
    }

    fn tcp_info(&mut self) -> BTreeMap<String, i128> {
        let mut values = BTreeMap::new();
        let Some(fd) = self.flows.get(self.under_test).and_then(|flow| flow.fd) else { return values };
        let bytes =
            self.world.call(|sockets, now| sockets.option(now, fd, libc::IPPROTO_TCP, libc::TCP_INFO, 280));
        let Ok(bytes) = bytes else { return values };
        let number = |at: usize, len: usize| number(&bytes, at, len);
        for (from, len, names) in FIELDS {
            for (at, name) in names.iter().enumerate() {
                values.insert(format!("tcpi_{name}"), number(from + at * len, *len));
            }
        }
        let scales = number(6, 1);
        values.insert("tcpi_snd_wscale".into(), scales & 0xf);
        values.insert("tcpi_rcv_wscale".into(), scales >> 4);
        let bits = number(7, 1);
        values.insert("tcpi_delivery_rate_app_limited".into(), bits & 1);
        values.insert("tcpi_fastopen_client_fail".into(), bits >> 1 & 3);
        self.add_meminfo(fd, &mut values);
        let asked =
            self.world.call(|sockets, now| sockets.option(now, fd, libc::IPPROTO_TCP, libc::TCP_CC_INFO, 20));
        values.extend(of_congestion_control(&asked.unwrap_or_default()));
        values
    }

    fn add_meminfo(&mut self, fd: i32, values: &mut BTreeMap<String, i128>) {
        let len = MEMINFO.len() * 4;
        let told = self.world.call(|sockets, now| sockets.option(now, fd, libc::SOL_SOCKET, SO_MEMINFO, len));
        let numbers = told.unwrap_or_default();
        for (name, bytes) in MEMINFO.iter().zip(numbers.as_chunks().0) {
            values.insert(format!("SK_MEMINFO_{name}"), u32::from_ne_bytes(*bytes).into());
        }
    }
}

/// What the congestion control tells of itself: BBR's structure has five words, Vegas's four (Linux's `union tcp_cc_info`). The names are
/// packetdrill's.
fn of_congestion_control(bytes: &[u8]) -> Vec<(String, i128)> {
    let word = |at: usize| number(bytes, at * 4, 4);
    let named = |names: &[&str]| {
        names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), word(at))).collect::<Vec<_>>()
    };
    match bytes.len() {
        20 => {
            let mut values =
                named(&["bbr_bw_lo", "bbr_bw_hi", "bbr_min_rtt", "bbr_pacing_gain", "bbr_cwnd_gain"]);
            values.push(("bbr_bw".into(), word(1) << 32 | word(0)));
            values
        }
        16 => named(&["tcpv_enabled", "tcpv_rttcnt", "tcp_rtt", "tcp_minrtt"]),
        _ => Vec::new(),
    }
}

/// A field of a structure as C has it; 0 where the structure ends before.
fn number(bytes: &[u8], at: usize, len: usize) -> i128 {
    let mut eight = [0; 8];
    let found = bytes.get(at..at + len).unwrap_or_default();
    eight[..found.len()].copy_from_slice(found);
    i128::from(u64::from_le_bytes(eight))
}
