//! `sfq`, `fq` and `pie`: options and counters.
use super::error::{EINVAL, TcError, usage};
use super::show::Detail;
use super::units::{self, g, show_rate, show_size, show_time, show_time64};
use super::words::{Words, set, unknown};
use crate::sfq::{MAX_DEPTH, MAX_FLOWS};
use crate::{FqConfig, FqXstats, Nanos, PieConfig, PieXstats, SfqConfig};
use alloc::string::String;

const MICRO: Nanos = 1000;

pub(super) fn parse_sfq(mut words: Words<'_>, config: &mut SfqConfig) -> Result<(), TcError> {
    while let Some(word) = words.next() {
        match word {
            "quantum" => set(&mut config.quantum, words.size(word)?),
            "perturb" => config.perturb = words.number(word)?,
            "limit" => {
                let limit: u32 = words.number(word)?;
                if limit < 2 {
                    return Err(usage("Illegal \"limit\", must be > 1"));
                }
                config.limit = limit as usize;
            }
            "divisor" => set(&mut config.divisor, words.number(word)?),
            "flows" => set(&mut config.flows, words.number(word)?),
            "depth" => set(&mut config.depth, words.number(word)?),
            "headdrop" => config.headdrop = true,
            _ => return Err(unknown(word)),
        }
    }
    Ok(())
}

/// What the kernel makes of it (`sfq_change`).
pub(super) fn check_sfq(mut config: SfqConfig) -> Result<SfqConfig, TcError> {
    if !config.divisor.is_power_of_two() || config.divisor > 65_536 {
        return Err(EINVAL);
    }
    config.depth = config.depth.clamp(1, MAX_DEPTH);
    config.flows = config.flows.clamp(1, MAX_FLOWS);
    config.limit = config.limit.min(config.depth as usize * config.flows as usize);
    Ok(config)
}

pub(super) fn show_sfq(config: &SfqConfig, detail: Detail) -> String {
    let mut text =
        format!("limit {}p quantum {} depth {} ", config.limit, show_size(config.quantum), config.depth);
    if config.headdrop {
        text += "headdrop ";
    }
    if detail.details {
        text += &format!("flows {} ", config.flows);
    }
    text += &format!("divisor {} ", config.divisor);
    if config.perturb > 0 {
        text += &format!("perturb {}sec ", config.perturb);
    }
    text
}

pub(super) fn parse_pie(mut words: Words<'_>, config: &mut PieConfig) -> Result<(), TcError> {
    while let Some(word) = words.next() {
        match word {
            "limit" => set(&mut config.limit, words.number::<u32>(word)? as usize),
            "target" => set(&mut config.target, Nanos::from(words.time(word)?) * MICRO),
            "tupdate" => set(&mut config.tupdate, Nanos::from(words.time(word)?) * MICRO),
            "alpha" => set(&mut config.alpha, words.read(word, weight)?),
            "beta" => set(&mut config.beta, words.read(word, weight)?),
            "ecn" => config.ecn = true,
            "noecn" => config.ecn = false,
            "bytemode" => config.bytemode = true,
            "nobytemode" => config.bytemode = false,
            _ => return Err(unknown(word)),
        }
    }
    Ok(())
}

/// Of a pie, in sixteenths.
fn weight(word: &str) -> Option<u32> {
    units::number(word).filter(|sixteenths| *sixteenths <= 32)
}

pub(super) fn show_pie(config: &PieConfig) -> String {
    let time = |nanos: Nanos| show_time((nanos / MICRO) as f64);
    let mut text = format!(
        "limit {}p target {} tupdate {} alpha {} beta {} ",
        config.limit,
        time(config.target),
        time(config.tupdate),
        config.alpha,
        config.beta
    );
    if config.ecn {
        text += "ecn ";
    }
    if config.bytemode {
        text += "bytemode ";
    }
    text
}

pub(super) fn xstats_pie(stats: &PieXstats) -> String {
    format!(
        "  prob {} delay {}\n  pkts_in {} overlimit {} dropped {} maxq {} ecn_mark {}\n",
        g(stats.prob, 6),
        show_time((stats.delay / MICRO) as f64),
        stats.packets_in,
        stats.overlimit,
        stats.dropped,
        stats.maxq,
        stats.ecn_mark
    )
}

pub(super) fn parse_fq(mut words: Words<'_>, config: &mut FqConfig) -> Result<(), TcError> {
    while let Some(word) = words.next() {
        let mut time = || words.time(word).map(|micros| Nanos::from(micros) * MICRO);
        match word {
            "refill_delay" => config.refill_delay = time()?,
            "horizon" => config.horizon = time()?,
            "ce_threshold" => config.ce_threshold = Some(time()?),
            "timer_slack" => {
                config.timer_slack =
                    words.read(word, |word| units::time64(word).and_then(|n| n.try_into().ok()))?;
            }
            "limit" => config.limit = words.number::<u32>(word)? as usize,
            "flow_limit" => config.flow_limit = words.number::<u32>(word)? as usize,
            "buckets" => set(&mut config.buckets, words.number(word)?),
            "maxrate" => config.maxrate = Some(words.rate(word)?),
            "low_rate_threshold" => config.low_rate_threshold = words.rate(word)?,
            "quantum" => config.quantum = words.number(word)?,
            "initial_quantum" => config.initial_quantum = words.number(word)?,
            "orphan_mask" => config.orphan_mask = words.number(word)?,
            "pacing" => config.pacing = true,
            "nopacing" => config.pacing = false,
            "horizon_drop" => config.horizon_drop = true,
            "horizon_cap" => config.horizon_drop = false,
            _ => return Err(unknown(word)),
        }
    }
    Ok(())
}

/// What the kernel makes of it (`fq_change`).
pub(super) fn check_fq(config: FqConfig) -> Result<FqConfig, TcError> {
    // Buckets are a power of two of up to 2^18.
    let buckets = config.buckets.checked_next_power_of_two().filter(|n| (1..=1 << 18).contains(n));
    if config.quantum == 0 || config.quantum > 1 << 20 {
        return Err(EINVAL);
    }
    Ok(FqConfig { buckets: buckets.ok_or(EINVAL)?, ..config })
}

pub(super) fn show_fq(config: &FqConfig) -> String {
    let time = |nanos: Nanos| show_time((nanos / MICRO) as f64);
    let mut text = format!(
        "limit {}p flow_limit {}p buckets {} orphan_mask {} ",
        config.limit, config.flow_limit, config.buckets, config.orphan_mask
    );
    if !config.pacing {
        text += "nopacing ";
    }
    text += &format!(
        "quantum {} initial_quantum {} ",
        show_size(config.quantum),
        show_size(config.initial_quantum)
    );
    if let Some(rate) = config.maxrate {
        text += &format!("maxrate {} ", show_rate(rate));
    }
    text += &format!("low_rate_threshold {} ", show_rate(config.low_rate_threshold));
    text += &format!("refill_delay {} ", time(config.refill_delay));
    if let Some(threshold) = config.ce_threshold {
        text += &format!("ce_threshold {} ", time(threshold));
    }
    text += &format!("timer_slack {} ", show_time64(i64::try_from(config.timer_slack).unwrap_or(i64::MAX)));
    text += &format!("horizon {} ", time(config.horizon));
    text + if config.horizon_drop { "horizon_drop " } else { "horizon_cap " }
}

pub(super) fn xstats_fq(stats: &FqXstats, now: Nanos) -> String {
    let mut text = format!(
        "  flows {} (inactive {} throttled {})",
        stats.flows, stats.inactive_flows, stats.throttled_flows
    );
    if let Some(wait) = stats.time_next_delayed_flow.and_then(|at| at.checked_sub(now)) {
        text += &format!(" next_packet_delay {}", show_time64(i64::try_from(wait).unwrap_or(i64::MAX)));
    }
    text += &format!(
        "\n  gc {} highprio {} throttled {}",
        stats.gc_flows, stats.highprio_packets, stats.throttled
    );
    if stats.ce_mark > 0 {
        text += &format!(" ce_mark {}", stats.ce_mark);
    }
    if stats.flows_plimit > 0 {
        text += &format!(" flows_plimit {}", stats.flows_plimit);
    }
    let rare = [
        (stats.pkts_too_long, " pkts_too_long"),
        (stats.horizon_drops, " horizon_drops"),
        (stats.horizon_caps, "  horizon_caps"),
    ];
    if rare.iter().any(|(count, _)| *count > 0) {
        text += "\n";
    }
    for (count, name) in rare.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!("{name} {count}");
    }
    text + "\n"
}
