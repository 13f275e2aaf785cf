//! Commands of `ip` and `tc` about the network below a stack. Drivers in virtual time use them for
//! scripts that run these tools and mean the stack. Nothing is executed here.
//!
//! | command | effect |
//! |---|---|
//! | `ip tcp_metrics flush [all]`, `flush ADDRESS`, `delete ADDRESS` | deletes all remembered paths, or one |
//! | `ip route add …`, `replace`, `change`, `del` | values per destination, and unreachable routes; `dev` and `via` always mean the only path |
//! | `tc qdisc add dev DEVICE root pfifo limit N`, `replace`, `change`, `del dev DEVICE root` | with 0 the queue before the device rejects every packet, else there is none |

use crate::Sockets;
use core::net::IpAddr;
use proto::fast_open::Network;
use proto::{Instant, RouteMetrics, parse_route};

/// A command about the network.
#[derive(Clone, Debug, PartialEq)]
pub enum NetworkCommand {
    /// Deletes all remembered paths.
    FlushPaths,
    /// Deletes the remembered paths to one peer.
    ForgetPath(IpAddr),
    /// A route comes, goes or changes.
    Route(RouteVerb, Network, RouteMetrics),
    /// Makes the queue before the device accept packets, or reject all of them.
    Queue {
        /// It does.
        admits: bool,
    },
}

/// The change of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteVerb {
    /// It is new.
    Add,
    /// Creates the route, or replaces it.
    Replace,
    /// It was there.
    Change,
    /// It goes.
    Delete,
}

impl NetworkCommand {
    /// Parses the words of a command, starting with the tool's name. Returns `None` for a command
    /// that is not in the table.
    ///
    /// # Errors
    /// Returns a message if a supported command is invalid.
    pub fn parse(words: &[&str]) -> Result<Option<NetworkCommand>, String> {
        let options = words.iter().skip(1).take_while(|word| word.starts_with('-')).count();
        match (words.first(), words.get(1 + options..).unwrap_or_default()) {
            (Some(&"ip"), ["tcp_metrics", verb @ ("flush" | "delete" | "del"), rest @ ..]) => {
                forgotten(verb, rest).map(Some)
            }
            (Some(&"ip"), ["route", verb, rest @ ..]) => routed(verb, rest),
            (Some(&"tc"), ["qdisc", verb, rest @ ..]) => queued(verb, rest),
            _ => Ok(None),
        }
    }

    /// Applies the command to the stack. The driver handles the queue. `known` routes of the system
    /// that are not in the stack's table can also be changed.
    ///
    /// # Errors
    /// Returns the kernel's error message.
    pub fn apply(
        &self,
        sockets: &mut Sockets,
        now: Instant,
        known: impl Fn(Network) -> bool,
    ) -> Result<(), String> {
        match self {
            NetworkCommand::FlushPaths => sockets.stack_mut().path_cache_mut().clear(),
            NetworkCommand::ForgetPath(peer) => {
                if !sockets.stack_mut().path_cache_mut().forget_peer((*peer).into()) {
                    return Err(format!("ip tcp_metrics: nothing is remembered of {peer}"));
                }
            }
            NetworkCommand::Route(verb, network, metrics) => {
                let verb =
                    if *verb == RouteVerb::Change && known(*network) { RouteVerb::Replace } else { *verb };
                return route(sockets, now, verb, *network, *metrics);
            }
            NetworkCommand::Queue { .. } => {}
        }
        Ok(())
    }
}

/// `ip tcp_metrics flush [all]`, or of one peer: `flush ADDRESS`, `delete ADDRESS`.
fn forgotten(verb: &str, words: &[&str]) -> Result<NetworkCommand, String> {
    let words = if let ["addr" | "address", rest @ ..] = words { rest } else { words };
    match words {
        [] | ["all" | "any"] if verb == "flush" => Ok(NetworkCommand::FlushPaths),
        [address] => {
            let refused = |_| format!("ip tcp_metrics: `{address}` is no address");
            address.parse().map(NetworkCommand::ForgetPath).map_err(refused)
        }
        _ => Err(format!("ip tcp_metrics: `{verb} ADDRESS` is expected, or `flush all`")),
    }
}

/// `ip route VERB [TYPE] PREFIX METRIC…`, in which `dev` and `via` say nothing: a stack has one way out.
fn routed(verb: &str, words: &[&str]) -> Result<Option<NetworkCommand>, String> {
    let verb = match verb {
        "add" => RouteVerb::Add,
        "replace" => RouteVerb::Replace,
        "change" => RouteVerb::Change,
        "del" | "delete" => RouteVerb::Delete,
        _ => return Ok(None),
    };
    let mut told = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "dev" | "via" | "proto" | "scope" if words.next().is_none() => {
                return Err(format!("ip route: a value is expected behind `{word}`"));
            }
            "dev" | "via" | "proto" | "scope" => {}
            word => told.push(word),
        }
    }
    let (network, metrics) = parse_route(&told.join(" ")).map_err(|error| format!("ip route: {error}"))?;
    Ok(Some(NetworkCommand::Route(verb, network, metrics)))
}

fn route(
    sockets: &mut Sockets,
    now: Instant,
    verb: RouteVerb,
    network: Network,
    metrics: RouteMetrics,
) -> Result<(), String> {
    let stack = sockets.stack_mut();
    let there = stack.routes().any(|(known, _)| known == network);
    match (verb, there) {
        (RouteVerb::Add, true) => return Err(format!("there is a route to {network} already")),
        (RouteVerb::Change | RouteVerb::Delete, false) => return Err(format!("no route to {network}")),
        _ => {}
    }
    let set = match verb {
        RouteVerb::Delete => stack.remove_route(now, network).is_some(),
        _ => stack.set_route(now, network, metrics),
    };
    if set { Ok(()) } else { Err("no room for one more route".into()) }
}

/// `tc qdisc VERB dev DEVICE root pfifo [limit PACKETS]`; deleted, the device's own queue is there again.
fn queued(verb: &str, words: &[&str]) -> Result<Option<NetworkCommand>, String> {
    let admits = match (verb, words) {
        ("del" | "delete", ["dev", _, "root"] | ["dev", _, "root", "pfifo"])
        | ("add" | "replace" | "change", ["dev", _, "root", "pfifo"]) => true,
        ("add" | "replace" | "change", ["dev", _, "root", "pfifo", "limit", limit]) => {
            limit.parse::<u32>().map_err(|_| format!("tc qdisc: `{limit}` is no number of packets"))? > 0
        }
        _ => return Ok(None),
    };
    Ok(Some(NetworkCommand::Queue { admits }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Option<NetworkCommand>, String> {
        NetworkCommand::parse(&text.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn queues_refuse_all_or_nothing() {
        let admits = |text| match parsed(text) {
            Ok(Some(NetworkCommand::Queue { admits })) => Some(admits),
            _ => None,
        };
        assert_eq!(admits("tc qdisc replace dev tun0 root pfifo limit 0"), Some(false));
        assert_eq!(admits("tc qdisc change dev tun0 root pfifo limit 1000"), Some(true));
        assert_eq!(admits("tc qdisc add dev tun0 root pfifo"), Some(true));
        assert_eq!(admits("tc qdisc delete dev tun0 root"), Some(true));
        assert_eq!(admits("tc qdisc add dev tun0 root fq"), None);
        assert_eq!(admits("tc qdisc del dev tun0 parent 1:"), None);
        assert_eq!(admits("tc qdisc del"), None);
        assert_eq!(admits("tc qdisc add dev tun0 root fq limit pfifo"), None);
        assert!(parsed("tc qdisc add dev tun0 root pfifo limit many").is_err());
    }

    #[test]
    fn paths_are_forgotten_all_or_one() {
        for all in ["ip tcp_metrics flush", "ip tcp_metrics flush all"] {
            assert_eq!(parsed(all), Ok(Some(NetworkCommand::FlushPaths)));
        }
        let one = NetworkCommand::ForgetPath([192, 0, 2, 1].into());
        for text in ["flush 192.0.2.1", "flush address 192.0.2.1", "delete 192.0.2.1"] {
            assert_eq!(parsed(&format!("ip tcp_metrics {text}")), Ok(Some(one.clone())));
        }
        for wrong in ["flush 192.0.2.0/24", "delete", "flush 192.0.2.1 source 10.0.0.1"] {
            assert!(parsed(&format!("ip tcp_metrics {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn routes_of_either_family() {
        for text in
            ["ip route change 192.0.2.1 via 10.0.0.1 dev tun0 mtu lock 600", "ip -6 route add fd00::/8"]
        {
            assert!(matches!(parsed(text), Ok(Some(NetworkCommand::Route(..)))), "{text}");
        }
        assert_eq!(parsed("ip route show"), Ok(None));
        assert_eq!(parsed("ip link set tun0 up"), Ok(None));
        assert!(parsed("ip route add 10.0.0.0/8 colour blue").is_err());
        assert_eq!(
            parsed("ip route add 10.0.0.0/8 dev"),
            Err("ip route: a value is expected behind `dev`".into())
        );
    }
}
