//! Rate limits of answers: [`PeerLimit`] for resets and echo replies, [`LastAnswer`] for one
//! connection, [`ChallengeLimit`] for challenge ACKs. None of them has a count that an observer of
//! only its own answers can read.

use crate::Instant;
use crate::rng::Rng;
use alloc::boxed::Box;
use core::hash::Hasher;
use core::time::Duration;
use siphasher::sip::SipHasher24;
use wire::Addr;

/// Answers of one kind to strangers: each peer has so many a second.
///
/// Peers share buckets by a keyed hash, so that whatever comes from forged sources the memory is the same, and no count is the whole
/// host's: who forges a peer's address spends what that peer has and cannot see by his own answers whether the forged packet was
/// answered (CVE-2016-5696). Two that share a bucket would see each other there: the key takes in the second, so that they do not share it
/// for long, and each bucket has another allowance each second, on average the setting.
pub(crate) struct PeerLimit {
    key: (u64, u64),
    /// Allocated with the first that counts.
    buckets: Box<[Bucket]>,
}

/// Of a second (that of [`PeerLimit::take`], and one more), what is left.
#[derive(Clone, Copy, Default)]
struct Bucket {
    second: u32,
    left: u32,
}

/// About so many peers are distinguished: 32 KiB.
const BUCKETS: usize = 4096;

impl PeerLimit {
    /// `key` must be secret.
    pub(crate) fn new(key: (u64, u64)) -> PeerLimit {
        PeerLimit { key, buckets: Box::default() }
    }

    /// Takes one of the peer's about `per_second`; false when this second's are used up.
    pub(crate) fn take(&mut self, now: Instant, peer: Addr, per_second: u32) -> bool {
        if per_second >= UNLIMITED {
            return true;
        }
        if self.buckets.is_empty() {
            self.buckets = vec![Bucket::default(); BUCKETS].into_boxed_slice();
        }
        // Zero is a bucket that was never used.
        let second = (now.as_nanos() / 1_000_000_000) as u32 | 1 << 31;
        let at = self.hash(second, network(peer)) as usize % BUCKETS;
        if self.buckets[at].second != second {
            let varied = self.hash(second, [at as u64, u64::MAX]) % u64::from(per_second.max(1));
            self.buckets[at] = Bucket { second, left: per_second.div_ceil(2).saturating_add(varied as u32) };
        }
        let left = &mut self.buckets[at].left;
        let taken = *left > 0;
        *left -= u32::from(taken);
        taken
    }

    fn hash(&self, second: u32, words: [u64; 2]) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        hasher.write_u32(second);
        words.iter().for_each(|word| hasher.write_u64(*word));
        hasher.finish()
    }
}

/// Whose share it is: an address of IPv4, or a network of IPv6, of which one host has all 2^64 (RFC 4291 §2.5.4).
pub(crate) fn network(peer: Addr) -> [u64; 2] {
    let whole = u128::from_be_bytes(peer.0);
    let (high, low) = ((whole >> 64) as u64, whole as u64);
    if peer.is_v4() { [high, low] } else { [high, 0] }
}

/// When a peer's nonsense was last answered: milliseconds of the stack's clock, 0 = never.
///
/// Two ends that hold each other's segments for nonsense would answer each other's answers without end (Linux's
/// `tcp_oow_rate_limited`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastAnswer(pub(crate) u32);

impl LastAnswer {
    /// May it be answered now? Not sooner than `interval` after the last time.
    pub(crate) fn may_answer(&mut self, now: Instant, interval: Duration) -> bool {
        let ms = now.as_millis() as u32;
        let elapsed = ms.wrapping_sub(self.0) as i32;
        if self.0 != 0 && elapsed >= 0 && (elapsed as u128) < interval.as_millis() {
            return false;
        }
        self.0 = ms.max(1);
        true
    }
}

/// A limit of so many is none (as `tcp_challenge_ack_limit` has it).
pub(crate) const UNLIMITED: u32 = i32::MAX as u32;

/// Challenge ACKs of a stack per second (RFC 5961 §7). Each second has another allowance, on average the setting: whoever counted
/// the challenges of his own connection could else tell how many others had been sent, and so guess their numbers (as Linux since
/// that was found).
pub(crate) struct ChallengeLimit {
    second: u64,
    left: u32,
    rng: Rng,
}

impl ChallengeLimit {
    pub(crate) fn new(rng: Rng) -> ChallengeLimit {
        ChallengeLimit { second: u64::MAX, left: 0, rng }
    }

    /// Takes one of about `per_second`; false when this second's are used up.
    pub(crate) fn take(&mut self, now: Instant, per_second: u32) -> bool {
        if per_second >= UNLIMITED {
            return true;
        }
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.second {
            self.second = second;
            let half = per_second.div_ceil(2);
            self.left = half + (self.rng.next_u64() % u64::from(per_second.max(1))) as u32;
        }
        let taken = self.left > 0;
        self.left -= u32::from(taken);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::net::{IpAddr, Ipv4Addr};

    #[test]
    fn a_peer_is_answered_once_per_interval() {
        let mut last = LastAnswer::default();
        let interval = Duration::from_millis(500);
        let answered =
            |last: &mut LastAnswer, ms: u64| last.may_answer(Instant::from_nanos(ms * 1_000_000), interval);
        assert_eq!(
            [0, 100, 499, 500, 501, 1000].map(|ms| answered(&mut last, ms)),
            [true, false, false, false, true, false]
        );
        assert!(answered(&mut last, 1001), "a clock at zero counts as one millisecond");
        assert!(last.may_answer(Instant::from_nanos(1_001_000_000), Duration::ZERO), "no limit");
    }

    #[test]
    fn the_allowance_of_challenges_varies_around_its_setting() {
        let mut limit = ChallengeLimit::new(Rng::new([3; 32]));
        let taken = |limit: &mut ChallengeLimit, s: u64| {
            (0..1000).filter(|_| limit.take(Instant::from_nanos(s * 1_000_000_000), 100)).count()
        };
        let seconds: Vec<usize> = (1..200).map(|s| taken(&mut limit, s)).collect();
        assert!(seconds.iter().all(|taken| (50..150).contains(taken)), "{seconds:?}");
        let mean = seconds.iter().sum::<usize>() / seconds.len();
        assert!((90..110).contains(&mean) && seconds[0] != seconds[1], "{mean}");
        assert_eq!((0..100).filter(|_| limit.take(Instant::from_nanos(0), UNLIMITED)).count(), 100);
        assert!(!limit.take(Instant::from_nanos(0), 0), "none");
    }

    fn taken_by(limit: &mut PeerLimit, ms: u64, peer: &str, per_second: u32) -> usize {
        let peer = Addr::from(peer.parse::<IpAddr>().unwrap());
        let at = Instant::from_nanos(ms * 1_000_000);
        (0..10_000).filter(|_| limit.take(at, peer, per_second)).count()
    }

    #[test]
    fn each_peer_has_an_allowance_a_second_that_varies_around_its_setting() {
        let mut limit = PeerLimit::new((1, 2));
        let seconds: Vec<usize> = (0..200).map(|s| taken_by(&mut limit, s * 1000, "10.0.0.1", 100)).collect();
        assert!(seconds.iter().all(|taken| (50..150).contains(taken)), "{seconds:?}");
        let mean = seconds.iter().sum::<usize>() / seconds.len();
        assert!((90..110).contains(&mean), "{mean}");
        assert!(seconds.windows(2).any(|two| two[0] != two[1]));
        assert_eq!(taken_by(&mut limit, 199_999, "10.0.0.1", 100), 0, "this second's are used up");
        assert!(taken_by(&mut limit, 199_999, "10.0.0.2", 100) >= 50, "another's are not");
        assert_eq!(taken_by(&mut limit, 300_000, "10.0.0.1", 0), 0);
        assert_eq!(taken_by(&mut limit, 300_000, "10.0.0.2", 1), 1);
    }

    #[test]
    fn all_addresses_of_an_ipv6_network_have_one_share() {
        let mut limit = PeerLimit::new((1, 2));
        assert!(taken_by(&mut limit, 0, "fd00::1", 100) >= 50);
        assert_eq!(taken_by(&mut limit, 0, "fd00::2", 100), 0);
        assert!(taken_by(&mut limit, 0, "fd00:0:0:1::1", 100) >= 50);
    }

    /// Two that share a bucket could else count each other's answers for as long as they liked.
    #[test]
    fn who_shares_a_bucket_does_so_for_a_second() {
        let mut limit = PeerLimit::new((1, 2));
        let share = |limit: &mut PeerLimit, s: u64| {
            taken_by(limit, s * 1000, "192.0.2.1", 100);
            (0..30_000u32)
                .filter(|host| {
                    let peer = Addr::from(Ipv4Addr::from(0x0a00_0000 + host));
                    !limit.take(Instant::from_nanos(s * 1_000_000_000), peer, u32::MAX >> 2)
                })
                .collect::<Vec<u32>>()
        };
        let shared: Vec<Vec<u32>> = (1..6).map(|s| share(&mut limit, s)).collect();
        assert!(shared.iter().all(|hosts| (1..30).contains(&hosts.len())), "{shared:?}");
        assert!(shared[1..].iter().flatten().filter(|host| shared[0].contains(host)).count() <= 1);
    }

    #[test]
    fn without_a_limit_nothing_is_kept_and_with_one_the_same_for_any_number_of_peers() {
        let mut limit = PeerLimit::new((1, 2));
        assert_eq!(taken_by(&mut limit, 0, "10.0.0.1", UNLIMITED), 10_000);
        assert!(limit.buckets.is_empty());
        for host in 0..100_000u32 {
            limit.take(Instant::ZERO, Addr::from(Ipv4Addr::from(host)), 10);
        }
        assert_eq!(size_of_val(&*limit.buckets), 32 << 10);
    }
}
