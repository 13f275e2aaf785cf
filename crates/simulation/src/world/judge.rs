//! What must hold when the world is quiet: both ends of every connection have said and heard
//! everything, or something in the world is the reason why not.

use super::app::{App, Fate};
use super::{CLIENT, Failure, SERVER, World};
use crate::excuse::{Facts, Side, find};
use core::time::Duration;
use proto::State;

impl World<'_> {
    pub(super) fn judge(&mut self) -> Result<(), Failure> {
        for which in 0..self.apps.len() {
            if self.apps[which][CLIENT].is_none() || !self.is_strict(which) {
                // `connect` said why, or nobody can tell.
                continue;
            }
            for side in [CLIENT, SERVER] {
                self.judge_end(side, which)?;
            }
        }
        Ok(())
    }

    fn judge_end(&mut self, side: usize, which: usize) -> Result<(), Failure> {
        let fate = self.apps[which][side].as_ref().map(|app| app.fate);
        if matches!(fate, Some(Fate::Complete | Fate::Left)) {
            return Ok(());
        }
        let facts =
            Facts { scenario: self.scenario, sides: [CLIENT, SERVER].map(|side| self.facts_of(side, which)) };
        match find(&facts, side) {
            Some(excuse) => {
                self.say(format_args!("{side}/{which}: {fate:?}: {excuse}"));
                *self.excused.entry(excuse).or_default() += 1;
                Ok(())
            }
            None => {
                let kind = match fate {
                    Some(Fate::Ended(reason)) => format!("ended without a reason: {reason:?}"),
                    None => "never accepted".to_owned(),
                    _ => "waits for ever".to_owned(),
                };
                let seen = format!(
                    "side {side}, connection {which}: {}; the other end: {}; over {:?}; the wire has seen {:?}; dropped by {side}: {:?}, by the other: {:?}",
                    self.describe(side, which),
                    self.describe(1 - side, which),
                    [&facts.sides[side].over, &facts.sides[1 - side].over],
                    self.accounts[which],
                    self.dropped(side),
                    self.dropped(1 - side),
                );
                Err(Failure { kind, seen })
            }
        }
    }

    pub(super) fn facts_of(&self, side: usize, which: usize) -> Side<'_> {
        let app = self.apps[which][side].as_ref();
        let busy = app.filter(|app| app.fate == Fate::Busy);
        let info = busy.and_then(|app| self.stacks[side].info(app.id));
        let open = info.as_ref().filter(|info| !matches!(info.state, State::Closed | State::TimeWait));
        Side {
            fate: app.map(|app| app.fate),
            over: app.and_then(|app| match (&app.over, app.fate) {
                (None, Fate::Complete) => Some((self.now, self.accounts[which][side].clone())),
                (over, _) => over.clone(),
            }),
            account: &self.accounts[which][side],
            configs: &self.configs[side],
            counters: self.stacks[side].counters(),
            drops: self.stacks[side].drops(),
            begun_at: app.map(|app| app.begun_at),
            closed_at: app.and_then(|app| app.closed_at),
            options: match side {
                CLIENT => &self.scenario.connections[which].ends[CLIENT].options,
                _ => &self.scenario.listener.options,
            },
            steps: &self.scenario.connections[which].ends[side].steps,
            slept: self.slept(),
            reads_no_more: app.is_some_and(|app| app.reads_no_more && app.shut),
            undelivered: open.is_some_and(|info| info.send_queue > 0 || info.flight_size > 0),
            misses_end: busy.is_some() && info.as_ref().is_none_or(|info| info.state == State::Closed),
            misses_text: info.as_ref().is_some_and(|info| info.recv_queue > 0),
        }
    }

    /// How long the machine has slept so far.
    pub(super) fn slept(&self) -> Duration {
        let sleeps = &self.scenario.sleeps[..self.sleeps_done];
        sleeps.iter().map(|(_, ms)| Duration::from_millis(*ms)).sum()
    }

    /// What the stack of this side has dropped, and why.
    fn dropped(&self, side: usize) -> Vec<(proto::DropReason, u64)> {
        self.stacks[side].drops().all().filter(|(_, times)| *times > 0).collect()
    }

    /// How every connection stands that is not over.
    pub(super) fn describe_all(&self) -> String {
        let busy = |which: &usize| self.apps[*which].iter().flatten().any(|app| app.fate == Fate::Busy);
        let one =
            |which| format!("; {which}: {} │ {}", self.describe(CLIENT, which), self.describe(SERVER, which));
        (0..self.apps.len()).filter(busy).map(one).collect()
    }

    fn describe(&self, side: usize, which: usize) -> String {
        let Some(App { id, fate, written, read, eof, shut, .. }) = &self.apps[which][side] else {
            return "not there".to_owned();
        };
        let info = self.stacks[side].info(*id);
        let info = info.map(|info| {
            format!(
                ", {:?}, cwnd {}, in flight {}, send queue {}, snd_wnd {}, rcv_wnd {}, unread {}, MSS {}, limited by {:?}",
                info.state,
                info.cwnd,
                info.flight_size,
                info.send_queue,
                info.snd_wnd,
                info.rcv_wnd,
                info.recv_queue,
                info.snd_mss,
                info.limits
            )
        });
        format!("{fate:?}, wrote {written}, read {read}, eof {eof}, shut {shut}{}", info.unwrap_or_default())
    }
}
