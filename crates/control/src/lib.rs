//! Requests to a running stack over its control socket.
//!
//! A request is one line of words; [`Request`] is its parsed form. The command implements the
//! answers and the socket.
#![forbid(unsafe_code)]

mod listing;

pub use listing::{Listing, Which};

use proto::fast_open::Network;
use proto::{RouteMetrics, parse_route, show_route};
use std::net::IpAddr;

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// List sockets, or their summary.
    Ss(Listing),
    /// List all routes.
    RouteShow {
        /// True for JSON.
        json: bool,
    },
    /// Set the metrics of connections to a network. Replaces older metrics.
    RouteSet(Network, RouteMetrics),
    /// Delete the metrics of exactly this prefix.
    RouteDelete(Network),
    /// Read a sample for the doctor, as JSON: sockets, counters, settings, routes, paths.
    Sample,
    /// Read the seconds since the start, then every counter and its value, one per line.
    Counters,
    /// Read every setting and its value, one per line.
    Settings,
    /// Change a setting.
    Set {
        /// Name of the setting, as in sysctl(8).
        name: String,
        /// Its new value.
        value: String,
    },
    /// Read the path cache in its file format.
    Paths,
    /// Forget the cached path to one peer, or to all.
    PathsForget(Option<IpAddr>),
    /// Turn tracing on or off, and read the events since the last request, one per line.
    Trace {
        /// True to start or continue tracing.
        on: bool,
    },
}

impl Request {
    /// Formats the request as one line.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Request::Ss(listing) => format!("ss {}", listing.words()),
            Request::RouteShow { json } => format!("route show{}", if *json { " json" } else { "" }),
            Request::RouteSet(network, metrics) => format!("route set {}", show_route(network, metrics)),
            Request::RouteDelete(network) => format!("route del {network}"),
            Request::Sample => "sample".to_owned(),
            Request::Counters => "counters".to_owned(),
            Request::Settings => "settings".to_owned(),
            Request::Set { name, value } => format!("set {name} {value}"),
            Request::Paths => "paths".to_owned(),
            Request::PathsForget(None) => "paths flush".to_owned(),
            Request::PathsForget(Some(peer)) => format!("paths delete {peer}"),
            Request::Trace { on } => format!("trace {}", if *on { "on" } else { "off" }),
        }
    }

    /// Parses a request.
    ///
    /// # Errors
    /// A message for the client.
    pub fn read(line: &str) -> Result<Request, String> {
        let unknown = || {
            format!(
                "`{line}` is not a request: this stack answers ss, route, sample, counters, \
                settings, set, paths and trace"
            )
        };
        if line.chars().any(|sign| sign.is_control() && sign != '\t') {
            return Err("expected a request of one line, without control characters".to_owned());
        }
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
            ("sample", ("", "")) => Ok(Request::Sample),
            ("counters", ("", "")) => Ok(Request::Counters),
            ("settings", ("", "")) => Ok(Request::Settings),
            ("set", (name, value)) if !name.is_empty() && !value.trim().is_empty() => {
                Ok(Request::Set { name: name.to_owned(), value: value.trim().to_owned() })
            }
            ("paths", ("", "")) => Ok(Request::Paths),
            ("paths", ("flush", "")) => Ok(Request::PathsForget(None)),
            ("paths", ("delete", peer)) => {
                let peer = peer.parse().map_err(|_| format!("`{peer}` is not an IP address"))?;
                Ok(Request::PathsForget(Some(peer)))
            }
            ("trace", ("on", "")) => Ok(Request::Trace { on: true }),
            ("trace", ("off", "")) => Ok(Request::Trace { on: false }),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::State;

    #[test]
    fn requests_survive_the_socket() {
        let all = [Which::Connected, Which::Listening, Which::All, Which::Summary];
        for which in all {
            for (info, family, json) in [(false, None, true), (true, Some(4), false), (true, Some(6), true)] {
                let (state, port) = (info.then_some(State::CloseWait), family.map(u16::from));
                let listing =
                    Listing { which, info, memory: !info, timers: !json, state, port, family, json };
                let request = Request::Ss(listing);
                assert_eq!(Request::read(&request.line()), Ok(request));
            }
        }
        for line in [
            "route set prohibit 10.0.0.0/8 initcwnd 3",
            "route del 10.0.0.0/8",
            "route show json",
            "sample",
            "counters",
            "settings",
            "set net.ipv4.ip_local_port_range 1024 2047",
            "paths",
            "paths flush",
            "paths delete 10.0.0.1",
            "trace on",
            "trace off",
        ] {
            let request = Request::read(line);
            assert_eq!(request.as_ref().map(Request::line), Ok(line.to_owned()));
        }
        for wrong in [
            "",
            "ss loud",
            "ss port:http",
            "ss state:calm",
            "route",
            "route show me",
            "route set",
            "route del ten",
            "reboot now",
            "set",
            "set x",
            "paths delete x",
            "trace",
            "trace loud",
        ] {
            assert!(Request::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_request_is_one_line() {
        for text in ["set a 1\nroute set unreachable 10.0.0.0/8", "counters\n", "set a \u{1b}[2J"] {
            assert!(Request::read(text).is_err_and(|why| why.contains("one line")), "{text:?}");
        }
        assert!(Request::read("set net.ipv4.tcp_rmem 4096\t131072\t6291456").is_ok());
    }
}
