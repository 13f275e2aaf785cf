//! Middleboxes: functions that see each TCP segment on the path and say what becomes of it.
use crate::direction::Direction;
use crate::segment::{Segment, options, refresh_checksum};
use std::time::Duration;

/// The fate of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It travels on.
    Pass,
    /// It is lost.
    Drop,
    /// This packet travels on instead.
    Replace(Vec<u8>),
    /// It travels on, and once more `after` that.
    Duplicate {
        /// How much later the copy arrives.
        after: Duration,
    },
}

/// A middlebox: direction, decoded segment, whole packet.
pub type Hook = Box<dyn FnMut(Direction, &Segment, &[u8]) -> Verdict + Send>;

/// A path that only delays.
pub fn pass() -> Hook {
    Box::new(|_, _, _| Verdict::Pass)
}

/// Drops every segment for which `condition` holds.
pub fn drop_if(mut condition: impl FnMut(Direction, &Segment) -> bool + Send + 'static) -> Hook {
    Box::new(
        move |direction, segment, _| {
            if condition(direction, segment) { Verdict::Drop } else { Verdict::Pass }
        },
    )
}

/// Drops every SYN that carries data.
pub fn drop_syn_data() -> Hook {
    drop_if(|_, segment| segment.is_syn() && !segment.payload.is_empty())
}

/// Drops the first `count` segments for which `condition` holds.
pub fn drop_first(count: usize, condition: impl Fn(Direction, &Segment) -> bool + Send + 'static) -> Hook {
    let mut left = count;
    drop_if(move |direction, segment| {
        let lost = left > 0 && condition(direction, segment);
        left -= usize::from(lost);
        lost
    })
}

/// Drops everything with data that the server sends after its SYN-ACK; FINs without data pass.
pub fn drop_server_data() -> Hook {
    drop_if(|direction, segment| {
        direction == Direction::ToClient && !segment.is_syn_ack() && !segment.payload.is_empty()
    })
}

/// Drops and duplicates packets at random, each with a chance of `per_mille`; copies come up to 8
/// ms later. The seed decides everything but the packets themselves.
pub fn unreliable(seed: u64, per_mille: u64) -> Hook {
    let mut state = seed | 1;
    let mut next = move |below: u64| {
        // xorshift64: any seed but 0 will do.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    Box::new(move |_, _, _| match next(1000) {
        roll if roll < per_mille => Verdict::Drop,
        roll if roll < 2 * per_mille => Verdict::Duplicate { after: Duration::from_micros(next(8000)) },
        _ => Verdict::Pass,
    })
}

/// Overwrites the Fast Open option (of either kind) with NOPs in every segment; data stays.
pub fn strip_fast_open() -> Hook {
    Box::new(|_, segment, packet| {
        if segment.fast_open.is_none() {
            return Verdict::Pass;
        }
        let mut packet = packet.to_vec();
        for (kind, range) in options(&packet.clone(), segment.options.clone()) {
            if kind == 34 || kind == 254 {
                packet[range].fill(1);
            }
        }
        refresh_checksum(&mut packet);
        Verdict::Replace(packet)
    })
}

/// Rewrites the MSS option of every SYN and SYN-ACK.
pub fn clamp_mss(mss: u16) -> Hook {
    Box::new(move |_, segment, packet| {
        let mut packet = packet.to_vec();
        let found = options(&packet, segment.options.clone()).into_iter().find(|(kind, _)| *kind == 2);
        let Some((_, range)) = found else { return Verdict::Pass };
        packet[range.start + 2..range.end].copy_from_slice(&mss.to_be_bytes());
        refresh_checksum(&mut packet);
        Verdict::Replace(packet)
    })
}
