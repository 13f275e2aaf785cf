//! Random values for the options of sockets, by name so that a scenario can be written down.

use crate::Random;
use core::time::Duration;
use proto::{CongestionControl, PathMtuDiscovery, SocketOption, SocketOptions};
use serde::{Deserialize, Serialize};

/// An option by the name of its field in [`SocketOptions`], and its value as a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opt(pub String, pub u64);

/// An option that can be drawn.
struct Row {
    name: &'static str,
    /// Values that are likely to matter; others are of any magnitude up to `most`.
    usual: &'static [u64],
    most: u64,
    begin: fn(&mut SocketOptions, u64),
    /// `None`: it can only be set when the socket is made.
    live: Option<fn(u64) -> SocketOption>,
}

const fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// The value of `path_mtu_discovery` by its number.
pub(crate) fn mtu_discovery(value: u64) -> PathMtuDiscovery {
    [
        PathMtuDiscovery::Dont,
        PathMtuDiscovery::Want,
        PathMtuDiscovery::Do,
        PathMtuDiscovery::Probe,
        PathMtuDiscovery::Interface,
        PathMtuDiscovery::Omit,
    ][value as usize % 6]
}

fn congestion(value: u64) -> CongestionControl {
    CongestionControl::ALL[value as usize % CongestionControl::ALL.len()]
}

const SWITCH: &[u64] = &[0, 1];

macro_rules! row {
    ($name:ident, $usual:expr, $most:expr, |$value:ident| $begin:expr, $live:expr) => {
        Row {
            name: stringify!($name),
            usual: $usual,
            most: $most,
            begin: |options, $value| options.$name = $begin,
            live: $live,
        }
    };
}

const ROWS: &[Row] = &[
    row!(nodelay, SWITCH, 1, |v| v != 0, Some(|v| SocketOption::NoDelay(v != 0))),
    row!(cork, SWITCH, 1, |v| v != 0, Some(|v| SocketOption::Cork(v != 0))),
    row!(quickack, SWITCH, 1, |v| Some(v != 0), Some(|v| SocketOption::QuickAck(v != 0))),
    row!(delack_max, &[2, 40, 200], 200, |v| Some(ms(v)), Some(|v| SocketOption::DelackMax(Some(ms(v))))),
    row!(linger, &[0, 1, 1000], 100_000, |v| Some(ms(v)), Some(|v| SocketOption::Linger(Some(ms(v))))),
    row!(linger2, &[0, 1, 1000], 120_000, |v| Some(ms(v)), Some(|v| SocketOption::Linger2(Some(ms(v))))),
    row!(
        max_segment,
        &[88, 100, 536, 1400, 9000],
        32_767,
        |v| Some(v as u16),
        Some(|v| { SocketOption::MaxSegment(Some(v as u16)) })
    ),
    row!(
        syn_retries,
        &[1, 2, 127],
        127,
        |v| Some(v as u8),
        Some(|v| SocketOption::SynRetries(Some(v as u8)))
    ),
    row!(rto_min, &[2, 5, 200], 200, |v| Some(ms(v)), Some(|v| SocketOption::RtoMin(Some(ms(v))))),
    row!(rto_max, &[1000, 120_000], 120_000, |v| Some(ms(v)), Some(|v| SocketOption::RtoMax(Some(ms(v))))),
    row!(thin_linear_timeouts, SWITCH, 1, |v| v != 0, Some(|v| SocketOption::ThinLinearTimeouts(v != 0))),
    row!(keepalive, SWITCH, 1, |v| v != 0, Some(|v| SocketOption::KeepAlive(v != 0))),
    row!(
        keepalive_time,
        &[1000, 60_000],
        600_000,
        |v| Some(ms(v)),
        Some(|v| { SocketOption::KeepAliveTime(Some(ms(v))) })
    ),
    row!(
        keepalive_intvl,
        &[1000, 60_000],
        600_000,
        |v| Some(ms(v)),
        Some(|v| { SocketOption::KeepAliveInterval(Some(ms(v))) })
    ),
    row!(
        keepalive_probes,
        &[1, 9, 127],
        127,
        |v| Some(v as u8),
        Some(|v| { SocketOption::KeepAliveProbes(Some(v as u8)) })
    ),
    row!(
        user_timeout,
        &[0, 1, 1000, 60_000],
        600_000,
        |v| Some(ms(v)),
        Some(|v| { SocketOption::UserTimeout(Some(ms(v))) })
    ),
    row!(
        notsent_lowat,
        &[0, 1, 4096, 131_072],
        1 << 20,
        |v| Some(v as u32),
        Some(|v| { SocketOption::NotsentLowat(Some(v as u32)) })
    ),
    row!(
        send_buffer,
        &[0, 1, 2304, 4096, 8192, 65_536],
        1 << 22,
        |v| Some(v as u32),
        Some(|v| { SocketOption::SendBuffer(v as u32) })
    ),
    row!(
        recv_buffer,
        &[0, 1, 1152, 2304, 4096, 8192, 65_536],
        1 << 22,
        |v| Some(v as u32),
        Some(|v| { SocketOption::RecvBuffer(v as u32) })
    ),
    row!(
        recv_lowat,
        &[0, 1, 4096, 100_000],
        1 << 20,
        |v| Some(v as u32),
        Some(|v| { SocketOption::RecvLowat(v as u32) })
    ),
    row!(
        window_clamp,
        &[0, 1152, 4096, 65_535],
        1 << 22,
        |v| Some(v as u32),
        Some(|v| { SocketOption::WindowClamp(v as u32) })
    ),
    row!(dscp, &[0, 46, 63], 63, |v| v as u8, Some(|v| SocketOption::Dscp(v as u8))),
    row!(
        hop_limit,
        &[1, 64, 255],
        255,
        |v| Some(v.max(1) as u8),
        Some(|v| { SocketOption::HopLimit(Some(v.max(1) as u8)) })
    ),
    row!(
        path_mtu_discovery,
        &[0, 1, 2, 3, 4, 5],
        5,
        |v| Some(mtu_discovery(v)),
        Some(|v| { SocketOption::PathMtuDiscovery(mtu_discovery(v)) })
    ),
    row!(
        congestion,
        &[0, 1, 2, 3, 4],
        4,
        |v| Some(congestion(v)),
        Some(|v| { SocketOption::Congestion(congestion(v)) })
    ),
    row!(
        max_pacing_rate,
        &[1_000, 10_000, 1_000_000],
        1 << 30,
        |v| Some(v.max(500) as u32),
        Some(|v| { SocketOption::MaxPacingRate(Some(v.max(500) as u32)) })
    ),
    row!(receive_times, SWITCH, 1, |v| v != 0, Some(|v| SocketOption::ReceiveTimes(v != 0))),
    row!(save_syn, SWITCH, 1, |v| v != 0, Some(|v| SocketOption::SaveSyn(v != 0))),
    row!(tx_delay, &[0, 1, 100, 3000], 20_000, |v| ms(v), Some(|v| SocketOption::TxDelay(ms(v)))),
    row!(min_hops, &[0, 1, 64], 64, |v| v as u8, Some(|v| SocketOption::MinHops(v as u8))),
];

fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

/// How many there are.
pub(super) const COUNT: usize = ROWS.len();

impl Opt {
    /// The option at this place of the table, with a random value.
    pub(super) fn draw(random: &mut Random, at: usize) -> Opt {
        let row = &ROWS[at % ROWS.len()];
        let value = if random.chance(70) { random.pick(row.usual) } else { random.magnitude(row.most) };
        Opt(row.name.to_owned(), value)
    }

    /// Sets it on a socket that is not open yet.
    pub fn begin(&self, options: &mut SocketOptions) {
        if let Some(row) = row(&self.0) {
            (row.begin)(options, self.1);
        }
    }

    /// The option for a connection that is open.
    pub fn live(&self) -> Option<SocketOption> {
        Some((row(&self.0)?.live?)(self.1))
    }
}

/// All of `options` together.
pub(crate) fn socket(options: &[Opt]) -> SocketOptions {
    let mut socket = SocketOptions::default();
    options.iter().for_each(|option| option.begin(&mut socket));
    socket
}
