//! tbf: a token bucket in front of one discipline (Linux's `sch_tbf.c`).
use crate::node::{Node, Peek, through};
use crate::rate::Rate;
use crate::{
    Dequeue, DropReason, Dropped, Handle, Limit, Nanos, Packet, Qdisc, RateSpec, Skb, Stats, Verdict,
};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Options of a tbf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TbfConfig {
    /// The rate of the bucket.
    pub rate: RateSpec,
    /// Depth in bytes: burst after a pause.
    pub burst: u32,
    /// Bytes that may wait, in the bfifo that it is made with.
    pub limit: u32,
    /// A second bucket: its rate, and its depth in bytes (tc's `mtu` or `minburst`).
    pub peak: Option<(RateSpec, u32)>,
}

impl TbfConfig {
    /// Returns whether the kernel accepts it. It rejects a bucket without depth, and a peak rate
    /// that is not above the rate.
    pub fn is_valid(&self) -> bool {
        let peak = self
            .peak
            .is_none_or(|(peak, depth)| depth > 0 && peak.bytes_per_second > self.rate.bytes_per_second);
        self.burst > 0 && self.rate.bytes_per_second > 0 && peak
    }
}

/// A token bucket. Tokens are nanoseconds of sending at the rate.
#[derive(Clone, Debug)]
pub struct Tbf<P> {
    config: TbfConfig,
    bucket: Bucket,
    peak: Option<Bucket>,
    max_size: u32,
    filled_at: Nanos,
    child: Box<Node<P>>,
    stats: Stats,
}

#[derive(Clone, Debug)]
struct Bucket {
    rate: Rate,
    depth: i64,
    tokens: i64,
}

impl Bucket {
    fn full(spec: RateSpec, bytes: u32) -> Bucket {
        let rate = Rate::new(spec);
        let depth = rate.nanos(bytes);
        Bucket { rate, depth, tokens: depth }
    }

    /// What would be left after `elapsed` (already limited) and a packet of `len` bytes.
    fn after(&self, elapsed: i64, len: u32) -> i64 {
        self.tokens.saturating_add(elapsed).min(self.depth).saturating_sub(self.rate.nanos(len))
    }
}

impl<P: Packet> Tbf<P> {
    /// A full bucket before a bfifo of `config.limit` bytes.
    pub fn new(handle: Handle, config: TbfConfig, now: Nanos) -> Tbf<P> {
        let child = Box::new(Node::fifo(handle.class(1), Limit::bytes(config.limit.into())));
        Tbf {
            bucket: Bucket::full(config.rate, config.burst),
            peak: config.peak.map(|(rate, bytes)| Bucket::full(rate, bytes)),
            max_size: config.peak.map_or(config.burst, |(_, bytes)| bytes.min(config.burst)),
            config,
            filled_at: now,
            child,
            stats: Stats::default(),
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> TbfConfig {
        self.config
    }

    /// Changes the configuration and fills the bucket. Passes the limit to the discipline below if
    /// that is a FIFO.
    pub fn set_config(&mut self, config: TbfConfig, now: Nanos) {
        self.bucket = Bucket::full(config.rate, config.burst);
        self.peak = config.peak.map(|(rate, bytes)| Bucket::full(rate, bytes));
        self.max_size = config.peak.map_or(config.burst, |(_, bytes)| bytes.min(config.burst));
        self.filled_at = now;
        self.child.set_fifo_limit(config.limit);
        self.config = config;
    }

    /// The depth of the bucket and of the peak's, in nanoseconds of sending.
    pub(crate) fn depths(&self) -> (i64, i64) {
        (self.bucket.depth, self.peak.as_ref().map_or(0, |peak| peak.depth))
    }

    pub(crate) fn child(&self) -> &Node<P> {
        &self.child
    }

    pub(crate) fn child_mut(&mut self) -> &mut Node<P> {
        &mut self.child
    }

    pub(crate) fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }

    /// Swaps the discipline below; what waited in the old one is dropped.
    pub(crate) fn graft(&mut self, new: Node<P>, dropped: &mut Vec<Dropped<P>>) {
        through(&mut self.stats, &mut self.child, dropped, |old, dropped| old.reset(dropped));
        *self.child = new;
    }
}

impl<P: Packet> Tbf<P> {
    /// What is longer than the bucket fits in if it is a large segment whose frames do (Linux's `tbf_segment`).
    fn enqueue_cut(&mut self, now: Nanos, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        let longest = skb.packet.segments().map(|segments| segments.len.max(segments.last_len));
        if longest.is_none_or(|longest| longest > self.max_size) {
            return self.stats.drop(skb, DropReason::TooBig, dropped);
        }
        let frames = match skb.into_segments() {
            Ok(frames) => frames,
            Err(skb) => return self.stats.drop(skb, DropReason::TooBig, dropped),
        };
        let offer = |frame| {
            through(&mut self.stats, &mut self.child, dropped, |child, dropped| {
                child.enqueue(now, frame, dropped)
            })
        };
        // One frame that is taken is enough for the segment to be.
        let verdicts = frames.into_iter().map(offer);
        let verdict =
            verdicts.reduce(|one, next| if matches!(one, Verdict::Dropped(_)) { next } else { one });
        verdict.unwrap_or(Verdict::Queued)
    }
}

impl<P: Packet> Qdisc<P> for Tbf<P> {
    fn enqueue(&mut self, now: Nanos, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        if skb.len > self.max_size {
            return self.enqueue_cut(now, skb, dropped);
        }
        through(&mut self.stats, &mut self.child, dropped, |child, dropped| child.enqueue(now, skb, dropped))
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        let peek =
            through(&mut self.stats, &mut self.child, dropped, |child, dropped| child.peek(now, dropped));
        let len = match peek {
            Peek::Len(len) => len,
            Peek::Throttled(until) => return Dequeue::Throttled(until),
            Peek::Empty => return Dequeue::Empty,
        };
        let elapsed = i64::try_from(now.saturating_sub(self.filled_at)).unwrap_or(i64::MAX);
        let elapsed = elapsed.min(self.bucket.depth);
        let tokens = self.bucket.after(elapsed, len);
        let peak_tokens = self.peak.as_ref().map_or(0, |peak| peak.after(elapsed, len));
        let lacking = tokens.min(peak_tokens);
        if lacking < 0 {
            self.stats.overlimits += 1;
            return Dequeue::Throttled(now.saturating_add(lacking.unsigned_abs()));
        }
        let next =
            through(&mut self.stats, &mut self.child, dropped, |child, dropped| child.dequeue(now, dropped));
        if let Dequeue::Packet(skb) = &next {
            self.filled_at = now;
            self.bucket.tokens = tokens;
            if let Some(peak) = &mut self.peak {
                peak.tokens = peak_tokens;
            }
            self.stats.sent(skb);
        }
        next
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.child.reset(dropped);
        self.stats.emptied();
        self.bucket.tokens = self.bucket.depth;
        if let Some(peak) = &mut self.peak {
            peak.tokens = peak.depth;
        }
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}
