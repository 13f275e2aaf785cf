//! How long the packets of a case take on this machine.

use super::{Case, Play};
use crate::report::Failure;
use core::time::Duration;
use proto::TxPacket;
use std::time::Instant;

/// A case is played so often; the run with the lowest median counts, since what disturbs it only
/// makes it slower.
const RUNS: usize = 5;

/// Nanoseconds of the packets of one run.
struct Run {
    /// To take one: half of them took no longer, ...
    median: u64,
    /// ... and nine of ten no longer than this.
    nine_of_ten: u64,
    /// To send one, where any were sent.
    sent: Option<u64>,
}

/// Prints the times of these cases, each with so many segments.
pub(super) fn print(rows: &[(&Case, u32)]) -> Result<(), Failure> {
    println!("{:<28} {:>9} {:>10} {:>11} {:>10}", "ns a packet", "segments", "median", "90 of 100", "sent");
    for (case, segments) in rows {
        let mut best: Option<Run> = None;
        for _ in 0..RUNS {
            let run = Run::of((case.prepare)((case.config)(), *segments)?)?;
            best = Some(best.filter(|best| best.median <= run.median).unwrap_or(run));
        }
        let Some(Run { median, nine_of_ten, sent }) = best else { continue };
        let sent = sent.map_or("–".to_owned(), |sent| sent.to_string());
        println!("{:<28} {segments:>9} {median:>10} {nine_of_ten:>11} {sent:>10}", case.name);
    }
    Ok(())
}

impl Run {
    fn of(Play { mut stack, mut now, packets }: Play) -> Result<Run, Failure> {
        let mut packet = TxPacket::default();
        let (mut taken, mut sending, mut sent) = (Vec::new(), Duration::ZERO, 0u64);
        for arrived in packets {
            now = now + Duration::from_micros(100);
            stack.handle_timeout(now);
            let begun = Instant::now();
            stack.handle_packet(now, arrived);
            let handled = Instant::now();
            while stack.poll_transmit_into(now, &mut packet) {
                sent += 1;
            }
            sending += handled.elapsed();
            while stack.poll_event().is_some() {}
            taken.push((handled - begun).as_nanos() as u64);
        }
        taken.sort_unstable();
        let at =
            |share: usize| taken.get(taken.len() * share / 100).copied().ok_or("the case has no packets");
        let sent = (sending.as_nanos() as u64).checked_div(sent);
        Ok(Run { median: at(50)?, nine_of_ten: at(90)?, sent })
    }
}
