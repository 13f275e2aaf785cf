//! SYN cookies: a half-open peer kept in the numbers of its SYN-ACK instead of in memory (RFC 4987 §3.6).
//!
//! The initial sequence number holds a keyed hash of the tuple, the peer's own number, a counter of minutes and an index into a
//! table of MSS values, laid out as Linux does:
//!
//! ```text
//! ISN = hash(tuple) + IRS + (counter mod 256) · 2²⁴ + (hash(tuple, counter, IRS) + MSS index) mod 2²⁴
//! ```
//!
//! In Linux the second hash does not know IRS. There a segment whose number lies as far behind the first as the index is large brings the same
//! cookie with a smaller index: where the last ACK and such a short first segment are lost, the stream would begin without them.
//!
//! Whoever returns it holds the address. What else the SYNs agreed rides in the six low bits of the SYN-ACK's TSval, which comes
//! back as TSecr; without timestamps there is neither window scaling nor SACK.
//!
//! Not here: when a cookie is sent and what it opens (`stateless`).

use crate::tcp::ecn::EcnMode;
use crate::tcp::open::negotiation::Negotiated;
use crate::tuple::FourTuple;
use crate::{Config, Instant};
use core::hash::Hasher;
use core::time::Duration;
use siphasher::sip::SipHasher24;
use wire::SeqNum;

/// A cookie is good in the period it was made in and in the next one (Linux's `TCP_SYNCOOKIE_PERIOD` and `MAX_SYNCOOKIE_AGE`).
const PERIOD: Duration = Duration::from_secs(60);
const PERIODS_VALID: u32 = 2;
/// No cookie is older than this, so an ACK that comes later needs no look.
pub(in crate::stack) const VALID: Duration = Duration::from_secs(120);

const COUNTER_SHIFT: u32 = 24;
const HASH_MASK: u32 = (1 << COUNTER_SHIFT) - 1;

/// Linux's four values, which are what real paths have, and smaller ones below them, so that a peer is never sent more than it takes.
const MSS_V4: [u16; 8] = [88, 168, 256, 400, 536, 1300, 1440, 1460];
/// Of 1280, 1480, 1500 and 9000 bytes of MTU, and smaller ones.
const MSS_V6: [u16; 8] = [88, 256, 536, 1000, 1220, 1420, 1440, 8940];

/// The smaller ones, which come first.
const MSS_SMALL: usize = 4;

/// Bits of TSval that carry options, as Linux packs them: window shift (15: none), SACK, ECN.
const STAMP_MASK: u32 = 0x3f;
const STAMP_WSCALE: u32 = 0x0f;
const STAMP_SACK: u32 = 0x10;
const STAMP_ECN: u32 = 0x20;

/// Makes and checks cookies.
pub(in crate::stack) struct SynCookies {
    key: (u64, u64),
}

impl SynCookies {
    /// `key` must be secret and drawn once per stack.
    pub(in crate::stack) fn new(key: (u64, u64)) -> SynCookies {
        SynCookies { key }
    }

    /// The ISN of a SYN-ACK that leaves now, and the MSS it remembers: the largest of the table that the peer takes, or the least.
    pub(in crate::stack) fn isn(
        &self,
        config: &Config,
        now: Instant,
        tuple: &FourTuple,
        irs: SeqNum,
        peer_mss: u16,
    ) -> (SeqNum, u16) {
        let table = mss_table(config, tuple);
        let index = table.iter().rposition(|mss| *mss <= peer_mss).unwrap_or(0);
        let counter = counter(now);
        let hash = self.hash(tuple, Some((counter, irs))).wrapping_add(index as u32) & HASH_MASK;
        let isn = self.base(tuple, irs).wrapping_add(counter << COUNTER_SHIFT).wrapping_add(hash);
        (SeqNum(isn), table[index])
    }

    /// The MSS of a cookie that came back, if it is ours and young enough.
    pub(in crate::stack) fn check(
        &self,
        config: &Config,
        now: Instant,
        tuple: &FourTuple,
        irs: SeqNum,
        isn: SeqNum,
    ) -> Option<u16> {
        let rest = isn.0.wrapping_sub(self.base(tuple, irs));
        let now = counter(now);
        let age = now.wrapping_sub(rest >> COUNTER_SHIFT) & (u32::MAX >> COUNTER_SHIFT);
        if age >= PERIODS_VALID {
            return None;
        }
        let index = rest.wrapping_sub(self.hash(tuple, Some((now.wrapping_sub(age), irs)))) & HASH_MASK;
        mss_table(config, tuple).get(index as usize).copied()
    }

    fn base(&self, tuple: &FourTuple, irs: SeqNum) -> u32 {
        self.hash(tuple, None).wrapping_add(irs.0)
    }

    fn hash(&self, tuple: &FourTuple, made: Option<(u32, SeqNum)>) -> u32 {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        hasher.write(&tuple.local.0);
        hasher.write(&tuple.peer.0);
        hasher.write(&tuple.local_port.to_be_bytes());
        hasher.write(&tuple.peer_port.to_be_bytes());
        if let Some((counter, irs)) = made {
            hasher.write(&counter.to_be_bytes());
            hasher.write(&irs.0.to_be_bytes());
        }
        hasher.finish() as u32
    }
}

fn counter(now: Instant) -> u32 {
    (now.as_nanos() / PERIOD.as_nanos() as u64) as u32
}

fn mss_table(config: &Config, tuple: &FourTuple) -> &'static [u16] {
    let table = if tuple.peer.is_v4() { &MSS_V4 } else { &MSS_V6 };
    if config.mss_rules.cookies_know_whole_paths() { &table[MSS_SMALL..] } else { table }
}

/// The clock of TSval (ms, before its offset) at most 64 ms back, so that its low bits say what was agreed.
pub(in crate::stack) fn pack(clock: u32, agreed: &Negotiated) -> u32 {
    let shift = agreed.snd_wscale.map_or(STAMP_WSCALE, u32::from);
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    let bits = shift | flag(agreed.sack, STAMP_SACK) | flag(!agreed.ecn.is_off(), STAMP_ECN);
    let back = if bits > clock & STAMP_MASK { STAMP_MASK + 1 } else { 0 };
    (clock & !STAMP_MASK | bits).wrapping_sub(back)
}

/// What [`pack`] put into the TSval that came back (less its offset), `None` without timestamps. Refused if it names an option that
/// is off here: we never sent it.
pub(in crate::stack) fn unpack(config: &Config, peer_mss: u16, stamp: Option<u32>) -> Option<Negotiated> {
    let plain = Negotiated { peer_mss, snd_wscale: None, timestamps: false, sack: false, ecn: EcnMode::Off };
    let Some(stamp) = stamp else { return Some(plain) };
    let ecn = stamp & STAMP_ECN != 0 && config.tcp_ecn != 0;
    let ecn = if ecn { EcnMode::Classic } else { EcnMode::Off };
    let sack = stamp & STAMP_SACK != 0;
    let shift = (stamp & STAMP_WSCALE) as u8;
    let snd_wscale = (u32::from(shift) != STAMP_WSCALE).then_some(shift);
    let refused = sack && !config.tcp_sack || snd_wscale.is_some() && !config.tcp_window_scaling;
    (!refused).then_some(Negotiated { peer_mss, snd_wscale, timestamps: true, sack, ecn })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    const IRS: SeqNum = SeqNum(0xffff_fff0);

    fn cookies() -> SynCookies {
        SynCookies::new((5, 6))
    }

    fn v4() -> FourTuple {
        let addr = |last| Ipv4Addr::new(10, 0, 0, last).into();
        FourTuple { local: addr(2), local_port: 80, peer: addr(1), peer_port: 40_000 }
    }

    fn v6() -> FourTuple {
        let addr = |last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last).into();
        FourTuple { local: addr(2), local_port: 80, peer: addr(1), peer_port: 40_000 }
    }

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn the_mss_is_rounded_down_to_the_table() {
        let rounded = |tuple: &FourTuple, mss| {
            let (isn, kept) = cookies().isn(&Config::default(), at(30), tuple, IRS, mss);
            assert_eq!(cookies().check(&Config::default(), at(30), tuple, IRS, isn), Some(kept));
            kept
        };
        assert_eq!(
            [88, 100, 535, 536, 1299, 1300, 1459, 1460, 9000].map(|mss| rounded(&v4(), mss)),
            [88, 88, 400, 536, 536, 1300, 1440, 1460, 1460]
        );
        assert_eq!(
            [88, 1220, 1439, 1440, 8939, 9000].map(|mss| rounded(&v6(), mss)),
            [88, 1220, 1420, 1440, 1440, 8940]
        );
    }

    #[test]
    fn the_least_mss_of_whole_paths_may_be_more_than_the_peer_takes() {
        let config = Config { mss_rules: crate::MssRules::Kernel, ..Config::default() };
        for (tuple, asked, kept) in [(v4(), 400, 536), (v4(), 1400, 1300), (v6(), 1000, 1220)] {
            let (isn, mss) = cookies().isn(&config, at(30), &tuple, IRS, asked);
            assert_eq!((mss, cookies().check(&config, at(30), &tuple, IRS, isn)), (kept, Some(kept)));
            assert_eq!(cookies().check(&config, at(30), &tuple, IRS + 3, isn), None);
        }
    }

    #[test]
    fn a_cookie_lives_through_its_period_and_the_next() {
        for tuple in [v4(), v6()] {
            for (made, last) in [(0, 119), (59, 119), (60, 179), (3599, 3659)] {
                let (isn, mss) = cookies().isn(&Config::default(), at(made), &tuple, IRS, 1460);
                let good =
                    |secs| cookies().check(&Config::default(), at(secs), &tuple, IRS, isn) == Some(mss);
                assert!(good(made) && good(last) && !good(last + 1), "made at {made} s");
            }
        }
    }

    /// The counter's 8 bits in the cookie wrap after 256 minutes, but the hash knows the whole counter.
    #[test]
    fn a_cookie_does_not_come_back_to_life() {
        let (isn, mss) = cookies().isn(&Config::default(), at(100), &v4(), IRS, 1460);
        for secs in [100 + 256 * 60, 100 + 65_536 * 60] {
            assert_eq!(cookies().check(&Config::default(), at(secs), &v4(), IRS, isn), None);
        }
        // Across the wrap itself it stays good.
        let (isn, _) = cookies().isn(&Config::default(), at(255 * 60 + 59), &v4(), IRS, 1460);
        assert_eq!(cookies().check(&Config::default(), at(256 * 60), &v4(), IRS, isn), Some(mss));
    }

    #[test]
    fn a_cookie_is_good_for_one_tuple_one_number_and_one_key() {
        let (isn, mss) = cookies().isn(&Config::default(), at(100), &v4(), IRS, 1460);
        let check = |tuple: &FourTuple, irs| cookies().check(&Config::default(), at(100), tuple, irs, isn);
        assert_eq!(check(&v4(), IRS), Some(mss));
        for distance in 1..16 {
            assert_eq!([check(&v4(), IRS - distance), check(&v4(), IRS + distance)], [None; 2]);
        }
        assert_eq!(check(&FourTuple { peer_port: 40_001, ..v4() }, IRS), None);
        assert_eq!(check(&FourTuple { local_port: 81, ..v4() }, IRS), None);
        assert_eq!(check(&FourTuple { peer: v4().local, ..v4() }, IRS), None);
        assert_eq!(check(&v6(), IRS), None);
        assert_eq!(SynCookies::new((5, 7)).check(&Config::default(), at(100), &v4(), IRS, isn), None);
    }

    /// Guessing: of 2²⁴ numbers with the right upper bits, the eight of the table pass.
    #[test]
    fn of_a_sixteenth_million_neighbours_only_the_table_passes() {
        let (isn, _) = cookies().isn(&Config::default(), at(100), &v4(), IRS, 88);
        let passing = (0..1 << 20)
            .filter(|n| cookies().check(&Config::default(), at(100), &v4(), IRS, isn + *n).is_some())
            .count();
        assert_eq!(passing, MSS_V4.len());
    }

    #[test]
    fn options_come_back_in_the_timestamp() {
        let config = Config::default();
        for snd_wscale in (0..=14).map(Some).chain([None]) {
            let (off, on) = (EcnMode::Off, EcnMode::Classic);
            for (sack, ecn) in [(false, off), (true, off), (false, on), (true, on)] {
                let agreed = Negotiated { peer_mss: 1460, snd_wscale, timestamps: true, sack, ecn };
                for clock in [0, 5, 63, 64, 1_000_000, u32::MAX] {
                    let stamp = pack(clock, &agreed);
                    assert!(clock.wrapping_sub(stamp) < 64, "{clock} became {stamp}");
                    assert_eq!(unpack(&config, 1460, Some(stamp)), Some(agreed));
                }
            }
        }
        let plain =
            Negotiated { peer_mss: 536, snd_wscale: None, timestamps: false, sack: false, ecn: EcnMode::Off };
        assert_eq!(unpack(&config, 536, None), Some(plain));
    }

    #[test]
    fn options_that_are_off_are_refused() {
        let no_sack = Config { tcp_sack: false, ..Config::default() };
        let no_scaling = Config { tcp_window_scaling: false, ..Config::default() };
        assert_eq!(unpack(&no_sack, 1460, Some(STAMP_SACK | STAMP_WSCALE)), None);
        assert_eq!(unpack(&no_scaling, 1460, Some(7)), None);
        assert!(unpack(&no_sack, 1460, Some(7)).is_some());
        assert!(unpack(&no_scaling, 1460, Some(STAMP_SACK | STAMP_WSCALE)).is_some());
    }
}
