//! What a SYN-ACK says about Fast Open on this path (RFC 7413 §4.1.3, §4.2.2): outcome, cache and verdicts.

use super::handshake::{ActiveOpen, CutShort, Excuse};
use crate::fast_open::ClientPlan;
use crate::tcp::connection::{Connection, Context};
use crate::{NotAcknowledged, Outcome, Verdict};
use wire::{Cookie, FastOpenKind, FastOpenOption};

/// The facts of a SYN-ACK.
pub(in crate::tcp) struct SynAck {
    /// Bytes of SYN data it acknowledges.
    pub(in crate::tcp) data_acked: u32,
    pub(in crate::tcp) fin_acked: bool,
    pub(in crate::tcp) option: Option<FastOpenOption>,
    pub(in crate::tcp) mss: Option<u16>,
    /// It brings data or FIN.
    pub(in crate::tcp) brings_answer: bool,
}

impl ActiveOpen {
    fn reset_verdict(&self) -> Option<Verdict> {
        (self.cut_short == Some(CutShort::Reset)).then_some(Verdict::Reset)
    }
}

impl Connection {
    /// Decides the outcome and writes down what was learnt.
    pub(in crate::tcp) fn judge(
        &mut self,
        cx: &mut Context,
        active: &ActiveOpen,
        syn_ack: &SynAck,
    ) -> Outcome {
        let path = cx.paths.entry(cx.now, self.tuple.local, self.tuple.peer);
        let asked = !matches!(active.plan, ClientPlan::Plain(_));
        if let Some(mss) = syn_ack.mss.filter(|mss| *mss > 0)
            && (asked || cx.config.mss_of_plain_opens)
        {
            path.mss = Some(mss);
        }
        match active.plan {
            ClientPlan::Plain(why) => Outcome::Skipped(why),
            _ => self.judge_attempt(cx, active, syn_ack),
        }
    }

    /// Decides the outcome of an open that tried Fast Open.
    #[inline(never)]
    fn judge_attempt(&mut self, cx: &mut Context, active: &ActiveOpen, syn_ack: &SynAck) -> Outcome {
        let outcome = match active.plan {
            ClientPlan::Plain(why) => return Outcome::Skipped(why),
            ClientPlan::Request(kind) => self.judge_request(cx, active, syn_ack, kind),
            ClientPlan::Data { cookie, .. } => self.judge_data(cx, active, syn_ack, cookie),
        };
        let only_plain_arrived =
            [NotAcknowledged::Lost, NotAcknowledged::TooBig, NotAcknowledged::OldConnection]
                .map(Outcome::NotAcknowledged);
        if !only_plain_arrived.contains(&outcome) {
            let path = cx.paths.entry(cx.now, self.tuple.local, self.tuple.peer);
            path.syn_arrived();
            path.syn_data_passed |= outcome == Outcome::Accepted && active.data_sent > 0;
        }
        outcome
    }

    /// A cookie in answer to an option of ours; others are unsolicited and ignored.
    fn new_cookie(&self, cx: &mut Context, syn_ack: &SynAck) -> Option<Cookie> {
        let option = syn_ack.option?;
        let cookie = option.cookie?;
        cx.paths.entry(cx.now, self.tuple.local, self.tuple.peer).store_cookie(cookie, option.kind);
        Some(cookie)
    }

    fn judge_request(
        &mut self,
        cx: &mut Context,
        active: &ActiveOpen,
        syn_ack: &SynAck,
        kind: FastOpenKind,
    ) -> Outcome {
        self.fast_opened = true;
        if self.new_cookie(cx, syn_ack).is_some() {
            if active.sent_as_planned_only() {
                cx.paths.clear_verdict(&cx.verdict_key(&self.tuple));
            }
            return Outcome::CookieRequested { granted: true };
        }
        if active.sent_as_planned_only() {
            cx.paths.entry(cx.now, self.tuple.local, self.tuple.peer).request_unanswered(kind);
            self.hold_against_path(cx, Verdict::Stripped);
        } else {
            match active.reset_verdict() {
                Some(reset) => self.hold_against_path(cx, reset),
                None if active.excuse.is_none() => self.syn_was_dropped(cx),
                None => {}
            }
        }
        Outcome::CookieRequested { granted: false }
    }

    fn judge_data(
        &mut self,
        cx: &mut Context,
        active: &ActiveOpen,
        syn_ack: &SynAck,
        sent: Option<(Cookie, FastOpenKind)>,
    ) -> Outcome {
        self.fast_opened = true;
        let returned = sent.and_then(|_| self.new_cookie(cx, syn_ack));
        let accepted = if active.data_sent > 0 {
            syn_ack.data_acked == active.data_sent
        } else {
            // Without data only the answer, or the absence of another cookie, tells.
            syn_ack.brings_answer || (returned.is_none() && active.sent_as_planned_only())
        };
        if accepted {
            return self.accepted(cx, active, syn_ack);
        }
        cx.counters.tcp_fastopen_active_fail += u64::from(active.data_sent > 0);
        cx.counters.syn_data_rejected_bytes += u64::from(active.data_sent - syn_ack.data_acked);
        Outcome::NotAcknowledged(match returned {
            Some(cookie) if sent.is_some_and(|(sent, _)| sent == cookie) => NotAcknowledged::Busy,
            Some(_) => NotAcknowledged::StaleCookie,
            None if syn_ack.data_acked > 0 => NotAcknowledged::Partial,
            None => self.refusal_without_cookie(cx, active),
        })
    }

    fn accepted(&mut self, cx: &mut Context, active: &ActiveOpen, syn_ack: &SynAck) -> Outcome {
        if cx.paths.has_verdicts() {
            let key = cx.verdict_key(&self.tuple);
            cx.paths.clear_verdict(&key);
            if active.fin_sent && syn_ack.fin_acked {
                cx.paths.clear_syn_fin_verdict(&key);
            }
        }
        if active.data_sent > 0 {
            cx.counters.tcp_fastopen_active += 1;
            if !self.tuple.peer.is_loopback() {
                cx.blackhole.success();
            }
        }
        if active.fin_sent && !syn_ack.fin_acked {
            self.hold_against_path(cx, Verdict::SynFin);
        }
        Outcome::Accepted
    }

    /// Neither data acknowledged nor a cookie returned.
    fn refusal_without_cookie(&mut self, cx: &mut Context, active: &ActiveOpen) -> NotAcknowledged {
        if active.sent_as_planned_only() {
            self.data_was_ignored(cx);
            return NotAcknowledged::Ignored;
        }
        if active.cut_short == Some(CutShort::TooBig) {
            // The path's MTU is known now; Fast Open itself is not to blame.
            return NotAcknowledged::TooBig;
        }
        if let Some(reset) = active.reset_verdict() {
            // What a FIN brought about says nothing yet about SYNs without one.
            self.hold_against_path(cx, if active.fin_sent { Verdict::SynFin } else { reset });
            return NotAcknowledged::Reset;
        }
        if active.excuse.is_none() || !cx.config.repeat_challenged_syn {
            // RFC 7413 §4.2.2 (R36): the answer is to the plain SYN, so the first was lost, or dropped for what it carried.
            cx.paths.entry(cx.now, self.tuple.local, self.tuple.peer).syn_dropped(cx.now);
        }
        match active.excuse {
            Some(Excuse::OldConnection) => return NotAcknowledged::OldConnection,
            Some(Excuse::NeverLeft) => {}
            None if active.fin_sent => self.hold_against_path(cx, Verdict::SynFin),
            None => self.syn_was_dropped(cx),
        }
        NotAcknowledged::Lost
    }

    /// A connection of ours with a Fast Open SYN has ended, and all that arrived was a FIN behind missing data (Linux's
    /// `tcp_fastopen_active_disable_ofo_check`).
    pub(crate) fn fast_open_was_swallowed(&self) -> bool {
        let client = self.outcome != Outcome::Pending;
        client && self.fast_opened && self.rcv.only_fin_came()
    }

    /// Records that only the plain SYN had an answer. The Fast Open SYN was lost, or dropped
    /// because of its contents.
    fn syn_was_dropped(&self, cx: &mut Context) {
        self.doubt_path(cx, Verdict::Dropped);
    }

    /// Records that the SYN-ACK acknowledges only the SYN and has no cookie. The server has Fast
    /// Open off, or its SYN queue or Fast Open queue is full. (Linux sends SYN cookies without
    /// looking at the option, and sends no cookie over `qlen`.)
    fn data_was_ignored(&self, cx: &mut Context) {
        self.doubt_path(cx, Verdict::NotAcknowledged);
    }

    /// Records a failure that may be an accident. If SYN data has passed on this path before, the
    /// first failure yields no verdict.
    fn doubt_path(&self, cx: &mut Context, verdict: Verdict) {
        if !cx.config.fast_open_verdicts {
            return;
        }
        let key = cx.verdict_key(&self.tuple);
        let path = cx.paths.lookup(self.tuple.local, self.tuple.peer);
        if path.is_some_and(|path| path.syn_data_passed) && cx.paths.doubt_is_enough(cx.now, key, verdict) {
            return;
        }
        self.hold_against_path(cx, verdict);
    }

    /// Remembers that Fast Open failed on this path, unless the profile keeps no such memory.
    pub(in crate::tcp) fn hold_against_path(&self, cx: &mut Context, verdict: Verdict) {
        if cx.config.fast_open_verdicts {
            let key = cx.verdict_key(&self.tuple);
            cx.paths.record_verdict(cx.now, key, verdict);
        }
    }
}
