//! Options that are kept and read back, and change nothing else: what they are about does not happen to a stream over one device. It is
//! neither broadcast nor multicast nor dropped from a queue, has no route to be chosen, no driver to be polled, no mark, no flow label.

use crate::errno::Errno;

/// What may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// Anything; what is not 0 is 1.
    Flag,
    /// From the one to the other, else `EINVAL`.
    Numbers(i32, i32),
}

/// An option of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) range: Range,
    /// Before it is set.
    pub(super) default: i32,
    /// To set it without a value is to set it to 0; else it is `EINVAL`.
    pub(super) may_be_empty: bool,
}

const ANY: Range = Range::Numbers(i32::MIN, i32::MAX);
const SWITCH: Range = Range::Numbers(0, 1);

const fn kept(range: Range, default: i32) -> Option<Kept> {
    Some(Kept { range, default, may_be_empty: false })
}

const fn may_be_empty(range: Range, default: i32) -> Option<Kept> {
    Some(Kept { range, default, may_be_empty: true })
}

impl Kept {
    /// What is kept of a number.
    pub(super) fn take(self, number: i32) -> Result<i32, Errno> {
        match self.range {
            Range::Flag => Ok((number != 0).into()),
            Range::Numbers(least, most) if (least..=most).contains(&number) => Ok(number),
            Range::Numbers(..) => Err(Errno::EINVAL),
        }
    }
}

/// Linux's numbers that libc does not name for every target.
pub(super) const SO_PREFER_BUSY_POLL: i32 = 69;
pub(super) const SO_BUSY_POLL_BUDGET: i32 = 70;
pub(super) const SO_TXREHASH: i32 = 74;
pub(super) const SO_RCVMARK: i32 = 75;
pub(super) const SO_RCVPRIORITY: i32 = 82;

/// Those of `SOL_SOCKET`. No packet comes by a CPU's queue (`SO_INCOMING_CPU`), and none of a connection's packets take another way when
/// they are lost (`SO_TXREHASH`).
pub(super) fn of_socket(name: i32) -> Option<Kept> {
    match name {
        libc::SO_PRIORITY | libc::SO_MARK => kept(ANY, 0),
        libc::SO_INCOMING_CPU => kept(ANY, -1),
        libc::SO_BUSY_POLL => kept(Range::Numbers(0, i32::MAX), 0),
        SO_BUSY_POLL_BUDGET => kept(Range::Numbers(0, u16::MAX as i32), 0),
        SO_TXREHASH => kept(Range::Numbers(-1, 1), 1),
        libc::SO_DEBUG
        | libc::SO_BROADCAST
        | libc::SO_DONTROUTE
        | libc::SO_NO_CHECK
        | libc::SO_RXQ_OVFL
        | libc::SO_WIFI_STATUS
        | libc::SO_NOFCS
        | libc::SO_SELECT_ERR_QUEUE
        | SO_PREFER_BUSY_POLL
        | SO_RCVMARK
        | SO_RCVPRIORITY => kept(Range::Flag, 0),
        _ => None,
    }
}

/// Linux's numbers that libc does not name.
const IP_RECVOPTS: i32 = 6;
const IP_RETOPTS: i32 = 7;
const IP_PASSSEC: i32 = 18;
const IP_CHECKSUM: i32 = 23;
const IP_RECVERR_RFC4884: i32 = 26;
pub(super) const IP_MULTICAST_ALL: i32 = 49;

/// Those of `IPPROTO_IP`: what datagrams would be told of beside their bytes, and multicast.
pub(super) fn of_ip(name: i32) -> Option<Kept> {
    match name {
        IP_RECVOPTS
        | IP_RETOPTS
        | IP_PASSSEC
        | IP_CHECKSUM
        | libc::IP_PKTINFO
        | libc::IP_RECVTTL
        | libc::IP_RECVTOS
        | libc::IP_RECVORIGDSTADDR => may_be_empty(Range::Flag, 0),
        IP_RECVERR_RFC4884 => may_be_empty(SWITCH, 0),
        libc::IP_MULTICAST_LOOP => kept(Range::Flag, 1),
        IP_MULTICAST_ALL => kept(SWITCH, 1),
        _ => None,
    }
}

const IPV6_2292PKTINFO: i32 = 2;
const IPV6_2292HOPOPTS: i32 = 3;
const IPV6_2292DSTOPTS: i32 = 4;
const IPV6_2292RTHDR: i32 = 5;
const IPV6_2292HOPLIMIT: i32 = 8;
const IPV6_FLOWINFO: i32 = 11;
const IPV6_MULTICAST_ALL: i32 = 29;
const IPV6_ROUTER_ALERT_ISOLATE: i32 = 30;
const IPV6_RECVERR_RFC4884: i32 = 31;
const IPV6_FLOWINFO_SEND: i32 = 33;
const IPV6_AUTOFLOWLABEL: i32 = 70;
const IPV6_RECVFRAGSIZE: i32 = 77;

/// Those of `IPPROTO_IPV6`.
pub(super) fn of_ipv6(name: i32) -> Option<Kept> {
    match name {
        IPV6_2292PKTINFO
        | IPV6_2292HOPOPTS
        | IPV6_2292DSTOPTS
        | IPV6_2292RTHDR
        | IPV6_2292HOPLIMIT
        | IPV6_FLOWINFO
        | IPV6_ROUTER_ALERT_ISOLATE
        | IPV6_FLOWINFO_SEND
        | libc::IPV6_RECVPKTINFO
        | libc::IPV6_RECVHOPLIMIT
        | libc::IPV6_RECVRTHDR
        | libc::IPV6_RECVHOPOPTS
        | libc::IPV6_RECVDSTOPTS
        | libc::IPV6_RECVTCLASS
        | libc::IPV6_RECVPATHMTU
        | libc::IPV6_RECVORIGDSTADDR => kept(Range::Flag, 0),
        libc::IPV6_DONTFRAG | IPV6_RECVFRAGSIZE => may_be_empty(Range::Flag, 0),
        IPV6_AUTOFLOWLABEL => may_be_empty(Range::Flag, 1),
        IPV6_RECVERR_RFC4884 => kept(SWITCH, 0),
        libc::IPV6_MULTICAST_LOOP => kept(SWITCH, 1),
        IPV6_MULTICAST_ALL => kept(Range::Flag, 1),
        _ => None,
    }
}
