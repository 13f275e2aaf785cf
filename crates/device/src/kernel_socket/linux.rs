//! Linux: include/uapi/linux/tcp.h.
use super::TcpOption;
use libc::c_int;

pub(super) const INFO: c_int = libc::TCP_INFO;
pub(super) const SAVED_SYN: Option<c_int> = Some(libc::TCP_SAVED_SYN);
pub(super) const FAST_OPEN_KEY: Option<c_int> = Some(libc::TCP_FASTOPEN_KEY);
pub(super) const MAX_PACING_RATE: Option<c_int> = Some(libc::SO_MAX_PACING_RATE);

pub(super) fn number(option: TcpOption) -> Option<c_int> {
    Some(match option {
        TcpOption::MaxSegment => libc::TCP_MAXSEG,
        TcpOption::SynCount => libc::TCP_SYNCNT,
        TcpOption::Linger2 => libc::TCP_LINGER2,
        TcpOption::DeferAccept => libc::TCP_DEFER_ACCEPT,
        TcpOption::WindowClamp => libc::TCP_WINDOW_CLAMP,
        TcpOption::FastOpen => libc::TCP_FASTOPEN,
        TcpOption::NotsentLowat => libc::TCP_NOTSENT_LOWAT,
        TcpOption::SaveSyn => libc::TCP_SAVE_SYN,
        TcpOption::FastOpenNoCookie => libc::TCP_FASTOPEN_NO_COOKIE,
    })
}
