//! `red`: options, and what tc computes from them.
use super::error::{EINVAL, TcError, usage};
use super::show::Detail;
use super::units::{self, g, show_size};
use super::words::{Words, unknown};
use crate::{RedConfig, RedXstats};
use alloc::string::String;

/// A probability of 1 in the units of `max_p`.
const TWO_TO_32: f64 = 4_294_967_296.0;

pub(super) fn parse(mut words: Words<'_>) -> Result<RedConfig, TcError> {
    let (mut limit, mut min, mut max, mut burst, mut avpkt) = (0, 0, 0, 0, 0);
    let (mut rate, mut probability) = (None, 0.02);
    let (mut ecn, mut harddrop, mut nodrop, mut adaptive) = (false, false, false, false);
    while let Some(word) = words.next() {
        match word {
            "limit" => limit = words.size(word)?,
            "min" => min = words.size(word)?,
            "max" => max = words.size(word)?,
            "burst" => burst = words.number(word)?,
            "avpkt" => avpkt = words.size(word)?,
            "probability" => {
                probability =
                    words.read(word, |word| word.parse::<f64>().ok().filter(|p| (0.0..=1.0).contains(p)))?
            }
            "bandwidth" => rate = Some(words.rate(word)?),
            "ecn" => ecn = true,
            "harddrop" => harddrop = true,
            "nodrop" => nodrop = true,
            "adaptative" | "adaptive" => adaptive = true,
            _ => return Err(unknown(word)),
        }
    }
    if limit == 0 || avpkt == 0 {
        return Err(usage("RED: Required parameter (limit, avpkt) is missing"));
    }
    // Sally Floyd's recommendations, as tc applies them.
    if max == 0 {
        max = if min > 0 { min.saturating_mul(3) } else { limit / 4 };
    }
    if min == 0 {
        min = max / 3;
    }
    if burst == 0 {
        burst = ((2 * u64::from(min) + u64::from(max)) / (3 * u64::from(avpkt))).min(u32::MAX.into()) as u32;
    }
    let rate = rate.unwrap_or(1_250_000);
    let wlog =
        eval_ewma(min, burst, avpkt).ok_or_else(|| usage("RED: failed to calculate EWMA constant."))?;
    if eval_p(min, max, probability).is_none() {
        return Err(usage("RED: failed to calculate probability."));
    }
    let (scell_log, idle_damping) = idle_damping(wlog, avpkt, rate)
        .ok_or_else(|| usage("RED: failed to calculate idle damping table."))?;
    // The kernel's `red_check_params`.
    let too_wide = |threshold: u32| u32::BITS - threshold.leading_zeros() + u32::from(wlog) >= 32;
    if too_wide(min) || too_wide(max) || max < min || (nodrop && !ecn) {
        return Err(EINVAL);
    }
    let max_p = (probability * TWO_TO_32) as u32;
    Ok(RedConfig { limit, min, max, wlog, scell_log, idle_damping, max_p, ecn, harddrop, nodrop, adaptive })
}

/// The weight with which a burst of so many packets is let through (`tc_red_eval_ewma`).
fn eval_ewma(min: u32, burst: u32, avpkt: u32) -> Option<u8> {
    let a = f64::from(burst) + 1.0 - f64::from(min) / f64::from(avpkt);
    if a < 1.0 {
        return None;
    }
    let mut weight: f64 = 0.5;
    (1..32).find(|_| {
        let enough = a <= (1.0 - libm::pow(1.0 - weight, f64::from(burst))) / weight;
        weight /= 2.0;
        enough
    })
}

/// tc's older form of the probability; only whether it exists matters here (`tc_red_eval_P`).
fn eval_p(min: u32, max: u32, probability: f64) -> Option<u8> {
    let span = max.checked_sub(min).filter(|span| *span > 0)?;
    let mut p = probability / f64::from(span);
    (0..32).find(|_| {
        let over = p > 1.0;
        p *= 2.0;
        over
    })
}

/// How an average decays while packets of the average size could have been sent (`tc_red_eval_idle_damping`).
fn idle_damping(wlog: u8, avpkt: u32, rate: u64) -> Option<(u8, [u8; 256])> {
    let xmit_time = f64::from(units::xmit_ticks(rate, avpkt));
    let bits_per_tick = -libm::log(1.0 - 1.0 / f64::from(1u32 << wlog)) / xmit_time;
    let longest = 31.0 / bits_per_tick;
    let cell_log = (0..32u8).find(|log| longest / f64::from(1u32 << log) < 512.0)?;
    let mut table = [31; 256];
    table[0] = 0;
    for (row, bits) in table.iter_mut().enumerate().take(255).skip(1) {
        *bits = ((row as f64) * f64::from(1u32 << cell_log) * bits_per_tick).min(31.0) as u8;
    }
    Some((cell_log, table))
}

pub(super) fn show(config: &RedConfig, detail: Detail) -> String {
    let mut text = format!(
        "limit {} min {} max {} ",
        show_size(config.limit),
        show_size(config.min),
        show_size(config.max)
    );
    for (set, word) in [
        (config.ecn, "ecn "),
        (config.harddrop, "harddrop "),
        (config.adaptive, "adaptive "),
        (config.nodrop, "nodrop "),
    ] {
        if set {
            text += word;
        }
    }
    if detail.details {
        text += &format!("ewma {} ", config.wlog);
        text += &format!("probability {} ", g(f64::from(config.max_p) / TWO_TO_32, 6));
        text += &format!("Scell_log {}", config.scell_log);
    }
    text
}

pub(super) fn xstats(stats: &RedXstats) -> String {
    format!("  marked {} early {} pdrop {} other 0\n", stats.marked, stats.early, stats.pdrop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// What iproute2 6.1 sends to the kernel for the same words.
    #[test]
    fn the_derived_parameters_are_iproute2s() {
        let words: Vec<&str> = "limit 60000 avpkt 1000".split(' ').collect();
        let config = parse(Words::new(&words)).unwrap();
        assert_eq!((config.min, config.max, config.wlog, config.scell_log), (5000, 15_000, 3, 13));
        assert_eq!(config.max_p, 0x051e_b851);
        let runs: Vec<usize> = config.idle_damping.chunk_by(|a, b| a == b).map(<[u8]>::len).collect();
        assert_eq!(
            runs,
            [12, 11, 12, 11, 12, 11, 11, 12, 11, 12, 11, 12, 11, 11, 12, 11, 12, 11, 12, 11, 11, 12, 3, 1]
        );
    }
}
