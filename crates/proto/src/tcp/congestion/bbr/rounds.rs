//! Round trips counted by packets: one is over when something is acknowledged that was sent after it began.
//!
//! Time may pass in silence, or in waiting for a timer; round trips do not.

use crate::tcp::send::delivery::RateSample;

#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// Bytes delivered in all, modulo 2³² as all such counts here.
    pub(super) delivered: u32,
    /// The round is over when something sent with this much delivered is acknowledged; `None` before the first, which may begin in the middle
    /// of a connection.
    end: Option<u32>,
    /// Rounds so far.
    pub(super) count: u32,
    /// This acknowledgement begins a round.
    pub(super) start: bool,
    /// As `end` and `start`, for the rounds by which losses are judged: they begin with the first loss.
    loss_end: Option<u32>,
    pub(super) loss_start: bool,
}

impl Rounds {
    pub(super) fn on_sample(&mut self, sample: &RateSample) {
        self.delivered = sample.total;
        self.loss_start = is_reached(sample.prior_delivered, self.loss_end);
        if self.loss_start {
            self.loss_end = Some(self.delivered);
        }
        self.start = is_reached(sample.prior_delivered, self.end);
        if self.start {
            self.restart();
            self.count = self.count.wrapping_add(1);
        }
    }

    /// A round begins now.
    pub(super) fn restart(&mut self) {
        self.end = Some(self.delivered);
    }

    /// The first loss of a round.
    pub(super) fn begin_loss_round(&mut self) {
        self.loss_end = Some(self.delivered);
    }
}

fn is_reached(count: u32, mark: Option<u32>) -> bool {
    mark.is_none_or(|mark| count.wrapping_sub(mark) as i32 >= 0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::rate_sample;
    use super::*;

    #[test]
    fn a_round_ends_with_what_was_sent_after_it_began() {
        let mut rounds = Rounds { delivered: u32::MAX - 999, end: Some(u32::MAX - 999), ..Rounds::default() };
        let mut ack = |prior: u32, total: u32| {
            rounds.on_sample(&RateSample { prior_delivered: prior, total, ..rate_sample(1000, 0) });
            (rounds.start, rounds.count)
        };
        assert_eq!(ack(u32::MAX - 999, 0), (true, 1), "sent when the count was about to wrap");
        assert_eq!(ack(u32::MAX - 999, 1000), (false, 1));
        assert_eq!(ack(0, 2000), (true, 2));
        assert_eq!(ack(1000, 3000), (false, 2));
        assert_eq!(ack(2000, 4000), (true, 3));
    }

    /// `TCP_CONGESTION` changed after three gigabytes.
    #[test]
    fn the_first_round_may_begin_in_the_middle_of_a_connection() {
        let mut rounds = Rounds::default();
        rounds.on_sample(&RateSample {
            prior_delivered: 3 << 30,
            total: (3 << 30) + 1000,
            ..rate_sample(1000, 0)
        });
        assert!(rounds.start && rounds.loss_start);
    }
}
