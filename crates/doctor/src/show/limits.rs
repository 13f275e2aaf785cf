//! What limits a connection now, and the rate that each limit would allow by itself.
use super::rate;
use crate::sample::{Info, Socket, state};
use crate::window::Window;
use serde_json::{Value, json};
use std::fmt;

/// What limits a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The application has written no more.
    Application,
    /// The peer takes no more.
    ReceiveWindow,
    /// The send buffer holds no more.
    SendBuffer,
    /// The congestion window.
    Cwnd,
    /// Losses are being repaired.
    Loss,
    /// Segments wait for their turn to be let out.
    Pacing,
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            By::Application => "application",
            By::ReceiveWindow => "receive window",
            By::SendBuffer => "send buffer",
            By::Cwnd => "congestion window",
            By::Loss => "loss",
            By::Pacing => "pacing",
        })
    }
}

/// The limits of one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionLimits {
    /// What limits it now.
    pub by: By,
    /// Why this is so, with the numbers.
    pub because: String,
    /// Bytes a second that each would allow by itself, where that is known.
    pub rates: Vec<(By, f64)>,
    /// Bytes a second that were acknowledged: between two samples, or the last that the kernel measured.
    pub now: f64,
}

/// The limits of a connection that can send; `None` for others.
pub fn of(socket: &Socket, window: &Window<'_>) -> Option<ConnectionLimits> {
    let info = socket.info.as_ref()?;
    if ![state::ESTABLISHED, state::CLOSE_WAIT, state::FIN_WAIT_1].contains(&socket.state) {
        return None;
    }
    let (by, because) = judge(socket, info);
    let acked =
        |before: &Socket| before.info.map(|before| info.bytes_acked.saturating_sub(before.bytes_acked));
    let measured = window.earlier(socket).and_then(acked).map(|bytes| bytes as f64 / window.seconds());
    let now = measured.unwrap_or(info.delivery_rate as f64);
    Some(ConnectionLimits { by, because, rates: rates(socket, info, measured), now })
}

fn judge(socket: &Socket, info: &Info) -> (By, String) {
    let in_flight = u64::from(info.unacked) * u64::from(info.snd_mss);
    let waiting = u64::from(info.notsent_bytes);
    let (window, mss) = (u64::from(info.snd_wnd), u64::from(info.snd_mss));
    if waiting == 0 && !is_full(socket) {
        return (By::Application, format!("all that was written was sent, {in_flight} bytes are in flight"));
    }
    if socket.probing || window < in_flight + mss {
        return (By::ReceiveWindow, format!("{waiting} bytes wait, {in_flight} in flight, snd_wnd {window}"));
    }
    if info.ca_state >= CA_RECOVERY {
        return (By::Loss, format!("{} segments are held to be lost, cwnd {}", info.lost, info.snd_cwnd));
    }
    // What is lost or has come is not in flight any more.
    let left = info.sacked.saturating_add(info.lost);
    let pipe = info.unacked.saturating_add(info.retrans).saturating_sub(left);
    if pipe.saturating_add(1) >= info.snd_cwnd {
        return (
            By::Cwnd,
            format!("{waiting} bytes wait, {pipe} segments in flight, cwnd {}", info.snd_cwnd),
        );
    }
    // A buffer whose larger part waits to be sent is large enough: it is full because the application is quick.
    if is_full(socket) && waiting <= in_flight {
        let memory = socket.memory.unwrap_or_default();
        return (
            By::SendBuffer,
            format!(
                "{} of {} bytes of the send buffer are taken, {pipe} of {} segments in flight",
                memory.wmem_queued, memory.sndbuf, info.snd_cwnd
            ),
        );
    }
    (By::Pacing, format!("{waiting} bytes wait, {pipe} of {} segments in flight", info.snd_cwnd))
}

/// TCP_CA_Recovery; TCP_CA_Loss is above it.
const CA_RECOVERY: u8 = 3;

/// tcp_info's own sndbuf_limited stays 0 in most of these cases.
fn is_full(socket: &Socket) -> bool {
    socket.memory.is_some_and(|memory| {
        memory.sndbuf > 0 && u64::from(memory.wmem_queued) * 10 >= u64::from(memory.sndbuf) * 9
    })
}

fn rates(socket: &Socket, info: &Info, measured: Option<f64>) -> Vec<(By, f64)> {
    let mss = f64::from(info.snd_mss);
    let mut rates = Vec::new();
    // What the application gave, where nothing else held it back.
    if let Some(measured) = measured.filter(|_| info.app_limited) {
        rates.push((By::Application, measured));
    }
    let mut window = |by, bytes: f64| rates.extend(by_window(info, bytes).map(|rate| (by, rate)));
    window(By::ReceiveWindow, f64::from(info.snd_wnd));
    if let Some(memory) = socket.memory.filter(|memory| memory.wmem_queued > 0 && socket.send_queue > 0) {
        // Memory for a byte of data, as the queue shows it.
        let share = f64::from(socket.send_queue) / f64::from(memory.wmem_queued);
        window(By::SendBuffer, f64::from(memory.sndbuf) * share.min(1.0));
    }
    window(By::Cwnd, f64::from(info.snd_cwnd) * mss);
    if info.bytes_retrans > 0 {
        // Mathis et al. 1997, of Reno: mss / rtt × 1.22 / √p.
        let lost = info.bytes_retrans as f64 / info.bytes_sent.max(1) as f64;
        window(By::Loss, mss * 1.22 / lost.sqrt());
    }
    if info.pacing_rate > 0 && info.pacing_rate < u64::MAX {
        rates.push((By::Pacing, info.pacing_rate as f64));
    }
    rates
}

/// Bytes a second of a window that is used once each round trip.
pub(super) fn by_window(info: &Info, bytes: f64) -> Option<f64> {
    (info.rtt > 0).then(|| bytes * 1e6 / f64::from(info.rtt))
}

impl ConnectionLimits {
    /// Rates in bits a second.
    pub(super) fn json(&self) -> Value {
        let rates: serde_json::Map<String, Value> =
            self.rates.iter().map(|(by, rate)| (by.to_string(), ((rate * 8.0) as u64).into())).collect();
        json!({ "by": self.by.to_string(), "because": self.because, "rates_bps": rates, "now_bps": (self.now * 8.0) as u64 })
    }
}

impl fmt::Display for ConnectionLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limited by: {} ({}); now {}", self.by, self.because, rate(self.now))?;
        for (at, (by, allowed)) in self.rates.iter().enumerate() {
            let before = if at == 0 { "; would allow: " } else { ", " };
            write!(f, "{before}{by} {}", rate(*allowed))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Memory, Sample};

    fn limits(change: impl FnOnce(&mut Socket, &mut Info)) -> By {
        let mut socket = Socket { state: state::ESTABLISHED, send_queue: 100_000, ..Socket::default() };
        socket.memory = Some(Memory { sndbuf: 1_000_000, wmem_queued: 200_000, ..Memory::default() });
        let mut info = Info {
            snd_mss: 1000,
            snd_cwnd: 10,
            unacked: 5,
            snd_wnd: 64_000,
            notsent_bytes: 95_000,
            rtt: 20_000,
            ..Info::default()
        };
        change(&mut socket, &mut info);
        socket.info = Some(info);
        let sample = Sample::default();
        of(&socket, &Window::since_boot(&sample)).unwrap().by
    }

    #[test]
    fn each_limit_is_seen_by_its_own_figures() {
        assert_eq!(limits(|_, info| info.notsent_bytes = 0), By::Application);
        assert_eq!(limits(|_, info| info.snd_wnd = 5500), By::ReceiveWindow);
        assert_eq!(limits(|_, info| info.unacked = 10), By::Cwnd);
        assert_eq!(limits(|_, info| (info.ca_state, info.lost) = (3, 2)), By::Loss);
        assert_eq!(limits(|_, _| {}), By::Pacing);
        let full = |socket: &mut Socket, _: &mut Info| {
            socket.memory = Some(Memory { sndbuf: 1000, wmem_queued: 950, ..Memory::default() });
        };
        assert_eq!(limits(full), By::Pacing, "nearly all of it waits");
        let in_flight = |socket: &mut Socket, info: &mut Info| {
            full(socket, info);
            info.notsent_bytes = 0;
        };
        assert_eq!(limits(in_flight), By::SendBuffer);
    }

    #[test]
    fn a_window_is_used_once_each_round_trip() {
        let info = Info { rtt: 20_000, ..Info::default() };
        assert_eq!(by_window(&info, 10_000.0), Some(500_000.0));
        assert_eq!(by_window(&Info::default(), 10_000.0), None);
    }
}
