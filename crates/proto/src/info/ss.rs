//! Connections in the format of `ss -i`.

use super::ConnectionInfo;
use crate::{CongestionControl, Instant};
use core::fmt;
use core::time::Duration;

impl ConnectionInfo {
    /// Returns one line as `ss -tin` prints it at `now`: the same names in the same order, windows
    /// in segments, times in milliseconds, rates in bits per second. Unknown values and zeros are
    /// omitted, as there.
    /// ```
    /// # use firstbyte_proto::{ConnectionInfo, Instant};
    /// fn watch(info: &ConnectionInfo, now: Instant) {
    ///     println!("{}", info.ss(now)); // ts sack cubic wscale:7,7 rto:201 rtt:0.9/0.45 mss:1448 … cwnd:10 … minrtt:0.9 snd_wnd:65536
    /// }
    /// ```
    pub fn ss(&self, now: Instant) -> impl fmt::Display {
        Line { info: self, now }
    }
}

struct Line<'a> {
    info: &'a ConnectionInfo,
    now: Instant,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.agreed(f)?;
        self.path(f)?;
        self.windows(f)?;
        self.volumes(f)?;
        self.rates(f)?;
        self.repairs(f)?;
        self.receiver(f)
    }
}

impl Line<'_> {
    fn agreed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.info;
        let fast_opened = info.syn_data_acked > 0 || info.early_data.len > 0;
        let words =
            [(info.timestamps, "ts"), (info.sack, "sack"), (info.ecn, "ecn"), (fast_opened, "fastopen")];
        for (_, word) in words.iter().filter(|(agreed, _)| *agreed) {
            write!(f, "{word} ")?;
        }
        f.write_str(match info.congestion {
            CongestionControl::Reno => "reno",
            CongestionControl::Cubic => "cubic",
            CongestionControl::Vegas => "vegas",
            CongestionControl::Tahoe => "tahoe",
            CongestionControl::Bbr => "bbr",
        })?;
        if info.window_scaling {
            write!(f, " wscale:{},{}", info.snd_wscale, info.rcv_wscale)?;
        }
        Ok(())
    }

    fn path(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (info, tcp) = (self.info, &self.info.tcp_info);
        write!(f, " rto:{}", Ms(info.rto))?;
        some(f, "backoff", u64::from(tcp.backoff))?;
        if let Some(srtt) = info.srtt {
            write!(f, " rtt:{}/{}", Ms(srtt), Ms(info.rttvar))?;
        }
        write!(f, " ato:{} mss:{} pmtu:{}", Ms(tcp.ato), info.snd_mss, tcp.pmtu)?;
        some(f, "rcvmss", u64::from(tcp.rcv_mss))?;
        write!(f, " advmss:{}", tcp.advmss)
    }

    fn windows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.info;
        let mss = u32::from(info.snd_mss).max(1);
        write!(f, " cwnd:{}", info.cwnd / mss)?;
        if info.ssthresh < u32::MAX {
            write!(f, " ssthresh:{}", info.ssthresh / mss)?;
        }
        Ok(())
    }

    fn volumes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (info, tcp) = (self.info, &self.info.tcp_info);
        for (name, count) in [
            ("bytes_sent", tcp.bytes_sent),
            ("bytes_retrans", tcp.bytes_retrans),
            ("bytes_acked", info.bytes_acked),
            ("bytes_received", info.bytes_received),
            ("segs_out", tcp.segs_out.into()),
            ("segs_in", tcp.segs_in.into()),
            ("data_segs_out", tcp.data_segs_out.into()),
            ("data_segs_in", tcp.data_segs_in.into()),
        ] {
            some(f, name, count)?;
        }
        Ok(())
    }

    fn rates(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (info, tcp, now) = (self.info, &self.info.tcp_info, self.now);
        if let Some(srtt) = info.srtt {
            let rate = u128::from(info.cwnd) * 8_000_000_000 / srtt.as_nanos().max(1);
            write!(f, " send {rate}bps")?;
        }
        for (name, at) in
            [("lastsnd", tcp.last_data_sent), ("lastrcv", tcp.last_data_recv), ("lastack", tcp.last_ack_recv)]
        {
            if let Some(at) = at {
                write!(f, " {name}:{}", now.since(at).as_millis())?;
            }
        }
        if let Some(rate) = info.pacing_rate {
            write!(f, " pacing_rate {}bps", rate.saturating_mul(8))?;
        }
        if let Some(rate) = info.delivery_rate {
            write!(f, " delivery_rate {}bps", rate.saturating_mul(8))?;
        }
        if info.delivery_rate_app_limited {
            f.write_str(" app_limited")?;
        }
        for (name, time) in [
            ("busy", info.limits.busy_time(now)),
            ("rwnd_limited", info.limits.rwnd_limited(now)),
            ("sndbuf_limited", info.limits.sndbuf_limited(now)),
        ] {
            if !time.is_zero() {
                write!(f, " {name}:{}ms", time.as_millis())?;
            }
        }
        Ok(())
    }

    fn repairs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (info, tcp) = (self.info, &self.info.tcp_info);
        let segments = |bytes: u32| bytes.div_ceil(u32::from(info.snd_mss).max(1));
        some(f, "unacked", segments(info.flight_size).into())?;
        if tcp.retrans > 0 || tcp.total_retrans > 0 {
            write!(f, " retrans:{}/{}", segments(tcp.retrans), tcp.total_retrans)?;
        }
        for (name, count) in [
            ("lost", segments(tcp.lost)),
            ("sacked", segments(tcp.sacked)),
            ("dsack_dups", tcp.dsack_dups),
            ("reord_seen", tcp.reord_seen),
        ] {
            some(f, name, count.into())?;
        }
        Ok(())
    }

    fn receiver(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (info, tcp) = (self.info, &self.info.tcp_info);
        if let Some(rtt) = tcp.rcv_rtt {
            write!(f, " rcv_rtt:{}", Ms(rtt))?;
        }
        some(f, "rcv_space", tcp.rcv_space.unwrap_or(0).into())?;
        some(f, "rcv_ssthresh", tcp.rcv_ssthresh.min(info.recv_buffer).into())?;
        some(f, "notsent", tcp.notsent_bytes.into())?;
        if let Some(rtt) = info.min_rtt {
            write!(f, " minrtt:{}", Ms(rtt))?;
        }
        some(f, "rcv_ooopack", tcp.rcv_ooopack.into())?;
        write!(f, " snd_wnd:{} rcv_wnd:{}", info.snd_wnd, info.rcv_wnd)
    }
}

fn some(f: &mut fmt::Formatter<'_>, name: &str, value: u64) -> fmt::Result {
    if value == 0 { Ok(()) } else { write!(f, " {name}:{value}") }
}

/// Milliseconds, to the microsecond and without zeros behind.
struct Ms(Duration);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        match micros % 1000 {
            0 => write!(f, "{}", micros / 1000),
            part => write!(f, "{}.{}", micros / 1000, format!("{part:03}").trim_end_matches('0')),
        }
    }
}
