//! `tbf`: options.
use super::error::{TcError, usage};
use super::show::Detail;
use super::units::{self, show_rate, show_size, show_time, tick_micros, ticks, xmit_size};
use super::words::Words;
use crate::{LinkLayer, RateSpec, TbfConfig};
use alloc::string::String;
use alloc::vec::Vec;

fn illegal(name: &str, value: &str) -> TcError {
    usage(format!("tbf: illegal value for \"{name}\": \"{value}\""))
}

fn once<T>(slot: &mut Option<T>, name: &str, value: T) -> Result<(), TcError> {
    if slot.is_some() {
        return Err(usage(format!("tbf: duplicate \"{name}\" specification")));
    }
    *slot = Some(value);
    Ok(())
}

/// tc turns a latency into a limit: what the rate carries in that time, and the bucket.
fn limit_for(latency: u32, rate: u64, depth: u32) -> f64 {
    rate as f64 * f64::from(latency) / 1_000_000.0 + f64::from(depth)
}

pub(super) fn parse(mut words: Words<'_>) -> Result<TbfConfig, TcError> {
    let (mut limit, mut latency, mut burst, mut mtu) = (None, None, None, None);
    let (mut mpu, mut rate, mut peak, mut overhead, mut layer) =
        (None, None, None, None, LinkLayer::Ethernet);
    while let Some(word) = words.next() {
        let known = matches!(
            word,
            "limit"
                | "latency"
                | "burst"
                | "buffer"
                | "maxburst"
                | "mtu"
                | "minburst"
                | "mpu"
                | "rate"
                | "peakrate"
                | "overhead"
                | "linklayer"
        );
        if !known {
            return Err(usage(format!("tbf: unknown parameter \"{word}\"")));
        }
        let value = words.value()?;
        let bad = || illegal(word, value);
        match word {
            "limit" | "latency"
                if (word == "limit" && latency.is_some()) || (word == "latency" && limit.is_some()) =>
            {
                return Err(usage(if word == "limit" {
                    "tbf: specifying both \"latency\" and \"limit\" is not allowed"
                } else {
                    "tbf: specifying both \"limit\" and \"/latency\" is not allowed"
                }));
            }
            "limit" => once(&mut limit, word, units::size(value).ok_or_else(bad)?)?,
            "latency" => once(&mut latency, word, units::time(value).ok_or_else(bad)?)?,
            "burst" | "buffer" | "maxburst" => {
                once(&mut burst, "buffer/burst/maxburst", units::size_and_cell(value).ok_or_else(bad)?)?;
            }
            "mtu" | "minburst" => {
                once(&mut mtu, "mtu/minburst", units::size_and_cell(value).ok_or_else(bad)?)?
            }
            "mpu" => once(&mut mpu, word, units::size(value).ok_or_else(bad)?)?,
            "rate" => once(&mut rate, word, units::rate(value).ok_or_else(bad)?)?,
            "peakrate" => once(&mut peak, word, units::rate(value).ok_or_else(bad)?)?,
            "overhead" => once(&mut overhead, word, units::size(value).ok_or_else(bad)?)?,
            _ => layer = link_layer(value).ok_or_else(bad)?,
        }
    }
    let spec = |rate| RateSpec {
        bytes_per_second: rate,
        overhead: overhead.unwrap_or(0).min(u16::MAX.into()) as u16,
        mpu: mpu.unwrap_or(0).min(u16::MAX.into()) as u16,
        link_layer: layer,
    };
    let mut missing = Vec::new();
    if rate.is_none() {
        missing.push("tbf: the \"rate\" parameter is mandatory.");
    }
    if burst.is_none() {
        missing.push("tbf: the \"burst\" parameter is mandatory.");
    }
    if peak.is_some() && mtu.is_none() {
        missing.push("tbf: when \"peakrate\" is specified, \"mtu\" must also be specified.");
    }
    if limit.is_none() && latency.is_none() {
        missing.push("tbf: either \"limit\" or \"latency\" is required.");
    }
    let (Some(rate), Some(burst), true) = (rate, burst, missing.is_empty()) else {
        return Err(usage(missing.join("\n")));
    };
    let peak = peak.zip(mtu);
    let limit = limit.unwrap_or_else(|| {
        let latency = latency.unwrap_or(0);
        let by_rate = limit_for(latency, rate, burst);
        peak.map_or(by_rate, |(peak, mtu)| by_rate.min(limit_for(latency, peak, mtu))) as u32
    });
    Ok(TbfConfig { rate: spec(rate), burst, limit, peak: peak.map(|(rate, mtu)| (spec(rate), mtu)) })
}

pub(super) fn link_layer(word: &str) -> Option<LinkLayer> {
    match word {
        "ethernet" => Some(LinkLayer::Ethernet),
        "atm" | "adsl" => Some(LinkLayer::Atm),
        _ => None,
    }
}

/// `depths`: of the buckets, in nanoseconds, as the kernel tells them.
pub(super) fn show(config: &TbfConfig, depths: (i64, i64), detail: Detail) -> String {
    let tick = |nanos: i64| ticks(nanos).clamp(0, u32::MAX.into()) as u32;
    let (buffer, mtu) = (tick(depths.0), tick(depths.1));
    let cell = |spec: &RateSpec| {
        if detail.details { format!("/1 mpu {}", show_size(spec.mpu.into())) } else { String::new() }
    };
    let rate = config.rate.bytes_per_second;
    let mut text = format!(
        "rate {} burst {}{} ",
        show_rate(rate),
        show_size(xmit_size(rate, buffer)),
        cell(&config.rate)
    );
    let latency =
        |rate: u64, depth: u32| 1_000_000.0 * (f64::from(config.limit) / rate as f64) - tick_micros(depth);
    let mut lat = latency(rate, buffer);
    if let Some((peak, _)) = &config.peak {
        let rate = peak.bytes_per_second;
        text += &format!(
            "peakrate {} {} {}{} ",
            show_rate(rate),
            if detail.details { "mtu" } else { "minburst" },
            show_size(xmit_size(rate, mtu)),
            cell(peak)
        );
        lat = lat.max(latency(rate, mtu));
    }
    text += &if lat >= 0.0 {
        format!("lat {} ", show_time(lat))
    } else {
        format!("limit {} ", show_size(config.limit))
    };
    if config.rate.overhead > 0 {
        text += &format!("overhead {} ", config.rate.overhead);
    }
    if detail.details || config.rate.link_layer == LinkLayer::Atm {
        text += &format!("linklayer {} ", config.rate.link_layer.name());
    }
    text
}
