//! What the wire has seen of each connection: who waits for an answer since when, and what came in
//! the way.
//!
//! Kept from packets alone, so that an end that gave up is judged by what happened to it and not by
//! what it believes.

use super::{CLIENT, SERVER};
use core::time::Duration;
use proto::{Instant, SeqNum};
use std::collections::VecDeque;
use wire::{Flags, IpHeader};

/// Bytes and packets that one end of a connection has sent and received.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Behind all that it has sent, and that was acknowledged to it.
    sent_to: Option<SeqNum>,
    acked_to: Option<SeqNum>,
    /// Behind each packet that carried something new and is not all acknowledged, and when it was
    /// sent first.
    first_sent: VecDeque<(SeqNum, Instant)>,
    /// When something it has sent was acknowledged to it for the first time.
    pub answered_at: Option<Instant>,
    /// Something it has sent is unanswered: since the last progress, or since it was sent.
    pub waits_since: Option<Instant>,
    /// The longest that an answer which came was waited for.
    pub longest_wait: Duration,
    /// The last progress.
    pub progress_at: Option<Instant>,
    /// Packets it has sent since.
    pub sent_since_progress: u32,
    /// When a packet of the other end last reached it unharmed, and not below its window.
    pub heard_at: Option<Instant>,
    /// Packets it has sent since.
    pub sent_since_heard: u32,
    /// SYNs and SYN-ACKs it has sent.
    pub syns: u32,
    /// A packet it sent was last lost, damaged, refused or too large.
    pub harmed_at: Option<Instant>,
    /// The last advertised window was closed.
    pub told_closed: bool,
    said: Option<(Seen, Instant)>,
    repeats: u32,
    /// Packets that have reached it, each of which it may still answer: many may arrive at once.
    to_answer: u32,
}

/// How often a packet was sent with nothing heard in between, and how long after the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeated {
    pub(super) times: u32,
    pub(super) after: Duration,
}

impl Account {
    fn repeats(&mut self, now: Instant, seen: Seen) -> Repeated {
        let answers = self.to_answer > 0;
        self.to_answer = self.to_answer.saturating_sub(1);
        let last = self.said.replace((seen, now)).filter(|(last, _)| *last == seen && !answers);
        self.repeats = if last.is_some() { self.repeats + 1 } else { 0 };
        Repeated { times: self.repeats, after: last.map_or(Duration::MAX, |(_, at)| now.since(at)) }
    }

    /// Nothing it has sent was ever acknowledged to it.
    pub fn heard_nothing(&self) -> bool {
        self.acked_to.is_none()
    }

    /// Returns the time spent waiting for an answer.
    pub fn waited(&self, now: Instant) -> Duration {
        self.waits_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// When the oldest of what is unacknowledged was sent first: what RFC 5482's user timeout
    /// counts from.
    pub fn oldest_sent(&self) -> Option<Instant> {
        self.first_sent.front().map(|(_, at)| *at)
    }

    /// Time without progress.
    pub fn stuck(&self, now: Instant) -> Duration {
        self.progress_at.map_or(Duration::ZERO, |at| now.since(at))
    }

    /// Time since it has heard of the other end.
    pub fn silence(&self, now: Instant) -> Duration {
        self.heard_at.map_or(Duration::ZERO, |at| now.since(at))
    }
}

/// The accounts of both ends of a connection.
pub(super) type Accounts = [Account; 2];

/// What matters of a TCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The port of the end that opened it.
    pub(super) client_port: u16,
    seq: SeqNum,
    ack: SeqNum,
    flags: Flags,
    window: u16,
    len: u32,
}

impl Seen {
    pub(super) fn is_syn(&self) -> bool {
        self.flags.contains(Flags::SYN)
    }

    pub(super) fn is_reset(&self) -> bool {
        self.flags.contains(Flags::RST)
    }

    /// `None`: it is no TCP, or damaged.
    pub(super) fn new(from: usize, packet: &[u8]) -> Option<Seen> {
        let (ip, range) =
            IpHeader::parse(packet).ok().filter(|(ip, _)| ip.protocol == wire::protocol::TCP)?;
        debug_assert_eq!(ip.protocol, wire::protocol::TCP);
        let tcp = packet.get(range)?;
        let word = |at: usize| tcp.get(at..at + 4)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        let ports = word(0)?;
        let flags = Flags::from_bits_truncate(u16::from(*tcp.get(13)?));
        let text = tcp.len() as u32 - 4 * u32::from(tcp.get(12)? >> 4).min(tcp.len() as u32 / 4);
        let controls = u32::from(flags.contains(Flags::SYN)) + u32::from(flags.contains(Flags::FIN));
        Some(Seen {
            client_port: if from == CLIENT { (ports >> 16) as u16 } else { ports as u16 },
            seq: SeqNum(word(4)?),
            ack: SeqNum(word(8)?),
            flags,
            window: u16::from_be_bytes(*tcp.get(14..16)?.first_chunk()?),
            len: text + controls,
        })
    }
}

/// `seen` leaves one end now.
pub(super) fn leaves(accounts: &mut Accounts, from: usize, now: Instant, seen: Seen) -> Repeated {
    let account = &mut accounts[from];
    let repeated = account.repeats(now, seen);
    account.progress_at.get_or_insert(now);
    account.heard_at.get_or_insert(now);
    account.sent_since_progress += 1;
    account.sent_since_heard += 1;
    account.syns += u32::from(seen.flags.contains(Flags::SYN));
    if seen.flags.contains(Flags::RST) {
        return repeated;
    }
    let end = seen.seq + seen.len;
    if seen.len > 0 && account.sent_to.is_none_or(|sent_to| end.after(sent_to)) {
        account.sent_to = Some(end);
        account.first_sent.push_back((end, now));
        account.waits_since.get_or_insert(now);
    }
    repeated
}

/// A packet, which `from` has sent, does not arrive, or not as it was.
pub(super) fn is_harmed(accounts: &mut Accounts, from: usize, now: Instant) {
    accounts[from].harmed_at = Some(now);
}

/// A packet has reached the other end; `seen` if it is as it was sent.
pub(super) fn arrives(accounts: &mut Accounts, to: usize, now: Instant, seen: Option<Seen>) {
    let theirs = accounts[1 - to].acked_to;
    // RFC 9293 §3.10.7.4: what ends below the window, as keepalive probes do, is answered and tells
    // nothing.
    let is_below_window =
        seen.zip(theirs).is_some_and(|(seen, acked_to)| (seen.seq + seen.len).before(acked_to));
    let account = &mut accounts[to];
    account.said = None;
    account.to_answer += 1;
    let Some(seen) = seen else { return };
    if is_below_window {
        return;
    }
    account.heard_at = Some(now);
    account.sent_since_heard = 0;
    account.told_closed = seen.window == 0;
    let Some(sent_to) = account.sent_to else { return };
    // RFC 9293 §3.10.7.3: in SYN-SENT only a SYN brings progress; what overtook it is dropped.
    if to == CLIENT && account.acked_to.is_none() && !seen.is_syn() {
        accounts[1 - to].harmed_at = Some(now);
        return;
    }
    let news = account.acked_to.is_none_or(|acked_to| seen.ack.after(acked_to));
    if !seen.flags.contains(Flags::ACK) || !news || seen.ack.after(sent_to) {
        return;
    }
    account.longest_wait = account.longest_wait.max(account.waited(now));
    account.acked_to = Some(seen.ack);
    account.answered_at.get_or_insert(now);
    while account.first_sent.pop_front_if(|(end, _)| end.before_or_eq(seen.ack)).is_some() {}
    account.progress_at = Some(now);
    account.sent_since_progress = 0;
    account.waits_since = (seen.ack != sent_to).then_some(now);
}

const _: () = assert!(CLIENT == 0 && SERVER == 1);
