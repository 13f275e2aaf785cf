//! How much of an answer may go to a Fast Open client before the handshake's ACK shows that it is where its address says.
//!
//! A cookie shows that somebody who received packets at this address has passed it on, not that the SYN came from there: who replays one from
//! elsewhere has the answer sent to its owner (RFC 7413 §5.2). The best defence is not to answer with data until the handshake is complete;
//! the next best to answer with no more than a multiple of what came (RFC 9000 §8.1: three times). Both are
//! `firstbyte.fast_open_amplification`.

/// No limit.
pub(crate) const UNLIMITED: u32 = u32::MAX;
/// Header of TCP, without options and with as many as there can be.
const HEADER_MIN: u32 = 20;
const HEADER_MAX: u32 = 60;

/// What has come in one SYN, and what packets back to its sender are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// Bytes of the SYN's data.
    pub(crate) received: u32,
    /// Bytes of an IP header.
    pub(crate) ip_header: u32,
    /// Payload of a whole segment.
    pub(crate) segment: u32,
}

/// Bytes of the stream that may be sent, if there is a limit: all packets together have no more than `factor` times the bytes of the SYN's,
/// provided that no segment behind the SYN-ACK is less than a whole one but the last of a burst. (Packets are counted as large as they can be, the SYN as
/// small as it can have been.) Repetitions of the SYN-ACK, which carry nothing, come on top.
pub(crate) fn unvalidated_window(factor: u32, exchange: &Exchange) -> Option<u32> {
    if factor == UNLIMITED {
        return None;
    }
    let Exchange { received, ip_header, segment } = *exchange;
    let budget = factor.saturating_mul(received + ip_header + HEADER_MIN);
    let left = budget.saturating_sub(ip_header + HEADER_MAX);
    let on_syn_ack = left.min(segment);
    // Each burst of whole segments may end with one that is not.
    let headers = 2 * (ip_header + HEADER_MAX);
    let behind = (left - on_syn_ack) / (segment + headers) * segment;
    Some(on_syn_ack + behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(factor: u32, received: u32) -> Option<u32> {
        unvalidated_window(factor, &Exchange { received, ip_header: 20, segment: 1000 })
    }

    #[test]
    fn nothing_is_sent_by_a_factor_of_zero_and_anything_without_one() {
        assert_eq!((window(0, 1400), window(UNLIMITED, 0)), (Some(0), None));
    }

    #[test]
    fn the_syn_ack_comes_first_and_whole_segments_follow() {
        // 3 · 140 − 80 for the SYN-ACK's headers.
        assert_eq!(window(3, 100), Some(340));
        assert_eq!(window(1, 10), Some(0), "the SYN-ACK itself is more than came");
        // 3 · 1440 − 80 = 4240: the SYN-ACK takes 1000, and each whole segment 1160 of the rest.
        assert_eq!(window(3, 1400), Some(3000));
        assert_eq!(window(u32::MAX - 1, 1400).map(|most| most > 1 << 31), Some(true), "no overflow");
    }

    /// Whatever the sizes: headers and payload of all packets stay within the factor.
    #[test]
    fn all_packets_together_keep_the_limit() {
        for (factor, received, ip_header, segment) in
            [(3, 0, 20, 48), (3, 500, 20, 48), (3, 1400, 40, 1220), (10, 100, 20, 536), (100, 1, 40, 8)]
        {
            let most = unvalidated_window(factor, &Exchange { received, ip_header, segment }).unwrap();
            let behind = most.saturating_sub(segment);
            let packets = 1 + 2 * behind.div_ceil(segment);
            let sent = if most == 0 { 0 } else { most + packets * (ip_header + HEADER_MAX) };
            assert!(
                sent <= factor * (received + ip_header + HEADER_MIN),
                "{factor} {received} {segment}: {sent}"
            );
        }
    }
}
