//! Which local ports connections get, and what that tells to whom (RFC 6056).

use crate::pair::ethernet;
use crate::peer::{Peer, both_profiles};
use core::time::Duration;
use proto::*;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// A host that asks for ports; what it sends does not matter.
struct Host {
    stack: Stack,
    now: Instant,
}

impl Host {
    fn new(seed: u8, config: Config) -> Host {
        let mut stack = Stack::new(config, ethernet(), [seed; 32]);
        stack.add_address("10.0.0.2".parse().unwrap(), 24);
        Host { stack, now: Instant::ZERO + Duration::from_secs(1000) }
    }

    fn connect(&mut self, peer: &SocketAddr) -> (ConnId, u16) {
        let id = self.stack.connect(self.now, *peer, ConnectOptions::default()).unwrap();
        (id, self.stack.info(id).unwrap().local.port())
    }

    /// The ports of a connection to each of the observer's.
    fn visit(&mut self, observers: &[SocketAddr]) -> Vec<u16> {
        let ports = observers.iter().map(|peer| self.connect(peer));
        let (ids, ports): (Vec<ConnId>, Vec<u16>) = ports.unzip();
        ids.into_iter().for_each(|id| self.stack.abort(self.now, id));
        ports
    }
}

/// Destinations of one who watches.
fn observers() -> Vec<SocketAddr> {
    (1..=300).map(|port| SocketAddr::new("192.0.2.1".parse().unwrap(), port)).collect()
}

/// How far a port lies above another of the range.
fn above(config: &Config, from: u16, to: u16) -> u32 {
    let count = config.port_high - config.port_low + 1;
    (u32::from(to) + count - u32::from(from)) % count
}

/// None of 300 destinations shares a counter of 65,536 with the other one (a few of them share one with each other); if one did, its step would be
/// one among steps of every length.
#[test]
fn who_watches_300_destinations_cannot_count_connections_to_another() {
    for config in both_profiles() {
        let unit = if config.port_choice == PortChoice::Parity { 2 } else { 1 };
        let mut sums = Vec::new();
        for elsewhere in [0, 10] {
            let mut host = Host::new(3, config.clone());
            let before = host.visit(&observers());
            for _ in 0..elsewhere {
                host.connect(&"198.51.100.7:443".parse().unwrap());
            }
            let after = host.visit(&observers());
            let steps: Vec<u32> =
                before.iter().zip(&after).map(|(from, to)| above(&config, *from, *to) / unit).collect();
            assert!(steps.iter().all(|step| (1..=16).contains(step)), "{elsewhere}: {steps:?}");
            assert!(steps.iter().filter(|step| **step > 8).count() <= 2, "{elsewhere}: {steps:?}");
            for length in 1..=8 {
                let count = steps.iter().filter(|step| **step == length).count();
                assert!((15..=65).contains(&count), "{count} of length {length}");
            }
            sums.push(steps.iter().sum::<u32>());
        }
        assert!(sums.iter().all(|sum| (1250..=1450).contains(sum)), "{sums:?}");
    }
}

/// A victim's ports towards one destination are near each other for ten seconds at most.
#[test]
fn after_ten_seconds_ports_begin_elsewhere() {
    let mut host = Host::new(3, Config::default());
    let peer = "192.0.2.1:80".parse().unwrap();
    let (_, first) = host.connect(&peer);
    host.now = host.now + Duration::from_millis(9_999);
    let (_, second) = host.connect(&peer);
    assert!((1..=8).contains(&above(&Config::default(), first, second)), "{first} {second}");
    host.now = host.now + Duration::from_millis(1);
    let (_, third) = host.connect(&peer);
    assert!(!(1..=100).contains(&above(&Config::default(), second, third)), "{second} {third}");
}

#[test]
fn no_port_is_given_twice_while_it_is_used_and_all_are_given() {
    for config in both_profiles() {
        let config = config.port_low(60_000);
        let mut host = Host::new(5, config.clone());
        let peer = "192.0.2.1:80".parse().unwrap();
        let count = config.port_high - config.port_low + 1;
        let mut ports = BTreeSet::new();
        while let Ok(id) = host.stack.connect(host.now, peer, ConnectOptions::default()) {
            assert!(ports.insert(host.stack.info(id).unwrap().local.port()));
            host.now = host.now + Duration::from_millis(1);
        }
        assert_eq!(ports.len() as u32, count);
        assert_eq!(ports.first().copied(), u16::try_from(config.port_low).ok());
    }
}

/// The peer closes first: the connection is in TIME-WAIT there, not here.
fn closed_by_peer(p: &mut Peer) -> u16 {
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("A 1 ack 1");
    p.send("FA 1 ack 1");
    p.close(id);
    p.expect("FA 1 ack 2");
    p.send("A 2 ack 2");
    assert_eq!(p.sizes(), (0, 0, 0));
    p.local.port()
}

/// The ports in TIME-WAIT at the peer are chosen last of four.
#[test]
fn ports_in_time_wait_at_the_peer_are_taken_last() {
    let mut p = Peer::new(Config::default().port_low(40_000).port_high(40_003));
    for _ in 0..8 {
        let waiting = [closed_by_peer(&mut p), closed_by_peer(&mut p)];
        assert_ne!(waiting[0], waiting[1]);
        let ids: Vec<ConnId> = (0..4).map(|_| p.connect(ConnectOptions::default())).collect();
        p.expect_sent(4);
        let mut ports: Vec<u16> = ids.iter().map(|id| p.stack.info(*id).unwrap().local.port()).collect();
        assert!(ports[..2].iter().all(|port| !waiting.contains(port)), "{waiting:?} {ports:?}");
        ports.sort_unstable();
        assert_eq!(ports, [40_000, 40_001, 40_002, 40_003]);
        ids.into_iter().for_each(|id| p.stack.abort(p.now, id));
        p.skip(100_000);
    }
}

/// TIME-WAIT lasts 60 s: afterwards every port is as good as another.
#[test]
fn a_port_waits_at_the_peer_for_sixty_seconds() {
    let config = Config::default().port_low(40_000).port_high(40_001);
    let next_after = |ms: u64| {
        let mut p = Peer::new(config.clone());
        let mut again = 0;
        for _ in 0..20 {
            let waiting = closed_by_peer(&mut p);
            p.skip(ms);
            let id = p.connect(ConnectOptions::default());
            p.expect("S 0");
            again += u32::from(p.local.port() == waiting);
            p.stack.abort(p.now, id);
            p.skip(100_000);
        }
        again
    };
    assert_eq!(next_after(59_000), 0);
    assert!((3..=17).contains(&next_after(60_001)));
}

/// A search is bounded: where many ports wait at the peer, the first of them is taken.
#[test]
fn where_all_near_ports_wait_one_of_them_is_taken() {
    let mut p = Peer::new(Config::default().port_low(40_000).port_high(40_099));
    let ports: BTreeSet<u16> = (0..100).map(|_| closed_by_peer(&mut p)).collect();
    assert!(ports.len() > 90, "{}", ports.len());
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    assert_eq!(p.state(id), State::SynSent);
}
