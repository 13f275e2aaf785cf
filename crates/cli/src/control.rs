//! The control socket of a running stack, for queries and changes.
//!
//! ```text
//!  firstbyte ss ──► request line ──► socket of the stack ──► `ok` or `error`, answer, end
//! ```
//!
//! - `control/place.rs`: paths of the sockets, and the running stacks;
//! - `control/server.rs`: the server in the running process; `control/client.rs`: the client;
//! - `control/listing.rs`: sockets as `firstbyte ss` prints them; `control/sample.rs`: a sample for
//!   `firstbyte doctor`.
//!
//! A request is a line of words ([`control::Request`]). The answer is the text that the client
//! prints, so the client needs no logic. The socket has mode 0600: only the user who runs the stack
//! can send requests.
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

/// Longest request, bytes.
const REQUEST_MAX: u64 = 4096;

/// Returns every setting, plus Linux's single name for the lowest and highest local port. Shows of
/// the cookie keys only whether there is a backup.
fn settings(stack: &Stack) -> Vec<(String, String)> {
    let config = stack.config();
    let range =
        ["low", "high"].map(|end| config.get(&format!("firstbyte.ip_local_port_{end}")).unwrap_or_default());
    let all = config.all().into_iter().map(|(name, value)| (name.to_owned(), value));
    let keys = if stack.fast_open_key().backup().is_some() { "set with a backup" } else { "set alone" };
    let more = [("net.ipv4.ip_local_port_range", range.join(" ")), (key::SETTING, keys.to_owned())];
    all.chain(more.map(|(name, value)| (name.to_owned(), value))).collect()
}

/// Answers a request to the stack, which was started at `begun`.
fn answer(request: &Request, net: &StackHandle, begun: Instant) -> Result<String, String> {
    match request {
        Request::Ss(listing) => Ok(list(listing, net)),
        Request::RouteShow { json } => Ok(routes(net, *json)),
        Request::RouteSet(network, metrics) => match net.set_route(*network, *metrics) {
            true => Ok(String::new()),
            false => Err("cannot add a route: the table is full (65536 routes)".to_owned()),
        },
        Request::RouteDelete(network) => match net.remove_route(*network) {
            Some(_) => Ok(String::new()),
            None => Err(format!(
                "cannot find a route to {network}; `firstbyte route show --stack` lists the routes"
            )),
        },
        Request::Sample => serde_json::to_string(&sample::of(net, begun)).map_err(|error| error.to_string()),
        Request::Counters => Ok(counters(net, begun)),
        Request::Settings => {
            let settings = net.inspect(settings);
            Ok(settings.into_iter().map(|(name, value)| format!("{name} = {value}\n")).collect())
        }
        // Errors must not show the value.
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
            false => Err(format!("nothing is cached for {peer}")),
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

/// Returns the events traced since the last request. Times are relative to the start of the stack.
fn trace(net: &StackHandle, on: bool, begun: Instant) -> String {
    net.set_trace(if on { TraceMask::all() } else { TraceMask::empty() });
    let (events, lost) = net.take_trace();
    let mut text = String::new();
    for mut event in events {
        event.at = Instant::ZERO + event.at.since(begun);
        text += &format!("{event}\n");
    }
    if lost > 0 {
        text += &format!("{lost} events were dropped: the trace buffer was full\n");
    }
    text
}

/// Returns the counters with their group in front, as nstat(8) prints them.
fn counters(net: &StackHandle, begun: Instant) -> String {
    let (counters, now) = net.inspect_at(|stack, now| (stack.counters().clone(), now));
    let lines = counters.all().map(|(name, value)| format!("{} {value}\n", grouped(name)));
    let seconds = now.since(begun).as_secs_f64();
    std::iter::once(format!("seconds {seconds}\n")).chain(lines).collect()
}

/// Returns a counter's name with its group in front, as nstat(8) prints it.
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

/// Returns the metrics of a route as JSON fields, and the names of the locked ones.
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
