//! Two samples and the time between them: what a rule judges.
use crate::finding::Evidence;
use crate::limit::{Limit, Limits};
use crate::sample::{Address, Sample, Socket};
use std::cell::OnceCell;
use std::collections::HashMap;

/// What a rule sees: the state now, and what has grown since.
#[derive(Clone, Debug)]
pub struct Window<'a> {
    before: Option<&'a Sample>,
    /// The later sample.
    pub now: &'a Sample,
    limits: &'a Limits,
    /// Where each socket stands in the earlier sample; made when a rule first asks.
    earlier: OnceCell<HashMap<Ends, usize>>,
}

type Ends = (Address, u16, Address, u16);

impl<'a> Window<'a> {
    /// What happened between two samples.
    pub fn between(before: &'a Sample, now: &'a Sample) -> Window<'a> {
        Window { before: Some(before), now, limits: Limits::USUAL, earlier: OnceCell::new() }
    }

    /// What happened since boot.
    pub fn since_boot(now: &'a Sample) -> Window<'a> {
        Window { before: None, now, limits: Limits::USUAL, earlier: OnceCell::new() }
    }

    /// Judged by these thresholds.
    pub fn by(self, limits: &'a Limits) -> Window<'a> {
        Window { limits, ..self }
    }

    /// The value of a threshold.
    pub fn limit(&self, limit: &Limit) -> f64 {
        self.limits.of(limit)
    }

    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        (self.now.uptime - self.before.map_or(0.0, |before| before.uptime)).max(0.001)
    }

    /// Its name in evidence.
    pub fn name(&self) -> String {
        if self.before.is_some() { format!("{:.1} s", self.seconds()) } else { "since boot".to_owned() }
    }

    /// What was added to a counter; 0 where this kernel has no such counter.
    pub fn grown(&self, counter: &str) -> u64 {
        let of = |sample: &Sample| sample.counters.get(counter).copied().unwrap_or(0);
        of(self.now).saturating_sub(self.before.map_or(0, of))
    }

    /// The earlier sample, if there is one.
    pub fn before(&self) -> Option<&'a Sample> {
        self.before
    }

    /// A socket as it was in the earlier sample.
    pub fn earlier(&self, socket: &Socket) -> Option<&'a Socket> {
        let before = self.before?;
        let places = self.earlier.get_or_init(|| {
            before.sockets.iter().enumerate().map(|(place, socket)| (socket.key(), place)).collect()
        });
        places.get(&socket.key()).and_then(|place| before.sockets.get(*place))
    }

    /// Does it hold for this socket, and did it in the earlier sample, if there is one?
    pub fn holds_in_each(&self, socket: &Socket, holds: impl Fn(&Socket) -> bool) -> bool {
        holds(socket) && (self.before.is_none() || self.earlier(socket).is_some_and(holds))
    }

    /// What was added to a listener's drops.
    pub fn drops_grown(&self, listener: &Socket) -> u32 {
        listener.drops().saturating_sub(self.earlier(listener).map_or(0, Socket::drops))
    }

    /// Evidence: what happened in the window.
    pub fn during(&self, name: impl Into<String>, value: impl ToString) -> Evidence {
        Evidence { name: name.into(), value: value.to_string(), window: self.name() }
    }

    /// Evidence: what was added to a counter.
    pub fn counted(&self, counter: &str) -> Evidence {
        Evidence { name: counter.to_owned(), value: format!("+{}", self.grown(counter)), window: self.name() }
    }

    /// Evidence: what holds now.
    pub fn shown(&self, name: impl Into<String>, value: impl ToString) -> Evidence {
        Evidence { name: name.into(), value: value.to_string(), window: "now".to_owned() }
    }

    /// Evidence: a setting, as it is now.
    pub fn set(&self, name: &str) -> Evidence {
        self.shown(name, self.now.setting(name).unwrap_or("absent"))
    }
}
