//! Fast Open (RFC 7413), client and server, in both profiles and both IP versions.
//!
//! Server: `cookies` (who is accepted), `answer` (the reply on the SYN-ACK), `syn_received` (the child before its final ACK),
//! `pending` (how many), `amplification` (how much before the final ACK), `replay`. Client: `syn` (what the first SYN is), `syn_ack` (what its answer means), `fallback`,
//! `verdicts`, `unrelated` (answers that say nothing about Fast Open), `pause`. Both ends: `table` (rows measured on Linux), `ladders` (packets per exchange), `loss` (any subset lost).

mod amplification;
mod answer;
mod cookies;
mod exchange;
mod fallback;
mod ladders;
mod loss;
mod pause;
mod pending;
mod replay;
mod rotation;
mod syn;
mod syn_ack;
mod syn_received;
mod table;
mod unrelated;
mod verdicts;

use crate::pair::*;
use crate::peer::*;
use bytes::Bytes;
use core::time::Duration;
use proto::fast_open::{KeyRing, Network, VerdictKey};
use proto::*;
use wire::{Cookie, FastOpenKind};

const KEY: &str = "00010203-04050607-08090a0b-0c0d0e0f";
const OTHER_KEY: &str = "deadbeef-00000001-00000002-00000003";

/// Linux's profile with client and server on, and with the window scale that our own profile has, so that one conversation shows both.
fn linux() -> Config {
    Config::linux().tcp_fastopen(0x3).tcp_rmem([4096, 131_072, 6_291_456])
}

/// Our profile, and Linux's with Fast Open at both ends.
fn both_profiles() -> [Config; 2] {
    [Config::default(), linux()]
}

fn ring(text: &str) -> KeyRing {
    text.parse().unwrap()
}

/// A server with the key [`KEY`] opposite hand-made segments.
fn server(config: Config) -> Peer {
    let mut p = Peer::new(config);
    p.stack.set_fast_open_key(ring(KEY));
    p
}

/// Every server there is: both profiles, both IP versions.
fn servers() -> [Peer; 4] {
    [server(Config::default()), server(linux()), server(Config::default()).v6(), server(linux()).v6()]
}

fn qlen(fast_open: u32) -> ListenOptions {
    ListenOptions { fast_open: Some(fast_open), ..ListenOptions::default() }
}

/// The cookie of the hand-made client under `key`, in hexadecimal.
fn cookie_under(p: &Peer, key: &str) -> String {
    ring(key).cookie(p.remote.ip().into(), p.local.ip().into()).to_string()
}

fn cookie(p: &Peer) -> String {
    cookie_under(p, KEY)
}

/// MSS of both ends' Ethernet.
fn mss(p: &Peer) -> u16 {
    if p.local.is_ipv4() { 1460 } else { 1440 }
}

fn auto(data: &'static [u8]) -> ConnectOptions {
    ConnectOptions { fast_open: FastOpen::Auto, first_bytes: data.into(), ..ConnectOptions::default() }
}

fn first_bytes(len: usize) -> Bytes {
    pattern(1, len).into()
}

/// The client's cookie for the hand-made server: eight bytes of this.
const COOKIE: &str = "c0c0c0c0c0c0c0c0";

/// A client that holds [`COOKIE`] and knows this MSS and SRTT.
fn client_knowing(mut p: Peer, mss: Option<u16>, srtt_ms: Option<u64>) -> Peer {
    let entry = p.stack.path_cache_mut().entry(p.now, p.local.ip().into(), p.remote.ip().into());
    entry.store_cookie(Cookie::new(&[0xc0; 8]).unwrap(), FastOpenKind::Standard);
    entry.mss = mss;
    entry.set_rtt(srtt_ms.map(Duration::from_millis));
    p
}

/// A client that holds [`COOKIE`] after an exchange with an RTT of 40 ms.
fn client(config: Config) -> Peer {
    client_knowing(Peer::new(config), Some(1460), Some(40))
}

/// The client's cookie for the hand-made server, if any.
fn cached_cookie(p: &Peer) -> Option<String> {
    let entry = p.stack.path_cache().lookup(p.local.ip().into(), p.remote.ip().into())?;
    entry.cookie.map(|cookie| cookie.to_string())
}

fn verdict_key(p: &Peer) -> VerdictKey {
    let prefix = if p.local.is_ipv4() { 24 } else { 64 };
    VerdictKey {
        network: Network::new(p.local.ip().into(), prefix),
        peer: p.remote.ip().into(),
        port: p.remote.port(),
    }
}

fn verdict(p: &Peer) -> Option<Verdict> {
    p.stack.path_cache().verdict_active(p.now, &verdict_key(p))
}

/// The Fast Open counters that are not zero, under their names without `TCPFastOpen`.
fn counters(stack: &Stack) -> Vec<(&'static str, u64)> {
    let ours =
        ["SynDataRejectedBytes", "SynAckData", "ReplayGuardHits", "ReplayGuardFull", "CookieOnOverflow"];
    let counted = |(name, count): (&'static str, u64)| {
        let name = match name.strip_prefix("TCPFastOpen") {
            Some(name) => name,
            None => ours.into_iter().find(|ours| *ours == name)?,
        };
        (count > 0).then_some((name, count))
    };
    stack.counters().all().filter_map(counted).collect()
}
