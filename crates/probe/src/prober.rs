//! Sends one probe over a device, and records the answer.
use crate::plan::{Probe, SYNS_MAX};
use crate::visit::{Agreed, Answer, Visit};
use bytes::Bytes;
use device::Device;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use smallvec::smallvec;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use wire::{
    Addr, Cookie, FastOpenOption, Flags, Icmp, IcmpError, IpHeader, QuotedTcp, RxBatch, SeqNum, TcpHeader,
    TcpOptions, Timestamps, TxPacket, protocol,
};

/// Time until an unanswered SYN is retransmitted, as on Linux (RFC 6298 §2).
const SYN_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit for the reply: after a lost SYN-ACK, the first retransmission takes 3 s (RFC 6298
/// §5.7).
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// A pause this long in the reply means that the server's first window is full. Linux retransmits
/// after 200 ms at the earliest.
const QUIET: Duration = Duration::from_millis(120);
/// Shorter pauses do not end the first window: a busy machine causes them.
const QUIET_MIN: Duration = Duration::from_millis(5);
/// Pause between two probes: only a few packets per second.
const PAUSE: Duration = Duration::from_millis(100);
const WINDOW: u16 = 65_000;
/// MSS of a link for packets of 1500 bytes, for IPv4.
const MSS: u16 = 1460;
const MSS_IPV6: u16 = 1440;
/// Kind of the Fast Open option (RFC 7413 §4.1.1).
const FAST_OPEN: u8 = 34;

/// Addresses of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The prober's address, used by no other host.
    pub local: IpAddr,
    /// The server.
    pub server: SocketAddr,
}

/// Sends probes and records the answers.
#[derive(Debug)]
pub struct Prober<D> {
    device: D,
    ends: Ends,
    request: Vec<u8>,
    port: u16,
    isn: u32,
    cookie: Option<Cookie>,
    packets: usize,
    timeout: Duration,
}

impl<D: Device> Prober<D> {
    /// Creates a prober on this device, with this application request. `seed` chooses ports and
    /// sequence numbers.
    pub fn new(device: D, ends: Ends, request: &[u8], seed: u64) -> Prober<D> {
        let port = 32_768 + (seed % 28_000) as u16;
        Prober {
            device,
            ends,
            request: request.to_vec(),
            port,
            isn: (seed >> 16) as u32,
            cookie: None,
            packets: 0,
            timeout: SYN_TIMEOUT,
        }
    }

    /// Sets the time until an unanswered SYN is retransmitted. A time below the path's round trip
    /// makes every verdict wrong.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Prober<D> {
        self.timeout = timeout;
        self
    }

    /// Returns the number of packets sent.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Runs every probe of the plan that is possible, and calls `each` after each one.
    ///
    /// # Errors
    /// The device failed.
    pub fn all(&mut self, mut each: impl FnMut(&Visit)) -> io::Result<Vec<Visit>> {
        let mut visits: Vec<Visit> = Vec::new();
        for probe in Probe::ALL {
            if probe.needs_cookie() && self.cookie.is_none() {
                continue;
            }
            let visit = self.visit(probe)?;
            each(&visit);
            let is_reached = matches!(visit.answer, Answer::SynAck);
            visits.push(visit);
            // If not even a plain SYN is answered, other probes show nothing.
            if probe == Probe::Plain && !is_reached {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Ok(visits)
    }

    /// Sends SYNs with data and increasing hop limits, to find the last router that forwards them.
    /// Ends at an answer other than an expired hop limit, or after two hops without an answer: a
    /// single router may not send ICMP.
    ///
    /// # Errors
    /// The device failed.
    pub fn hops(&mut self, most: u8) -> io::Result<Vec<(u8, Answer)>> {
        let mut hops = Vec::new();
        for limit in 1..=most {
            let mut connection = self.begin(Probe::Cookie);
            connection.hop_limit = limit;
            let begun = Instant::now();
            self.send_syn(&connection, false)?;
            let answer = self.await_answer(&connection, begun + self.timeout / 2)?;
            let answer = answer.map_or(Answer::Nothing, |arrival| arrival.answer);
            hops.push((limit, answer));
            if answer == Answer::SynAck {
                self.reset(&connection, SeqNum(connection.isn.wrapping_add(1)))?;
            }
            let goes_on = match hops[..] {
                [.., (_, Answer::Nothing), (_, Answer::Nothing)] => false,
                _ => matches!(answer, Answer::Expired(_) | Answer::Nothing),
            };
            if !goes_on {
                break;
            }
        }
        Ok(hops)
    }

    /// Runs one probe.
    ///
    /// # Errors
    /// The device failed.
    pub fn visit(&mut self, probe: Probe) -> io::Result<Visit> {
        let mut connection = self.begin(probe);
        let begun = Instant::now();
        let mut visit = Visit::new(probe, connection.data.len());
        let mut arrival = None;
        while arrival.is_none() && visit.syns < SYNS_MAX {
            // Like on Linux, the last attempt is a plain SYN, which no middlebox should reject.
            let plain = visit.syns + 1 == SYNS_MAX;
            self.send_syn(&connection, plain)?;
            visit.syns += 1;
            visit.fell_back = plain && probe != Probe::Plain;
            arrival = self.await_answer(&connection, Instant::now() + self.timeout)?;
        }
        let Some(arrival) = arrival else { return Ok(visit) };
        visit.answered_ms = Some(millis(begun.elapsed()));
        visit.answer = arrival.answer;
        let Some((tcp, hop_limit)) = arrival.syn_ack else { return Ok(visit) };
        let first = SeqNum(connection.isn.wrapping_add(1));
        visit.acknowledged = (tcp.ack.since(first) as usize).min(connection.data.len());
        visit.agreed = Some(agreed(&tcp, hop_limit));
        let cookie = tcp.options.fast_open.and_then(|option| option.cookie);
        visit.cookie = cookie.map(|cookie| cookie.to_string());
        visit.invalid_cookie = invalid_cookie(&tcp.options);
        self.cookie = cookie.or(self.cookie);
        connection.timestamps = tcp.options.timestamps.map(|timestamps| timestamps.tsval);
        let next = if probe.is_handshake_only() {
            tcp.ack
        } else {
            self.converse(&connection, &tcp, arrival.text, begun, &mut visit)?
        };
        self.reset(&connection, next)?;
        Ok(visit)
    }

    /// Completes the handshake, sends the data that the SYN-ACK did not acknowledge, and counts the
    /// reply until the server's first window is full. Returns the sequence number for the reset.
    fn converse(
        &mut self,
        connection: &Connection,
        syn_ack: &TcpHeader,
        early: usize,
        begun: Instant,
        visit: &mut Visit,
    ) -> io::Result<SeqNum> {
        let rest =
            self.request.get(visit.acknowledged.min(self.request.len())..).unwrap_or_default().to_vec();
        // A server may wait for this ACK before it replies, and Linux does not retransmit a reply
        // before it. Data on the SYN-ACK is not acknowledged, like the rest of the reply.
        let after = SeqNum(syn_ack.seq.0.wrapping_add(1));
        let push = if rest.is_empty() { Flags::empty() } else { Flags::PSH };
        self.send(connection, Flags::ACK | push, syn_ack.ack, after, &rest)?;
        let mut next = SeqNum(syn_ack.ack.0.wrapping_add(rest.len() as u32));
        let mut seen = BTreeSet::new();
        if early > 0 {
            visit.first_byte_ms = visit.answered_ms;
            (visit.segments, visit.reply) = (1, early);
        }
        let mut deadline = Instant::now() + REPLY_TIMEOUT;
        let quiet = quiet(visit);
        while let Some(arrival) = self.await_segment(connection, deadline)? {
            let Some(tcp) = arrival.segment else { continue };
            next = next.latest(tcp.ack);
            let is_reset = tcp.flags.contains(Flags::RST);
            // A reset may carry text that no application reads (RFC 9293 §3.10.7.4).
            if arrival.text > 0 && !is_reset && seen.insert(tcp.seq.0) {
                visit.first_byte_ms.get_or_insert(millis(begun.elapsed()));
                visit.segments += 1;
                visit.reply += arrival.text;
                deadline = Instant::now() + quiet;
            }
            // After a loss, Linux may retransmit the end before the data in front of it (RFC 8985
            // §7.3).
            let is_whole = tcp.seq.since(after) as usize + arrival.text == visit.reply;
            visit.reset |= is_reset && visit.reply == 0;
            if is_reset || tcp.flags.contains(Flags::FIN) && is_whole {
                break;
            }
        }
        Ok(next)
    }

    fn begin(&mut self, probe: Probe) -> Connection {
        self.port = if self.port >= 60_998 { 32_768 } else { self.port + 1 };
        self.isn = self.isn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let mut data = if probe.has_data() { self.request.clone() } else { Vec::new() };
        if probe == Probe::Big {
            // A server that closes does not read beyond the request. Options take up to 40 bytes of
            // the segment.
            data.resize(usize::from(self.mss()) - 40, b'\n');
        }
        let option = match probe {
            Probe::Request => Some(FastOpenOption { kind: wire::FastOpenKind::Standard, cookie: None }),
            probe if probe.needs_cookie() => self
                .cookie
                .map(|cookie| FastOpenOption { kind: wire::FastOpenKind::Standard, cookie: Some(cookie) }),
            _ => None,
        };
        let flags = match probe {
            Probe::Ecn => Flags::ECE | Flags::CWR,
            Probe::AccurateEcn => Flags::AE | Flags::ECE | Flags::CWR,
            _ => Flags::empty(),
        };
        Connection { port: self.port, isn: self.isn, option, data, flags, hop_limit: 64, timestamps: None }
    }

    fn mss(&self) -> u16 {
        if self.ends.server.is_ipv4() { MSS } else { MSS_IPV6 }
    }

    fn send_syn(&mut self, connection: &Connection, plain: bool) -> io::Result<()> {
        let mut header = TcpHeader {
            seq: SeqNum(connection.isn),
            flags: Flags::SYN | if plain { Flags::empty() } else { connection.flags },
            window: WINDOW,
            ..TcpHeader::new(connection.port, self.ends.server.port())
        };
        header.options = TcpOptions {
            mss: Some(self.mss()),
            sack_permitted: true,
            window_scale: Some(7),
            timestamps: Some(Timestamps { tsval: connection.isn, tsecr: 0 }),
            fast_open: connection.option.filter(|_| !plain),
            ..TcpOptions::default()
        };
        let data = if plain { Vec::new() } else { connection.data.clone() };
        self.emit(&header, connection.hop_limit, data)
    }

    fn send(
        &mut self,
        connection: &Connection,
        flags: Flags,
        seq: SeqNum,
        ack: SeqNum,
        data: &[u8],
    ) -> io::Result<()> {
        let mut header = TcpHeader {
            seq,
            ack,
            flags,
            window: WINDOW,
            ..TcpHeader::new(connection.port, self.ends.server.port())
        };
        header.options.timestamps =
            connection.timestamps.map(|tsecr| Timestamps { tsval: connection.isn.wrapping_add(1), tsecr });
        self.emit(&header, 64, data.to_vec())
    }

    fn reset(&mut self, connection: &Connection, seq: SeqNum) -> io::Result<()> {
        self.send(connection, Flags::RST, seq, SeqNum(0), &[])
    }

    fn emit(&mut self, tcp: &TcpHeader, hop_limit: u8, data: Vec<u8>) -> io::Result<()> {
        let (local, server) = (Addr::from(self.ends.local), Addr::from(self.ends.server.ip()));
        let ip = IpHeader { hop_limit, ..IpHeader::new(local, server, protocol::TCP) };
        let payload = if data.is_empty() { smallvec![] } else { smallvec![Bytes::from(data)] };
        let mut batch = VecDeque::from([TxPacket::tcp(&ip, tcp, payload, 0, false)]);
        self.packets += 1;
        let deadline = Instant::now() + SYN_TIMEOUT;
        while !batch.is_empty() {
            self.device.send(&mut batch)?;
            if Instant::now() > deadline {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the device accepts no packets"));
            }
        }
        Ok(())
    }

    fn await_answer(&mut self, connection: &Connection, deadline: Instant) -> io::Result<Option<Arrival>> {
        while let Some(arrival) = self.await_segment(connection, deadline)? {
            if arrival.answer != Answer::Nothing {
                return Ok(Some(arrival));
            }
        }
        Ok(None)
    }

    /// Waits for the next packet of this connection.
    fn await_segment(&mut self, connection: &Connection, deadline: Instant) -> io::Result<Option<Arrival>> {
        let mut batch = RxBatch::with_capacity(1);
        loop {
            batch.clear();
            if self.device.recv(&mut batch, 1)? == 0 {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(None);
                }
                self.wait(left)?;
                continue;
            }
            let arrival = batch.data(0).and_then(|packet| self.read(connection, packet));
            if arrival.is_some() {
                return Ok(arrival);
            }
        }
    }

    fn wait(&self, left: Duration) -> io::Result<()> {
        let Some(descriptor) = self.device.as_fd() else {
            std::thread::sleep(left.min(Duration::from_millis(1)));
            return Ok(());
        };
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&timeout)) {
            Err(error) if error != rustix::io::Errno::INTR => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn read(&self, connection: &Connection, packet: &[u8]) -> Option<Arrival> {
        let (ip, payload) = IpHeader::parse(packet).ok()?;
        let payload = packet.get(payload)?;
        if ip.dst != Addr::from(self.ends.local) {
            return None;
        }
        if ip.protocol != protocol::TCP {
            return self.error(connection, &ip, payload);
        }
        let (tcp, text) = TcpHeader::parse(payload, None).ok()?;
        let server = self.ends.server;
        if ip.src != Addr::from(server.ip())
            || (tcp.src_port, tcp.dst_port) != (server.port(), connection.port)
        {
            return None;
        }
        let text = text.len();
        let ours = tcp.ack.within(SeqNum(connection.isn), 1 << 16);
        if tcp.flags.contains(Flags::SYN | Flags::ACK) && ours {
            let syn_ack = Some((tcp.clone(), ip.hop_limit));
            return Some(Arrival { answer: Answer::SynAck, syn_ack, segment: Some(tcp), text });
        }
        let answer = if tcp.flags.contains(Flags::RST) && ours { Answer::Reset } else { Answer::Nothing };
        Some(Arrival { answer, syn_ack: None, segment: Some(tcp), text })
    }

    /// Parses an ICMP error about this connection.
    fn error(&self, connection: &Connection, ip: &IpHeader, payload: &[u8]) -> Option<Arrival> {
        let Ok(Icmp::Error { error, quote }) = Icmp::parse(ip.src, ip.dst, payload) else { return None };
        let quoted = QuotedTcp::parse(quote)?;
        if quoted.src_port != connection.port {
            return None;
        }
        let router = ip.src.to_ip();
        let answer = match error {
            IcmpError::TimeExceeded => Answer::Expired(router),
            IcmpError::PacketTooBig { mtu } => Answer::TooBig(router, mtu),
            _ => Answer::Unreachable(router),
        };
        Some(Arrival { answer, syn_ack: None, segment: None, text: 0 })
    }
}

/// State of a connection.
#[derive(Debug)]
struct Connection {
    port: u16,
    isn: u32,
    option: Option<FastOpenOption>,
    data: Vec<u8>,
    flags: Flags,
    hop_limit: u8,
    /// Last timestamp of the server, if timestamps were negotiated.
    timestamps: Option<u32>,
}

/// A packet of a connection.
#[derive(Debug)]
struct Arrival {
    answer: Answer,
    syn_ack: Option<(TcpHeader, u8)>,
    segment: Option<TcpHeader>,
    /// Length of its data, bytes.
    text: usize,
}

/// Returns the length of an invalid cookie.
fn invalid_cookie(options: &TcpOptions) -> Option<usize> {
    let option = options.unknown.iter().find(|(kind, _)| *kind == FAST_OPEN)?;
    Some(option.1.len())
}

/// Returns the pause that ends the first window: two round trips after the last segment of a full
/// window, Linux sends a probe with the next segment (RFC 8985 §7.2), which is not of the first
/// window.
fn quiet(visit: &Visit) -> Duration {
    match visit.answered_ms {
        Some(round_trip) if visit.syns == 1 => {
            Duration::from_secs_f64(round_trip * 1.5 / 1e3).clamp(QUIET_MIN, QUIET)
        }
        _ => QUIET,
    }
}

fn agreed(tcp: &TcpHeader, hop_limit: u8) -> Agreed {
    let ace = tcp.flags & (Flags::AE | Flags::CWR | Flags::ECE);
    Agreed {
        mss: tcp.options.mss,
        window_scale: tcp.options.window_scale,
        sack: tcp.options.sack_permitted,
        timestamps: tcp.options.timestamps.is_some(),
        // RFC 9768 table 2: ECE alone is RFC 3168's answer; 0b101 is that of an old nonce; all
        // others with AE or CWR are Accurate ECN.
        ecn: ace == Flags::ECE,
        accurate_ecn: ace == Flags::CWR
            || ace == (Flags::CWR | Flags::ECE)
            || ace == Flags::AE
            || ace == (Flags::AE | Flags::CWR),
        hop_limit: Some(hop_limit),
    }
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::BorrowedFd;
    use wire::{Capabilities, RxChecksum};

    /// Routers in a row. Some do not report an expired hop limit; behind the last one, packets are
    /// lost.
    struct Routers(&'static [bool], Vec<Vec<u8>>);

    impl Device for Routers {
        fn capabilities(&self) -> Capabilities {
            Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false }
        }

        fn recv(&mut self, batch: &mut RxBatch, _: usize) -> io::Result<usize> {
            let Some(packet) = self.1.pop() else { return Ok(0) };
            batch.copy(&packet, RxChecksum::Verify, 0);
            Ok(1)
        }

        fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize> {
            let sent = batch.len();
            for packet in batch.drain(..) {
                let quote: Vec<u8> =
                    packet.header().iter().chain(packet.slices().flatten()).copied().collect();
                let (ip, _) = IpHeader::parse(&quote).unwrap();
                if self.0.get(usize::from(ip.hop_limit) - 1).copied().unwrap_or(false) {
                    let router = IpHeader::new(router(ip.hop_limit).into(), ip.src, protocol::ICMP);
                    let message = Icmp::Error { error: IcmpError::TimeExceeded, quote: &quote };
                    let mut answer = vec![0; router.emit_len() + message.emit_len()];
                    router.emit(message.emit_len(), &mut answer);
                    message.emit(router.src, router.dst, &mut answer[router.emit_len()..]);
                    self.1.push(answer);
                }
            }
            Ok(sent)
        }

        fn as_fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    fn router(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    #[test]
    fn a_router_that_says_nothing_does_not_end_the_search_for_the_last_that_sees() {
        let ends = Ends { local: [10, 1, 0, 1].into(), server: ([10, 2, 0, 1], 80).into() };
        let prober = Prober::new(Routers(&[true, false, true], Vec::new()), ends, b"x", 7);
        let hops = prober.timeout(Duration::from_millis(20)).hops(8).unwrap();
        let seen = |number| (number, Answer::Expired(router(number)));
        let nothing = |number| (number, Answer::Nothing);
        assert_eq!(hops, [seen(1), nothing(2), seen(3), nothing(4), nothing(5)]);
    }
}
