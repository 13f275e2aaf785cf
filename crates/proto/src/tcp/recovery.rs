//! What is lost. How much may be sent is `congestion`'s, which segment goes now `output`'s.
//!
//! | file | subject |
//! |---|---|
//! | `scoreboard` | what the peer holds, what is lost, what was retransmitted; the pipe (RFC 6675) |
//! | `arrived` | what one ACK reported |
//! | `marks` | the bits on the segments, and their sums |
//! | `rack` | loss found by time (RFC 8985), with the adaptive reordering window |
//! | `scoreboard/timeout` | what a time-out marks, and what shows it to be spurious |
//! | `scoreboard/duplicates` | what D-SACKs tell |
//! | `scoreboard/refused` | what could not leave |
//! | `scoreboard/reported` | peers without SACK: what duplicate ACKs tell instead (RFC 6582) |
//! | `tlp` | the last segments of a flight: a probe before the time-out (RFC 8985 §7) |
//! | `undo` | spurious recoveries: Eifel (RFC 3522), D-SACK (RFC 3708), F-RTO (RFC 5682) |
//! | `prr` | how fast the window shrinks while recovering (RFC 6937 and its successor) |
//!
//! A connection in order holds none of this: each state is allocated when the first sign of trouble comes, and freed after it.

mod arrived;
mod marks;
mod prr;
mod rack;
mod scoreboard;
mod tlp;
mod undo;

use alloc::boxed::Box;
pub(crate) use arrived::Arrived;
pub(crate) use marks::{LostTransmission, Resend};
pub(crate) use rack::ReoWindow;
pub(crate) use scoreboard::{Phase, RACK, Timeout, dsack};
pub(crate) use tlp::{Probe, probe_timeout};
pub(crate) use undo::{Spurious, Undo};

use crate::{Config, Instant};
use core::time::Duration;
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
    board: Option<Box<Scoreboard>>,
}

impl Recovery {
    /// The scoreboard, made now if there was none. `sack`: the peer has it.
    pub(crate) fn make_board(
        &mut self,
        snd_una: SeqNum,
        sack: bool,
        reordering: impl FnOnce() -> u32,
    ) -> &mut Scoreboard {
        self.board.get_or_insert_with(|| Box::new(Scoreboard::new(reordering(), snd_una, sack)))
    }

    /// The scoreboard, if there is one.
    #[inline]
    pub(crate) fn board(&self) -> Option<&Scoreboard> {
        self.board.as_deref()
    }

    /// The scoreboard, if there is one, to be changed.
    #[inline]
    pub(crate) fn board_mut(&mut self) -> Option<&mut Scoreboard> {
        self.board.as_deref_mut()
    }

    /// What is over is forgotten.
    pub(crate) fn forget(&mut self) {
        self.board.take_if(|board| board.is_over());
    }

    /// A loss was found, and what was sent before is not yet all acknowledged.
    pub(crate) fn is_recovering(&self) -> bool {
        self.board().is_some_and(|board| board.repairs())
    }

    /// Progress gives what is in flight a new time-out.
    #[inline]
    pub(crate) fn restarts_timer(&self, config: &Config) -> bool {
        self.board().is_none_or(|board| board.restarts_timer(config.newreno_rules))
    }

    /// The window shrinks because congestion was echoed.
    pub(crate) fn is_reducing(&self) -> bool {
        self.board().is_some_and(|board| board.phase == Phase::Reducing)
    }

    /// Delivered out of order, lost and retransmitted, in bytes. A peer without SACK tells the first by duplicates.
    pub(crate) fn sums(&self) -> (u32, u32, u32) {
        self.board().map_or((0, 0, 0), Scoreboard::sums)
    }

    /// Bytes that duplicates of a peer without SACK reported as arrived.
    pub(crate) fn reported(&self) -> u32 {
        self.board().map_or(0, Scoreboard::reported_bytes)
    }

    /// Nothing is missing, neither here nor at the peer, and nothing is remembered.
    pub(crate) fn is_idle(&self) -> bool {
        self.board.is_none()
    }

    /// Segments beyond a hole that make it a loss, if that has been learnt.
    pub(crate) fn reordering(&self) -> Option<u32> {
        self.board().map(Scoreboard::reordering)
    }

    /// Something was delivered out of order, and nothing is held to be lost.
    pub(crate) fn is_disordered(&self) -> bool {
        self.board().is_some_and(|board| !board.repairs() && !board.is_quiet())
    }

    /// Of what is held to be lost, not all was retransmitted.
    pub(crate) fn resending_waits(&self) -> bool {
        self.board().is_some_and(|board| board.resending_waits())
    }

    /// May a probe be thought of? Not while anything is out of order or lost, nor while one is unanswered. (`probe_rules` if `anyway`.)
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
        self.board().map_or(flight_size, |board| board.pipe(flight_size))
    }

    /// The congestion window now, where `cwnd` is the algorithm's: recovery lowers it gradually if `prr`.
    #[inline(never)]
    pub(crate) fn window(&self, cwnd: u32, prr: bool) -> u32 {
        self.board().filter(|_| prr).map_or(cwnd, |board| board.window(cwnd))
    }

    /// The window while it shrinks.
    pub(crate) fn shrinking_window(&self) -> Option<u32> {
        let board = self.board().filter(|board| board.shrinks())?;
        Some(board.window(0))
    }

    /// The windows of before a recovery do not come back, should it prove spurious: something else asks for smaller ones, too.
    #[cold]
    pub(crate) fn keep_windows(&mut self) {
        if let Some(undo) = self.board_mut().and_then(|board| board.undo.as_mut()) {
            undo.windows = None;
        }
    }

    /// After a time-out: silence began now if it was the `first`, else with the first.
    pub(crate) fn fell_silent(&mut self, now: Instant, first: bool) {
        if let Some(board) = self.board_mut() {
            board.silent_since = board.silent_since.filter(|_| !first).or(Some(now));
        }
    }

    /// Time since the first time-out in a row.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        let since = self.board().and_then(|board| board.silent_since);
        since.map_or(Duration::ZERO, |since| now.since(since))
    }
}
