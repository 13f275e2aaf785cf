//! Our own scripts, all of them, at several places: other ports, seeds and initial sequence numbers, sockets of IPv6 that speak IPv4, other
//! addresses and cookie keys.

use core::net::{IpAddr, Ipv4Addr};
use proto::fast_open::KeyRing;
use script::ast::{Action, Body, Packet, Segment};
use script::{Script, Setup, run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Each with its text.
pub(crate) fn all_scripts() -> Vec<(PathBuf, String)> {
    let found = scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")).into_iter();
    found.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(scripts(&path));
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn places() -> Vec<Setup> {
    let usual = Setup::default();
    let other = |seed, remote_isn, port| Setup {
        seed,
        remote_isn,
        bind_port: port,
        connect_port: port + 1,
        first_peer_port: port + 2,
        ..usual.clone()
    };
    let mapped = Setup { mapped: true, ..other(5, 0, 8080) };
    // Our first byte has number 0, or one of the first thousand has.
    let wrapping = |seed, isn| Setup { local_isn: Some(isn), ..other(seed, 0, 8080) };
    vec![
        usual.clone(),
        other(2, 1_234_567, 80),
        other(3, u32::MAX - 50, 40_000),
        other(4, 0x7fff_ffff, 5000),
        mapped,
        wrapping(6, u32::MAX),
        wrapping(7, u32::MAX - 1000),
    ]
}

/// The comment a script opens with, on one line.
fn opening(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_script_says_what_it_shows_and_follows() {
    for (path, source) in all_scripts() {
        let said = opening(&source);
        assert!(said.len() > 30 && said.ends_with(['.', ')']), "{}: say what it shows", path.display());
        let follows = ["RFC ", "Linux"].iter().any(|word| said.contains(word));
        assert!(follows, "{}: name the RFC section, or what Linux does: {said}", path.display());
    }
}

#[test]
fn no_script_is_another_once_more() {
    let mut seen = BTreeMap::new();
    for (path, source) in all_scripts() {
        let conversation: Vec<&str> =
            source.lines().filter(|line| !line.starts_with("//") && !line.is_empty()).collect();
        let before = seen.insert(conversation.join("\n"), path.clone());
        assert_eq!(before, None, "{} is the same", path.display());
    }
}

#[test]
fn every_script_holds_everywhere() {
    let found = all_scripts();
    assert!(found.len() >= 150, "{}", found.len());
    let mut failures = String::new();
    for (path, source) in &found {
        let script = Script::parse(source).unwrap_or_else(|problem| panic!("{}:{problem}", path.display()));
        assert_eq!(Script::parse(&script.to_string()).as_ref(), Ok(&script), "{}", path.display());
        for place in places() {
            let seed = place.seed;
            let script = if place.mapped { &of_v6_socket(source) } else { &script };
            if let Err(failure) = run(&with_port(script, place.bind_port), place) {
                failures += &format!("{}:{} (seed {seed})\n", path.display(), failure.in_source(source));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Errors are told by a socket's own family, whatever its packets are.
fn of_v6_socket(source: &str) -> Script {
    let [v4, v6] = ["SOL_IP, cmsg_type=IP_RECVERR", "SOL_IPV6, cmsg_type=IPV6_RECVERR"]
        .map(|error| format!("cmsg_level={error}"));
    Script::parse(&source.replace(&v4, &v6)).unwrap()
}

/// Segments that say their ports name packetdrill's for the stack's end.
fn with_port(script: &Script, port: u16) -> Script {
    let usual = Setup::default().bind_port;
    let mut script = script.clone();
    for event in &mut script.events {
        if let Action::Packet(Packet { body: Body::Tcp(Segment { ports: Some((from, to)), .. }), .. }) =
            &mut event.action.value
        {
            [from, to].into_iter().filter(|at| **at == usual).for_each(|at| *at = port);
        }
    }
    script
}

/// Addresses that no script names.
fn elsewhere() -> Setup {
    let of = |octets: [u8; 4]| IpAddr::V4(Ipv4Addr::from(octets));
    Setup { local: of([10, 1, 2, 3]), remote: of([172, 16, 9, 8]), ..Setup::default() }
}

/// Does a script say where it runs? It names addresses of its own (a route, a source, an IP version), or keys as the bytes of a socket option,
/// and the cookies that follow from both.
fn is_bound(source: &str) -> bool {
    let Setup { local, remote, .. } = Setup::default();
    let network =
        |address: IpAddr| address.to_string().rsplit_once('.').map(|(network, _)| network.to_owned());
    let networks = [local, remote].map(|address| network(address).unwrap());
    let says = |line: &str| {
        ["--ip_version", "--local_ip", "--remote_ip", "TCP_FASTOPEN_KEY"]
            .iter()
            .any(|word| line.contains(word))
            || networks.iter().any(|network| line.contains(network))
    };
    source.lines().filter(|line| !line.starts_with("//")).any(says)
}

/// The keys that a script sets, as `net.ipv4.tcp_fastopen_key` has them.
fn keys(source: &str) -> Vec<String> {
    let is_key = |word: &&str| {
        let parts: Vec<&str> = word.split('-').collect();
        parts.len() == 4
            && parts.iter().all(|part| part.len() == 8 && part.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    let words = source.split(|at: char| !at.is_ascii_alphanumeric() && at != '-');
    words.filter(is_key).map(str::to_owned).collect()
}

fn cookie(key: &str, setup: &Setup) -> String {
    let ring: KeyRing = key.parse().unwrap();
    let cookie = ring.cookie(setup.remote.into(), setup.local.into());
    cookie.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A script with other keys, between other addresses: the same conversation.
fn moved(source: &str) -> String {
    let mut text = source.to_owned();
    for key in keys(source) {
        let other: String = key.chars().map(|digit| if digit == '-' { '-' } else { turned(digit) }).collect();
        text = text.replace(&cookie(&key, &Setup::default()), &cookie(&other, &elsewhere()));
        text = text.replace(&key, &other);
    }
    text
}

fn turned(digit: char) -> char {
    char::from_digit(digit.to_digit(16).unwrap() ^ 5, 16).unwrap()
}

#[test]
fn scripts_hold_between_other_addresses_and_with_other_keys() {
    let (mut failures, mut bound, mut keyed) = (String::new(), 0, 0);
    let found = all_scripts();
    for (path, source) in &found {
        if is_bound(source) {
            bound += 1;
            continue;
        }
        let source = moved(source);
        keyed += usize::from(!keys(&source).is_empty());
        if let Err(failure) = run(&Script::parse(&source).unwrap(), elsewhere()) {
            failures += &format!("{}:{}\n", path.display(), failure.in_source(&source));
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(bound * 10 < found.len() && keyed >= 40, "{bound} are bound, {keyed} have keys");
}
