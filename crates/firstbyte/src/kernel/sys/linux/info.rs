//! `TCP_INFO` of the kernel (struct tcp_info, include/uapi/linux/tcp.h).
use crate::StreamInfo;
use ::device::kernel_socket::tcp_info;
use proto::State;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::net::TcpStream;

/// `TCPI_OPT_SYN_DATA` of `tcpi_options`.
const SYN_DATA: u8 = 32;
/// `TFO_COOKIE_UNAVAILABLE` and `TFO_SYN_RETRANSMITTED` of `tcpi_fastopen_client_fail`.
const COOKIE_UNAVAILABLE: u8 = 1;
const SYN_RETRANSMITTED: u8 = 3;
/// `tcpi_min_rtt` and `tcpi_snd_ssthresh` before there is one.
const NONE: u32 = u32::MAX;

/// The kernel's words on Fast Open.
pub(super) struct Reported {
    /// The data of the SYN was acknowledged (client), or accepted (server).
    pub(super) syn_data_acked: bool,
    pub(super) syn_was_retransmitted: bool,
    /// No cookie was known: the SYN asked for one.
    pub(super) had_no_cookie: bool,
}

impl Reported {
    pub(super) fn read(socket: impl AsFd) -> io::Result<Reported> {
        let info = Fields(tcp_info(socket)?);
        let fail = info.byte(7) >> 1 & 3;
        Ok(Reported {
            syn_data_acked: info.byte(5) & SYN_DATA != 0,
            syn_was_retransmitted: fail == SYN_RETRANSMITTED,
            had_no_cookie: fail == COOKIE_UNAVAILABLE,
        })
    }
}

pub(in crate::kernel) fn state(socket: impl AsFd) -> io::Result<State> {
    Fields(tcp_info(socket)?).state()
}

/// True if the peer has acknowledged everything that was written, and the FIN after a shutdown.
pub(in crate::kernel) fn is_delivered(socket: impl AsFd) -> io::Result<bool> {
    let info = Fields(tcp_info(socket)?);
    let fin_is_out = matches!(info.state()?, State::FinWait1 | State::LastAck | State::Closing);
    Ok(!fin_is_out && info.word(24) == 0 && info.word(144) == 0)
}

/// Reads what both backends report alike.
pub(in crate::kernel) fn stream_info(stream: &TcpStream) -> io::Result<StreamInfo> {
    let info = Fields(tcp_info(stream)?);
    let mss = info.word(16);
    Ok(StreamInfo {
        state: info.state()?,
        local: stream.local_addr()?,
        peer: stream.peer_addr()?,
        srtt: Some(info.micros(68)).filter(|rtt| !rtt.is_zero()),
        rttvar: info.micros(72),
        min_rtt: Some(info.word(148)).filter(|rtt| *rtt != NONE).map(|_| info.micros(148)),
        rto: info.micros(8),
        snd_mss: mss,
        cwnd: info.word(80).saturating_mul(mss),
        snd_wnd: info.word(228),
        notsent_bytes: info.word(144),
        unacked_segs: info.word(24),
        total_retrans_segs: info.word(100),
        bytes_sent: info.long(200),
        bytes_retrans: info.long(208),
        bytes_acked: info.long(120),
        delivery_rate: Some(info.long(160)).filter(|rate| *rate > 0),
    })
}

/// The bytes of `struct tcp_info`. An older kernel has fewer; the others are 0.
struct Fields(Vec<u8>);

impl Fields {
    fn byte(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_ne_bytes)
    }

    fn long(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    }

    fn micros(&self, at: usize) -> Duration {
        Duration::from_micros(self.word(at).into())
    }

    /// The state by the kernel's number (include/net/tcp_states.h).
    fn state(&self) -> io::Result<State> {
        Ok(match self.byte(0) {
            1 => State::Established,
            2 => State::SynSent,
            3 | 12 => State::SynReceived,
            4 => State::FinWait1,
            5 => State::FinWait2,
            6 => State::TimeWait,
            7 => State::Closed,
            8 => State::CloseWait,
            9 => State::LastAck,
            11 => State::Closing,
            other => {
                return Err(io::Error::other(format!("the kernel reports the unknown state {other}")));
            }
        })
    }
}
