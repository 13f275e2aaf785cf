//! Reads the paths that the kernel remembers from the generic netlink family tcp_metrics.
use super::generic::{Attributes, Family};
use crate::sample::{Address, PathMetrics};
use std::io;
use std::net::IpAddr;

// include/uapi/linux/tcp_metrics.h
const GET: u8 = 1;
const ADDR_IPV4: u16 = 1;
const ADDR_IPV6: u16 = 2;
const AGE: u16 = 3;
const VALS: u16 = 6;
const FOPEN_MSS: u16 = 7;
const FOPEN_SYN_DROPS: u16 = 8;
const FOPEN_SYN_DROP_TS: u16 = 9;
const FOPEN_COOKIE: u16 = 10;
const SADDR_IPV4: u16 = 11;
const SADDR_IPV6: u16 = 12;
// Within VALS: enum tcp_metric_index + 1.
const SSTHRESH: u16 = 3;
const CWND: u16 = 4;
const REORDERING: u16 = 5;
const RTT_US: u16 = 6;
const RTTVAR_US: u16 = 7;

/// Reads all entries.
pub(super) fn read() -> io::Result<Vec<PathMetrics>> {
    let mut paths = Vec::new();
    Family::find("tcp_metrics", 1)?.dump(GET, |path| {
        let values = path.nested(VALS);
        paths.push(PathMetrics {
            peer: address(path, ADDR_IPV4, ADDR_IPV6),
            source: address(path, SADDR_IPV4, SADDR_IPV6),
            age: path.number(AGE).unwrap_or(0),
            ssthresh: values.u32(SSTHRESH),
            cwnd: values.u32(CWND),
            // tcp_metrics.c stores them like tcp_sock: srtt_us in eighths, mdev in quarters.
            rtt: values.u32(RTT_US) >> 3,
            rttvar: values.u32(RTTVAR_US) >> 2,
            reordering: values.u32(REORDERING),
            fo_mss: path.u32(FOPEN_MSS),
            fo_syn_drops: path.u32(FOPEN_SYN_DROPS),
            fo_syn_drop_age: path.number(FOPEN_SYN_DROP_TS).unwrap_or(0),
            fo_cookie: path.bytes(FOPEN_COOKIE).is_some(),
            cookie: path.bytes(FOPEN_COOKIE).unwrap_or_default().to_vec(),
        });
    })?;
    Ok(paths)
}

fn address(path: &Attributes, v4: u16, v6: u16) -> Address {
    let four = path.bytes(v4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()).map(IpAddr::from);
    let six = || path.bytes(v6).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()).map(IpAddr::from);
    four.or_else(six).map(|address| Address(address.to_canonical())).unwrap_or_default()
}
