//! FreeBSD: sys/netinet/tcp.h, and tcp(4).
use super::TcpOption;
use libc::c_int;

pub(super) const INFO: c_int = libc::TCP_INFO;
pub(super) const SAVED_SYN: Option<c_int> = None;
/// The keys are settings of the system (`net.inet.tcp.fastopen.setkey`).
pub(super) const FAST_OPEN_KEY: Option<c_int> = None;
pub(super) const MAX_PACING_RATE: Option<c_int> = None;

pub(super) fn number(option: TcpOption) -> Option<c_int> {
    match option {
        TcpOption::MaxSegment => Some(libc::TCP_MAXSEG),
        TcpOption::FastOpen => Some(libc::TCP_FASTOPEN),
        _ => None,
    }
}
