//! ProbeRTT: every five seconds without a lower round-trip time half of what would fill the pipe is in flight for 200 ms, so that
//! queues drain and the propagation delay can be measured. All flows of a bottleneck tend to do it at once.

use super::{Bbr, Sample, State};
use crate::Instant;
use core::time::Duration;

const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
const MIN_RTT_FILTER_LEN: Duration = Duration::from_secs(10);

/// The least round-trip time, and when it is looked for.
#[derive(Clone, Debug)]
pub(super) struct MinRtt {
    /// BBR.min_rtt; `None` before the first sample.
    pub(super) value: Option<Duration>,
    stamp: Instant,
    /// Least of the last five seconds, and when it was seen.
    probe_delay: Option<Duration>,
    probe_stamp: Instant,
    /// `probe_delay` is older.
    expired: bool,
    /// ProbeRTT ends then at the earliest, counted since little enough is in flight.
    done_stamp: Option<Instant>,
    /// A round has passed since.
    round_done: bool,
    /// When the last acknowledgement came.
    pub(super) last_ack_at: Instant,
    begun: bool,
}

impl Default for MinRtt {
    fn default() -> MinRtt {
        MinRtt {
            value: None,
            stamp: Instant::ZERO,
            probe_delay: None,
            probe_stamp: Instant::ZERO,
            expired: false,
            done_stamp: None,
            round_done: false,
            last_ack_at: Instant::ZERO,
            begun: false,
        }
    }
}

impl MinRtt {
    /// True the first time: the handshake's round trip is the first sample.
    pub(super) fn begin(&mut self, now: Instant, srtt: Option<Duration>) -> bool {
        if self.begun {
            return false;
        }
        self.begun = true;
        (self.value, self.probe_delay) = (srtt, srtt);
        (self.stamp, self.probe_stamp, self.last_ack_at) = (now, now, now);
        true
    }
}

#[cfg(test)]
impl MinRtt {
    /// As if the least round-trip time had been seen just now.
    pub(super) fn see_again(&mut self, now: Instant) {
        (self.stamp, self.probe_stamp) = (now, now);
    }
}

impl Bbr {
    /// UpdateMinRTT.
    pub(super) fn update_min_rtt(&mut self, sample: &Sample) {
        let (now, it) = (sample.now, &mut self.min_rtt);
        it.last_ack_at = now;
        it.expired = now > it.probe_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rate.rtt
            && (it.expired || it.probe_delay.is_none_or(|least| rtt < least))
        {
            (it.probe_delay, it.probe_stamp) = (Some(rtt), now);
        }
        let lower = it.probe_delay.is_some_and(|delay| it.value.is_none_or(|least| delay < least));
        if lower || now > it.stamp + MIN_RTT_FILTER_LEN {
            (it.value, it.stamp) = (it.probe_delay, it.probe_stamp);
        }
    }

    /// CheckProbeRTT. After silence it is not needed: the queue has drained.
    pub(super) fn check_probe_rtt(&mut self, sample: &Sample) {
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.min_rtt.done_stamp = None;
            self.stop_probing_bw();
            self.rounds.restart();
        }
        if self.state == State::ProbeRtt {
            self.probe_rtt(sample);
        }
        if sample.rate.delivered() > 0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT.
    fn probe_rtt(&mut self, sample: &Sample) {
        if self.min_rtt.done_stamp.is_none() {
            if sample.in_flight <= self.probe_rtt_cwnd() {
                self.min_rtt.done_stamp = Some(sample.now + PROBE_RTT_DURATION);
                self.min_rtt.round_done = false;
                self.rounds.restart();
            }
            return;
        }
        self.min_rtt.round_done |= self.rounds.start;
        if self.min_rtt.round_done {
            self.check_probe_rtt_done(sample.now);
        }
    }

    /// CheckProbeRTTDone, ExitProbeRTT.
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.min_rtt.done_stamp.is_none_or(|at| now <= at) {
            return;
        }
        self.min_rtt.probe_stamp = now;
        self.restore_cwnd();
        self.bounds.reset_shortterm();
        if self.full_pipe.reached {
            // Little is in flight: the queue need not be drained first.
            self.start_down(now);
            self.state = State::ProbeBwCruise;
        } else {
            self.enter_startup();
        }
    }

    /// Largest window in ProbeRTT.
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        self.inflight_of(self.bw(), State::ProbeRtt.cwnd_gain()).max(self.min_pipe_cwnd())
    }
}
