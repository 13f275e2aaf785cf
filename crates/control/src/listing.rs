//! The sockets that a stack should list, and their format.

use proto::State;

/// A set of sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Connections, like ss without options: no listeners, half-open requests or TIME-WAIT.
    Connected,
    /// Listeners.
    Listening,
    /// All sockets.
    All,
    /// Only the number of sockets by state.
    Summary,
}

/// A list of sockets: filters and format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The set of sockets.
    pub which: Which,
    /// Shows TCP's state of each connection.
    pub info: bool,
    /// Shows the memory of each socket.
    pub memory: bool,
    /// Shows the timer of each socket.
    pub timers: bool,
    /// Only sockets in this state.
    pub state: Option<State>,
    /// Only sockets with this port at either end.
    pub port: Option<u16>,
    /// Only sockets of this IP version, 4 or 6.
    pub family: Option<u8>,
    /// Formats as JSON instead of columns.
    pub json: bool,
}

impl Listing {
    /// Creates a list without further filters or columns.
    #[must_use]
    pub fn of(which: Which) -> Listing {
        let (state, port, family) = (None, None, None);
        Listing { which, info: false, memory: false, timers: false, state, port, family, json: false }
    }

    /// Formats the list as words for the control socket.
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

    /// Parses the words; `None` if they are invalid.
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
