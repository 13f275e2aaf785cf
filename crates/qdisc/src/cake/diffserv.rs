//! Which tin a codepoint goes to, and what share each tin has (Linux's `cake_config_diffserv3` and its sisters, with their tables).
use super::CakeTins;

/// What a tin is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// The rate up to which it has priority, bytes per second.
    pub(super) rate: u64,
    /// Its weight while there is no shaper.
    pub(super) quantum: u16,
}

/// Tins are numbered by rising priority. In the sets of three and four, best effort is tin 0, so that what is not known goes there, and
/// bulk is tin 1, which shows no lower priority while it keeps below its small threshold.
impl CakeTins {
    /// How many there are.
    pub(super) fn count(self) -> usize {
        match self {
            CakeTins::BestEffort => 1,
            CakeTins::Diffserv3 => 3,
            CakeTins::Diffserv4 => 4,
            CakeTins::Precedence | CakeTins::Diffserv8 => 8,
        }
    }

    /// The n-th tin as it is shown and named, from 0: bulk stands first.
    pub(super) fn by_rank(self, rank: usize) -> usize {
        match (self, rank) {
            (CakeTins::Diffserv3 | CakeTins::Diffserv4, 0) => 1,
            (CakeTins::Diffserv3 | CakeTins::Diffserv4, 1) => 0,
            _ => rank,
        }
    }

    /// The tin of a codepoint.
    pub(super) fn of_codepoint(self, dscp: u8) -> usize {
        let dscp = dscp & 63;
        match self {
            CakeTins::BestEffort => 0,
            CakeTins::Precedence => usize::from(dscp >> 3),
            CakeTins::Diffserv3 => match dscp {
                LE | CS1 => 1,
                TOS_LOW_DELAY | VA | EF | CS6 | CS7 => 2,
                _ => 0,
            },
            CakeTins::Diffserv4 => match dscp {
                LE | CS1 => 1,
                TOS_LOW_DELAY | CS2 | AF21 | AF22 | AF23 | CS3 | AF31 | AF32 | AF33 | AF41 | AF42 | AF43 => 2,
                CS4 | CS5 | VA | EF | CS6 | CS7 => 3,
                _ => 0,
            },
            CakeTins::Diffserv8 => match dscp {
                LE => 0,
                TOS_THROUGHPUT | CS1 | AF11 | AF12 | AF13 => 1,
                TOS_LOW_DELAY | AF21 | AF22 | AF23 => 4,
                CS2 => 5,
                CS3 | AF31 | AF32 | AF33 | AF41 | AF42 | AF43 => 3,
                CS4 | CS5 | VA | EF => 6,
                CS6 | CS7 => 7,
                _ => 2,
            },
        }
    }

    /// The share of a tin, at this rate of all together.
    pub(super) fn share(self, tin: usize, rate: u64) -> Share {
        match self {
            CakeTins::BestEffort => Share { rate, quantum: u16::MAX },
            CakeTins::Precedence | CakeTins::Diffserv8 => {
                // Each has seven eighths of what the one below it has.
                (0..tin).fold(Share { rate, quantum: 256 }, |below, _| Share {
                    rate: below.rate / 8 * 7 + below.rate % 8 * 7 / 8,
                    quantum: (below.quantum * 7 / 8).max(1),
                })
            }
            CakeTins::Diffserv3 => shifted(rate, [0, 4, 2, 2].get(tin)),
            CakeTins::Diffserv4 => shifted(rate, [0, 4, 1, 2].get(tin)),
        }
    }
}

/// A half, a quarter, …
fn shifted(rate: u64, shift: Option<&u32>) -> Share {
    let shift = shift.copied().unwrap_or(0);
    Share { rate: rate >> shift, quantum: 1024 >> shift }
}

/// Lower effort (RFC 8622).
const LE: u8 = 1;
/// The bits of RFC 1349's type of service, where they lie in the codepoint.
const TOS_THROUGHPUT: u8 = 2;
const TOS_LOW_DELAY: u8 = 4;
/// Class selectors (RFC 2474 section 4.2.2).
const CS1: u8 = 8;
const CS2: u8 = 16;
const CS3: u8 = 24;
const CS4: u8 = 32;
const CS5: u8 = 40;
const CS6: u8 = 48;
const CS7: u8 = 56;
/// Assured forwarding (RFC 2597).
const AF11: u8 = 10;
const AF12: u8 = 12;
const AF13: u8 = 14;
const AF21: u8 = 18;
const AF22: u8 = 20;
const AF23: u8 = 22;
const AF31: u8 = 26;
const AF32: u8 = 28;
const AF33: u8 = 30;
const AF41: u8 = 34;
const AF42: u8 = 36;
const AF43: u8 = 38;
/// Voice admit (RFC 5865).
const VA: u8 = 44;
/// Expedited forwarding (RFC 3246).
const EF: u8 = 46;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_go_where_their_names_say() {
        let tins = |set: CakeTins| {
            [0, LE, CS1, AF11, CS2, AF21, AF41, CS4, EF, CS6, 63].map(|dscp| set.of_codepoint(dscp))
        };
        assert_eq!(tins(CakeTins::BestEffort), [0; 11]);
        assert_eq!(tins(CakeTins::Diffserv3), [0, 1, 1, 0, 0, 0, 0, 0, 2, 2, 0]);
        assert_eq!(tins(CakeTins::Diffserv4), [0, 1, 1, 0, 2, 2, 2, 3, 3, 3, 0]);
        assert_eq!(tins(CakeTins::Diffserv8), [2, 0, 1, 1, 5, 4, 3, 6, 6, 7, 2]);
        assert_eq!(tins(CakeTins::Precedence), [0, 0, 1, 1, 2, 2, 4, 4, 5, 6, 7]);
    }

    #[test]
    fn every_codepoint_has_a_tin_that_is_there() {
        use CakeTins::{BestEffort, Diffserv3, Diffserv4, Diffserv8, Precedence};
        for set in [BestEffort, Precedence, Diffserv3, Diffserv4, Diffserv8] {
            assert!((0..=255).all(|dscp| set.of_codepoint(dscp) < set.count()), "{set:?}");
            let mut ranks: std::vec::Vec<usize> = (0..set.count()).map(|rank| set.by_rank(rank)).collect();
            ranks.sort_unstable();
            assert!(ranks.into_iter().eq(0..set.count()), "{set:?}");
        }
    }

    #[test]
    fn shares_are_fractions_of_the_whole() {
        let shares = |set: CakeTins| {
            (0..set.count())
                .map(move |tin| set.share(tin, 1_000_000))
                .map(|share| (share.rate, share.quantum))
        };
        assert!(shares(CakeTins::Diffserv3).eq([(1_000_000, 1024), (62_500, 64), (250_000, 256)]));
        assert!(shares(CakeTins::Diffserv4).eq([
            (1_000_000, 1024),
            (62_500, 64),
            (500_000, 512),
            (250_000, 256)
        ]));
        assert!(shares(CakeTins::Diffserv8).take(3).eq([(1_000_000, 256), (875_000, 224), (765_625, 196)]));
        assert!(shares(CakeTins::BestEffort).eq([(1_000_000, u16::MAX)]));
    }
}
