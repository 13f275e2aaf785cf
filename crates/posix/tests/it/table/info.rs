//! `TCP_INFO`, field by field: where each lies, and what the kernel tells at the same points of the same conversation.

use super::cases::{name, to};
use super::{Calls, Kernel, Ours};
use core::ptr::null_mut;
use libc::{IPPROTO_TCP, c_int};
use std::io::Write as _;

/// How far a field is the same on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Same {
    Value,
    /// These bits of it.
    Bits(u64),
    /// A time, or what follows from one: it is there, or not, on both.
    Presence,
    /// Times so short that it is chance whether they are told at all.
    Nothing,
}

use Same::{Bits, Nothing, Presence, Value};

/// `struct tcp_info` of Linux 6.18 (`include/uapi/linux/tcp.h`): name, where it begins, how long it is. 66 fields, and two bytes of two bit
/// fields each.
const LAYOUT: [(&str, usize, usize, Same); 68] = [
    ("state", 0, 1, Value),
    ("ca_state", 1, 1, Value),
    ("retransmits", 2, 1, Value),
    ("probes", 3, 1, Value),
    ("backoff", 4, 1, Value),
    ("options", 5, 1, Value),
    ("snd_rcv_wscale", 6, 1, Value),
    // Whether the application bounded the last rate depends on whether the last round trip was long enough for one.
    ("delivery_fastopen_bitfields", 7, 1, Bits(0b110)),
    ("rto", 8, 4, Presence),
    ("ato", 12, 4, Presence),
    ("snd_mss", 16, 4, Value),
    ("rcv_mss", 20, 4, Value),
    ("unacked", 24, 4, Value),
    ("sacked", 28, 4, Value),
    ("lost", 32, 4, Value),
    ("retrans", 36, 4, Value),
    ("fackets", 40, 4, Value),
    ("last_data_sent", 44, 4, Nothing),
    ("last_ack_sent", 48, 4, Value),
    ("last_data_recv", 52, 4, Nothing),
    ("last_ack_recv", 56, 4, Nothing),
    ("pmtu", 60, 4, Value),
    ("rcv_ssthresh", 64, 4, Value),
    ("rtt", 68, 4, Nothing),
    ("rttvar", 72, 4, Nothing),
    ("snd_ssthresh", 76, 4, Value),
    ("snd_cwnd", 80, 4, Value),
    ("advmss", 84, 4, Value),
    ("reordering", 88, 4, Value),
    ("rcv_rtt", 92, 4, Nothing),
    ("rcv_space", 96, 4, Value),
    ("total_retrans", 100, 4, Value),
    ("pacing_rate", 104, 8, Presence),
    ("max_pacing_rate", 112, 8, Value),
    ("bytes_acked", 120, 8, Value),
    ("bytes_received", 128, 8, Value),
    ("segs_out", 136, 4, Value),
    ("segs_in", 140, 4, Value),
    ("notsent_bytes", 144, 4, Value),
    ("min_rtt", 148, 4, Nothing),
    ("data_segs_in", 152, 4, Value),
    ("data_segs_out", 156, 4, Value),
    ("delivery_rate", 160, 8, Nothing),
    ("busy_time", 168, 8, Nothing),
    ("rwnd_limited", 176, 8, Value),
    ("sndbuf_limited", 184, 8, Value),
    ("delivered", 192, 4, Value),
    ("delivered_ce", 196, 4, Value),
    ("bytes_sent", 200, 8, Value),
    ("bytes_retrans", 208, 8, Value),
    ("dsack_dups", 216, 4, Value),
    ("reord_seen", 220, 4, Value),
    ("rcv_ooopack", 224, 4, Value),
    ("snd_wnd", 228, 4, Value),
    ("rcv_wnd", 232, 4, Value),
    ("rehash", 236, 4, Value),
    ("total_rto", 240, 2, Value),
    ("total_rto_recoveries", 242, 2, Value),
    ("total_rto_time", 244, 4, Value),
    ("received_ce", 248, 4, Value),
    ("delivered_e1_bytes", 252, 4, Value),
    ("delivered_e0_bytes", 256, 4, Value),
    ("delivered_ce_bytes", 260, 4, Value),
    ("received_e1_bytes", 264, 4, Value),
    ("received_e0_bytes", 268, 4, Value),
    ("received_ce_bytes", 272, 4, Value),
    ("accecn_fail_mode", 276, 2, Value),
    ("accecn_opt_seen", 278, 2, Value),
];

#[cfg(target_env = "gnu")]
macro_rules! offsets {
    ($($field:ident)+) => { [$((stringify!($field), core::mem::offset_of!(libc::tcp_info, $field))),+] };
}

/// Where libc has them; the byte of the bit fields behind the scales has no name there.
#[cfg(target_env = "gnu")]
const LIBCS: [(&str, usize); 67] = offsets! {
    tcpi_state tcpi_ca_state tcpi_retransmits tcpi_probes tcpi_backoff
    tcpi_options tcpi_snd_rcv_wscale tcpi_rto tcpi_ato tcpi_snd_mss
    tcpi_rcv_mss tcpi_unacked tcpi_sacked tcpi_lost tcpi_retrans
    tcpi_fackets tcpi_last_data_sent tcpi_last_ack_sent tcpi_last_data_recv tcpi_last_ack_recv
    tcpi_pmtu tcpi_rcv_ssthresh tcpi_rtt tcpi_rttvar tcpi_snd_ssthresh
    tcpi_snd_cwnd tcpi_advmss tcpi_reordering tcpi_rcv_rtt tcpi_rcv_space
    tcpi_total_retrans tcpi_pacing_rate tcpi_max_pacing_rate tcpi_bytes_acked tcpi_bytes_received
    tcpi_segs_out tcpi_segs_in tcpi_notsent_bytes tcpi_min_rtt tcpi_data_segs_in
    tcpi_data_segs_out tcpi_delivery_rate tcpi_busy_time tcpi_rwnd_limited tcpi_sndbuf_limited
    tcpi_delivered tcpi_delivered_ce tcpi_bytes_sent tcpi_bytes_retrans tcpi_dsack_dups
    tcpi_reord_seen tcpi_rcv_ooopack tcpi_snd_wnd tcpi_rcv_wnd tcpi_rehash
    tcpi_total_rto tcpi_total_rto_recoveries tcpi_total_rto_time tcpi_received_ce tcpi_delivered_e1_bytes
    tcpi_delivered_e0_bytes tcpi_delivered_ce_bytes tcpi_received_e1_bytes tcpi_received_e0_bytes tcpi_received_ce_bytes
    tcpi_accecn_fail_mode tcpi_accecn_opt_seen
};

fn value(info: &[u8], at: usize, len: usize) -> u64 {
    let mut eight = [0; 8];
    eight[..len].copy_from_slice(&info[at..at + len]);
    u64::from_le_bytes(eight)
}

/// What is told of a socket, field by field.
type Told = (&'static str, Vec<u8>);

/// A conversation, and what is told of its sockets on the way.
fn conversation(calls: &dyn Calls) -> Vec<Told> {
    let socket = || calls.socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0).unwrap() as c_int;
    let info = |what, fd| {
        let (mut buf, mut len) = ([0xee_u8; 512], 512);
        let option = (IPPROTO_TCP, libc::TCP_INFO);
        assert_eq!(calls.getsockopt(fd, option, buf.as_mut_ptr().cast(), &raw mut len), Ok(0), "{what}");
        (what, buf[..len as usize].to_vec())
    };
    // Until all has arrived, and what is acknowledged later is.
    let settle = || {
        for _ in 0..3 {
            calls.deliver();
            assert_eq!(calls.poll(null_mut(), 0, 60), Ok(0));
        }
    };
    let send = |fd, len: usize| {
        assert_eq!(calls.send(fd, [7; 512].as_ptr().cast(), len, 0), Ok(len as i64));
        settle();
    };
    let recv = |fd, len: usize| {
        let mut buf = [0_u8; 4096];
        assert_eq!(calls.recv(fd, buf.as_mut_ptr().cast(), 4096, 0), Ok(len as i64));
    };

    let listener = socket();
    let mut all = vec![info("fresh", listener)];
    let mut addr = name("127.0.0.1:0");
    calls.bind(listener, to(&addr), 16).unwrap();
    calls.listen(listener, 9).unwrap();
    all.push(info("a listener", listener));
    let mut len = 16;
    calls.getsockname(listener, addr.as_mut_ptr().cast(), &raw mut len).unwrap();
    let client = socket();
    assert_eq!(calls.connect(client, to(&addr), 16), Err(libc::EINPROGRESS));
    settle();
    all.push(info("a listener, one to accept", listener));
    let server = calls.accept4(listener, null_mut(), null_mut(), libc::SOCK_NONBLOCK).unwrap() as c_int;
    all.extend([info("client, open", client), info("server, open", server)]);
    send(client, 300);
    all.extend([info("client, asked", client), info("server, not read", server)]);
    recv(server, 300);
    send(server, 500);
    recv(client, 500);
    all.extend([info("client, answered", client), info("server, has answered", server)]);
    calls.shutdown(client, libc::SHUT_WR).unwrap();
    settle();
    all.extend([info("client, FIN-WAIT-2", client), info("server, CLOSE-WAIT", server)]);
    let (deferred, on) = (socket(), 1_i32);
    for option in [libc::TCP_FASTOPEN_CONNECT, libc::TCP_FASTOPEN_NO_COOKIE] {
        calls.setsockopt(deferred, (IPPROTO_TCP, option), (&raw const on).cast(), 4).unwrap();
    }
    assert_eq!(calls.connect(deferred, to(&addr), 16), Ok(0));
    all.push(info("deferred", deferred));
    for fd in [client, server, listener, deferred] {
        calls.close(fd).unwrap();
    }
    all
}

#[test]
fn the_layout_has_no_holes() {
    let mut end = 0;
    for (name, at, len, _) in LAYOUT {
        assert_eq!((at, at % len), (end, 0), "{name}");
        end = at + len;
    }
    assert_eq!(end, posix::tcp_info::SIZE);
}

/// glibc's and the kernel's are one.
#[cfg(target_env = "gnu")]
#[test]
fn the_layout_is_libcs() {
    let named = LAYOUT.iter().filter(|(name, ..)| *name != "delivery_fastopen_bitfields");
    for ((name, at, ..), (libcs, libcs_at)) in named.zip(LIBCS) {
        assert_eq!((format!("tcpi_{name}").as_str(), *at), (libcs, libcs_at));
    }
    assert_eq!(size_of::<libc::tcp_info>(), posix::tcp_info::SIZE);
}

/// The kernel's time is real: on a busy machine an acknowledgement may come so late that a segment is retransmitted.
const ATTEMPTS: usize = 3;

fn differences() -> Vec<String> {
    let [theirs, own] = [&Kernel as &dyn Calls, &Ours::new()].map(conversation);
    let mut differing = Vec::new();
    for ((what, theirs), (_, own)) in theirs.iter().zip(&own) {
        assert_eq!((theirs.len(), own.len()), (280, 280), "{what}");
        for (name, at, len, same) in LAYOUT {
            let (theirs, own) = (value(theirs, at, len), value(own, at, len));
            let holds = match same {
                Value => theirs == own,
                Bits(mask) => theirs & mask == own & mask,
                Presence => (theirs == 0) == (own == 0),
                Nothing => true,
            };
            if !holds {
                differing.push(format!("{what}: {name}: the kernel {theirs}, ours {own}"));
            }
        }
    }
    differing
}

#[test]
fn every_field_tells_what_the_kernels_does() {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if !release.starts_with("6.18.") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs Linux 6.18, whose TCP_INFO this is");
        return;
    }
    testnet::in_namespace(|| {
        super::leave_descriptors();
        testnet::sysctl("net.ipv4.tcp_rmem", "4096 131072 33554432");
        testnet::sysctl("net.ipv4.tcp_wmem", "4096 16384 4194304");
        super::set_loopback_mtu(65_535);
        let mut differing = differences();
        for _ in 1..ATTEMPTS {
            if differing.is_empty() {
                break;
            }
            differing = differences();
        }
        assert!(differing.is_empty(), "\n{}", differing.join("\n"));
    });
}
