//! `netem`: options.
use super::error::{TcError, usage};
use super::units::{self, g, show_rate, show_time64};
use super::words::{Words, unknown};
use crate::{
    Correlated, Distribution, FourStates, GilbertElliott, Nanos, NetemConfig, NetemLoss, NetemRate,
    NetemSlot, Probability, SlotDelay,
};
use alloc::string::String;

fn probability(word: &str) -> Option<Probability> {
    units::percent(word).map(Probability::new)
}

/// A number in front of an option's optional values, as tc tells one: it begins like one.
fn is_number(words: &Words<'_>) -> bool {
    words.peek().is_some_and(|word| {
        word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+' || c == '.')
    })
}

fn share(words: &mut Words<'_>, what: &str) -> Result<Probability, TcError> {
    words.read(what, probability)
}

fn optional<T>(
    words: &mut Words<'_>,
    default: T,
    read: impl Fn(&mut Words<'_>) -> Result<T, TcError>,
) -> Result<T, TcError> {
    if is_number(words) { read(words) } else { Ok(default) }
}

fn correlated(words: &mut Words<'_>, what: &str) -> Result<Correlated, TcError> {
    let probability = share(words, what)?;
    let correlation = optional(words, Probability::ZERO, |words| share(words, what))?;
    Ok(Correlated { probability, correlation })
}

fn time(words: &mut Words<'_>, what: &str) -> Result<Nanos, TcError> {
    words.read(what, |word| units::time64(word).and_then(|nanos| Nanos::try_from(nanos).ok()))
}

fn distribution(words: &mut Words<'_>) -> Result<Distribution, TcError> {
    let name = words.value()?;
    Ok(match name {
        "uniform" => Distribution::Uniform,
        "normal" => Distribution::Normal,
        "pareto" => Distribution::Pareto,
        "paretonormal" => Distribution::ParetoNormal,
        _ => {
            return Err(usage(format!(
                "No distribution data for {name} (here: uniform, normal, pareto, paretonormal)"
            )));
        }
    })
}

/// Everything not named is off: a change starts anew, as in the kernel.
pub(super) fn parse(mut words: Words<'_>) -> Result<NetemConfig, TcError> {
    let mut config = NetemConfig::default();
    let (mut gap, mut distributed) = (None, false);
    while let Some(word) = words.next() {
        match word {
            "limit" => config.limit = words.number::<u32>("limit")? as usize,
            "latency" | "delay" => {
                config.latency = time(&mut words, "latency")?;
                config.jitter = optional(&mut words, 0, |words| time(words, "latency"))?;
                config.delay_correlation =
                    optional(&mut words, Probability::ZERO, |words| share(words, "latency"))?;
            }
            "loss" | "drop" => {
                if config.loss != NetemLoss::None {
                    return Err(usage("duplicate loss argument"));
                }
                config.loss = loss(&mut words)?;
            }
            "ecn" => config.ecn = true,
            "reorder" => config.reorder = correlated(&mut words, "reorder")?,
            "corrupt" => config.corrupt = correlated(&mut words, "corrupt")?,
            "duplicate" => config.duplicate = correlated(&mut words, "duplicate")?,
            "gap" => gap = Some(words.number::<u32>("gap")?.into()),
            "distribution" => {
                config.distribution = distribution(&mut words)?;
                distributed = true;
            }
            "rate" => config.rate = Some(rate(&mut words)?),
            "slot" => config.slot = Some(slot(&mut words)?),
            _ => return Err(unknown(word)),
        }
    }
    let reorders = config.reorder != Correlated::NEVER;
    config.gap = gap.unwrap_or(0);
    if reorders {
        if config.latency == 0 {
            return Err(usage("reordering not possible without specifying some delay"));
        }
        config.gap = config.gap.max(1);
    } else if config.gap > 0 {
        return Err(usage("gap specified without reorder probability"));
    }
    if config.ecn && config.loss == NetemLoss::None {
        return Err(usage("ecn requested without loss model"));
    }
    if distributed && (config.latency == 0 || config.jitter == 0) {
        return Err(usage("distribution specified but no latency and jitter values"));
    }
    Ok(config)
}

fn loss(words: &mut Words<'_>) -> Result<NetemLoss, TcError> {
    if is_number(words) {
        return correlated(words, "loss percent").map(NetemLoss::Random);
    }
    match words.value()? {
        "random" => correlated(words, "loss percent").map(NetemLoss::Random),
        "state" => {
            let p13 = share(words, "loss p13")?;
            let mut model = FourStates {
                p13,
                p31: Probability::new(1.0 - p13.fraction()),
                p32: Probability::ZERO,
                p23: Probability::ONE,
                p14: Probability::ZERO,
            };
            model.p31 = optional(words, model.p31, |words| share(words, "loss p31"))?;
            model.p32 = optional(words, model.p32, |words| share(words, "loss p32"))?;
            model.p23 = optional(words, model.p23, |words| share(words, "loss p23"))?;
            model.p14 = optional(words, model.p14, |words| share(words, "loss p14"))?;
            Ok(NetemLoss::State(model))
        }
        "gemodel" => {
            let p = share(words, "loss gemodel p")?;
            let r = Probability::new(1.0 - p.fraction());
            Ok(NetemLoss::Gemodel(GilbertElliott {
                good_to_bad: p,
                bad_to_good: optional(words, r, |words| share(words, "loss gemodel r"))?,
                loss_bad: optional(words, Probability::ONE, |words| share(words, "loss gemodel h"))?,
                loss_good: optional(words, Probability::ZERO, |words| share(words, "loss gemodel k"))?,
            }))
        }
        other => Err(usage(format!("Unknown loss parameter: {other}"))),
    }
}

fn rate(words: &mut Words<'_>) -> Result<NetemRate, TcError> {
    let signed = |word: &str| word.parse::<i32>().ok();
    let bytes_per_second = words.read("rate", |word| units::rate(word).filter(|rate| *rate > 0))?;
    Ok(NetemRate {
        bytes_per_second,
        packet_overhead: optional(words, 0, |words| words.read("rate", signed))?,
        cell_size: optional(words, 0, |words| words.number("rate"))?,
        cell_overhead: optional(words, 0, |words| words.read("rate", signed))?,
    })
}

fn slot(words: &mut Words<'_>) -> Result<NetemSlot, TcError> {
    let delay = if is_number(words) {
        let min = time(words, "slot min_delay")?;
        let max = optional(words, min, |words| time(words, "slot max_delay"))?;
        SlotDelay::Between(min, max.max(min))
    } else {
        match words.value()? {
            "distribution" => SlotDelay::Drawn {
                distribution: distribution(words)?,
                delay: time(words, "slot delay")?,
                jitter: match time(words, "slot jitter")? {
                    0 => return Err(usage("Non-positive jitter\n")),
                    jitter => jitter,
                },
            },
            other => return Err(usage(format!("Unknown slot parameter: {other}"))),
        }
    };
    let mut slot = NetemSlot { delay, max_packets: 0, max_bytes: 0 };
    loop {
        match words.peek() {
            Some("packets") => {
                words.next();
                slot.max_packets = words.number("slot packets")?;
            }
            Some("bytes") => {
                words.next();
                slot.max_bytes = words.number("slot bytes")?;
            }
            _ => return Ok(slot),
        }
    }
}

fn percent(p: Probability) -> String {
    format!("{}%", g(p.fraction() * 100.0, 6))
}

fn show_correlated(name: &str, chance: Correlated) -> String {
    if chance.probability.is_zero() {
        return String::new();
    }
    let mut text = format!(" {name} {}", percent(chance.probability));
    if !chance.correlation.is_zero() {
        text += &format!(" {}", percent(chance.correlation));
    }
    text
}

fn span(nanos: Nanos) -> String {
    show_time64(i64::try_from(nanos).unwrap_or(i64::MAX))
}

pub(super) fn show(config: &NetemConfig) -> String {
    let mut text = format!("limit {}", config.limit);
    if config.latency > 0 {
        text += &format!(" delay {}", span(config.latency));
        if config.jitter > 0 {
            text += &format!("  {}", span(config.jitter));
            if !config.delay_correlation.is_zero() {
                text += &format!(" {}", percent(config.delay_correlation));
            }
        }
    }
    text += &match config.loss {
        NetemLoss::None => String::new(),
        NetemLoss::Random(chance) => show_correlated("loss", chance),
        NetemLoss::State(m) => format!(
            " loss state p13 {} p31 {} p32 {} p23 {} p14 {}",
            percent(m.p13),
            percent(m.p31),
            percent(m.p32),
            percent(m.p23),
            percent(m.p14)
        ),
        NetemLoss::Gemodel(m) => format!(
            " loss gemodel p {} r {} 1-h {} 1-k {}",
            percent(m.good_to_bad),
            percent(m.bad_to_good),
            percent(m.loss_bad),
            percent(m.loss_good)
        ),
    };
    text += &show_correlated("duplicate", config.duplicate);
    text += &show_correlated("reorder", config.reorder);
    text += &show_correlated("corrupt", config.corrupt);
    if let Some(rate) = &config.rate {
        text += &format!(" rate {}", show_rate(rate.bytes_per_second));
        if rate.packet_overhead != 0 {
            text += &format!(" packetoverhead {}", rate.packet_overhead);
        }
        if rate.cell_size != 0 {
            text += &format!(" cellsize {}", rate.cell_size);
        }
        if rate.cell_overhead != 0 {
            text += &format!(" celloverhead {}", rate.cell_overhead);
        }
    }
    if let Some(slot) = &config.slot {
        text += &match slot.delay {
            SlotDelay::Between(min, max) => format!(" slot {} {}", span(min), span(max)),
            SlotDelay::Drawn { delay, jitter, .. } => {
                format!(" slot distribution {} {}", span(delay), span(jitter))
            }
        };
        if slot.max_packets > 0 {
            text += &format!(" packets {}", slot.max_packets);
        }
        if slot.max_bytes > 0 {
            text += &format!(" bytes {}", slot.max_bytes);
        }
    }
    if config.ecn {
        text += " ecn ";
    }
    if config.gap > 0 {
        text += &format!(" gap {}", config.gap);
    }
    text
}
