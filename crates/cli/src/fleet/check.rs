//! `firstbyte fleet LIST`: tests Fast Open on every server, and whether all have the same keys.
use crate::explain::{Target, target, visits};
use crate::failure::Failure;
use crate::input;
use crate::key::{cookie, which};
use crate::serve::key::read;
use crate::terminal::print;
use clap::Args;
use firstbyte::KeyRing;
use probe::{Answer, Verdict, Visit};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Servers to test, and keys to compare with.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// A host name, or a file with one HOST or HOST:PORT on each line; the default port is 80
    #[arg(value_name = "NAME[:PORT]|FILE", required = true)]
    list: Option<String>,
    /// Key file that all servers should have, as `firstbyte key` and Linux write it
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Print JSON, one line for each address
    #[arg(long)]
    json: bool,
}

/// Most addresses; more are probably a mistake.
const MOST: usize = 256;

/// Tests all servers.
pub(super) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let ring = args.key_file.as_deref().map(read).transpose()?;
    let servers = servers(args.list.as_deref().unwrap_or_default())?;
    let mut fine = true;
    for (server, target) in servers {
        let visits = visits(server, &target.request()?)?;
        let verdict = Verdict::of(&visits);
        let key = ring.as_ref().and_then(|ring| key(ring, server, &visits));
        fine &= verdict.cause.works();
        fine &= ring.is_none() || key.is_some_and(|key| key != "neither key");
        print(&if args.json {
            format!("{}\n", json!({ "server": server, "verdict": verdict, "key": key }))
        } else {
            let key = key.map_or(String::new(), |key| format!(" Its cookie was made with {key}."));
            format!("{server}  {}{key}\n", verdict.sentence)
        })?;
    }
    Ok(ExitCode::from(u8::from(!fine)))
}

/// Returns the addresses to test, each with the target that named it.
fn servers(list: &str) -> Result<BTreeMap<SocketAddr, Target>, Failure> {
    let path = Path::new(list);
    // A host name has no slash; a list may be a pipe.
    let targets: Vec<Target> = if path.is_file() || list.contains('/') && path.exists() {
        let text = input::text(path, input::WRITTEN_MAX)?;
        let lines = text
            .lines()
            .map(str::trim)
            .enumerate()
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        lines
            .map(|(at, line)| {
                target(line).map_err(|why| Failure::failed(format!("{list}, line {}: {why}", at + 1)))
            })
            .collect::<Result<_, _>>()?
    } else {
        vec![target(list).map_err(Failure::usage)?]
    };
    let mut all = BTreeMap::new();
    for target in targets {
        let host = &target.host;
        let found = (host.as_str(), target.port).to_socket_addrs();
        let found = found.map_err(|error| Failure::failed(format!("cannot resolve {host}: {error}")))?;
        all.extend(found.map(|server| (server, target.clone())));
    }
    match all.len() {
        0 => Err(Failure::failed(format!("cannot test {list}: it has no address"))),
        1..=MOST => Ok(all),
        more => Err(Failure::failed(format!("cannot test {more} addresses: at most {MOST}"))),
    }
}

/// Returns the key that made the server's last cookie. Returns `None` if the server did not answer:
/// the kernel caches a cookie per address, not per port, and it may be old.
fn key(ring: &KeyRing, server: SocketAddr, visits: &[Visit]) -> Option<&'static str> {
    if !visits.iter().any(|visit| visit.answer == Answer::SynAck) {
        return None;
    }
    let given = visits.iter().rev().find_map(|visit| visit.cookie.clone());
    let cookie = cookie(&given.or_else(|| crate::explain::known_cookie(server))?).ok()?;
    Some(which(ring, source(server)?, server.ip(), &cookie))
}

/// Returns this host's source address for a server. Sends nothing.
fn source(server: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(server).ok()?;
    Some(socket.local_addr().ok()?.ip())
}
