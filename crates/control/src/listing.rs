//! Which sockets a stack shall list, and how.

use proto::State;

/// Which sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// As ss without options: neither listeners nor half-open requests nor TIME-WAIT.
    Connected,
    /// Listeners.
    Listening,
    /// Every one.
    All,
    /// How many there are.
    Summary,
}

/// What shall be listed, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Which of them.
    pub which: Which,
    /// With what TCP knows of each.
    pub info: bool,
    /// With the memory of each.
    pub memory: bool,
    /// With the timer of each.
    pub timers: bool,
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those with this port at either end.
    pub port: Option<u16>,
    /// 4 or 6: only that IP version.
    pub family: Option<u8>,
    /// JSON instead of columns.
    pub json: bool,
}

impl Listing {
    /// Lines for these, with nothing more.
    #[must_use]
    pub fn of(which: Which) -> Listing {
        let (state, port, family) = (None, None, None);
        Listing { which, info: false, memory: false, timers: false, state, port, family, json: false }
    }

    /// As they go over the control socket.
    #[must_use]
    pub fn words(&self) -> String {
        let which = match self.which {
            Which::Connected => "connected",
            Which::Listening => "listening",
            Which::All => "all",
            Which::Summary => "summary",
        };
        let family = self.family.map_or(String::new(), |family| format!(" v{family}"));
        let state = self.state.map_or(String::new(), |state| format!(" state:{}", state.ss()));
        let port = self.port.map_or(String::new(), |port| format!(" port:{port}"));
        let flag = |holds: bool, word: &'static str| if holds { word } else { "" };
        format!(
            "{which}{}{}{}{state}{port}{family}{}",
            flag(self.info, " info"),
            flag(self.memory, " memory"),
            flag(self.timers, " timers"),
            flag(self.json, " json")
        )
    }

    /// The reverse; `None` for words that mean nothing.
    #[must_use]
    pub fn read(words: &str) -> Option<Listing> {
        let mut listing = Listing::of(Which::Connected);
        for word in words.split_whitespace() {
            match word {
                "connected" => listing.which = Which::Connected,
                "listening" => listing.which = Which::Listening,
                "all" => listing.which = Which::All,
                "summary" => listing.which = Which::Summary,
                "info" => listing.info = true,
                "memory" => listing.memory = true,
                "timers" => listing.timers = true,
                "v4" => listing.family = Some(4),
                "v6" => listing.family = Some(6),
                "json" => listing.json = true,
                _ => match word.split_once(':')? {
                    ("port", port) => listing.port = Some(port.parse().ok()?),
                    ("state", name) => {
                        listing.state = Some(State::ALL.into_iter().find(|state| state.ss() == name)?);
                    }
                    _ => return None,
                },
            }
        }
        Some(listing)
    }
}
