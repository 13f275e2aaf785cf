//! Finds values of a file that would change nothing: routes to addresses without a host, and keys
//! that need other keys.

use super::event::Act;
use super::file::BoxName;
use super::mistake::{Mistake, Within};
use super::path::PUBLIC;
use super::play::{CLIENTS_MAX, NOBODIES, Variant};
use super::routes::Routes;
use super::topology::{SERVER, address_of_client};
use core::net::IpAddr;

/// A key: its name, whether a variant has it, and whether it has an effect there.
struct Key {
    part: &'static str,
    name: &'static str,
    needs: &'static str,
    is_given: fn(&Variant<'_>) -> bool,
    is_used: fn(&Variant<'_>) -> bool,
}

const KEYS: [Key; 6] = [
    Key {
        part: "client",
        name: "stagger",
        needs: "`clients`, at least 2",
        is_given: |variant| variant.ends[0].stagger.is_some(),
        is_used: |variant| variant.ends[0].clients.is_some_and(|count| count > 1),
    },
    Key {
        part: "client",
        name: "pause",
        needs: "`connections`, at least 2",
        is_given: |variant| variant.ends[0].pause.is_some(),
        is_used: has_connections,
    },
    Key {
        part: "client",
        name: "alone",
        needs: "`connections`, at least 2",
        is_given: |variant| variant.ends[0].alone.is_some(),
        is_used: has_connections,
    },
    Key {
        part: "client",
        name: "at_once",
        needs: "`connections`, at least 2",
        is_given: |variant| variant.ends[0].at_once.is_some(),
        is_used: has_connections,
    },
    Key {
        part: "server",
        name: "own_keys",
        needs: "`servers`, at least 2",
        is_given: |variant| variant.ends[1].own_keys.is_some(),
        is_used: |variant| variant.ends[1].servers.is_some_and(|count| count > 1),
    },
    Key {
        part: "path",
        name: "towards",
        needs: "`rate`, `qdisc`, `loss`, `lose` or an event with a direction",
        is_given: |variant| variant.path.towards.is_some(),
        is_used: has_a_narrow_way,
    },
];

fn has_connections(variant: &Variant<'_>) -> bool {
    variant.ends[0].connections.is_some_and(|count| count > 1)
}

fn has_a_narrow_way(variant: &Variant<'_>) -> bool {
    let path = &variant.path;
    let is_directed = |act: &Act| matches!(act, Act::Loss { .. } | Act::Probe { .. });
    path.rate.is_some()
        || path.qdisc.is_some()
        || path.loss.is_some()
        || path.lose.is_some()
        || variant.events.iter().any(|event| is_directed(&event.act))
}

/// Checks that each key of a variant has an effect in this or another variant.
pub(super) fn check_keys(variant: &Variant<'_>, all: &[Variant<'_>]) -> Result<(), Mistake> {
    let idle = |key: &&Key| (key.is_given)(variant) && !all.iter().any(key.is_used);
    match KEYS.iter().find(idle) {
        None => Ok(()),
        Some(Key { part, name, needs, .. }) => {
            Err(format!("`{name}` has no effect: it needs {needs}")).within(name).within(part)
        }
    }
}

/// Checks that each route of a variant covers an address to which its end sends packets.
pub(super) fn check_routes(variant: &Variant<'_>) -> Result<(), Mistake> {
    for (end, name) in ["client", "server"].into_iter().enumerate() {
        let Some(routes) = &variant.ends[end].route else { continue };
        check_routes_of(variant, end == 0, routes).within("route").within(name)?;
    }
    variant.events.iter().try_for_each(|event| match &event.act {
        Act::Route { client, routes } => {
            let check = check_routes_of(variant, *client, routes);
            check.map_err(|mistake| event.mistake("do", mistake.into()))
        }
        _ => Ok(()),
    })
}

fn check_routes_of(variant: &Variant<'_>, of_client: bool, routes: &Routes) -> Result<(), Mistake> {
    let peers = peers(variant, of_client);
    let Some((n, prefix)) = routes.beside(&peers) else { return Ok(()) };
    let (end, others) = if of_client { ("client", "server") } else { ("server", "client") };
    let first = peers.first().map_or(String::new(), |address| format!("; the {others}'s is {address}"));
    Err(format!("the {end} sends to no host in {prefix}{first}")).within(n)
}

/// Returns the addresses to which an end sends.
fn peers(variant: &Variant<'_>, of_client: bool) -> Vec<IpAddr> {
    if of_client {
        return vec![SERVER.ip()];
    }
    let mut peers: Vec<IpAddr> = match variant.path.middlebox {
        Some(BoxName::AlternatingNat) => PUBLIC.to_vec(),
        _ => {
            // Another check refuses numbers out of range.
            let count = variant.ends[0].clients.unwrap_or(1).clamp(1, CLIENTS_MAX);
            (0..count).map(|number| address_of_client(number).into()).collect()
        }
    };
    if variant.events.iter().any(|event| matches!(event.act, Act::SpoofSyns { .. })) {
        peers.extend(NOBODIES.map(|bits| IpAddr::V4(bits.into())));
    }
    peers
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;

    fn file(path: &str, client: &str, server: &str, rest: &str) -> Result<Experiment, String> {
        Experiment::parse(&format!(
            "# How?\nchapter = \"Own\"\nlesson = \"So.\"\n[path]\n{path}\n[client]\nsteps = [\"connect\", \"close\"]\n{client}\n\
             [server]\nsteps = [\"close\"]\n{server}\n{rest}\n[[expect]]\nwhat = \"done\"\nthat = \"done(a)\"\nis = 1\n"
        ))
    }

    fn told(path: &str, client: &str, server: &str, rest: &str) -> String {
        file(path, client, server, rest).err().unwrap_or_default()
    }

    const RUNS: &str = "[[run]]\nname = \"a\"\n[[run]]\nname = \"b\"\n";

    #[test]
    fn a_route_to_where_no_host_is_is_refused_with_its_line() {
        let error = told("", "route = \"10.9.0.0/16 initcwnd 20\"", "", RUNS);
        let [line, reason] = ["line 8, column 1", "the client sends to no host in 10.9.0.0/16"];
        assert!(error.contains(line) && error.contains(reason) && error.contains("198.51.100.1"), "{error}");
        let error = told("", "", "route = [\"default initcwnd 9\", \"10.0.0.2 initcwnd 20\"]", RUNS);
        assert!(
            error.contains("the server sends to no host in 10.0.0.2/32; the client's is 192.0.2.1"),
            "{error}"
        );
        let error = told("", "", "route = \"2001:db8::/32 initcwnd 9\"", RUNS);
        assert!(error.contains("in 2001:db8::/32"), "{error}");
        let event = "[[run]]\nname = \"a\"\nevent = [{ at = \"1s\", do = \"route client 10.9.0.0/16 initcwnd 3\" }]\n";
        let error = told("", "", "", event);
        assert!(error.contains("line 14") && error.contains("10.9.0.0/16"), "{error}");
    }

    #[test]
    fn routes_to_hosts_are_taken() {
        let three = "clients = 3\nroute = \"198.51.100.0/24 initcwnd 3\"";
        let server = "route = [\"default initcwnd 9\", \"10.0.0.2 initcwnd 20\"]";
        assert_eq!(told("", three, server, RUNS), "");
        assert_eq!(told("box = \"alternating-nat\"", "", "route = \"203.0.113.2 initcwnd 9\"", RUNS), "");
        let spoof = format!("{RUNS}[[event]]\nat = \"1s\"\ndo = \"spoof 5 SYNs\"\n");
        assert_eq!(told("", "", "route = \"203.0.113.0/24 initcwnd 9\"", &spoof), "");
    }

    #[test]
    fn a_key_that_changes_nothing_is_refused() {
        for (path, client, server, key) in [
            ("", "stagger = \"1s\"", "", "stagger"),
            ("", "pause = \"1s\"", "", "pause"),
            ("", "alone = 2", "", "alone"),
            ("", "at_once = 2", "", "at_once"),
            ("", "", "own_keys = true", "own_keys"),
            ("towards = \"server\"", "", "", "towards"),
        ] {
            let error = told(path, client, server, RUNS);
            assert!(error.contains(&format!("`{key}` has no effect: it needs")), "{key}: {error}");
            assert!(error.starts_with("line "), "{error}");
        }
    }

    #[test]
    fn a_key_of_the_file_may_be_for_one_of_its_runs() {
        let runs = "[[run]]\nname = \"a\"\n[[run]]\nname = \"b\"\nclient.clients = 2\n";
        assert_eq!(told("", "stagger = \"1s\"", "", runs), "");
    }

    #[test]
    fn a_device_that_no_host_has_is_told() {
        let error = |setting: &str| {
            let server = format!("set = {{ \"net.ipv4.conf.{setting}.rp_filter\" = 1 }}");
            file("router = \"1ms\"", "", &server, RUNS).unwrap().check_hosts().err().unwrap_or_default()
        };
        assert_eq!(error("eth0"), "");
        assert!(error("eth1").contains("there is no eth1; the host has eth0"), "{}", error("eth1"));
    }
}
