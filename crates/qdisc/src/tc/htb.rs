//! `htb`: options of the discipline and of its classes.
use super::error::{TcError, usage};
use super::show::Detail;
use super::tbf::link_layer;
use super::units::{self, show_rate, show_size, tick_nanos, ticks, xmit_size, xmit_ticks};
use super::words::{Words, unknown};
use crate::htb::Class;
use crate::{HtbClassConfig, HtbConfig, LinkLayer, Packet, RateSpec};
use alloc::borrow::ToOwned;
use alloc::string::String;

/// The packet that a burst is made to hold (tc's default `mtu` of htb).
const MTU: u32 = 1600;
/// The kernel's clock as tc sees it: a burst holds what comes in one of its ticks.
const HZ: u64 = 1_000_000_000;
/// Quantums that tc's rule may give (`htb_change_class`).
const QUANTUM: core::ops::RangeInclusive<u64> = 1000..=200_000;

pub(super) fn parse(mut words: Words<'_>, tx_queue_len: usize) -> Result<HtbConfig, TcError> {
    let mut config = HtbConfig { default_class: 0, rate2quantum: 10, direct_qlen: tx_queue_len };
    while let Some(word) = words.next() {
        match word {
            "default" => config.default_class = words.read("default", hexadecimal)?,
            "r2q" => config.rate2quantum = words.number("r2q")?,
            "direct_qlen" => config.direct_qlen = words.number::<u32>("direct_qlen")? as usize,
            _ => return Err(unknown(word)),
        }
    }
    Ok(config)
}

/// C's `%#x`.
fn hexadecimal_alternate(number: u32) -> String {
    if number == 0 { "0".to_owned() } else { format!("{number:#x}") }
}

fn hexadecimal(word: &str) -> Option<u32> {
    u32::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
}

/// A class, and what the kernel has to say about its quantum.
pub(super) fn parse_class(
    mut words: Words<'_>,
    rate2quantum: u32,
) -> Result<(HtbClassConfig, Option<&'static str>), TcError> {
    let (mut rate, mut ceil, mut burst, mut cburst, mut quantum) = (None, None, None, None, None);
    let (mut prio, mut mtu, mut mpu, mut overhead, mut layer) = (0, MTU, 0u16, 0u16, LinkLayer::Ethernet);
    while let Some(word) = words.next() {
        match word {
            "prio" => prio = words.number("prio")?,
            "mtu" => mtu = words.number("mtu")?,
            "mpu" => mpu = words.number("mpu")?,
            "overhead" => overhead = words.number("overhead")?,
            "linklayer" => layer = words.read("linklayer", link_layer)?,
            "quantum" => quantum = Some(words.number("quantum")?),
            "burst" | "buffer" | "maxburst" => burst = Some(words.read(word, units::size_and_cell)?),
            "cburst" | "cbuffer" | "cmaxburst" => cburst = Some(words.read(word, units::size_and_cell)?),
            "rate" if rate.is_none() => rate = Some(words.rate("rate")?),
            "rate" => return Err(usage("Double \"rate\" spec")),
            "ceil" if ceil.is_none() => ceil = Some(words.rate("ceil")?),
            "ceil" => return Err(usage("Double \"ceil\" spec")),
            _ => return Err(unknown(word)),
        }
    }
    let rate = rate.filter(|rate| *rate > 0).ok_or_else(|| usage("\"rate\" is required."))?;
    let ceil = ceil.unwrap_or(rate);
    let spec = |rate| RateSpec { bytes_per_second: rate, overhead, mpu, link_layer: layer };
    let depth = |burst: Option<u32>, rate: u64| {
        let bytes = burst.unwrap_or((rate / HZ).saturating_add(mtu.into()).min(u32::MAX.into()) as u32);
        tick_nanos(xmit_ticks(rate, bytes))
    };
    let by_rate = rate / u64::from(rate2quantum.max(1));
    let warning = match (quantum, by_rate) {
        (Some(_), _) => None,
        (None, rule) if rule < *QUANTUM.start() => Some("small"),
        (None, rule) if rule > *QUANTUM.end() => Some("big"),
        (None, _) => None,
    };
    let config = HtbClassConfig {
        rate: spec(rate),
        ceil: spec(ceil),
        buffer: depth(burst, rate),
        cbuffer: depth(cburst, ceil),
        quantum: quantum
            .filter(|quantum| *quantum > 0)
            .unwrap_or(by_rate.clamp(*QUANTUM.start(), *QUANTUM.end()) as u32),
        prio: prio.min(7),
    };
    Ok((config, warning))
}

pub(super) fn show(config: &HtbConfig, direct: u64, detail: Detail) -> String {
    let version = if detail.details { "ver 3.17 " } else { "" };
    format!(
        "r2q {} default {} direct_packets_stat {direct} {version}direct_qlen {}",
        config.rate2quantum,
        hexadecimal_alternate(config.default_class),
        config.direct_qlen
    )
}

pub(super) fn show_class<P: Packet>(class: &Class<P>, detail: Detail) -> String {
    let config = class.config();
    let mut text = String::new();
    if class.is_leaf() {
        text += &format!("prio {} ", config.prio);
        if detail.details {
            text += &format!("quantum {} ", config.quantum);
        }
    }
    let (rate, ceil) = (config.rate.bytes_per_second, config.ceil.bytes_per_second);
    text += &format!("rate {} ", show_rate(rate));
    if config.rate.overhead > 0 {
        text += &format!("overhead {} ", config.rate.overhead);
    }
    text += &format!("ceil {} ", show_rate(ceil));
    if detail.details || config.rate.link_layer == LinkLayer::Atm {
        text += &format!("linklayer {} ", config.rate.link_layer.name());
    }
    let burst = |rate: u64, depth: u64| {
        let bytes = xmit_size(rate, (depth >> 6).min(u32::MAX.into()) as u32);
        let cells = if detail.details {
            format!("/1 mpu {}", show_size(config.rate.mpu.into()))
        } else {
            String::new()
        };
        format!("{}{cells}", show_size(bytes))
    };
    text += &format!("burst {} cburst {} ", burst(rate, config.buffer), burst(ceil, config.cbuffer));
    if detail.details {
        text += &format!("level {} ", class.level);
    }
    text
}

pub(super) fn show_class_xstats<P: Packet>(class: &Class<P>) -> String {
    let (tokens, ctokens) = class.tokens();
    let clamp = |nanos: i64| ticks(nanos).clamp(i32::MIN.into(), i32::MAX.into());
    format!(
        " lended: {} borrowed: {} giants: 0\n tokens: {} ctokens: {}\n",
        class.lends,
        class.borrows,
        clamp(tokens),
        clamp(ctokens)
    )
}
