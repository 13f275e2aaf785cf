//! The socket by which a running stack is asked and steered.
//!
//! ```text
//!  firstbyte ss ──► one line ──► Unix socket of the process that runs the stack ──► `ok` or `error`, then the answer, to its end
//! ```
//!
//! - `control/place.rs`: where the socket lies, and which stacks there are;
//! - `control/server.rs`: the running side; `control/client.rs`: the asking one.
//!
//! Requests are words ([`Request`]); answers are what the asking verb prints, so that it decides nothing. Only the user who runs the stack
//! can ask: the socket has mode 0600.
mod client;
mod place;
mod server;

pub(crate) use client::{ControlArgs, ask};
pub(crate) use server::ControlSocket;

use crate::ss::Listing;
use firstbyte::{Net, RouteMetrics, fast_open::Network, parse_route, show_route};
use serde_json::{Map, Value};

/// The longest request, bytes.
const REQUEST_MAX: u64 = 4096;

/// What may be asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    /// Sockets, or their sum.
    Ss(Listing),
    /// Every route.
    RouteShow { json: bool },
    /// What connections there begin with, in place of what held before.
    RouteSet(Network, RouteMetrics),
    /// Nothing holds for exactly this prefix any more.
    RouteDelete(Network),
}

impl Request {
    /// As it goes over the socket: one line.
    pub(crate) fn line(&self) -> String {
        match self {
            Request::Ss(listing) => format!("ss {}", listing.words()),
            Request::RouteShow { json } => format!("route show{}", if *json { " json" } else { "" }),
            Request::RouteSet(network, metrics) => format!("route set {}", show_route(network, metrics)),
            Request::RouteDelete(network) => format!("route del {network}"),
        }
    }

    fn read(line: &str) -> Result<Request, String> {
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

    /// What a stack answers.
    fn answer(&self, net: &Net) -> Result<String, String> {
        match self {
            Request::Ss(listing) => Ok(listing.of(net)),
            Request::RouteShow { json } => Ok(routes(net, *json)),
            Request::RouteSet(network, metrics) => match net.set_route(*network, *metrics) {
                true => Ok(String::new()),
                false => Err("the stack has no room for one more route (65536)".to_owned()),
            },
            Request::RouteDelete(network) => match net.remove_route(*network) {
                Some(_) => Ok(String::new()),
                None => Err(format!("there is no route to {network}; `firstbyte route show` lists them")),
            },
        }
    }
}

fn routes(net: &Net, json: bool) -> String {
    let routes = net.routes();
    if !json {
        return routes.iter().map(|(to, what)| show_route(to, what) + "\n").collect();
    }
    let all: Vec<Value> = routes
        .iter()
        .map(|(to, what)| {
            let mut object = Map::from_iter([("dst".to_owned(), to.to_string().into())]);
            object.extend(values(what));
            object.into()
        })
        .collect();
    format!("{}\n", Value::from(all))
}

/// The words of a route as fields; what is locked is named beside.
fn values(metrics: &RouteMetrics) -> Map<String, Value> {
    let text = metrics.to_string();
    let mut words = text.split(' ').filter(|word| !word.is_empty()).peekable();
    let mut fields = Map::new();
    let mut locked = Vec::new();
    while let Some(name) = words.next() {
        if ["blackhole", "unreachable", "prohibit"].contains(&name) {
            fields.insert("type".to_owned(), name.into());
            continue;
        }
        if words.next_if_eq(&"lock").is_some() {
            locked.push(Value::from(name));
        }
        let value = words.next().unwrap_or_default();
        fields.insert(name.to_owned(), value.parse::<u64>().map_or_else(|_| value.into(), Value::from));
    }
    if !locked.is_empty() {
        fields.insert("locked".to_owned(), locked.into());
    }
    fields
}

#[cfg(test)]
mod tests;
