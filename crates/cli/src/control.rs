//! The socket by which a running stack is asked and steered.
//!
//! ```text
//!  firstbyte ss ──► one line ──► Unix socket of the process that runs the stack ──► `ok` or `error`, then the answer, to its end
//! ```
//!
//! - `control/place.rs`: where the socket lies, and which stacks there are;
//! - `control/server.rs`: the running side; `control/client.rs`: the asking one;
//! - `control/listing.rs`: sockets as `firstbyte ss` prints them; `control/sample.rs`: all that the doctor judges.
//!
//! Requests are words ([`control::Request`]); answers are what the asking verb prints, so that it decides nothing. Only the user who runs the stack
//! can ask: the socket has mode 0600.
mod client;
mod listing;
mod place;
mod sample;
mod server;

pub(crate) use client::{ControlArgs, ask, sample};
pub(crate) use server::ControlSocket;

use crate::serve::key;
use crate::values;
use control::Request;
use firstbyte::{Instant, RouteMetrics, SettingError, Stack, StackHandle, TraceMask, show_route};
use listing::list;
use serde_json::{Map, Value};

/// The longest request, bytes.
const REQUEST_MAX: u64 = 4096;

/// Every setting, and Linux's one name for the lowest and the highest local port; of the cookie key, whether there is a backup.
fn settings(stack: &Stack) -> Vec<(String, String)> {
    let config = stack.config();
    let range =
        ["low", "high"].map(|end| config.get(&format!("firstbyte.ip_local_port_{end}")).unwrap_or_default());
    let all = config.all().into_iter().map(|(name, value)| (name.to_owned(), value));
    let keys = if stack.fast_open_key().backup().is_some() { "set with a backup" } else { "set alone" };
    let more = [("net.ipv4.ip_local_port_range", range.join(" ")), (key::SETTING, keys.to_owned())];
    all.chain(more.map(|(name, value)| (name.to_owned(), value))).collect()
}

/// What a stack answers that began at `begun`.
fn answer(request: &Request, net: &StackHandle, begun: Instant) -> Result<String, String> {
    match request {
        Request::Ss(listing) => Ok(list(listing, net)),
        Request::RouteShow { json } => Ok(routes(net, *json)),
        Request::RouteSet(network, metrics) => match net.set_route(*network, *metrics) {
            true => Ok(String::new()),
            false => Err("the stack has no room for one more route (65536)".to_owned()),
        },
        Request::RouteDelete(network) => match net.remove_route(*network) {
            Some(_) => Ok(String::new()),
            None => Err(format!("there is no route to {network}; `firstbyte route show --stack` lists them")),
        },
        Request::Sample => serde_json::to_string(&sample::of(net, begun)).map_err(|error| error.to_string()),
        Request::Counters => Ok(counters(net, begun)),
        Request::Settings => {
            let settings = net.inspect(settings);
            Ok(settings.into_iter().map(|(name, value)| format!("{name} = {value}\n")).collect())
        }
        // Its value must not be shown in an error.
        Request::Set { name, value } if key::is_setting(name) => {
            net.set_fast_open_key(key::parse(value).map_err(|why| format!("{name}: {why}"))?);
            Ok(String::new())
        }
        Request::Set { name, value } => match net.set(name, value) {
            Ok(warning) => Ok(warning.map_or(String::new(), |warning| warning + "\n")),
            Err(SettingError::Unknown) => {
                let all = net.inspect(settings);
                let known: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
                let meant = values::meant_setting(name, &known);
                Err(format!("there is no setting `{name}`; {meant}`firstbyte sysctl --stack` lists them"))
            }
            Err(why) => Err(format!("{name} = {value}: {why}")),
        },
        Request::Paths => Ok(net.paths().to_string()),
        Request::PathsForget(Some(peer)) => match net.forget_paths_to(*peer) {
            true => Ok(String::new()),
            false => Err(format!("nothing is remembered of {peer}")),
        },
        Request::PathsForget(None) => {
            for path in net.paths().paths {
                net.forget_paths_to(path.peer);
            }
            for verdict in net.paths().verdicts {
                net.forget_paths_to(verdict.peer);
            }
            Ok(String::new())
        }
        Request::Trace { on } => Ok(trace(net, *on, begun)),
    }
}

/// What was traced since the last request. Times are since the stack began.
fn trace(net: &StackHandle, on: bool, begun: Instant) -> String {
    net.set_trace(if on { TraceMask::all() } else { TraceMask::empty() });
    let (events, lost) = net.take_trace();
    let mut text = String::new();
    for mut event in events {
        event.at = Instant::ZERO + event.at.since(begun);
        text += &format!("{event}\n");
    }
    if lost > 0 {
        text += &format!("{lost} events found no room\n");
    }
    text
}

/// With the group in front, as nstat(8) shows them.
fn counters(net: &StackHandle, begun: Instant) -> String {
    let (counters, now) = net.inspect_at(|stack, now| (stack.counters().clone(), now));
    let lines = counters.all().map(|(name, value)| format!("{} {value}\n", grouped(name)));
    let seconds = now.since(begun).as_secs_f64();
    std::iter::once(format!("seconds {seconds}\n")).chain(lines).collect()
}

/// With the group in front, as nstat(8) shows it.
fn grouped(name: &str) -> String {
    let group = match name {
        _ if name.starts_with("Icmp") => "",
        "IPReversePathFilter" => "TcpExt",
        _ if name.starts_with("Ip") => "",
        "ActiveOpens" | "PassiveOpens" | "AttemptFails" | "EstabResets" | "InSegs" | "OutSegs"
        | "RetransSegs" | "InErrs" | "InCsumErrors" | "OutRsts" => "Tcp",
        _ => "TcpExt",
    };
    format!("{group}{name}")
}

fn routes(net: &StackHandle, json: bool) -> String {
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
