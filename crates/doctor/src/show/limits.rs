//! The limit of a connection now, and the rate that each limit would allow alone.
use super::rate;
use crate::sample::{Address, Info, Sample, Socket, state};
use crate::window::Window;
use hashbrown::HashMap;
use serde_json::{Value, json};
use std::fmt;

/// The limit of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The application has no more data to send.
    Application,
    /// The peer's receive window.
    ReceiveWindow,
    /// The send buffer.
    SendBuffer,
    /// The congestion window.
    Cwnd,
    /// Loss recovery.
    Loss,
    /// Pacing delays the next segment.
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

/// All limits. If two were seen about equally often, the first one is reported.
const ALL: [By; 6] = [By::ReceiveWindow, By::Loss, By::Cwnd, By::Pacing, By::SendBuffer, By::Application];

/// A series of samples of the same connections. A single sample may fall between two packets, when
/// a queue is empty or a window full for a microsecond. Two samples of a steady transfer may
/// therefore show different limits.
#[derive(Clone, Debug)]
pub struct Looks {
    /// Number of samples that showed each limit, in the order of `ALL`, by connection.
    seen: HashMap<(Address, u16, Address, u16), [u16; ALL.len()]>,
    /// Most samples that count. Beyond it, earlier samples count half.
    most: u16,
}

impl Default for Looks {
    fn default() -> Looks {
        Looks::of_the_last(100)
    }
}

impl Looks {
    /// Creates an empty series. After `most` samples, earlier ones count half.
    pub fn of_the_last(most: u16) -> Looks {
        Looks { seen: HashMap::new(), most }
    }

    /// Adds a sample of every connection.
    pub fn take(&mut self, sample: &Sample) {
        let mut seen = HashMap::with_capacity(sample.sockets.len().min(self.seen.len()));
        for socket in sample.sockets.iter().filter(|socket| sends(socket)) {
            let Some(info) = &socket.info else { continue };
            let mut votes = self.seen.get(&socket.key()).copied().unwrap_or_default();
            let by = judge(socket, info).0;
            if votes.iter().sum::<u16>() >= self.most {
                votes.iter_mut().for_each(|count| *count /= 2);
            }
            for (count, _) in votes.iter_mut().zip(ALL).filter(|(_, other)| *other == by) {
                *count += 1;
            }
            seen.insert(socket.key(), votes);
        }
        // Drops connections that are gone.
        self.seen = seen;
    }

    fn of(&self, socket: &Socket) -> Vec<(By, u16)> {
        let votes = self.seen.get(&socket.key()).copied().unwrap_or_default();
        ALL.into_iter().zip(votes).collect()
    }
}

/// The limits of one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionLimits {
    /// The limit that most samples show.
    pub by: By,
    /// The reason, with the numbers.
    pub because: String,
    /// Bytes per second that each limit would allow alone, if known. Empty for a connection that
    /// delivers nothing.
    pub rates: Vec<(By, f64)>,
    /// Bytes per second acknowledged between two samples. `None` if there is only one sample.
    pub now: Option<f64>,
}

/// Returns the limits of a connection that can send, or `None` for others.
pub fn of(socket: &Socket, window: &Window<'_>, looks: &Looks) -> Option<ConnectionLimits> {
    let info = socket.info.as_ref().filter(|_| sends(socket))?;
    let (by, because) = over(socket, info, &looks.of(socket));
    let acked =
        |before: &Socket| before.info.map(|before| info.bytes_acked.saturating_sub(before.bytes_acked));
    let now = window.earlier(socket).and_then(acked).map(|bytes| bytes as f64 / window.seconds());
    // Without deliveries a rate would describe an earlier time.
    let rates = if now == Some(0.0) { Vec::new() } else { rates(socket, info, now) };
    Some(ConnectionLimits { by, because, rates, now })
}

fn sends(socket: &Socket) -> bool {
    [state::ESTABLISHED, state::CLOSE_WAIT, state::FIN_WAIT_1].contains(&socket.state)
}

/// Returns the limit that most samples show, and the reason.
fn over(socket: &Socket, info: &Info, looks: &[(By, u16)]) -> (By, String) {
    let (last, because) = judge(socket, info);
    let all: u16 = looks.iter().map(|(_, count)| count).sum();
    if all < 2 {
        return (last, because);
    }
    // Pacing above one window per round trip only spreads the window, which remains the limit.
    let paced = info.pacing_rate as f64;
    let is_spread = |by: By| {
        let window = by_window(info, f64::from(info.snd_cwnd) * f64::from(info.snd_mss));
        by == By::Pacing && window.is_some_and(|window| paced > window)
    };
    let mut counts: Vec<(By, u16)> = ALL.into_iter().map(|by| (by, 0)).collect();
    for (by, count) in looks {
        let by = if is_spread(*by) { By::Cwnd } else { *by };
        counts.iter_mut().filter(|(other, _)| *other == by).for_each(|(_, sum)| *sum += count);
    }
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
    // Counts within a tenth of the samples are equal by chance.
    let (by, count) = counts
        .iter()
        .copied()
        .find(|(_, count)| *count + all / 10 >= most && *count > 0)
        .unwrap_or((last, 0));
    counts.retain(|(other, count)| *other != by && *count > 0);
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut words = format!("in {count} of {all} samples");
    for (other, count) in counts {
        words += &format!(", {other} in {count}");
    }
    if by == last {
        words += &format!("; {because}");
    }
    (by, words)
}

fn judge(socket: &Socket, info: &Info) -> (By, String) {
    let in_flight = u64::from(info.unacked) * u64::from(info.snd_mss);
    let waiting = u64::from(info.notsent_bytes);
    let (window, mss) = (u64::from(info.snd_wnd), u64::from(info.snd_mss));
    if waiting == 0 && !is_full(socket) {
        return (By::Application, format!("everything written was sent, {in_flight} bytes are in flight"));
    }
    if socket.probing || window < in_flight + mss {
        return (By::ReceiveWindow, format!("{waiting} bytes wait, {in_flight} in flight, snd_wnd {window}"));
    }
    if info.ca_state >= CA_RECOVERY {
        return (By::Loss, format!("{} segments are marked lost, cwnd {}", info.lost, info.snd_cwnd));
    }
    // Lost and acknowledged segments are no longer in flight.
    let left = info.sacked.saturating_add(info.lost);
    let pipe = info.unacked.saturating_add(info.retrans).saturating_sub(left);
    if pipe.saturating_add(1) >= info.snd_cwnd {
        return (
            By::Cwnd,
            format!("{waiting} bytes wait, {pipe} segments in flight, cwnd {}", info.snd_cwnd),
        );
    }
    // A buffer that mostly holds unsent data is large enough: it is full because the application
    // writes faster than the network sends.
    if is_full(socket) && waiting <= in_flight {
        let memory = socket.memory.unwrap_or_default();
        return (
            By::SendBuffer,
            format!(
                "{} of {} bytes of the send buffer are used, {pipe} of {} segments in flight",
                memory.wmem_queued, memory.sndbuf, info.snd_cwnd
            ),
        );
    }
    (By::Pacing, format!("{waiting} bytes wait, {pipe} of {} segments in flight", info.snd_cwnd))
}

/// TCP_CA_Recovery. Only TCP_CA_Loss is above it.
const CA_RECOVERY: u8 = 3;

/// Returns whether the send buffer is full. tcp_info's own sndbuf_limited stays 0 in most of these
/// cases.
fn is_full(socket: &Socket) -> bool {
    socket.memory.is_some_and(|memory| {
        memory.sndbuf > 0 && u64::from(memory.wmem_queued) * 10 >= u64::from(memory.sndbuf) * 9
    })
}

fn rates(socket: &Socket, info: &Info, measured: Option<f64>) -> Vec<(By, f64)> {
    let mss = f64::from(info.snd_mss);
    let mut rates = Vec::new();
    // The application's rate, if nothing else limited it.
    if let Some(measured) = measured.filter(|measured| info.app_limited && *measured > 0.0) {
        rates.push((By::Application, measured));
    }
    let mut window = |by, bytes: f64| rates.extend(by_window(info, bytes).map(|rate| (by, rate)));
    window(By::ReceiveWindow, f64::from(info.snd_wnd));
    if let Some(memory) = socket.memory.filter(|memory| memory.wmem_queued > 0 && socket.send_queue > 0) {
        // Memory per byte of data, as the queue shows it.
        let share = f64::from(socket.send_queue) / f64::from(memory.wmem_queued);
        window(By::SendBuffer, f64::from(memory.sndbuf) * share.min(1.0));
    }
    window(By::Cwnd, f64::from(info.snd_cwnd) * mss);
    if info.bytes_retrans > 0 {
        // Model of Reno by Mathis et al. 1997: mss / rtt × 1.22 / √p.
        let lost = info.bytes_retrans as f64 / info.bytes_sent.max(1) as f64;
        window(By::Loss, mss * 1.22 / lost.sqrt());
    }
    if info.pacing_rate > 0 && info.pacing_rate < u64::MAX {
        rates.push((By::Pacing, info.pacing_rate as f64));
    }
    // Each limit allowed at least the measured rate: a window that is small now was larger before.
    // A model that predicts less than the measured rate does not apply.
    let measured = measured.unwrap_or(0.0);
    rates.retain(|(by, rate)| *by != By::Loss || *rate >= measured);
    rates.iter_mut().for_each(|(_, rate)| *rate = rate.max(measured));
    rates
}

/// Returns the rate of a window that is used once per round trip, in bytes per second.
pub(super) fn by_window(info: &Info, bytes: f64) -> Option<f64> {
    (info.rtt > 0).then(|| bytes * 1e6 / f64::from(info.rtt))
}

impl ConnectionLimits {
    /// Returns the limits as JSON. Rates are in bits per second.
    pub(super) fn json(&self) -> Value {
        let rates: serde_json::Map<String, Value> =
            self.rates.iter().map(|(by, rate)| (by.to_string(), ((rate * 8.0) as u64).into())).collect();
        json!({ "by": self.by.to_string(), "because": self.because, "rates_bps": rates, "now_bps": self.now.map(|now| (now * 8.0) as u64) })
    }
}

impl fmt::Display for ConnectionLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limited by: {} ({})", self.by, self.because)?;
        match self.now {
            Some(now) if now > 0.0 => write!(f, "; now {}", rate(now))?,
            Some(_) => f.write_str("; no data delivered")?,
            None => {}
        }
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
        of(&socket, &Window::since_boot(&sample), &Looks::default()).unwrap().by
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
        assert_eq!(limits(full), By::Pacing, "almost everything waits");
        let in_flight = |socket: &mut Socket, info: &mut Info| {
            full(socket, info);
            info.notsent_bytes = 0;
        };
        assert_eq!(limits(in_flight), By::SendBuffer);
    }

    /// Returns a socket of a steady transfer whose samples show different limits by chance.
    fn steady(n: u64) -> Socket {
        let mut info = Info {
            snd_mss: 1000,
            snd_cwnd: 10,
            unacked: 10,
            snd_wnd: 64_000,
            notsent_bytes: 95_000,
            rtt: 20_000,
            pacing_rate: 600_000,
            delivery_rate: 29_500_000,
            bytes_acked: n * 50_000,
            ..Info::default()
        };
        match n % 5 {
            0 => (info.unacked, info.notsent_bytes) = (3, 0),
            1 => info.unacked = 6,
            _ => {}
        }
        let memory = Memory { sndbuf: 1_000_000, wmem_queued: 200_000, ..Memory::default() };
        Socket {
            state: state::ESTABLISHED,
            send_queue: 100_000,
            info: Some(info),
            memory: Some(memory),
            ..Socket::default()
        }
    }

    #[test]
    fn a_steady_transfer_has_one_limit_and_no_limit_is_below_its_rate() {
        for begin in 0..7 {
            let mut looks = Looks::default();
            let samples: Vec<Sample> = (begin..begin + 20)
                .map(|n| Sample { uptime: n as f64 / 10.0, sockets: vec![steady(n)], ..Sample::default() })
                .collect();
            samples.iter().for_each(|sample| looks.take(sample));
            let (first, last) = (&samples[0], &samples[19]);
            let limits = of(&last.sockets[0], &Window::between(first, last), &looks).unwrap();
            assert_eq!(limits.by, By::Cwnd, "{limits}");
            let now = limits.now.unwrap();
            assert!(now > 499_999.0 && limits.rates.iter().all(|(_, rate)| *rate >= now), "{limits}");
        }
    }

    /// The rate that the kernel measured last may be minutes old.
    #[test]
    fn no_rate_is_shown_of_a_connection_that_delivers_nothing() {
        let at = |uptime| Sample { uptime, sockets: vec![steady(1)], ..Sample::default() };
        let (first, last) = (at(1.0), at(2.0));
        let shown =
            |window: Window<'_>| of(&last.sockets[0], &window, &Looks::default()).unwrap().to_string();
        assert!(shown(Window::between(&first, &last)).ends_with("; no data delivered"));
        assert!(!shown(Window::since_boot(&last)).contains("now"));
    }

    #[test]
    fn a_window_is_used_once_each_round_trip() {
        let info = Info { rtt: 20_000, ..Info::default() };
        assert_eq!(by_window(&info, 10_000.0), Some(500_000.0));
        assert_eq!(by_window(&Info::default(), 10_000.0), None);
    }
}
