//! What is asked of a running stack over its control socket.
//!
//! A request is one line of words; [`Request`] is what it means. What a stack answers, and the socket itself, belong to the command.
#![forbid(unsafe_code)]

mod listing;

pub use listing::{Listing, Which};

use proto::fast_open::Network;
use proto::{RouteMetrics, parse_route, show_route};

/// What may be asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Sockets, or their sum.
    Ss(Listing),
    /// Every route.
    RouteShow {
        /// Not as lines, but as JSON.
        json: bool,
    },
    /// What connections there begin with, in place of what held before.
    RouteSet(Network, RouteMetrics),
    /// Nothing holds for exactly this prefix any more.
    RouteDelete(Network),
}

impl Request {
    /// As it goes over the socket: one line.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Request::Ss(listing) => format!("ss {}", listing.words()),
            Request::RouteShow { json } => format!("route show{}", if *json { " json" } else { "" }),
            Request::RouteSet(network, metrics) => format!("route set {}", show_route(network, metrics)),
            Request::RouteDelete(network) => format!("route del {network}"),
        }
    }

    /// The reverse.
    ///
    /// # Errors
    /// A sentence for whoever asked.
    pub fn read(line: &str) -> Result<Request, String> {
        let unknown = || format!("`{line}` is no request: this stack answers ss and route");
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (verb, rest.split_once(' ').unwrap_or((rest, ""))) {
            ("ss", _) => Listing::read(rest).map(Request::Ss).ok_or_else(unknown),
            ("route", ("show", "")) => Ok(Request::RouteShow { json: false }),
            ("route", ("show", "json")) => Ok(Request::RouteShow { json: true }),
            ("route", ("set", route)) => {
                parse_route(route).map(|(to, what)| Request::RouteSet(to, what)).map_err(|e| e.to_string())
            }
            ("route", ("del", prefix)) => {
                prefix.parse().map(Request::RouteDelete).map_err(|error| format!("{error}"))
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_the_socket() {
        let all = [Which::Connected, Which::Listening, Which::All, Which::Summary];
        for which in all {
            for (info, family, json) in [(false, None, true), (true, Some(4), false), (true, Some(6), true)] {
                let request = Request::Ss(Listing { which, info, family, json });
                assert_eq!(Request::read(&request.line()), Ok(request));
            }
        }
        for line in ["route set prohibit 10.0.0.0/8 initcwnd 3", "route del 10.0.0.0/8", "route show json"] {
            let request = Request::read(line);
            assert_eq!(request.as_ref().map(Request::line), Ok(line.to_owned()));
        }
        for wrong in ["", "ss loud", "route", "route show me", "route set", "route del ten", "reboot now"] {
            assert!(Request::read(wrong).is_err(), "{wrong}");
        }
    }
}
