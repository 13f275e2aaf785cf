//! One class of an htb: its two buckets, and what they allow.
use super::{MAXDEPTH, NUMPRIO, Ring};
use crate::node::Node;
use crate::rate::Rate;
use crate::{Handle, Nanos, Packet, RateSpec, Stats};
use alloc::boxed::Box;

/// More than a minute of tokens is never saved up or owed (`mbuffer`).
const MBUFFER: i64 = 60_000_000_000;

/// Options of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClassConfig {
    /// Rate without borrowing.
    pub rate: RateSpec,
    /// Rate with borrowing.
    pub ceil: RateSpec,
    /// Depth of the rate's bucket, as nanoseconds of sending.
    pub buffer: Nanos,
    /// Depth of the ceil's bucket, as nanoseconds of sending.
    pub cbuffer: Nanos,
    /// Bytes that it sends in one turn.
    pub quantum: u32,
    /// Priority, 0 to 7. A lower number is served first with borrowed tokens.
    pub prio: u32,
}

impl HtbClassConfig {
    /// Returns whether the kernel accepts it.
    pub fn is_valid(&self) -> bool {
        self.rate.bytes_per_second > 0 && self.ceil.bytes_per_second > 0
    }
}

/// What a class may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nothing: it is over its ceil.
    CantSend,
    /// Send with tokens of its parent: it is over its rate.
    MayBorrow,
    /// Send.
    CanSend,
}

#[derive(Clone, Debug)]
pub(crate) struct Class<P> {
    pub(crate) id: Handle,
    pub(super) parent: Option<usize>,
    pub(crate) level: usize,
    config: HtbClassConfig,
    rate: Rate,
    ceil: Rate,
    tokens: i64,
    ctokens: i64,
    checked_at: Nanos,
    pub(super) mode: Mode,
    /// The priorities, a bit each, in which it stands in a row or feed.
    pub(super) activity: u8,
    /// Its place among those that wait for tokens.
    pub(super) wait: Option<(Nanos, u64)>,
    /// A leaf's discipline.
    pub(crate) leaf: Option<Box<Node<P>>>,
    deficit: [i64; MAXDEPTH],
    /// An inner class's children that borrow, by priority.
    pub(super) feeds: [Ring; NUMPRIO],
    pub(super) stats: Stats,
    pub(super) overlimits: u64,
    pub(crate) lends: u32,
    pub(crate) borrows: u32,
}

impl<P: Packet> Class<P> {
    pub(super) fn new(
        now: Nanos,
        id: Handle,
        parent: Option<usize>,
        config: HtbClassConfig,
        leaf: Node<P>,
    ) -> Class<P> {
        let mut class = Class {
            id,
            parent,
            level: 0,
            config,
            rate: Rate::new(config.rate),
            ceil: Rate::new(config.ceil),
            tokens: 0,
            ctokens: 0,
            checked_at: now,
            mode: Mode::CanSend,
            activity: 0,
            wait: None,
            leaf: Some(Box::new(leaf)),
            deficit: [0; MAXDEPTH],
            feeds: Default::default(),
            stats: Stats::default(),
            overlimits: 0,
            lends: 0,
            borrows: 0,
        };
        class.refill(now);
        class
    }

    pub(crate) fn config(&self) -> HtbClassConfig {
        self.config
    }

    pub(super) fn set_config(&mut self, config: HtbClassConfig) {
        self.rate = Rate::new(config.rate);
        self.ceil = Rate::new(config.ceil);
        self.config = config;
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.leaf.is_some()
    }

    pub(super) fn prio(&self) -> usize {
        (self.config.prio as usize).min(NUMPRIO - 1)
    }

    /// Counters as tc shows them: a leaf's backlog is its discipline's.
    pub(crate) fn stats(&self) -> Stats {
        let below = self.leaf.as_ref().map(|leaf| leaf.stats()).unwrap_or_default();
        Stats { qlen: below.qlen, backlog: below.backlog, overlimits: self.overlimits, ..self.stats }
    }

    /// Tokens of rate and ceil, nanoseconds.
    pub(crate) fn tokens(&self) -> (i64, i64) {
        (self.tokens, self.ctokens)
    }

    pub(super) fn become_inner(&mut self, level: usize) {
        self.leaf = None;
        self.level = level;
        self.mode = Mode::CanSend;
        self.feeds = Default::default();
    }

    /// With full buckets (Linux's `htb_parent_to_leaf`).
    pub(super) fn become_leaf(&mut self, now: Nanos, limit: usize) {
        self.level = 0;
        self.leaf = Some(Box::new(Node::pfifo(self.id, limit)));
        self.deficit = [0; MAXDEPTH];
        self.activity = 0;
        self.refill(now);
    }

    pub(super) fn refill(&mut self, now: Nanos) {
        self.tokens = i64::try_from(self.config.buffer).unwrap_or(i64::MAX);
        self.ctokens = i64::try_from(self.config.cbuffer).unwrap_or(i64::MAX);
        self.checked_at = now;
        self.mode = Mode::CanSend;
    }

    /// Time for which tokens have not been counted yet.
    pub(super) fn elapsed(&self, now: Nanos) -> i64 {
        i64::try_from(now.saturating_sub(self.checked_at)).unwrap_or(i64::MAX).min(MBUFFER)
    }

    /// The mode with the tokens of so much time more, and how long until it may change for the better.
    pub(super) fn mode_after(&self, elapsed: i64) -> (Mode, i64) {
        let ctokens = self.ctokens.saturating_add(elapsed);
        if ctokens < 0 {
            return (Mode::CantSend, -ctokens);
        }
        let tokens = self.tokens.saturating_add(elapsed);
        if tokens >= 0 { (Mode::CanSend, elapsed) } else { (Mode::MayBorrow, -tokens) }
    }

    /// Takes the tokens of a packet that left by right of `level`: below that level the rate's tokens are spared.
    pub(super) fn charge(&mut self, now: Nanos, level: usize, len: u32) -> (Mode, i64) {
        let elapsed = self.elapsed(now);
        if self.level >= level {
            self.lends += u32::from(self.level == level);
            self.tokens = account(self.tokens, elapsed, self.config.buffer, self.rate.nanos(len));
        } else {
            self.borrows += 1;
            self.tokens = self.tokens.saturating_add(elapsed);
        }
        self.ctokens = account(self.ctokens, elapsed, self.config.cbuffer, self.ceil.nanos(len));
        self.checked_at = now;
        self.mode_after(0)
    }

    /// Counts a packet against its turn; is the turn over?
    pub(super) fn spend(&mut self, level: usize, len: u32) -> bool {
        let Some(deficit) = self.deficit.get_mut(level) else { return true };
        *deficit -= i64::from(len);
        let over = *deficit < 0;
        if over {
            *deficit += i64::from(self.config.quantum);
        }
        over
    }
}

fn account(tokens: i64, elapsed: i64, depth: Nanos, cost: i64) -> i64 {
    let depth = i64::try_from(depth).unwrap_or(i64::MAX);
    tokens.saturating_add(elapsed).min(depth).saturating_sub(cost).max(1 - MBUFFER)
}
