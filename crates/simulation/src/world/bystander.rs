//! What a bystander who sees both ends of the wire may expect of TCP, packet by packet.
//!
//! Ends that recover from anything make their own faults good, too: these rules find what costs
//! only time. Some hold of a plain end alone, with default settings and options on a machine that
//! does not sleep: there is a setting against each of them.

use super::app::App;
use super::{CLIENT, Failure, SERVER, World};
use crate::scenario::{Forgery, Scenario, Step};
use core::time::Duration;
use proto::{Instant, ReceiveAccounting, SeqNum, State};
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::{Flags, IpHeader, TcpHeader};

/// RFC 1122 §4.2.3.2 has an acknowledgement wait for less than half a second; a timer may be late.
const ANSWER: Duration = Duration::from_secs(1);
/// The greatest time-out is 120 s: one that is nearly as long need not double.
const LONG: Duration = Duration::from_secs(55);
/// The first repetition may be a loss probe, the second the time-out that was due: the third waits
/// longer.
const REPETITIONS: u32 = 3;

/// What the packets of one end of a connection have shown.
#[derive(Clone, Copy, Default)]
struct Shown {
    isn: Option<SeqNum>,
    /// Of its SYN.
    window_scale: Option<u8>,
    syn_window: Option<u32>,
    /// The farthest it has let the other end send.
    edge: Option<SeqNum>,
    /// It has sent something behind its SYN.
    synchronized: bool,
    /// Other connections have had the same ports: what is late of them says nothing of this one.
    has_forerunners: bool,
    /// Text has come, and it has sent nothing since.
    owes_since: Option<Instant>,
    /// What it has sent last, without hearing anything since.
    repeated: Option<Repeated>,
}

#[derive(Clone, Copy)]
struct Repeated {
    seq: SeqNum,
    at: Instant,
    gap: Duration,
    times: u32,
}

/// What all packets have shown.
#[derive(Default)]
pub(super) struct Bystander {
    /// Of the connections by the client's port.
    shown: BTreeMap<u16, [Shown; 2]>,
    is_plain: [bool; 2],
    any_reset: bool,
    /// A SYN has reached this side while it had a connection in TIME-WAIT.
    syn_at_time_wait: [bool; 2],
    /// When each side's entries in TIME-WAIT came, the oldest first.
    time_wait: [Vec<Instant>; 2],
}

impl Bystander {
    pub(super) fn new(scenario: &Scenario) -> Bystander {
        let is_plain = [CLIENT, SERVER].map(|side| is_plain(scenario, side));
        Bystander { is_plain, ..Bystander::default() }
    }
}

/// Nothing is off its default that may change when this end sends what.
fn is_plain(scenario: &Scenario, side: usize) -> bool {
    let host = &scenario.hosts[side];
    let sets = |step: &Step| matches!(step, Step::Set(_) | Step::Move);
    let calm = |plan: &crate::scenario::Connection| {
        plan.ends[side].options.is_empty() && !plan.ends[side].steps.iter().any(sets)
    };
    host.settings.is_empty()
        && host.route.is_empty()
        && host.refusals == 0
        && scenario.changes.is_empty()
        && scenario.sleeps.is_empty()
        && (side == CLIENT || scenario.listener.options.is_empty())
        && scenario.connections.iter().all(calm)
}

impl World<'_> {
    /// Nobody forges packets, so that each end is to blame for its own.
    fn is_unattacked(&self) -> bool {
        self.scenario.attacks.is_empty()
    }

    /// A host hands a packet to the wire.
    pub(super) fn watch_leaving(&mut self, from: usize, packet: &[u8]) -> Result<(), Failure> {
        if !self.is_unattacked() {
            return Ok(());
        }
        let Some((port, tcp, text)) = parse(from, packet) else { return Ok(()) };
        self.bystander.any_reset |= tcp.flags.contains(Flags::RST);
        let ends = self.bystander.shown.entry(port).or_default();
        if tcp.flags.contains(Flags::SYN) && ends[from].isn != Some(tcp.seq) {
            // What the other end has offered so far was for other numbers, but for its SYN's window
            // (RFC 7413 §4.2.2: a server may send before the handshake is over). What a SYN brought
            // may be retransmitted whatever the window.
            let offered = ends[1 - from].syn_window.filter(|_| from == SERVER).unwrap_or(0);
            ends[1 - from].edge = (text.max(offered) > 0).then(|| tcp.seq + 1 + text.max(offered));
            ends[from] = Shown {
                isn: Some(tcp.seq),
                window_scale: tcp.options.window_scale,
                syn_window: Some(tcp.window.into()),
                has_forerunners: ends[from].isn.is_some(),
                edge: ends[from].edge.filter(|_| from == SERVER),
                ..Shown::default()
            };
        }
        if tcp.flags.contains(Flags::SYN) && text > 0 && from == CLIENT {
            // A retransmitted one may bring more, if the first was refused, or written to since.
            let brought = tcp.seq + 1 + text;
            ends[SERVER].edge = Some(ends[SERVER].edge.map_or(brought, |before| before.latest(brought)));
        }
        let scales = ends.iter().all(|end| end.window_scale.is_some()) && !tcp.flags.contains(Flags::SYN);
        let scale = ends[from].window_scale.filter(|_| scales).unwrap_or(0).min(14);
        if tcp.flags.contains(Flags::ACK) && !tcp.flags.contains(Flags::RST) {
            let edge = tcp.ack + (u32::from(tcp.window) << scale);
            ends[from].edge = Some(ends[from].edge.map_or(edge, |before| before.latest(edge)));
        }
        ends[from].synchronized |= !tcp.flags.contains(Flags::SYN);
        ends[from].owes_since = None;
        let end = tcp.seq + text + u32::from(tcp.flags.contains(Flags::SYN));
        if text > 0
            && ends.iter().all(|end| !end.has_forerunners)
            && let Some(edge) = ends[1 - from].edge
            && end.after(edge)
        {
            let seen = format!("{} bytes: {}", end.since(edge), wire::Summary(packet));
            return Err(Failure::new("text beyond every window that was offered", seen));
        }
        let counts = text > 0 || tcp.flags.contains(Flags::FIN);
        match counts && !tcp.flags.contains(Flags::SYN) {
            true => self.watch_back_off(from, port, tcp.seq, packet),
            false => Ok(()),
        }
    }

    /// RFC 6298 §5.5: as long as nothing is heard, the same is retransmitted less and less often.
    fn watch_back_off(&mut self, from: usize, port: u16, seq: SeqNum, packet: &[u8]) -> Result<(), Failure> {
        let (now, is_plain) = (self.now, self.bystander.is_plain[from]);
        let Some(ends) = self.bystander.shown.get_mut(&port) else { return Ok(()) };
        let last = ends[from].repeated.filter(|last| last.seq == seq);
        let (gap, times) = last.map_or((Duration::ZERO, 0), |last| (now.since(last.at), last.times + 1));
        ends[from].repeated = Some(Repeated { seq, at: now, gap, times });
        match last {
            Some(last) if is_plain && times > REPETITIONS && gap < last.gap.mul_f64(1.5).min(LONG) => {
                let seen = format!("after {:?}, then {gap:?}: {}", last.gap, wire::Summary(packet));
                Err(Failure::new("repeats without back-off", seen))
            }
            _ => Ok(()),
        }
    }

    /// A packet reaches a host, perhaps damaged.
    pub(super) fn watch_arriving(&mut self, to: usize, packet: &[u8]) {
        if !self.is_unattacked() {
            return;
        }
        let Some((port, tcp, text)) = parse(1 - to, packet) else {
            // An ICMP error says something to each of its connections.
            self.bystander.shown.values_mut().for_each(|ends| ends[to].repeated = None);
            return;
        };
        // RFC 6191 §2: one with a newer timestamp than the connection has remembered may begin
        // another, be it a copy that the wire had kept.
        let at_time_wait = !self.bystander.time_wait[to].is_empty();
        self.bystander.syn_at_time_wait[to] |= tcp.flags.contains(Flags::SYN) && at_time_wait;
        let Some(ends) = self.bystander.shown.get_mut(&port) else { return };
        ends[to].repeated = None;
        let sound = wire_checksum_holds(packet);
        if sound && text > 0 && ends[to].synchronized && !tcp.flags.contains(Flags::SYN) {
            ends[to].owes_since.get_or_insert(self.now);
        }
    }

    /// After each moment in which something happened, when both stacks have been drained.
    pub(super) fn watch_moment(&mut self) -> Result<(), Failure> {
        if !self.is_unattacked() {
            return Ok(());
        }
        for side in [CLIENT, SERVER] {
            if self.bystander.is_plain[side] {
                self.watch_answers(side)?;
                self.watch_time_wait(side)?;
            }
        }
        Ok(())
    }

    /// RFC 9293 §3.10.7.4, RFC 1122 §4.2.3.2: text is acknowledged, whatever becomes of it, and
    /// soon.
    fn watch_answers(&mut self, side: usize) -> Result<(), Failure> {
        for (port, ends) in &self.bystander.shown {
            let Some(since) = ends[side].owes_since.filter(|since| self.now.since(*since) > ANSWER) else {
                continue;
            };
            let app = self.by_port.get(port).and_then(|which| self.apps[*which][side].as_ref());
            let Some(info) = app.filter(|app| !app.is_over()).and_then(|app| self.stacks[side].info(app.id))
            else {
                continue;
            };
            // What came before there was room for the connection was dropped, and comes again.
            let had_room = info.established_at.is_none_or(|at| at <= since);
            if had_room && matches!(info.state, State::Established | State::FinWait1 | State::FinWait2) {
                let seen = format!("side {side}, port {port}, {:?}: {:?}", info.state, self.now.since(since));
                return Err(Failure::new("text is not acknowledged", seen));
            }
        }
        Ok(())
    }

    /// RFC 9293 §3.6.1: TIME-WAIT lasts 2 MSL, unless a reset ends it, or its ports are used again.
    fn watch_time_wait(&mut self, side: usize) -> Result<(), Failure> {
        let (count, least) =
            (self.stacks[side].table_sizes().time_wait, self.stacks[side].config().time_wait);
        let entries = &mut self.bystander.time_wait[side];
        while entries.len() < count {
            entries.push(self.now);
        }
        while entries.len() > count {
            let age = self.now.since(entries.remove(0));
            let excused = self.bystander.any_reset || self.bystander.syn_at_time_wait[side];
            if age < least && !excused && self.mistakable.is_empty() {
                return Err(Failure::new("TIME-WAIT ends early", format_args!("side {side}: after {age:?}")));
            }
        }
        Ok(())
    }

    /// RFC 9293 §3.8.6.2.2: whoever has room again says so. Linux does not of an end that is not to
    /// be read any more, although it can be (`tcp_cleanup_rbuf`: `!(sk->sk_shutdown &
    /// RCV_SHUTDOWN)`): the peer's next probe is answered with the window.
    pub(super) fn watch_windows(&self) -> Result<(), Failure> {
        for side in [CLIENT, SERVER].into_iter().filter(|side| self.bystander.is_plain[*side]) {
            for (id, which) in &self.by_id[side] {
                let Some(info) = self.stacks[side].info(*id) else { continue };
                let app = self.apps[*which][side].as_ref();
                if self.stacks[side].config().receive_accounting == ReceiveAccounting::Packets
                    && app.is_some_and(|app| app.reads_no_more)
                {
                    continue;
                }
                let hears = matches!(info.state, State::Established | State::FinWait1 | State::FinWait2);
                if hears && info.recv_queue == 0 && info.rcv_wnd == 0 {
                    let seen = format!("{side}/{which}: {:?}", info.state);
                    return Err(Failure::new("an empty buffer, and the window stays closed", seen));
                }
            }
        }
        Ok(())
    }

    /// RFC 6093 §2.1: the mark is before a byte that the writer called urgent. (The pointer reaches
    /// 65,535 bytes ahead.)
    pub(super) fn watch_urgent(&self, side: usize, which: usize, app: &App) -> Result<(), Failure> {
        let Some(before) = self.stacks[side].urgent_mark(app.id) else { return Ok(()) };
        let Some(writer) = &self.apps[which][1 - side] else { return Ok(()) };
        let plan = &self.scenario.connections[which];
        let is_plain = self.bystander.is_plain[side] && self.is_strict(which);
        let behind = app.read + before as u64 + 1;
        if !is_plain || plan.says(1 - side) > u64::from(u16::MAX) || writer.urgent.contains(&behind) {
            return Ok(());
        }
        let seen = format!("{side}/{which}: behind byte {behind}, of {:?}", writer.urgent);
        Err(Failure::new("the urgent mark is at another byte", seen))
    }

    /// A listener counts what there is; nothing is, when the world is quiet.
    pub(super) fn watch_listener(&self) -> Result<(), Failure> {
        let Some(info) = self.stacks[SERVER].listener_info(self.listener) else { return Ok(()) };
        let opening = self.apps.iter().flatten().flatten().any(|app| !app.is_over());
        // Those that a reset has ended stay counted, until there is another.
        let pending =
            if self.bystander.any_reset || !self.is_unattacked() { 0 } else { info.fast_open_pending };
        match (info.accept_queue, info.syn_queue, pending) {
            (0, 0, 0) => Ok(()),
            _ if opening => Ok(()),
            counted => {
                let seen = format!("accept queue, SYN queue, Fast Open queue: {counted:?}");
                Err(Failure::new("a listener counts what is not there", seen))
            }
        }
    }

    /// RFC 7413 §4.1.2, §6.1: data of a SYN is only taken of who holds a cookie for its address,
    /// and once. (A server that has given up what such a SYN opened may be opened again by the
    /// plain SYN of a client that never heard of it.)
    pub(super) fn watch_accepted(
        &self,
        peer: IpAddr,
        known: Option<usize>,
        again: bool,
        brought_text: bool,
    ) -> Result<(), Failure> {
        let config = self.stacks[SERVER].config();
        let without_cookie = self.scenario.listener.no_cookie
            || config.tcp_fastopen & proto::fastopen::SERVER_NO_COOKIE != 0
            || !self.scenario.changes.is_empty()
            || self.scenario.hosts[SERVER].route.iter().any(|words| words.contains("no_cookie"));
        if peer != self.addresses[CLIENT] && !without_cookie {
            return Err(Failure::new("accepted for another's cookie", peer));
        }
        // A copy of the ACK that completed a handshake by SYN cookie completes it again, as long as
        // the cookie is valid and no TIME-WAIT holds the tuple: nothing was kept of the first (RFC
        // 4987 §3.6).
        let by_syn_cookie = self.stacks[SERVER].counters().syncookies_recv > 0;
        // One that is late by more than TIME-WAIT lasts, and whose text was not accepted before, is
        // new (RFC 9293 §3.4.1 counts on the MSL). What is on the wire while the machine sleeps is
        // late by as long; so is what `TCP_TX_DELAY` holds back.
        let late = if self.scenario.wire.late.0 > 0 { self.scenario.wire.late.1 } else { 0 };
        let time_wait = self.configs[SERVER].iter().map(|config| config.time_wait).min().unwrap_or_default();
        let held_back = known.map_or(Duration::ZERO, |which| self.facts_of(CLIENT, which).latest());
        let outlives_time_wait = Duration::from_millis(late) + self.slept() + held_back > time_wait;
        // Where the initial sequence number stands still, who sends the SYN again may send its ACK
        // again as well (RFC 9293 §3.4.1).
        let replayed_whole =
            self.is_replaying() && !brought_text && self.scenario.hosts[SERVER].isn.is_some();
        // A Fast Open child that nobody has accepted ends by ICMP (RFC 5461 §4.1), and its client's
        // plain SYN opens another; a program finds both.
        let ended_by_icmp = !brought_text && self.scenario.has_icmp();
        if again
            && !by_syn_cookie
            && !replayed_whole
            && !ended_by_icmp
            && !outlives_time_wait
            && !self.is_replay_forgotten()
            && config.replay_guard
            && (brought_text || self.bystander.is_plain[SERVER])
            && self.scenario.attacks.iter().all(|attack| attack.kind.is_bounded())
        {
            return Err(Failure::new("a SYN was accepted twice", peer));
        }
        Ok(())
    }

    /// An attacker sends again what it has seen, perhaps later than a server remembers it.
    fn is_replay_forgotten(&self) -> bool {
        self.is_replaying() && self.now.since(Instant::from_nanos(self.scenario.start_ns)) > REPLAY_MEMORY
    }

    fn is_replaying(&self) -> bool {
        self.scenario.attacks.iter().any(|attack| attack.kind == Forgery::Replay)
    }
}

/// For how long, at least, `firstbyte.replay_guard` knows a SYN that it has accepted.
const REPLAY_MEMORY: Duration = Duration::from_secs(120);

/// The client's port, the header, and the bytes of text of a TCP packet that this host has sent.
fn parse(from: usize, packet: &[u8]) -> Option<(u16, TcpHeader, u32)> {
    let (ip, range) = IpHeader::parse(packet).ok().filter(|(ip, _)| ip.protocol == wire::protocol::TCP)?;
    debug_assert_eq!(ip.protocol, wire::protocol::TCP);
    let (tcp, text) = TcpHeader::parse(packet.get(range)?, None).ok()?;
    let port = if from == CLIENT { tcp.src_port } else { tcp.dst_port };
    Some((port, tcp, text.len() as u32))
}

/// It is as it was sent.
fn wire_checksum_holds(packet: &[u8]) -> bool {
    let Ok((ip, range)) = IpHeader::parse(packet) else { return false };
    TcpHeader::parse(&packet[range], Some((ip.src, ip.dst))).is_ok()
}
