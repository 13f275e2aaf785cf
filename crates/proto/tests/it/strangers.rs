//! Resets and echo replies for those who have no connection: how many each gets, and that they tell nothing about others.

use crate::icmp::echo;
use crate::peer::*;
use core::time::Duration;
use proto::*;

const PEER: &str = "10.0.0.1";
const ATTACKER: &str = "10.0.0.66";

/// Sends a probe from the peer's address that is then set; whether it is answered.
type Probe = fn(&mut Peer) -> bool;

fn stray_ack(p: &mut Peer) -> bool {
    p.send("A 5 ack 777");
    p.take_packet().is_some()
}

fn ping(p: &mut Peer) -> bool {
    echo(p, b"").is_some()
}

fn from(p: &mut Peer, address: &str, port: u16) {
    p.remote = std::net::SocketAddr::new(address.parse().unwrap(), port);
}

fn limited(per_second: u32) -> Config {
    Config::default().resets_per_peer(per_second).echo_replies_per_peer(per_second)
}

/// Second by second: how many of the attacker's own 200 probes are answered while he forges as many packets of `PEER`, which has a connection
/// from port 40000; and all that the stack sent in answer to the forged ones.
fn attack(config: &Config, forge: Probe, forged_port: u16, own: Probe) -> (Vec<usize>, usize) {
    let mut p = Peer::new(config.clone());
    let listener = p.listen();
    p.establish(listener);
    let mut provoked = 0;
    let seconds = (0..20).map(|_| {
        let mut answered = 0;
        for _ in 0..200 {
            from(&mut p, PEER, forged_port);
            provoked += usize::from(forge(&mut p));
            from(&mut p, ATTACKER, 50_000);
            answered += usize::from(own(&mut p));
        }
        p.now = p.now + Duration::from_secs(1);
        answered
    });
    (seconds.collect(), provoked)
}

/// CVE-2016-5696: with a limit common to all, whoever forges segments knows by how many resets are left for himself whether they hit a
/// connection.
#[test]
fn who_forges_addresses_learns_nothing_by_his_own_answers() {
    let guess: Probe = |p| {
        p.send("A 1 ack 1");
        p.take_packet().is_some()
    };
    for config in [limited(100), Config::linux()] {
        let (by_hits, provoked) = attack(&config, guess, 40_000, stray_ack);
        assert_eq!(provoked, 0, "an ACK that a connection takes has no answer");
        let (by_misses, provoked) = attack(&config, guess, 40_001, stray_ack);
        assert!(provoked > 500, "{provoked} resets for the peer");
        assert_eq!(by_hits, by_misses, "the attacker's own resets");
        // Nor do forged echo requests take anything from his own.
        let (beside_nothing, _) = attack(&config, |_| false, 40_000, ping);
        let (beside_echoes, provoked) = attack(&config, ping, 40_000, ping);
        assert!(provoked > 500, "{provoked} echo replies for the peer");
        assert_eq!(beside_nothing, beside_echoes, "the attacker's own echo replies");
    }
}

/// What he is given varies, so that a count of his own does not show the allowance that anybody else has this second.
#[test]
fn the_allowance_is_another_every_second() {
    for own in [stray_ack as Probe, ping] {
        let (seconds, _) = attack(&limited(100), |_| false, 40_000, own);
        assert!(seconds.iter().all(|answered| (50..150).contains(answered)), "{seconds:?}");
        assert!(seconds.iter().any(|answered| *answered != seconds[0]), "{seconds:?}");
    }
}

#[test]
fn a_flood_of_one_peer_does_not_silence_the_answers_to_another() {
    let pairs = [("10.0.0.2:80", ATTACKER, PEER), ("[fd00::2]:80", "fd00:0:0:66::1", "fd00:0:0:1::1")];
    for (local, attacker, peer) in pairs {
        for probe in [stray_ack as Probe, ping] {
            let mut p = Peer::new(limited(100));
            p.local = local.parse().unwrap();
            for _ in 0..5 {
                from(&mut p, attacker, 50_000);
                let flooded = (0..5000).filter(|_| probe(&mut p)).count();
                assert!((50..150).contains(&flooded), "{flooded}");
                from(&mut p, peer, 40_000);
                assert_eq!((0..50).filter(|_| probe(&mut p)).count(), 50);
                p.now = p.now + Duration::from_secs(1);
            }
        }
    }
}
