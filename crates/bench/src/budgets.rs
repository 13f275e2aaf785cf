//! Budgets: how many instructions a packet may cost that reports holes, or arrives out of order,
//! with up to 100,000 segments in flight or held. Over budget is a failure: these are the costs
//! that a hostile peer would like to see grow with their number.
//!
//! Each case runs in a process of its own under callgrind, which counts only what `measured` calls:
//! packets in, and what they have sent. A packet is one that comes or one that goes. What is played
//! before takes far longer, and is not even instrumented: the process says when that is over
//! (`paused`), and goes on when callgrind has begun. `--times` says how long they take here, which
//! is worth something where nothing else runs. `sender` has the cases of selective
//! acknowledgements, `receiver` those of packets out of order, and of memory that is used up.

mod paused;
mod peer;
mod receiver;
mod sender;
mod times;

use crate::instructions::has_valgrind;
use crate::report::Failure;
use crate::side_by_side::side_by_side;
use bytes::Bytes;
use clap::Args;
use core::time::Duration;
use proto::{Config, Instant, RxPacket, Stack, TxPacket};

/// Counts instructions per packet of every case and compares them with the budgets.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Only cases whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Plays this one case here, uncounted, instead, and says how many packets came and went (what
    /// callgrind is run on).
    #[arg(long, requires = "segments", conflicts_with = "only")]
    case: Option<String>,
    /// Segments of that case.
    #[arg(long, requires = "case")]
    segments: Option<u32>,
    /// Says when that case is prepared, and goes on at the next byte of the standard input.
    #[arg(long, requires = "case")]
    paused: bool,
    /// Times every case instead of counting: nanoseconds of a packet that comes, apart from those
    /// that it has sent.
    #[arg(long, conflicts_with = "case")]
    times: bool,
}

/// What is played before [`measured`], and the packets that it takes then.
struct Play {
    stack: Stack,
    now: Instant,
    packets: Vec<RxPacket>,
}

/// A kind of packets.
struct Case {
    name: &'static str,
    /// Most instructions per packet.
    budget: u32,
    sizes: &'static [u32],
    config: fn() -> Config,
    prepare: fn(Config, u32) -> Result<Play, Failure>,
}

const ALL: &[u32] = &[1000, 10_000, 100_000];
const SMALLER: &[u32] = &[1000, 10_000];
/// What a send buffer of 1 MiB, and one of 4 MiB (`tcp_wmem`'s most), holds at 48 bytes.
const IN_FLIGHT: &[u32] = &[21_845, 87_381];
/// A send buffer of 4 MiB holds no more of 48 bytes, where it is counted with its bookkeeping.
const WITH_BOOKKEEPING: &[u32] = &[1000, 9000];

/// A third more than was measured: 4,000 are about a microsecond. A burst that leaves is one
/// packet.
const CASES: &[Case] = &[
    Case::ours("sack ascending", 9000, IN_FLIGHT, sender::ascending),
    Case::ours("sack descending", 8500, IN_FLIGHT, sender::descending),
    Case::ours("sack alternating", 7600, IN_FLIGHT, sender::alternating),
    Case::ours("sack scattered", 12_000, IN_FLIGHT, sender::scattered),
    Case::ours("sack overlapping", 12_000, IN_FLIGHT, sender::overlapping),
    Case::ours("sack duplicate", 9500, IN_FLIGHT, sender::duplicate),
    Case::ours("sack late", 10_000, IN_FLIGHT, sender::late),
    Case::ours("sack cut", 11_600, IN_FLIGHT, sender::cut),
    Case::ours("sack cut backwards", 13_400, IN_FLIGHT, sender::cut_backwards),
    Case::ours("sack cut alternating", 20_600, IN_FLIGHT, sender::cut_alternating),
    Case::ours("sack random", 13_000, IN_FLIGHT, sender::random),
    Case::ours("sack random singles", 8500, IN_FLIGHT, sender::random_singles),
    Case::ours("sack duplicates", 12_000, IN_FLIGHT, sender::duplicates),
    Case::linux("sack scattered, Linux's", 12_000, WITH_BOOKKEEPING, sender::scattered),
    Case::linux("sack cut, Linux's", 12_000, SMALLER, sender::cut),
    Case::ours("holes ascending", 8000, SMALLER, receiver::ascending),
    Case::ours("holes descending", 8000, SMALLER, receiver::descending),
    Case::ours("holes alternating", 8000, SMALLER, receiver::alternating),
    Case::ours("holes scattered", 8000, ALL, receiver::scattered),
    Case::linux("holes ascending, Linux's", 8000, SMALLER, receiver::ascending),
    Case::linux("holes descending, Linux's", 8000, SMALLER, receiver::descending),
    Case::linux("holes alternating, Linux's", 8000, SMALLER, receiver::alternating),
    Case::linux("holes scattered, Linux's", 8000, SMALLER, receiver::scattered),
    Case::ours("pruning", 8000, SMALLER, receiver::pruning),
    Case::linux("pruning, Linux's", 8000, ALL, receiver::pruning),
];

impl Case {
    const fn ours(
        name: &'static str,
        budget: u32,
        sizes: &'static [u32],
        prepare: fn(Config, u32) -> Result<Play, Failure>,
    ) -> Case {
        Case { name, budget, sizes, config: Config::default, prepare }
    }

    const fn linux(
        name: &'static str,
        budget: u32,
        sizes: &'static [u32],
        prepare: fn(Config, u32) -> Result<Play, Failure>,
    ) -> Case {
        Case { name, budget, sizes, config: Config::linux, prepare }
    }

    /// Instructions per packet.
    fn count(&self, segments: u32) -> Result<u32, Failure> {
        let segments = segments.to_string();
        let arguments = ["budgets", "--case", self.name, "--segments", &segments, "--paused"];
        let (instructions, packets) = paused::count_inside("*budgets*measured*", &arguments)?;
        Ok(u32::try_from(instructions / packets).unwrap_or(u32::MAX))
    }

    /// Plays it; returns the packets that came and went while it was measured.
    fn play(&self, segments: u32, is_paused: bool) -> Result<u64, Failure> {
        let Play { mut stack, now, packets } = (self.prepare)((self.config)(), segments)?;
        if is_paused {
            paused::pause()?;
        }
        let came = packets.len() as u64;
        Ok(came.max(1) + measured(&mut stack, now, packets))
    }
}

/// Takes the packets, a tenth of a millisecond apart, and what each has sent: how many packets that
/// are.
#[inline(never)]
fn measured(stack: &mut Stack, mut now: Instant, packets: Vec<RxPacket>) -> u64 {
    let mut packet = TxPacket::default();
    let mut sent = 0;
    for arrived in packets {
        now = now + Duration::from_micros(100);
        stack.handle_timeout(now);
        stack.handle_packet(now, arrived);
        while stack.poll_transmit_into(now, &mut packet) {
            sent += 1;
        }
        while stack.poll_event().is_some() {}
    }
    sent
}

/// Runs it.
///
/// # Errors
/// A case does not run, costs more than its budget, or does not exist.
pub fn run(options: &Options) -> Result<(), Failure> {
    if let (Some(name), Some(segments)) = (&options.case, options.segments) {
        let case = CASES.iter().find(|case| case.name == name);
        let case = case.ok_or_else(|| format!("no case '{name}'; `budgets` alone lists them"))?;
        println!("{}", case.play(segments, options.paused)?);
        return Ok(());
    }
    let chosen = CASES.iter().filter(|case| case.name.contains(&options.only));
    let rows: Vec<(&Case, u32)> =
        chosen.flat_map(|case| case.sizes.iter().map(move |segments| (case, *segments))).collect();
    if rows.is_empty() {
        return Err(format!("no case's name contains '{}'", options.only).into());
    }
    if options.times {
        return times::print(&rows);
    }
    if !has_valgrind() {
        println!("budgets: SKIPPED, valgrind is not installed");
        return Ok(());
    }
    let counts = side_by_side(&rows, |(case, segments)| {
        case.count(*segments).map_err(|failure| format!("{}: {failure}", case.name))
    })?;
    println!("{:<28} {:>9} {:>13} {:>8}", "budgets", "segments", "instructions", "budget");
    let mut over = 0;
    for ((case, segments), count) in rows.iter().zip(counts) {
        let is_over = count > case.budget;
        over += usize::from(is_over);
        let mark = if is_over { "  OVER" } else { "" };
        println!("{:<28} {segments:>9} {count:>13} {:>8}{mark}", case.name, case.budget);
    }
    if over == 0 { Ok(()) } else { Err(format!("{over} cases cost more than their budget").into()) }
}

/// A packet as a device hands it over in a buffer of its own.
fn arriving(data: Bytes) -> RxPacket {
    RxPacket { truesize: data.len().next_multiple_of(256), ..RxPacket::new(data) }
}
