//! BBR's modes with exact figures, after the draft's list of test cases: a path of 800 000 bytes/s and 100 ms that holds 80 segments.

use super::super::events::{idle, start};
use super::*;
use crate::tcp::send::delivery::RateSample;
use alloc::vec::Vec;
use wire::SeqNum;

const MSS: u32 = 1000;
const BDP: u32 = 80 * MSS;
const RTT_MS: u64 = 100;

/// So many bytes delivered in so many microseconds.
pub(super) fn rate_sample(delivered: u32, micros: u32) -> RateSample {
    RateSample {
        newly_acked: delivered,
        runs: 1,
        total: delivered,
        prior_delivered: 0,
        micros,
        app_limited: false,
        tx_in_flight: delivered,
        lost: 0,
        rtt: None,
    }
}

/// One acknowledgement per round trip.
struct Flow {
    bbr: Bbr,
    ms: u64,
    total: u32,
    /// RTT that samples show.
    rtt_ms: u64,
    window_full: bool,
    /// The least round-trip time is seen again and again: there is no need for ProbeRTT.
    fresh: bool,
}

impl Flow {
    /// Ten segments of initial window, and an SRTT of 100 ms.
    fn new() -> Flow {
        let mut bbr = Bbr::new(&start(10 * MSS, u32::MAX));
        bbr.on_idle(&Idle { srtt: Some(Duration::from_millis(RTT_MS)), ..idle(1000, 1000) });
        Flow { bbr, ms: 1000, total: 0, rtt_ms: RTT_MS, window_full: false, fresh: true }
    }

    fn sample(&self, delivered: u32, in_flight: u32) -> Sample {
        Sample {
            now: Instant::from_nanos(self.ms * 1_000_000),
            rate: RateSample {
                total: self.total + delivered,
                prior_delivered: self.total,
                rtt: Some(Duration::from_millis(self.rtt_ms)),
                tx_in_flight: in_flight,
                ..rate_sample(delivered, 100_000)
            },
            in_flight,
            smss: MSS,
            window_full: self.window_full,
        }
    }

    fn hears(&mut self, sample: Sample) -> State {
        self.total = sample.rate.total;
        if self.fresh {
            self.bbr.min_rtt.see_again(sample.now);
        }
        self.bbr.on_sample(&sample);
        self.bbr.state
    }

    /// A round trip later what was delivered in it is acknowledged; so much is in flight then.
    fn round(&mut self, delivered: u32, in_flight: u32) -> State {
        self.ms += RTT_MS;
        let sample = self.sample(delivered, in_flight);
        self.hears(sample)
    }

    /// Three rounds that double, three that do not.
    fn drained() -> Flow {
        let mut flow = Flow::new();
        for delivered in [20, 40, 80, 80, 80] {
            assert_eq!(flow.round(delivered * MSS, 160 * MSS), State::Startup);
        }
        assert_eq!(flow.round(BDP, 160 * MSS), State::Drain);
        flow
    }

    fn cruising() -> Flow {
        let mut flow = Flow::drained();
        // DOWN has nothing to do.
        assert_eq!(flow.round(BDP, BDP), State::ProbeBwCruise);
        flow
    }

    fn probing() -> Flow {
        let mut flow = Flow::cruising();
        while flow.round(BDP, BDP) == State::ProbeBwCruise {}
        assert_eq!(flow.bbr.state, State::ProbeBwRefill);
        assert_eq!(flow.round(BDP, BDP), State::ProbeBwUp);
        flow
    }

    fn lose(&mut self, seq: u32, lost: u32, tx_in_flight: u32) {
        self.bbr.on_segment_lost(&LostSegment {
            seq: SeqNum(seq),
            len: MSS,
            tx_in_flight,
            lost,
            app_limited: false,
            total: self.total,
        });
    }
}

#[test]
fn startup_doubles_until_three_rounds_bring_no_more() {
    let mut flow = Flow::new();
    assert_eq!(flow.bbr.pacing_rate(), Some(277_000), "2.77 initial windows per round trip");
    flow.round(20 * MSS, 20 * MSS);
    assert_eq!(flow.bbr.pacing_rate(), Some(548_460), "2.77 · 0.99 · 200 000");
    assert_eq!(flow.bbr.cwnd(), 30 * MSS, "what is acknowledged is added");
    let mut flow = Flow::drained();
    assert_eq!(flow.bbr.pacing_rate(), Some(396_000), "0.5 · 0.99 · 800 000");
    assert!(flow.bbr.full_pipe.now && flow.bbr.full_pipe.reached);
    assert_eq!(flow.round(BDP, BDP + 1), State::Drain);
    assert_eq!(flow.round(BDP, BDP), State::ProbeBwCruise, "a full pipe without a queue");
}

#[test]
fn drain_ends_after_three_rounds_whatever_is_in_flight() {
    let mut flow = Flow::drained();
    let states = [(); 4].map(|()| flow.round(BDP, 150 * MSS));
    assert_eq!(states, [State::Drain, State::Drain, State::Drain, State::ProbeBwDown]);
    assert_eq!(flow.bbr.pacing_rate(), Some(712_800), "0.9 · 0.99 · 800 000");
    assert_eq!(flow.round(BDP, BDP + 1), State::ProbeBwDown);
    assert_eq!(flow.round(BDP, BDP), State::ProbeBwCruise);
}

#[test]
fn an_application_that_sends_little_stays_in_startup() {
    let mut flow = Flow::new();
    for _ in 0..40 {
        flow.ms += RTT_MS;
        let mut sample = flow.sample(5 * MSS, 5 * MSS);
        sample.rate.app_limited = true;
        assert_eq!(flow.hears(sample), State::Startup);
    }
    assert_eq!(flow.bbr.pacing_rate(), Some(277_000), "the rate does not fall for it");
}

/// Six runs of losses in a round of recovery, more than 2 % of what was in flight.
#[test]
fn heavy_loss_ends_startup_and_a_spurious_recovery_resumes_it() {
    let mut flow = Flow::new();
    flow.round(20 * MSS, 40 * MSS);
    flow.bbr.on_recovery();
    for run in 0..6 {
        flow.lose(run * 3 * MSS, (run + 1) * MSS, 40 * MSS);
    }
    flow.ms += RTT_MS;
    let mut sample = flow.sample(34 * MSS, 40 * MSS);
    sample.rate.lost = 6 * MSS;
    assert_eq!(flow.hears(sample), State::Drain);
    assert_eq!(flow.bbr.bounds.inflight_longterm, 34 * MSS, "what the last round delivered");
    flow.bbr.on_undo(0, 0);
    assert_eq!((flow.bbr.state, flow.bbr.bounds.inflight_longterm), (State::Startup, u32::MAX));
    assert!(!flow.bbr.full_pipe.reached);
}

#[test]
fn five_runs_or_two_percent_do_not_end_startup() {
    for (runs, lost) in [(5, 5), (6, 0)] {
        let mut flow = Flow::new();
        flow.round(20 * MSS, 40 * MSS);
        flow.bbr.on_recovery();
        (0..runs).for_each(|run| flow.lose(run * 3 * MSS, MSS, 300 * MSS));
        flow.ms += RTT_MS;
        let mut sample = flow.sample(34 * MSS, 40 * MSS);
        sample.rate.lost = lost * MSS;
        assert_eq!(flow.hears(sample), State::Startup);
    }
}

#[test]
fn a_mark_ends_startup() {
    let mut flow = Flow::new();
    flow.round(20 * MSS, 40 * MSS);
    flow.bbr.on_signal(
        &Lost { in_flight: 40 * MSS, smss: MSS, timeout: false, left: 0, again: false },
        Signal::Mark,
    );
    assert_eq!(flow.round(34 * MSS, 40 * MSS), State::Drain);
    let mut flow = Flow::new();
    flow.round(20 * MSS, 40 * MSS);
    flow.bbr.on_signal(
        &Lost { in_flight: 40 * MSS, smss: MSS, timeout: false, left: 0, again: false },
        Signal::Repaired,
    );
    assert_eq!(flow.round(34 * MSS, 40 * MSS), State::Startup, "one loss does not");
}

/// DOWN, CRUISE for two to three seconds, REFILL for a round, UP until the rate has stood still for three.
#[test]
fn the_cycle_of_probe_bw() {
    let mut flow = Flow::cruising();
    assert_eq!(flow.bbr.pacing_rate(), Some(792_000));
    let (begun, mut rounds) = (flow.ms, 0);
    while flow.round(BDP, BDP) == State::ProbeBwCruise {
        rounds += 1;
        assert_eq!(flow.bbr.cwnd(), 3 * BDP, "twice the pipe, and what is acknowledged at once");
    }
    let waited = flow.ms - begun;
    assert!((1_900..=3_100).contains(&waited), "{waited} ms, {rounds} rounds");
    assert_eq!((flow.bbr.state, flow.bbr.pacing_rate()), (State::ProbeBwRefill, Some(792_000)));
    assert_eq!(flow.round(BDP, BDP), State::ProbeBwUp);
    assert_eq!(flow.bbr.pacing_rate(), Some(990_000), "1.25 · 0.99 · 800 000");
    flow.round(BDP, BDP);
    assert_eq!(flow.bbr.cwnd(), 2 * BDP + BDP / 4 + BDP + 2 * MSS);
    assert_eq!([(); 2].map(|()| flow.round(BDP, BDP)), [State::ProbeBwUp, State::ProbeBwDown]);
}

/// With a window of 20 segments Reno would have grown back after 20 rounds: so often it probes, one less by chance.
#[test]
fn a_small_window_probes_as_often_as_reno() {
    let mut waits: Vec<u32> = Vec::new();
    for seed in 0..20 {
        let mut flow = Flow::new();
        flow.bbr.cycle = Cycle::new(seed * 0x9e37);
        while flow.bbr.state != State::ProbeBwCruise {
            flow.ms -= 90;
            flow.round(20 * MSS, 20 * MSS);
        }
        let first = flow.bbr.rounds.count;
        while flow.bbr.state == State::ProbeBwCruise {
            flow.ms -= 90;
            flow.round(20 * MSS, 20 * MSS);
        }
        waits.push(flow.bbr.rounds.count - first);
    }
    waits.sort_unstable();
    waits.dedup();
    assert_eq!(waits, [19, 20]);
}

/// 3 % of 100 segments lost while probing: so much the path does not hold. The next probe only touches the bound.
#[test]
fn a_probe_that_loses_too_much_sets_the_bound() {
    let mut flow = Flow::probing();
    flow.bbr.on_recovery();
    flow.lose(0, MSS, 100 * MSS);
    flow.lose(MSS, 2 * MSS, 100 * MSS);
    assert_eq!(flow.bbr.state, State::ProbeBwUp, "2 % are tolerated");
    flow.lose(2 * MSS, 3 * MSS, 100 * MSS);
    assert_eq!(flow.bbr.state, State::ProbeBwDown);
    // (2 + x) / (99 + x) = 2 %: no more than the 99 before it.
    assert_eq!(flow.bbr.bounds.inflight_longterm, 99 * MSS);
    assert!(flow.bbr.cycle.prev_probe_too_high);
    flow.bbr.on_recovered();
    while flow.round(BDP, BDP) != State::ProbeBwUp {}
    assert_eq!(flow.round(BDP, 98 * MSS), State::ProbeBwUp);
    assert_eq!(flow.round(BDP, 99 * MSS), State::ProbeBwDown, "precaution");
    assert_eq!(flow.round(BDP, BDP), State::ProbeBwRefill, "it was safe: once more at once");
}

/// What keeps the flow back while probing is raised by 1, 2, 4, 8 segments a round.
#[test]
fn the_bound_rises_faster_and_faster() {
    let mut flow = Flow::cruising();
    flow.bbr.bounds.inflight_longterm = 100 * MSS;
    let round = |flow: &mut Flow, acked: u32| {
        flow.ms += RTT_MS;
        let mut sample = flow.sample(acked, BDP);
        sample.rate.tx_in_flight = BDP;
        flow.hears(sample)
    };
    while round(&mut flow, BDP) != State::ProbeBwUp {}
    assert_eq!(flow.bbr.cwnd(), 100 * MSS);
    flow.window_full = true;
    let mut raised = Vec::new();
    for _ in 0..4 {
        let before = flow.bbr.bounds.inflight_longterm;
        round(&mut flow, before);
        raised.push((flow.bbr.bounds.inflight_longterm - before) / MSS);
    }
    assert_eq!(raised, [1, 2, 4, 8]);
}

/// While cruising, a round with a loss lowers the bounds to what it delivered, by 30 % at most; REFILL forgets it.
#[test]
fn losses_while_cruising_lower_the_short_term_bounds() {
    let mut flow = Flow::cruising();
    flow.bbr.on_recovery();
    flow.lose(0, MSS, BDP);
    flow.round(70 * MSS, 70 * MSS);
    assert_eq!((flow.bbr.bounds.bw_shortterm, flow.bbr.pacing_rate()), (800_000, Some(792_000)));
    flow.lose(MSS, MSS, BDP);
    flow.round(70 * MSS, 70 * MSS);
    assert_eq!((flow.bbr.bounds.bw_shortterm, flow.bbr.pacing_rate()), (700_000, Some(693_000)));
    for _ in 0..2 {
        flow.lose(2 * MSS, MSS, BDP);
        flow.round(10 * MSS, 70 * MSS);
    }
    assert_eq!(flow.bbr.bounds.bw_shortterm, 490_000, "0.7 of 700 000");
    flow.bbr.on_recovered();
    while flow.round(40 * MSS, 40 * MSS) != State::ProbeBwRefill {}
    assert_eq!((flow.bbr.bounds.bw_shortterm, flow.bbr.bw()), (u64::MAX, 800_000));
}

/// Five seconds without a lower round-trip time: half of the pipe for 200 ms and a round.
#[test]
fn probe_rtt_comes_every_five_seconds() {
    let mut flow = Flow::cruising();
    (flow.rtt_ms, flow.fresh) = (101, false);
    let begun = flow.ms;
    while flow.round(BDP, BDP) != State::ProbeRtt {}
    assert_eq!(flow.ms - begun, 5_100);
    assert!(flow.bbr.holds_back());
    assert_eq!(flow.bbr.cwnd(), BDP / 2);
    assert_eq!(flow.bbr.pacing_rate(), Some(792_000));
    // In flight come down 100 ms later; then 200 ms.
    let states = [(); 4].map(|()| flow.round(40 * MSS, 40 * MSS));
    assert_eq!(states, [State::ProbeRtt, State::ProbeRtt, State::ProbeRtt, State::ProbeBwCruise]);
    assert!(flow.bbr.cwnd() >= 2 * BDP, "as before: {}", flow.bbr.cwnd());
}

#[test]
fn after_silence_no_probe_rtt_is_needed() {
    let mut flow = Flow::cruising();
    flow.fresh = false;
    flow.ms += 6_000;
    flow.bbr.on_idle(&idle(flow.ms, 1000));
    assert_eq!(flow.bbr.pacing_rate(), Some(792_000), "at the bandwidth that was known");
    assert_ne!(flow.round(10 * MSS, 10 * MSS), State::ProbeRtt);
}

#[test]
fn a_timeout_leaves_one_segment_and_the_window_comes_back() {
    let mut flow = Flow::cruising();
    flow.bbr.on_loss(&Lost { in_flight: BDP, smss: MSS, timeout: true, left: 0, again: false });
    assert_eq!(flow.bbr.cwnd(), MSS);
    flow.round(MSS, 0);
    assert_eq!(flow.bbr.cwnd(), 4 * MSS, "MinPipeCwnd");
    flow.bbr.on_recovered();
    assert_eq!(flow.bbr.cwnd(), 3 * BDP);
}

/// A path that holds less than a segment: four are in flight all the same, bursts of two three times.
#[test]
fn a_tiny_path_keeps_a_window_that_works() {
    let mut flow = Flow::new();
    for _ in 0..30 {
        flow.round(MSS / 10, MSS / 10);
    }
    assert!(flow.bbr.full_pipe.reached);
    assert_eq!(flow.bbr.min_pipe_cwnd(), 4 * MSS);
    assert!(flow.bbr.cwnd() >= 4 * MSS && flow.bbr.cwnd() <= 7 * MSS, "{}", flow.bbr.cwnd());
}

/// After time-outs in a row a sample is a segment in many seconds, and losses lower the bound below that.
#[test]
fn a_segment_leaves_in_every_round_trip_whatever_the_samples_say() {
    let mut flow = Flow::drained();
    flow.bbr.bounds.bw_shortterm = 50;
    flow.bbr.set_pacing_rate(100);
    assert_eq!(flow.bbr.control.pacing_rate, 10_000, "1000 bytes in 100 ms");
}
