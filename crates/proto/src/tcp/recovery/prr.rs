//! Proportional rate reduction (RFC 6937, with the safe-ACK heuristic of its successor): while recovering, what may be sent follows
//! what is delivered, so that the window comes down to `ssthresh` over the whole recovery, in even steps.

/// One recovery's reduction. All quantities are bytes.
#[derive(Debug, Default)]
pub(super) struct Prr {
    /// Delivered since the recovery began.
    delivered: u32,
    /// Sent since.
    out: u32,
    /// In flight before it (RecoverFS).
    recover_fs: u32,
    ssthresh: u32,
    window: u32,
}

impl Prr {
    /// A recovery begins with `in_flight` before the ACK that showed the loss; the window is to become `ssthresh`.
    pub(super) fn begin(in_flight: u32, ssthresh: u32) -> Prr {
        Prr { delivered: 0, out: 0, recover_fs: in_flight.max(1), ssthresh, window: ssthresh }
    }

    /// A recovery begins without an ACK: the window is still `recover_fs`, and comes down with the next ACKs.
    pub(super) fn begin_between(recover_fs: u32, ssthresh: u32) -> Prr {
        Prr { window: recover_fs, ..Prr::begin(recover_fs, ssthresh) }
    }

    /// The congestion window now.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// The window is this at least, until the next ACK.
    pub(super) fn raise(&mut self, window: u32) {
        self.window = self.window.max(window);
    }

    pub(super) fn on_sent(&mut self, bytes: u32) {
        self.out = self.out.saturating_add(bytes);
    }

    /// `bytes` that were counted as sent have not left.
    pub(super) fn take_back(&mut self, bytes: u32) {
        self.out = self.out.saturating_sub(bytes);
    }

    /// An ACK reported that `delivered` bytes have left the network, of which `pipe` remain; it is safe when it made progress and no
    /// further loss was seen.
    ///
    /// RFC 6937 §3, if pipe > ssthresh: "sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out", here rounded up to whole segments, as in
    /// the RFC's examples and in Linux, which count these. Otherwise "limit = MAX(prr_delivered - prr_out, DeliveredData) + MSS" (the MSS only if
    /// it is safe) and "sndcnt = MIN(ssthresh - pipe, limit)".
    pub(super) fn on_ack(&mut self, delivered: u32, pipe: u32, safe: bool, smss: u32) {
        if delivered == 0 && self.out > 0 {
            return;
        }
        self.delivered = self.delivered.saturating_add(delivered);
        let mut send = if pipe > self.ssthresh {
            let share = u64::from(self.delivered) * u64::from(self.ssthresh);
            let share = share.div_ceil(u64::from(self.recover_fs)).next_multiple_of(u64::from(smss.max(1)));
            (share as u32).saturating_sub(self.out)
        } else {
            let most = self.delivered.saturating_sub(self.out).max(delivered);
            let most = if safe { most.saturating_add(smss) } else { most };
            most.min(self.ssthresh - pipe)
        };
        if self.out == 0 {
            // The first retransmission goes at once.
            send = send.max(smss);
        }
        self.window = pipe.saturating_add(send);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MSS: u32 = 1000;

    /// One ACK a segment, each reporting one more: `pipe` as the ACK finds it, and how much goes in answer.
    struct Flight {
        prr: Prr,
        pipe: u32,
    }

    impl Flight {
        /// `in_flight` segments of which `lost` are found to be with the ACK of `delivered` more.
        fn new(in_flight: u32, ssthresh: u32, lost: u32) -> Flight {
            Flight { prr: Prr::begin(in_flight * MSS, ssthresh * MSS), pipe: in_flight - lost }
        }

        fn ack(&mut self, safe: bool) -> (u32, u32) {
            self.pipe -= 1;
            let found = self.pipe;
            self.prr.on_ack(MSS, self.pipe * MSS, safe, MSS);
            let sent = self.prr.window().saturating_sub(self.pipe * MSS) / MSS;
            self.prr.on_sent(sent * MSS);
            self.pipe += sent;
            (found, sent)
        }

        fn acks(&mut self, n: usize, safe: bool) -> Vec<(u32, u32)> {
            (0..n).map(|_| self.ack(safe)).collect()
        }
    }

    /// RFC 6937 §3.1, first example: 20 segments in flight, the first lost; two duplicates let new ones go (limited transmit), the third
    /// begins the recovery with 20 in flight, and ssthresh is 10. A segment for every other ACK, so that the pipe falls by one in two
    /// ACKs to 10. (The RFC's figure leaves out the segment of ACK 17 and sends one each at 18 and 19, which its own
    /// sndcnt = CEIL(prr_delivered · ssthresh / RecoverFS) − prr_out does not give.)
    #[test]
    fn rfc6937_section_3_1_one_loss() {
        let mut flight = Flight::new(20, 10, 1);
        let (pipe, sent): (Vec<u32>, Vec<u32>) = flight.acks(17, false).into_iter().unzip();
        assert_eq!(pipe, [18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10]);
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]);
        assert_eq!(flight.pipe, 10);
        assert_eq!(flight.acks(3, false), [(9, 1), (9, 1), (9, 1)], "from ssthresh on one for one");
    }

    /// RFC 6937 §3.1, second example: of 20 segments the first 15 are lost, so that the third duplicate leaves four, six below ssthresh.
    /// PRR-CRB conserves packets: 4 4 4, one sent for each.
    #[test]
    fn rfc6937_section_3_1_heavy_loss_conservative_bound() {
        let mut flight = Flight::new(20, 10, 15);
        assert_eq!(flight.acks(5, false), [(4, 1), (4, 1), (4, 1), (4, 1), (4, 1)]);
    }

    /// RFC 6937 §3.1, second example, with PRR-SSRB, which its successor leaves to ACKs that make progress and report no more loss: 4 5 6, two
    /// for each, up to ssthresh and not beyond.
    #[test]
    fn rfc6937_section_3_1_heavy_loss_slow_start_bound() {
        let mut flight = Flight::new(20, 10, 15);
        let expected = [(4, 2), (5, 2), (6, 2), (7, 2), (8, 2), (9, 1), (9, 1)];
        assert_eq!(flight.acks(7, true), expected);
    }

    /// The successor's heuristic, ACK by ACK: a further loss puts the conservative bound back.
    #[test]
    fn rfc6937bis_the_bound_follows_each_ack() {
        let mut flight = Flight::new(20, 10, 15);
        assert_eq!(flight.acks(2, false), [(4, 1), (4, 1)]);
        assert_eq!(flight.acks(2, true), [(4, 2), (5, 2)]);
        flight.pipe -= 2;
        assert_eq!(flight.acks(1, false), [(4, 1)]);
        assert_eq!(flight.acks(1, true), [(4, 2)]);
    }

    /// An ACK that tells of many at once may let as many go, but not beyond ssthresh.
    #[test]
    fn one_ack_for_many() {
        let mut prr = Prr::begin(20 * MSS, 10 * MSS);
        prr.on_ack(MSS, 4 * MSS, false, MSS);
        prr.on_sent(MSS);
        prr.on_ack(8 * MSS, 3 * MSS, true, MSS);
        assert_eq!(prr.window(), 10 * MSS);
    }
}
