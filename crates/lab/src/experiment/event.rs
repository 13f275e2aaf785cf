//! Events during a run.

use super::routes::Routes;
use core::str::FromStr;
use core::time::Duration;

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// The path stops or resumes taking packets, in both directions.
    Path { up: bool },
    /// A link of the path's bond, counted from 1, fails or recovers.
    Link { number: usize, up: bool },
    /// Sets the loss towards the client, in percent.
    Loss { percent: f64 },
    /// Injects `count` SYNs from unused addresses.
    SpoofSyns { count: u32 },
    /// Injects `count` small packets, one per `interval`, into the queue that the file describes.
    Probe { count: u32, interval: Duration },
    /// Changes a setting of an end.
    Set { client: bool, name: String, value: String },
    /// Changes a route of an end.
    Route { client: bool, routes: Routes },
    /// Clears the path caches of all hosts.
    Forget,
    /// Gives the server a new cookie key.
    NewKey,
}

/// Maximum probes of one event.
const PROBES_MAX: u32 = 1_000_000;

const ACTS: &str = "path down, path up, link N down|up, loss SHARE, spoof N SYNs, probe N every TIME, set client|server NAME VALUE, route client|server ROUTE, forget paths, new key";

impl FromStr for Act {
    type Err = String;

    fn from_str(text: &str) -> Result<Act, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let wrong =
            || format!("unknown event `{text}`{}; events are: {ACTS}", super::nearest_beginning(text, ACTS));
        Ok(match words.as_slice() {
            ["path", "down"] => Act::Path { up: false },
            ["path", "up"] => Act::Path { up: true },
            ["link", number, state @ ("down" | "up")] => {
                let number = number.parse().ok().filter(|number| *number > 0).ok_or_else(wrong)?;
                Act::Link { number, up: *state == "up" }
            }
            ["loss", share] => Act::Loss { percent: super::units::percent(share)? },
            ["spoof", count, "SYNs"] => Act::SpoofSyns { count: count.parse().map_err(|_| wrong())? },
            ["probe", count, "every", time] => Act::Probe {
                count: count.parse().ok().filter(|count| *count <= PROBES_MAX).ok_or_else(wrong)?,
                interval: super::units::duration(time)?,
            },
            ["set", end @ ("client" | "server"), name, value] => {
                Act::Set { client: *end == "client", name: (*name).into(), value: (*value).into() }
            }
            ["route", end @ ("client" | "server"), route @ ..] => {
                Act::Route { client: *end == "client", routes: route.join(" ").parse()? }
            }
            ["forget", "paths"] => Act::Forget,
            ["new", "key"] => Act::NewKey,
            _ => return Err(wrong()),
        })
    }
}
