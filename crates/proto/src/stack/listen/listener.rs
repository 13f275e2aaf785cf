//! A listener: its queues and limits.

use crate::fast_open::{KeyRing, PendingQueue};
use crate::keyed_hash::HashKey;
use crate::socket_options::Options;
use crate::tuple::FourTuple;
use crate::{Config, ConnId, Instant, ListenOptions, ListenerDrops, ListenerInfo, SynCookieCounts, fastopen};
use alloc::collections::VecDeque;
use core::net::SocketAddr;
use core::time::Duration;
use wire::Addr;

/// A SYN queue of half as many is never pruned.
const PRUNE_MIN: u32 = 8;
/// 18 hours: nobody is deferred for longer.
const DEFER_TIMEOUTS_MAX: u32 = 16;
/// Pruning leaves every SYN-ACK this many repetitions.
const PRUNED_RETRIES_MIN: u32 = 2;

/// What happens to a request when its SYN-ACK times out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::stack) enum AtTimeout {
    /// It ends.
    Expire,
    /// The SYN-ACK is retransmitted.
    Repeat,
    Wait,
}

/// How many doubling time-outs of a SYN-ACK cover `wait` (Linux's `secs_to_retrans`).
fn timeouts_within(wait: Duration, first: Duration) -> u32 {
    let covered = |timeouts: u32| first.saturating_mul((1 << timeouts) - 1);
    (0..=DEFER_TIMEOUTS_MAX).find(|timeouts| covered(*timeouts) >= wait).unwrap_or(DEFER_TIMEOUTS_MAX)
}

/// LISTEN on an address and port.
pub(in crate::stack) struct Listener {
    pub(in crate::stack) local: SocketAddr,
    /// Its address as a packet has it; `None` = any, or any of its family.
    own: Option<Addr>,
    v6_only: bool,
    pub(in crate::stack) share_port: bool,
    pub(in crate::stack) backlog: u32,
    /// Connections the application may accept, Fast Open children in SYN-RECEIVED among them.
    pub(in crate::stack) accept_queue: VecDeque<ConnId>,
    /// Ordinary half-open requests.
    pub(super) requests: u32,
    /// Of those, the ones whose first SYN-ACK has not timed out.
    pub(super) young: u32,
    /// Index and generation of requests whose final ACK found the accept queue full, oldest first; some may be no more.
    pub(in crate::stack) waiting: VecDeque<(u32, u32)>,
    /// Fast Open children whose handshake is not complete.
    pub(in crate::stack) pending: PendingQueue,
    pub(super) keys: Option<KeyRing>,
    pub(super) synack_hold: Option<Duration>,
    pub(super) no_cookie: bool,
    /// Time-outs of a SYN-ACK during which a bare ACK does not make a connection; 0 = it does.
    pub(in crate::stack) defer_timeouts: u32,
    pub(in crate::stack) socket: Options,
    /// An `ACCEPTABLE` event is listed.
    pub(in crate::stack) listed: bool,
    pub(in crate::stack) drops: ListenerDrops,
    /// When a SYN cookie was last sent.
    pub(super) cookie_sent_at: Option<Instant>,
    pub(super) cookies: SynCookieCounts,
}

impl Listener {
    /// Limits are read here, once, as Linux reads them in `listen`.
    pub(in crate::stack) fn new(
        config: &Config,
        key: HashKey,
        local: SocketAddr,
        options: ListenOptions,
    ) -> Listener {
        let backlog = options.backlog.min(config.somaxconn);
        let asked = options.fast_open.unwrap_or(0).min(config.somaxconn);
        let qlen =
            if asked == 0 && config.tcp_fastopen & fastopen::ALL_LISTENERS != 0 { backlog } else { asked };
        Listener {
            local,
            own: Some(Addr::from(local.ip())).filter(|_| !local.ip().is_unspecified()),
            v6_only: options.v6_only,
            share_port: options.share_port,
            backlog,
            accept_queue: VecDeque::new(),
            requests: 0,
            young: 0,
            waiting: VecDeque::new(),
            pending: PendingQueue::new(qlen, config.fair_shares.then_some(key)),
            keys: options.key,
            synack_hold: options.synack_hold,
            no_cookie: options.fast_open_no_cookie,
            defer_timeouts: timeouts_within(options.defer_accept, config.rto_initial),
            socket: options.socket.into(),
            listed: false,
            drops: ListenerDrops::default(),
            cookie_sent_at: None,
            cookies: SynCookieCounts::default(),
        }
    }

    /// The limits and options are these from now on.
    pub(in crate::stack) fn set_options(&mut self, config: &Config, key: HashKey, options: ListenOptions) {
        let new = Listener::new(config, key, self.local, options);
        self.backlog = new.backlog;
        self.pending.set_max_qlen(new.pending.max_qlen());
        self.keys = new.keys;
        self.synack_hold = new.synack_hold;
        self.no_cookie = new.no_cookie;
        self.defer_timeouts = new.defer_timeouts;
        self.socket = new.socket;
    }

    /// How well it fits a segment: exact address before any address of the family before any at all.
    pub(in crate::stack) fn fit(&self, tuple: &FourTuple) -> Option<u8> {
        if self.local.port() != tuple.local_port {
            return None;
        }
        match () {
            () if self.own == Some(tuple.local) => Some(2),
            () if self.own.is_some() => None,
            () if self.local.is_ipv4() == tuple.local.is_v4() => Some(1),
            () => (self.local.is_ipv6() && !self.v6_only).then_some(0),
        }
    }

    /// They are for the same segments, however their address is written (an IPv4 address as an IPv6 one, a scope).
    pub(in crate::stack) fn has_place_of(&self, other: &Listener) -> bool {
        let same_family = self.local.is_ipv4() == other.local.is_ipv4();
        self.local.port() == other.local.port()
            && self.own == other.own
            && (self.own.is_some() || same_family)
    }

    pub(in crate::stack) fn info(&self) -> ListenerInfo {
        ListenerInfo {
            local: self.local,
            backlog: self.backlog,
            accept_queue: self.accept_queue.len(),
            syn_queue: self.requests as usize,
            syn_queue_young: self.young as usize,
            fast_open_pending: self.pending.qlen(),
            fast_open_max: self.pending.max_qlen(),
            drops: self.drops,
            cookies: self.cookies,
        }
    }

    /// Linux: `sk_ack_backlog > sk_max_ack_backlog`, so one more than the backlog fits.
    pub(in crate::stack) fn accept_queue_full(&self) -> bool {
        self.accept_queue.len() > self.backlog as usize
    }

    /// The SYN queue holds more requests than the backlog, so one more than the backlog fits (Linux's `inet_csk_reqsk_queue_is_full`).
    pub(in crate::stack) fn syn_queue_full(&self) -> bool {
        self.requests > self.backlog
    }

    /// Only the last quarter of `tcp_max_syn_backlog` is left (`tcp_conn_request`).
    pub(in crate::stack) fn few_requests_left(&self, config: &Config) -> bool {
        let most = i64::from(config.tcp_max_syn_backlog);
        most - i64::from(self.requests) < most / 4
    }

    /// What the time-out of a SYN-ACK comes to after `timeouts` others (Linux's `syn_ack_recalc`). Whoever has acknowledged and is
    /// deferred is left in peace until the last time-out of the deferral, which gives him the occasion to acknowledge again.
    pub(in crate::stack) fn at_timeout(&self, config: &Config, timeouts: u32, acked: bool) -> AtTimeout {
        let deferred = acked && timeouts < self.defer_timeouts;
        match () {
            () if timeouts >= self.syn_ack_retries(config) && !deferred => AtTimeout::Expire,
            () if deferred && timeouts + 1 < self.defer_timeouts => AtTimeout::Wait,
            () => AtTimeout::Repeat,
        }
    }

    /// Repetitions of a SYN-ACK, as Linux's `reqsk_timer_handler` allows them: half of the room is for young requests, so while more
    /// than half of it is taken, the old ones get fewer, but never less than two.
    fn syn_ack_retries(&self, config: &Config) -> u32 {
        let mut retries = self.socket.rare.syn_retries.map_or(config.tcp_synack_retries, u32::from);
        if self.requests * 2 <= self.backlog.max(PRUNE_MIN) {
            return retries;
        }
        let mut young = u64::from(self.young) * 2;
        while retries > PRUNED_RETRIES_MIN && u64::from(self.requests) >= young {
            retries -= 1;
            young *= 2;
        }
        retries
    }
}
