//! The observation window: two samples and the time between them. Rules judge a window.
use crate::finding::Evidence;
use crate::flood::Flood;
use crate::limit::{Limit, Limits};
use crate::sample::{Address, Sample, Socket, state};
use hashbrown::HashMap;
use std::cell::{Cell, OnceCell};

/// The present state, and the growth of counters since an earlier sample or since boot.
#[derive(Clone, Debug)]
pub struct Window<'a> {
    before: Option<&'a Sample>,
    /// The later sample.
    pub now: &'a Sample,
    limits: &'a Limits,
    /// Indexes of sockets by state. Built on first use, like the fields below, because there may be
    /// hundreds of thousands of sockets.
    states: OnceCell<Vec<Vec<usize>>>,
    /// Indexes of the listeners in the earlier sample.
    listeners: OnceCell<HashMap<Ends, usize>>,
    /// Indexes of all sockets in the earlier sample.
    earlier: OnceCell<HashMap<Ends, usize>>,
    /// The current SYN flood, if there is one. Cached, because several rules ask for it.
    flood: OnceCell<Option<Flood>>,
    /// The reason why the current rule cannot be judged, if it has given one.
    lacking: Cell<Option<&'static str>>,
}

type Ends = (Address, u16, Address, u16);

/// Number of states that the kernel knows, plus one for unknown states.
const STATES: usize = 14;

impl<'a> Window<'a> {
    /// Creates a window between two samples.
    pub fn between(before: &'a Sample, now: &'a Sample) -> Window<'a> {
        Window { before: Some(before), ..Window::since_boot(now) }
    }

    /// Creates a window from boot to this sample.
    pub fn since_boot(now: &'a Sample) -> Window<'a> {
        let limits = Limits::USUAL;
        let (states, listeners, earlier) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Window {
            before: None,
            now,
            limits,
            states,
            listeners,
            earlier,
            flood: OnceCell::new(),
            lacking: Cell::new(None),
        }
    }

    /// Replaces the thresholds.
    pub fn by(self, limits: &'a Limits) -> Window<'a> {
        Window { limits, ..self }
    }

    /// Returns the thresholds.
    pub(crate) fn limits(&self) -> &'a Limits {
        self.limits
    }

    /// Returns the value of a threshold.
    pub fn limit(&self, limit: &Limit) -> f64 {
        self.limits.of(limit)
    }

    /// Returns the length in seconds.
    pub fn seconds(&self) -> f64 {
        (self.now.uptime - self.before.map_or(0.0, |before| before.uptime)).max(0.001)
    }

    /// Returns the name that evidence uses, like "5.0 s".
    pub fn name(&self) -> String {
        if self.before.is_some() { format!("{:.1} s", self.seconds()) } else { "since boot".to_owned() }
    }

    /// Returns the growth of a counter, or 0 if the kernel has no such counter.
    pub fn grown(&self, counter: &str) -> u64 {
        let of = |sample: &Sample| sample.counters.get(counter).copied().unwrap_or(0);
        of(self.now).saturating_sub(self.before.map_or(0, of))
    }

    /// Returns the earlier sample, if there is one.
    pub fn before(&self) -> Option<&'a Sample> {
        self.before
    }

    /// Returns the flood that `find` finds. Calls `find` only once.
    pub(crate) fn flood(&self, find: fn(&Window<'_>) -> Option<Flood>) -> Option<&Flood> {
        self.flood.get_or_init(|| find(self)).as_ref()
    }

    /// Returns the earlier sample. Without one, notes that the current rule cannot be judged.
    pub(crate) fn needs_before(&self) -> Option<&'a Sample> {
        if self.before.is_none() {
            self.lacks("two samples are needed, and there is only one");
        }
        self.before
    }

    /// Notes the reason why the current rule cannot be judged. The reason counts only if the rule
    /// finds nothing.
    pub(crate) fn lacks(&self, reason: &'static str) {
        self.lacking.set(Some(reason));
    }

    /// Takes the reason that a rule has noted since the last call.
    pub(crate) fn take_lacking(&self) -> Option<&'static str> {
        self.lacking.take()
    }

    /// Returns the socket's state in the earlier sample.
    pub fn earlier(&self, socket: &Socket) -> Option<&'a Socket> {
        let before = self.before?;
        let found = if socket.state == state::LISTEN {
            let listeners = || places(before, |socket| socket.state == state::LISTEN);
            self.listeners.get_or_init(listeners).get(&socket.key())
        } else {
            self.earlier.get_or_init(|| places(before, |_| true)).get(&socket.key())
        };
        found.and_then(|place| before.sockets.get(*place))
    }

    /// Returns every socket in a state now.
    pub fn in_state(&self, state: u8) -> impl Iterator<Item = &'a Socket> {
        let states = self.states.get_or_init(|| {
            let mut states = vec![Vec::new(); STATES];
            for (place, socket) in self.now.sockets.iter().enumerate() {
                states[usize::from(socket.state).min(STATES - 1)].push(place);
            }
            states
        });
        let now = self.now;
        let of_state = states.get(usize::from(state)).map(Vec::as_slice).unwrap_or_default();
        of_state.iter().filter_map(|place| now.sockets.get(*place))
    }

    /// Returns every listener now.
    pub fn listeners(&self) -> impl Iterator<Item = &'a Socket> {
        self.in_state(state::LISTEN)
    }

    /// Returns whether the condition holds for this socket now, and in the earlier sample if there
    /// is one.
    pub fn holds_in_each(&self, socket: &Socket, holds: impl Fn(&Socket) -> bool) -> bool {
        holds(socket) && (self.before.is_none() || self.earlier(socket).is_some_and(holds))
    }

    /// Returns the growth of a listener's drops.
    pub fn drops_grown(&self, listener: &Socket) -> u32 {
        listener.drops().saturating_sub(self.earlier(listener).map_or(0, Socket::drops))
    }

    /// Creates evidence for something that happened in the window.
    pub fn during(&self, name: impl Into<String>, value: impl ToString) -> Evidence {
        Evidence { name: name.into(), value: value.to_string(), window: self.name() }
    }

    /// Creates evidence for the growth of a counter.
    pub fn counted(&self, counter: &str) -> Evidence {
        Evidence { name: counter.to_owned(), value: format!("+{}", self.grown(counter)), window: self.name() }
    }

    /// Creates evidence for a present value.
    pub fn shown(&self, name: impl Into<String>, value: impl ToString) -> Evidence {
        Evidence { name: name.into(), value: value.to_string(), window: "now".to_owned() }
    }

    /// Creates evidence for the present value of a setting.
    pub fn set(&self, name: &str) -> Evidence {
        self.shown(name, self.now.setting(name).unwrap_or("absent"))
    }
}

/// Returns the indexes of the wanted sockets in a sample.
fn places(sample: &Sample, wanted: impl Fn(&Socket) -> bool) -> HashMap<Ends, usize> {
    let all = sample.sockets.iter().enumerate().filter(|(_, socket)| wanted(socket));
    all.map(|(place, socket)| (socket.key(), place)).collect()
}
