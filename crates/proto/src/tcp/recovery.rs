//! What is lost. How much may be sent is `congestion`'s, which segment goes now `output`'s.
//!
//! | file | subject |
//! |---|---|
//! | `newreno` | peers without SACK: three duplicate ACKs, partial ACKs (RFC 6582), limited transmit (RFC 3042), their undo |
//! | `scoreboard` | what a peer with SACK holds, what is lost, what was retransmitted; the pipe (RFC 6675) |
//! | `arrived` | what one ACK told |
//! | `marks` | the bits on the segments, and their sums |
//! | `rack` | loss told by time (RFC 8985), with the adaptive reordering window |
//! | `scoreboard/timeout` | what a time-out marks, and what shows it to be spurious |
//! | `scoreboard/duplicates` | what D-SACKs tell |
//! | `scoreboard/refused` | what could not leave |
//! | `scoreboard/reported` | the same scoreboard for peers without SACK: what duplicate ACKs tell instead (`mark_without_sack`) |
//! | `tlp` | the last segments of a flight: a probe before the time-out (RFC 8985 §7) |
//! | `undo` | spurious recoveries: Eifel (RFC 3522), D-SACK (RFC 3708), F-RTO (RFC 5682) |
//! | `prr` | how fast the window shrinks while recovering (RFC 6937 and its successor) |
//!
//! A connection in order holds none of this: each state is allocated when the first sign of trouble comes, and freed after it.

mod arrived;
mod marks;
mod newreno;
mod prr;
mod rack;
mod scoreboard;
mod tlp;
mod undo;

use alloc::boxed::Box;
pub(crate) use arrived::Arrived;
pub(crate) use marks::{LostTransmission, Resend};
pub(crate) use newreno::{Duplicate, Verdict};
pub(crate) use rack::ReoWindow;
pub(crate) use scoreboard::{Phase, RACK, Timeout, dsack};
pub(crate) use tlp::{Probe, probe_timeout};
pub(crate) use undo::{Spurious, Undo};

use crate::Instant;
use core::time::Duration;
use newreno::NewReno;
use scoreboard::Scoreboard;
use wire::SeqNum;

/// What the retransmission timer is set for. One timer serves all (as in Linux): each replaces the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The retransmission time-out, or a window probe.
    #[default]
    Timeout,
    /// A segment may only be reordered: is it lost by then (RFC 8985 §6.2 step 5)?
    Reordering,
    /// Nothing was heard of the last segments: a probe goes (RFC 8985 §7).
    Probe,
}

/// The sender's recovery.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    trouble: Option<Box<Trouble>>,
}

/// One of them.
#[derive(Debug, Default)]
struct Trouble {
    /// Peers with SACK.
    board: Option<Scoreboard>,
    /// Peers without.
    newreno: Option<NewReno>,
}

impl Recovery {
    /// The scoreboard, made now if there was none. `sack`: the peer has it.
    pub(crate) fn make_board(
        &mut self,
        (snd_una, sack): (SeqNum, bool),
        reordering: impl FnOnce() -> u32,
    ) -> &mut Scoreboard {
        let trouble = self.trouble.get_or_insert_default();
        trouble.board.get_or_insert_with(|| Scoreboard::new(reordering(), snd_una, sack))
    }

    /// The scoreboard, if there is one.
    #[inline]
    pub(crate) fn board(&self) -> Option<&Scoreboard> {
        self.trouble.as_ref()?.board.as_ref()
    }

    /// The scoreboard, if there is one, to be changed.
    #[inline]
    pub(crate) fn board_mut(&mut self) -> Option<&mut Scoreboard> {
        self.trouble.as_mut()?.board.as_mut()
    }

    #[inline]
    fn newreno(&self) -> Option<&NewReno> {
        self.trouble.as_ref()?.newreno.as_ref()
    }

    #[inline]
    fn newreno_mut(&mut self) -> Option<&mut NewReno> {
        self.trouble.as_mut()?.newreno.as_mut()
    }

    /// What is over is forgotten.
    pub(crate) fn forget(&mut self) {
        let over =
            self.board().is_none_or(Scoreboard::is_over) && self.newreno().is_none_or(NewReno::is_over);
        self.trouble.take_if(|_| over);
    }

    /// A loss was found, and what was sent before is not yet all acknowledged.
    pub(crate) fn is_recovering(&self, snd_una: SeqNum) -> bool {
        let newreno = self.newreno().is_some_and(|newreno| newreno.is_recovering(snd_una));
        newreno || self.board().is_some_and(|board| board.repairs())
    }

    /// Progress gives what is in flight a new time-out.
    pub(crate) fn restarts_timer(&self) -> bool {
        self.newreno().is_none_or(NewReno::restarts_timer)
    }

    /// The window shrinks because congestion was echoed.
    pub(crate) fn is_reducing(&self) -> bool {
        self.board().is_some_and(|board| board.phase == Phase::Reducing)
    }

    /// Delivered out of order, lost and retransmitted, in bytes. A peer without SACK tells the first by duplicates.
    pub(crate) fn sums(&self, flight_size: u32, smss: u32) -> (u32, u32, u32) {
        match (self.board(), self.newreno()) {
            (Some(board), _) => board.sums(),
            (None, Some(newreno)) => (newreno.reported(smss).min(flight_size.saturating_sub(smss)), 0, 0),
            (None, None) => (0, 0, 0),
        }
    }

    /// Nothing is missing, neither here nor at the peer, and nothing is remembered.
    pub(crate) fn is_idle(&self) -> bool {
        self.trouble.is_none()
    }

    /// Segments beyond a hole that make it a loss, if that has been learnt.
    pub(crate) fn reordering(&self) -> Option<u32> {
        match (self.board(), self.newreno()) {
            (Some(board), _) => Some(board.reordering()),
            (None, newreno) => newreno?.reordering(),
        }
    }

    /// Something was delivered out of order, and nothing is held to be lost.
    pub(crate) fn is_disordered(&self) -> bool {
        let board = self.board().is_some_and(|board| !board.repairs() && !board.is_quiet());
        board || self.newreno().is_some_and(|newreno| newreno.is_disordered())
    }

    /// A peer without SACK: everything is retransmitted after a time-out.
    pub(crate) fn is_resending(&self, snd_una: SeqNum) -> bool {
        self.newreno().is_some_and(|newreno| newreno.is_resending(snd_una))
    }

    /// Of what is held to be lost, not all was retransmitted.
    pub(crate) fn resending_waits(&self) -> bool {
        self.board().is_some_and(|board| board.resending_waits())
    }

    /// May a probe be thought of? Not while anything is out of order or lost, nor while one is unanswered. (`new_data_sets_probe` if `anyway`.)
    #[inline]
    pub(crate) fn may_probe(&self, anyway: bool) -> bool {
        self.board().is_none_or(|board| match anyway {
            false => board.is_quiet() && board.probe.is_none(),
            true => board.is_quiet() || board.phase == Phase::Reducing,
        })
    }

    /// Its time has come: does it go? One at a time (RFC 8985 §7.3).
    pub(crate) fn sends_probe(&self) -> bool {
        self.board().is_none_or(|board| !board.repairs() && board.probe.is_none())
    }

    /// Bytes thought to be in the network, of `flight_size` that are not acknowledged (RFC 6675 §4's pipe).
    #[inline]
    pub(crate) fn pipe(&self, flight_size: u32) -> u32 {
        if self.is_idle() { flight_size } else { self.pipe_in_trouble(flight_size) }
    }

    #[inline(never)]
    fn pipe_in_trouble(&self, flight_size: u32) -> u32 {
        match (self.board(), self.newreno()) {
            (Some(board), _) => board.pipe(flight_size),
            (None, Some(newreno)) => newreno.pipe(flight_size),
            (None, None) => flight_size,
        }
    }

    /// The congestion window now, where `cwnd` is the algorithm's: recovery lowers it gradually if `prr`, or adds what has left the
    /// network.
    #[inline(never)]
    pub(crate) fn window(&self, cwnd: u32, prr: bool) -> u32 {
        match (self.board(), self.newreno()) {
            (Some(board), _) if prr => board.window(cwnd),
            (Some(_), _) => cwnd,
            (None, Some(newreno)) => cwnd.saturating_add(newreno.inflation()),
            (None, None) => cwnd,
        }
    }

    /// The window while it shrinks.
    pub(crate) fn shrinking_window(&self) -> Option<u32> {
        let board = self.board().filter(|board| board.shrinks())?;
        Some(board.window(0))
    }

    /// The state for a peer without SACK, made now if there was none.
    fn make_newreno(&mut self, reordering: impl FnOnce() -> u32) -> &mut NewReno {
        let trouble = self.trouble.get_or_insert_default();
        trouble.newreno.get_or_insert_with(|| NewReno::new(reordering()))
    }

    /// A duplicate ACK from a peer without SACK. True beside it: it shows that the path reorders more than was known.
    pub(crate) fn on_duplicate(
        &mut self,
        duplicate: &Duplicate,
        reordering: impl FnOnce() -> u32,
    ) -> (Verdict, bool) {
        let newreno = self.make_newreno(reordering);
        (newreno.on_duplicate(duplicate), newreno.note_reordering(duplicate))
    }

    /// Of `acked` bytes, what duplicate ACKs have not told of: each stands for a segment, and the first of all was missing (Linux's
    /// `tcp_remove_reno_sacks`). The peer has no SACK.
    #[inline]
    pub(crate) fn not_reported(&self, acked: u32, smss: u32) -> u32 {
        match self.newreno() {
            Some(newreno) => acked.saturating_sub(newreno.reported(smss)).max(acked.min(smss)),
            None => acked,
        }
    }

    /// `snd_una` moved by `acked` bytes; the peer has no SACK.
    #[inline]
    pub(crate) fn on_progress(&mut self, snd_una: SeqNum, acked: u32, smss: u32) -> Verdict {
        if self.trouble.is_none() {
            return Verdict::Open;
        }
        self.progress_without_sack(snd_una, acked, smss)
    }

    fn progress_without_sack(&mut self, snd_una: SeqNum, acked: u32, smss: u32) -> Verdict {
        let Some(newreno) = self.newreno_mut() else { return Verdict::Open };
        let verdict = newreno.on_progress(snd_una, acked, smss);
        self.forget();
        verdict
    }

    /// Is what an ACK that makes progress tells enough to call the recovery spurious? The peer has no SACK; `echo` is the time that it
    /// echoes, as milliseconds of our clock.
    pub(crate) fn spurious_without_sack(&self, snd_una: SeqNum, echo: Option<u32>) -> Option<Spurious> {
        let newreno = self.newreno().filter(|newreno| newreno.is_recovering(snd_una))?;
        let undo = newreno.undo.as_ref()?;
        match () {
            () if undo.precedes(echo) => Some(Spurious::Timestamp),
            () => newreno.went_forward().then_some(Spurious::ForwardProgress),
        }
    }

    /// That recovery is over: the windows of before it, whether it was the timer's, and whether the path reorders more than was known
    /// (`most`: `tcp_max_reordering`).
    pub(crate) fn reopen_without_sack(&mut self, snd_una: SeqNum, most: u32) -> Option<(Undo, bool, bool)> {
        let newreno = self.newreno_mut()?;
        let resending = newreno.is_resending(snd_una);
        let (undo, reordered) = newreno.reopen(most)?;
        Some((undo, resending, reordered))
    }

    /// May new data go instead of what the timer held to be lost? Asked after an ACK that made progress; the peer has no SACK.
    pub(crate) fn tries_forward(&mut self, snd_una: SeqNum, new_data: bool) -> bool {
        self.newreno_mut().is_some_and(|newreno| newreno.tries_forward(snd_una, new_data))
    }

    /// What a recovery begins from, should it prove spurious; the peer has no SACK.
    pub(crate) fn remember(&mut self, windows: (u32, u32), snd_una: SeqNum) {
        if let Some(newreno) = self.newreno_mut() {
            newreno.undo = Some(Undo::new(windows, snd_una));
        }
    }

    /// The windows of before a recovery do not come back, should it prove spurious: something else asks for smaller ones, too.
    #[cold]
    pub(crate) fn keep_windows(&mut self) {
        let Some(trouble) = &mut self.trouble else { return };
        let of_board = trouble.board.as_mut().and_then(|board| board.undo.as_mut());
        let of_newreno = trouble.newreno.as_mut().and_then(|newreno| newreno.undo.as_mut());
        of_board.into_iter().chain(of_newreno).for_each(|undo| undo.windows = None);
    }

    /// The first unacknowledged segment went again, but has not left.
    #[cold]
    pub(crate) fn want_head_again(&mut self) {
        if let Some(newreno) = self.newreno_mut() {
            newreno.retransmit_head = true;
        }
    }

    /// `len` bytes went again; the peer has no SACK.
    pub(crate) fn resent(&mut self, now: Instant, len: u32) {
        if let Some(undo) = self.newreno_mut().and_then(|newreno| newreno.undo.as_mut()) {
            undo.on_resent(now, len);
        }
    }

    /// The timer takes over: everything is retransmitted from the first number of `span`, `snd_una`; the other is `snd_max`. The peer has
    /// no SACK. `begun` is what the recovery begins from, should it prove spurious; F-RTO watches it if `watch`.
    pub(crate) fn on_timeout(
        &mut self,
        span: (SeqNum, SeqNum),
        begun: Option<Undo>,
        watch: bool,
        reordering: impl FnOnce() -> u32,
    ) {
        self.make_newreno(reordering).on_timeout(span, begun, watch);
    }

    /// After a time-out: silence began now if it was the `first`, else with the first.
    pub(crate) fn fell_silent(&mut self, now: Instant, first: bool) {
        let Some(trouble) = &mut self.trouble else { return };
        let since = match (&mut trouble.board, &mut trouble.newreno) {
            (Some(board), _) => &mut board.silent_since,
            (None, Some(newreno)) => &mut newreno.silent_since,
            (None, None) => return,
        };
        *since = since.filter(|_| !first).or(Some(now));
    }

    /// Time since the first time-out in a row.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        let since = match (self.board(), self.newreno()) {
            (Some(board), _) => board.silent_since,
            (None, newreno) => newreno.and_then(|newreno| newreno.silent_since),
        };
        since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// The first unacknowledged segment is to be retransmitted.
    pub(crate) fn wants_head(&self) -> bool {
        self.newreno().is_some_and(|newreno| newreno.retransmit_head)
    }

    /// As [`wants_head`](Self::wants_head), asked once.
    pub(crate) fn take_retransmit_head(&mut self) -> bool {
        self.newreno_mut().is_some_and(|newreno| core::mem::take(&mut newreno.retransmit_head))
    }
}
