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
    /// A recovery begins with `in_flight` before the ACK that told the loss; the window is to become `ssthresh`.
    pub(super) fn begin(in_flight: u32, ssthresh: u32) -> Prr {
        Prr { delivered: 0, out: 0, recover_fs: in_flight.max(1), ssthresh, window: ssthresh }
    }

    /// The congestion window now.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    pub(super) fn on_sent(&mut self, bytes: u32) {
        self.out = self.out.saturating_add(bytes);
    }

    /// An ACK told that `delivered` bytes have left the network, of which `pipe` remain; it is safe when it made progress and no
    /// further loss was seen.
    pub(super) fn on_ack(&mut self, delivered: u32, pipe: u32, safe: bool, smss: u32) {
        if delivered == 0 && self.out > 0 {
            return;
        }
        self.delivered = self.delivered.saturating_add(delivered);
        let mut send = if pipe > self.ssthresh {
            let share = u64::from(self.delivered) * u64::from(self.ssthresh);
            (share.div_ceil(u64::from(self.recover_fs)) as u32).saturating_sub(self.out)
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

    const MSS: u32 = 1000;

    /// RFC 6937 §3, first figure: 20 segments in flight, the first lost, limited transmit of two. One segment goes for every
    /// other ACK. (The figure counts segments and rounds up; in bytes the second waits for one ACK more.)
    #[test]
    fn a_single_loss_halves_the_window_in_even_steps() {
        let mut prr = Prr::begin(20 * MSS, 10 * MSS);
        let mut pipe = 20 * MSS - MSS;
        let mut sent = String::new();
        prr.on_ack(MSS, pipe - MSS, false, MSS);
        pipe -= MSS;
        for ack in 0..17 {
            if ack > 0 {
                pipe -= MSS;
                prr.on_ack(MSS, pipe, false, MSS);
            }
            let room = prr.window().saturating_sub(pipe) / MSS;
            sent.push(if room == 0 { '.' } else { char::from_digit(room, 10).unwrap() });
            prr.on_sent(room * MSS);
            pipe += room * MSS;
        }
        assert_eq!(sent, "1..1.1.1.1.1.1..1");
        assert_eq!(pipe, 10 * MSS);
    }

    /// RFC 6937 §3, second figure: of 20 segments the first 15 are lost: packet conservation, one out for one in; with progress and
    /// no further loss one more.
    #[test]
    fn after_a_heavy_loss_it_grows_back_carefully() {
        let mut prr = Prr::begin(20 * MSS, 10 * MSS);
        prr.on_ack(MSS, 4 * MSS, false, MSS);
        assert_eq!(prr.window(), 5 * MSS);
        prr.on_sent(MSS);
        prr.on_ack(MSS, 4 * MSS, false, MSS);
        assert_eq!(prr.window(), 5 * MSS);
        prr.on_sent(MSS);
        prr.on_ack(MSS, 4 * MSS, true, MSS);
        assert_eq!(prr.window(), 6 * MSS);
        prr.on_sent(2 * MSS);
        prr.on_ack(8 * MSS, 9 * MSS, true, MSS);
        assert_eq!(prr.window(), 10 * MSS, "never beyond ssthresh");
    }
}
