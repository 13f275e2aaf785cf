//! What both applications do: write, read, pause, set options, move, half-close, close, abort.
//!
//! They act on events and on their own clock only, so that a wake-up that is missing is a stall,
//! and a stall is found.

use super::ledger::Account;
use super::text::Text;
use super::{CLIENT, Failure, SERVER, World, ledger, socket};
use crate::excuse::GIVEN_UP;
use crate::scenario::Step;
use core::time::Duration;
use proto::{
    CloseReason, ConnId, ConnectError, ConnectOptions, Events, FastOpen, Instant, ReadError, SocketId, State,
    WriteError, WriteFlags,
};
use std::net::SocketAddr;

/// The state of an end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Still at it.
    Busy,
    /// Has said and heard everything, and let go.
    Complete,
    /// Let go early, as its scenario says.
    Left,
    /// Was told that the connection is over.
    Ended(CloseReason),
}

pub(crate) struct App {
    pub(super) id: ConnId,
    pub(crate) fate: Fate,
    /// Place in its steps.
    step: usize,
    /// Of the step that writes: what it has written.
    of_step: u64,
    pub(crate) written: u64,
    pub(crate) read: u64,
    /// No more comes: the stream's end was read.
    pub(crate) eof: bool,
    /// No more goes.
    pub(crate) shut: bool,
    readable: bool,
    writable: bool,
    steps_from: Instant,
    reads_from: Instant,
    pauses_done: usize,
    /// Places in the stream behind bytes that it called urgent.
    pub(super) urgent: Vec<u64>,
    /// When its connection was over, and how it stood then.
    pub(super) over: Option<(Instant, Account)>,
    pub(super) begun_at: Instant,
    /// When it let go, having said and heard everything.
    pub(super) closed_at: Option<Instant>,
    /// It has said that it will read no more.
    pub(super) reads_no_more: bool,
}

impl App {
    fn new(id: ConnId, now: Instant) -> App {
        App {
            id,
            fate: Fate::Busy,
            step: 0,
            of_step: 0,
            written: 0,
            read: 0,
            eof: false,
            shut: false,
            readable: true,
            writable: true,
            steps_from: now,
            reads_from: now,
            pauses_done: 0,
            urgent: Vec::new(),
            over: None,
            begun_at: now,
            closed_at: None,
            reads_no_more: false,
        }
    }

    /// When it wants to act without an event.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        if self.fate != Fate::Busy {
            return None;
        }
        let reads = (self.readable && !self.eof).then_some(self.reads_from);
        [Some(self.steps_from), reads].into_iter().flatten().filter(|at| *at > now).min()
    }

    pub(super) fn is_over(&self) -> bool {
        self.fate != Fate::Busy
    }
}

impl World<'_> {
    /// Every application that has a reason to act does.
    pub(super) fn run_apps(&mut self) -> Result<(), Failure> {
        self.open_due();
        if self.to_accept.is_some_and(|at| at <= self.now) {
            self.accept_all()?;
        }
        for side in [CLIENT, SERVER] {
            self.collect_events(side)?;
            for which in 0..self.apps.len() {
                let Some(mut app) = self.apps[which][side].take() else { continue };
                if app.is_over() {
                    self.apps[which][side] = Some(app);
                    continue;
                }
                let acted = self.act(side, which, &mut app);
                if app.is_over() {
                    self.wire.progress(self.now);
                    self.by_id[side].remove(&app.id);
                }
                self.apps[which][side] = Some(app);
                acted?;
            }
        }
        Ok(())
    }

    /// Connections that a timer has ended, whoever still holds them, before anything more arrives.
    pub(super) fn note_endings(&mut self) {
        for side in [CLIENT, SERVER] {
            for (which, apps) in self.apps.iter_mut().enumerate() {
                let Some(app) = apps[side].as_mut().filter(|app| app.over.is_none()) else { continue };
                if app.fate == Fate::Complete {
                    // Nobody can ask the stack about it any more; a reset tells (`note_reset`).
                    continue;
                }
                if matches!(self.stacks[side].state(app.id), None | Some(State::Closed)) {
                    app.over = Some((self.now, self.accounts[which][side].clone()));
                }
            }
        }
    }

    /// A reset leaves one end: a connection that its application has let go is over by then.
    pub(super) fn note_reset(&mut self, side: usize, which: usize) {
        if let Some(app) = self.apps[which][side].as_mut().filter(|app| app.fate == Fate::Complete) {
            app.over.get_or_insert_with(|| (self.now, self.accounts[which][side].clone()));
        }
    }

    fn open_due(&mut self) {
        let now = self.now;
        let due: Vec<usize> = {
            let start = self.start;
            let plans = &self.scenario.connections;
            let is_due = |which: &usize| start + Duration::from_millis(plans[*which].at_ms) <= now;
            self.to_open.extract_if(.., |which| is_due(which)).collect()
        };
        for which in due {
            let plan = &self.scenario.connections[which];
            let first_bytes = Text::of(CLIENT, which).bytes(0, plan.first_bytes.into());
            let options = ConnectOptions {
                fast_open: [FastOpen::Off, FastOpen::Auto, FastOpen::Force, FastOpen::NoCookie]
                    [usize::from(plan.fast_open % 4)],
                data_less: plan.data_less,
                fin: plan.fin,
                syn_fin: plan.syn_fin,
                socket: socket(self.scenario, &plan.ends[CLIENT].options, self.addresses[SERVER]),
                first_bytes,
                ..ConnectOptions::default()
            };
            let name = SocketAddr::new(self.addresses[SERVER], 80);
            let opened = self.stacks[CLIENT].connect(self.now, name, options);
            self.say(format_args!("connection {which}: {opened:?}"));
            // A setting may leave no port, no room, or no Fast Open: nothing begins then.
            let Ok(id) = opened else { continue };
            let Some((local, _)) = self.stacks[CLIENT].names(id) else { continue };
            if let Some(before) = self.by_port.insert(local.port(), which) {
                // Which of the two the server means by it, nobody can say.
                self.mistakable.extend([before, which]);
            }
            let mut app = App::new(id, self.now);
            app.written = plan.first_bytes.into();
            app.shut = plan.fin;
            self.by_id[CLIENT].insert(id, which);
            self.apps[which][CLIENT] = Some(app);
        }
    }

    fn collect_events(&mut self, side: usize) -> Result<(), Failure> {
        while let Some((socket, events)) = self.stacks[side].poll_event() {
            match socket {
                SocketId::Listener(_) => {
                    let at = self.now + Duration::from_millis(self.scenario.listener.accepts_after_ms);
                    self.to_accept = Some(self.to_accept.map_or(at, |before| before.min(at)));
                    if self.scenario.listener.accepts_after_ms == 0 {
                        // The next look at it comes in the same round.
                        self.to_accept = Some(self.now);
                    }
                }
                SocketId::Connection(id) => {
                    let Some(which) = self.by_id[side].get(&id) else { continue };
                    let Some(app) = &mut self.apps[*which][side] else { continue };
                    if events.contains(Events::CLOSED) {
                        app.over.get_or_insert_with(|| (self.now, self.accounts[*which][side].clone()));
                    }
                    app.readable |= events.intersects(Events::READABLE | Events::CLOSED | Events::URGENT);
                    app.writable |= events.intersects(Events::WRITABLE | Events::CONNECTED | Events::CLOSED);
                }
            }
        }
        if side == SERVER && self.to_accept.is_some_and(|at| at <= self.now) {
            self.accept_all()?;
        }
        Ok(())
    }

    fn accept_all(&mut self) -> Result<(), Failure> {
        self.to_accept = None;
        while let Ok((id, peer)) = self.stacks[SERVER].accept(self.now, self.listener) {
            let known = self.by_port.get(&peer.port()).copied();
            self.say(format_args!("accepted {known:?} from {peer}"));
            let which = known.filter(|which| self.apps[*which][SERVER].is_none());
            // A client that falls back to a plain SYN when its SYN with data is reset
            // (`firstbyte.fast_open_verdicts`) meets a server again which aborted at once.
            let aborted = known.is_some_and(|which| {
                self.apps[which][SERVER].as_ref().is_some_and(|app| app.fate == Fate::Left)
            });
            let brought_text = self.stacks[SERVER].early_data(id).is_some_and(|early| early.len > 0);
            // An old SYN of another connection between the same ports is as good as a new one.
            let mistakable = known.is_some_and(|which| self.mistakable.contains(&which));
            self.watch_accepted(peer.ip(), known, which.is_none() && !aborted && !mistakable, brought_text)?;
            let Some(which) = which else {
                // A copy of a SYN, or a packet of an attacker: nobody has anything to say to it.
                self.stacks[SERVER].abort(self.now, id);
                *self.excused.entry("a SYN was accepted twice").or_default() += 1;
                continue;
            };
            self.by_id[SERVER].insert(id, which);
            self.apps[which][SERVER] = Some(App::new(id, self.now));
        }
        Ok(())
    }

    fn act(&mut self, side: usize, which: usize, app: &mut App) -> Result<(), Failure> {
        self.read(side, which, app)?;
        self.take_steps(side, which, app)?;
        self.read(side, which, app)?;
        if !app.is_over() && app.shut && app.eof {
            // Meanwhile the stack may have given up what was written: whoever reads on behind the
            // end is told.
            if let Err(ReadError::Closed(reason)) = self.stacks[side].read(self.now, app.id, &mut [0])
                && GIVEN_UP.contains(&reason)
            {
                self.ended(side, which, app, reason);
                return Ok(());
            }
            app.fate = Fate::Complete;
            app.closed_at = Some(self.now);
            self.stacks[side].close(self.now, app.id);
            self.say(format_args!("{side}/{which} closes"));
        }
        Ok(())
    }

    fn read(&mut self, side: usize, which: usize, app: &mut App) -> Result<(), Failure> {
        let end = &self.scenario.connections[which].ends[side];
        while !app.is_over() && app.readable && !app.eof && self.now >= app.reads_from {
            self.watch_urgent(side, which, app)?;
            let most = 1 + self.random.below(u64::from(end.read_most)) as usize;
            if self.read_into.len() < most {
                self.read_into.resize(most, 0);
            }
            match self.stacks[side].read(self.now, app.id, &mut self.read_into[..most]) {
                Ok(0) => {
                    app.eof = true;
                    self.say(format_args!("{side}/{which} read {} bytes to the end", app.read));
                    self.check_end_of_stream(side, which, app)?;
                }
                Ok(read) => {
                    self.check_text(side, which, app.read, &self.read_into[..read])?;
                    app.read += read as u64;
                    self.wire.progress(self.now);
                    if let Some((after, ms)) = end.pauses.get(app.pauses_done)
                        && app.read >= *after
                    {
                        app.pauses_done += 1;
                        app.reads_from = self.now + Duration::from_millis(*ms);
                    }
                }
                Err(ReadError::Blocked) => app.readable = false,
                Err(ReadError::Closed(reason)) => self.ended(side, which, app, reason),
                Err(ReadError::NotFound) => {
                    return Err(Failure::new(
                        "a connection is gone that nobody closed",
                        format_args!("{side}/{which}"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// What is read is what was written, or somebody who knew the numbers wrote it.
    fn check_text(&self, side: usize, which: usize, from: u64, text: &[u8]) -> Result<(), Failure> {
        match Text::of(1 - side, which).differs(from, text) {
            Some(at) if self.is_strict(which) => {
                Err(Failure::new("wrong bytes", format_args!("{side}/{which} at {at}")))
            }
            _ => Ok(()),
        }
    }

    /// The end of the stream comes behind everything that was written, and only if the writer said
    /// so.
    fn check_end_of_stream(&self, side: usize, which: usize, app: &App) -> Result<(), Failure> {
        let Some(writer) = &self.apps[which][1 - side] else {
            let first = u64::from(self.scenario.connections[which].first_bytes);
            let nothing = side == CLIENT || app.read < first;
            return match nothing && self.is_strict(which) {
                true => Err(Failure::new("an end that nobody wrote", format_args!("{side}/{which}"))),
                false => Ok(()),
            };
        };
        let ended = writer.shut || matches!(writer.fate, Fate::Complete | Fate::Left);
        if self.is_strict(which) && (!ended || app.read != writer.written) {
            let seen = format!(
                "{side}/{which} read {} of {}; the other end has {}ended: {:?}",
                app.read,
                writer.written,
                if ended { "" } else { "not " },
                writer.fate
            );
            return Err(Failure::new("the stream ends early", seen));
        }
        Ok(())
    }

    /// Nobody forges, and nobody else has this connection's ports, so that every byte must be
    /// right.
    pub(super) fn is_strict(&self, which: usize) -> bool {
        self.scenario.is_judged() && !self.mistakable.contains(&which)
    }

    fn ended(&mut self, side: usize, which: usize, app: &mut App, reason: CloseReason) {
        self.say(format_args!("{side}/{which} is told: {reason:?}"));
        app.fate = Fate::Ended(reason);
        self.stacks[side].close(self.now, app.id);
    }

    fn take_steps(&mut self, side: usize, which: usize, app: &mut App) -> Result<(), Failure> {
        let end = &self.scenario.connections[which].ends[side];
        while !app.is_over() && self.now >= app.steps_from {
            let Some(step) = end.steps.get(app.step) else {
                self.finish(side, which, app);
                break;
            };
            let done = match step {
                Step::Write { len, flags } => {
                    self.write(side, which, app, u64::from(*len), WriteFlags::from_bits_truncate(*flags))
                }
                Step::Pause(ms) => {
                    app.steps_from = self.now + Duration::from_millis(*ms);
                    true
                }
                Step::Await(bytes) => {
                    app.read >= (*bytes).min(self.scenario.connections[which].says(1 - side)) || app.eof
                }
                Step::Push => {
                    self.stacks[side].push(self.now, app.id);
                    true
                }
                Step::Set(option) => {
                    if let Some(option) = option.live() {
                        let set = self.stacks[side].set_option(self.now, app.id, option);
                        self.say(format_args!("{side}/{which} {option:?}: {set:?}"));
                    }
                    true
                }
                Step::Move => {
                    self.move_connection(side, which, app)?;
                    true
                }
                Step::ReadNoMore => {
                    self.stacks[side].shutdown_read(self.now, app.id);
                    app.reads_no_more = true;
                    true
                }
                Step::Close => {
                    self.say(format_args!("{side}/{which} leaves"));
                    app.fate = Fate::Left;
                    self.stacks[side].close(self.now, app.id);
                    true
                }
                Step::Abort => {
                    self.say(format_args!("{side}/{which} aborts"));
                    app.fate = Fate::Left;
                    self.stacks[side].abort(self.now, app.id);
                    true
                }
            };
            if !done {
                break;
            }
            app.step += 1;
            app.of_step = 0;
        }
        Ok(())
    }

    /// Nothing more to say.
    fn finish(&mut self, side: usize, which: usize, app: &mut App) {
        let end = &self.scenario.connections[which].ends[side];
        if app.shut || end.shuts_last && !app.eof {
            return;
        }
        app.shut = true;
        if end.close_shuts && app.eof {
            return;
        }
        let shut = self.stacks[side].shutdown(self.now, app.id);
        self.say(format_args!("{side}/{which} shuts down after {} bytes: {shut:?}", app.written));
        if let Err(WriteError::Closed(reason)) = shut {
            self.ended(side, which, app, reason);
        }
    }

    /// True: the step is done.
    fn write(&mut self, side: usize, which: usize, app: &mut App, len: u64, flags: WriteFlags) -> bool {
        if app.shut {
            return true;
        }
        while app.writable && app.of_step < len {
            let from = app.written;
            let most = (len - app.of_step).min(1 + self.random.magnitude(100_000));
            let mut data = Text::of(side, which).bytes(from, most);
            let taken = match self.random.below(4) {
                0 if flags.is_empty() => self.stacks[side].write_bytes(self.now, app.id, &mut data),
                _ => self.stacks[side].write_with(self.now, app.id, &data, flags),
            };
            match taken {
                Ok(taken) => {
                    self.wire.progress(self.now);
                    app.written += taken as u64;
                    app.of_step += taken as u64;
                    if flags.contains(WriteFlags::URGENT) && taken > 0 {
                        app.urgent.push(app.written);
                    }
                }
                Err(WriteError::Blocked) => app.writable = false,
                Err(WriteError::Closed(reason)) => {
                    self.ended(side, which, app, reason);
                    return true;
                }
                Err(WriteError::Shutdown | WriteError::NotFound) => return true,
            }
        }
        app.of_step >= len
    }

    fn move_connection(&mut self, side: usize, which: usize, app: &mut App) -> Result<(), Failure> {
        let Some(saved) = self.stacks[side].save_connection(self.now, app.id) else { return Ok(()) };
        let options = self.stacks[side].options(app.id).unwrap_or_default();
        self.stacks[side].discard(self.now, app.id);
        self.by_id[side].remove(&app.id);
        match self.stacks[side].restore_connection(self.now, &saved, options) {
            Ok(id) => {
                self.say(format_args!("{side}/{which} has moved"));
                // What it held out of order stays behind, although the other end has been told of
                // it (as with `TCP_REPAIR`).
                ledger::is_harmed(&mut self.accounts[which], 1 - side, self.now);
                (app.id, app.readable, app.writable) = (id, true, true);
                self.by_id[side].insert(id, which);
            }
            Err(error @ (ConnectError::TooMany | ConnectError::Rejected(_))) => {
                self.say(format_args!("{side}/{which} could not move: {error:?}"));
                app.fate = Fate::Left;
            }
            Err(error) => {
                let seen = format!("{side}/{which}: {error:?}");
                return Err(Failure::new("a connection cannot be restored where it was", seen));
            }
        }
        Ok(())
    }
}
