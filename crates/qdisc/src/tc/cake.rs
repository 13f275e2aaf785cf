//! `cake`: options and counters (iproute2's `q_cake.c`).
use super::error::{TcError, usage};
use super::units::{number, show_rate, show_size, show_time};
use super::words::{Words, set, unknown};
use crate::{
    CakeAckFilter, CakeCoding, CakeConfig, CakeFraming, CakeIsolation, CakeTinXstats, CakeTins, CakeXstats,
    Nanos,
};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

const MICRO: Nanos = 1000;

const TINS: &[(&str, CakeTins)] = &[
    ("besteffort", CakeTins::BestEffort),
    ("precedence", CakeTins::Precedence),
    ("diffserv8", CakeTins::Diffserv8),
    ("diffserv4", CakeTins::Diffserv4),
    ("diffserv", CakeTins::Diffserv4),
    ("diffserv3", CakeTins::Diffserv3),
];

const ISOLATIONS: &[(&str, CakeIsolation)] = &[
    ("flowblind", CakeIsolation::Flowblind),
    ("srchost", CakeIsolation::SrcHost),
    ("dsthost", CakeIsolation::DstHost),
    ("hosts", CakeIsolation::Hosts),
    ("flows", CakeIsolation::Flows),
    ("dual-srchost", CakeIsolation::DualSrcHost),
    ("dual-dsthost", CakeIsolation::DualDstHost),
    ("triple-isolate", CakeIsolation::TripleIsolate),
];

const ACK_FILTERS: &[(&str, CakeAckFilter)] = &[
    ("no-ack-filter", CakeAckFilter::Off),
    ("ack-filter", CakeAckFilter::Conservative),
    ("ack-filter-aggressive", CakeAckFilter::Aggressive),
];

/// Names of round-trip times: target and interval, microseconds. tc 6.1 has 1000 s for the last; its manual says 3600 s.
const RTTS: &[(&str, Nanos, Nanos)] = &[
    ("datacentre", 5, 100),
    ("lan", 50, 1000),
    ("metro", 500, 10_000),
    ("regional", 1500, 30_000),
    ("internet", 5000, 100_000),
    ("oceanic", 15_000, 300_000),
    ("satellite", 50_000, 1_000_000),
    ("interplanetary", 50_000_000, 1_000_000_000),
];

/// Kinds of links: bytes to add to the overhead, and how they code.
const LINKS: &[(&str, i32, CakeCoding)] = &[
    ("ipoa-vcmux", 8, CakeCoding::Atm),
    ("ipoa-llcsnap", 16, CakeCoding::Atm),
    ("bridged-vcmux", 24, CakeCoding::Atm),
    ("bridged-llcsnap", 32, CakeCoding::Atm),
    ("pppoa-vcmux", 10, CakeCoding::Atm),
    ("pppoa-llc", 14, CakeCoding::Atm),
    ("pppoe-vcmux", 32, CakeCoding::Atm),
    ("pppoe-llcsnap", 40, CakeCoding::Atm),
    ("pppoe-ptm", 30, CakeCoding::Ptm),
    ("bridged-ptm", 22, CakeCoding::Ptm),
];

const OVERHEADS: RangeInclusive<i32> = -64..=256;
const MPUS: RangeInclusive<i32> = 0..=256;

fn named<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, other)| *other == value).map_or("", |(name, _)| *name)
}

pub(super) fn parse(mut words: Words<'_>, config: &mut CakeConfig) -> Result<(), TcError> {
    // Names of links add to each other, from nothing in each command.
    let mut overhead: Option<i32> = None;
    let mut is_raw = false;
    while let Some(word) = words.next() {
        if let Some(tins) = named(TINS, word) {
            config.tins = tins;
        } else if let Some(isolation) = named(ISOLATIONS, word) {
            config.isolation = isolation;
        } else if let Some(filter) = named(ACK_FILTERS, word) {
            config.ack_filter = filter;
        } else if let Some((_, target, interval)) = RTTS.iter().find(|(name, ..)| *name == word) {
            (config.target, config.interval) = (target * MICRO, interval * MICRO);
        } else if word == "raw" {
            (overhead, is_raw, config.framing.coding) = (Some(0), true, CakeCoding::None);
        } else if !framing(word, &mut words, &mut config.framing, &mut overhead)? {
            option(word, &mut words, config)?;
        }
    }
    if let Some(overhead) = overhead {
        config.framing.overhead = overhead.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        config.framing.raw = is_raw;
    }
    Ok(())
}

/// A word about what a packet takes on the wire; false if it is none.
fn framing(
    word: &str,
    words: &mut Words<'_>,
    framing: &mut CakeFraming,
    overhead: &mut Option<i32>,
) -> Result<bool, TcError> {
    let mut add = |bytes: i32| *overhead = Some(overhead.unwrap_or(0).saturating_add(bytes));
    if let Some((_, bytes, coding)) = LINKS.iter().find(|(name, ..)| *name == word) {
        add(*bytes);
        framing.coding = *coding;
        return Ok(true);
    }
    match word {
        "noatm" => framing.coding = CakeCoding::None,
        "atm" => framing.coding = CakeCoding::Atm,
        "ptm" => framing.coding = CakeCoding::Ptm,
        "conservative" => (*overhead, framing.coding) = (Some(48), CakeCoding::Atm),
        "docsis" => {
            add(18);
            (framing.mpu, framing.coding) = (64, CakeCoding::None);
        }
        "ethernet" => {
            add(38);
            framing.mpu = 84;
        }
        "ether-vlan" => add(4),
        // Once it took off the link header, which is done by itself now. tc still reads past it.
        "via-ethernet" => {}
        "overhead" => *overhead = Some(within(word, words, &OVERHEADS)?),
        "mpu" => set(&mut framing.mpu, within(word, words, &MPUS)? as u16),
        _ => return Ok(false),
    }
    Ok(true)
}

fn within(word: &str, words: &mut Words<'_>, range: &RangeInclusive<i32>) -> Result<i32, TcError> {
    let number = words.value()?.parse().ok().filter(|number| range.contains(number));
    let (least, most) = (range.start(), range.end());
    number.ok_or_else(|| usage(format!("Illegal \"{word}\", valid range is {least} to {most}")))
}

fn option(word: &str, words: &mut Words<'_>, config: &mut CakeConfig) -> Result<(), TcError> {
    match word {
        "bandwidth" => set(&mut config.bandwidth, words.rate(word)?),
        "unlimited" => config.bandwidth = 0,
        "rtt" => {
            let interval = Nanos::from(words.time(word)?);
            set(&mut config.interval, interval * MICRO);
            config.target = (interval / RTT_PER_TARGET).max(1) * MICRO;
        }
        "wash" => config.wash = true,
        "nowash" => config.wash = false,
        "split-gso" => config.split_gso = true,
        "no-split-gso" => config.split_gso = false,
        "ingress" => config.ingress = true,
        "egress" => config.ingress = false,
        "memlimit" => {
            let value = words.value()?;
            let size = super::units::size(value);
            config.memory_limit = size.ok_or_else(|| illegal(word, value))?;
        }
        "fwmark" => {
            let value = words.value()?;
            config.fwmark = number(value).ok_or_else(|| illegal(word, value))?;
        }
        "nonat" => {}
        "nat" => {
            return Err(usage(
                "\"nat\" has nothing to look up here: no address is translated, packets show their own hosts",
            ));
        }
        "autorate-ingress" => {
            return Err(usage(
                "\"autorate-ingress\" estimates the rate of what is received, and only sending is modelled here: \
                 give \"bandwidth\"",
            ));
        }
        _ => return Err(unknown(word)),
    }
    Ok(())
}

/// tc's target is a twentieth of the round-trip time.
const RTT_PER_TARGET: Nanos = 20;

fn illegal(word: &str, value: &str) -> TcError {
    usage(format!("Illegal value for \"{word}\": \"{value}\""))
}

pub(super) fn show(config: &CakeConfig) -> String {
    let CakeConfig { bandwidth, tins, isolation, wash, ingress, ack_filter, split_gso, .. } = *config;
    let CakeConfig { interval, framing, memory_limit, fwmark, .. } = *config;
    let rate = if bandwidth == 0 { "unlimited".to_owned() } else { show_rate(bandwidth) };
    let mut text = format!("bandwidth {rate} ");
    let mut word = |word: &str| text += &format!("{word} ");
    word(name_of(TINS, tins));
    word(name_of(ISOLATIONS, isolation));
    word("nonat");
    word(if wash { "wash" } else { "nowash" });
    if ingress {
        word("ingress");
    }
    word(name_of(ACK_FILTERS, ack_filter));
    word(if split_gso { "split-gso" } else { "no-split-gso" });
    word(&format!("rtt {}", show_time((interval / MICRO) as f64)));
    if framing.raw {
        word("raw");
    }
    match framing.coding {
        CakeCoding::Atm => word("atm"),
        CakeCoding::Ptm => word("ptm"),
        CakeCoding::None if framing.raw => {}
        CakeCoding::None => word("noatm"),
    }
    word(&format!("overhead {}", framing.overhead));
    if framing.mpu > 0 {
        word(&format!("mpu {}", framing.mpu));
    }
    if memory_limit > 0 {
        word(&format!("memlimit {}", show_size(memory_limit)));
    }
    if fwmark > 0 {
        word(&format!("fwmark {fwmark:#x}"));
    }
    text
}

pub(super) fn xstats(stats: &CakeXstats) -> String {
    let size = |bytes: u64| show_size(bytes.min(u32::MAX.into()) as u32);
    let CakeXstats { min_netlen, max_netlen, min_adjlen, max_adjlen, .. } = *stats;
    let mut text = format!(
        " memory used: {} of {}
 capacity estimate: {}
 min/max network layer size: {min_netlen:>12} /{max_netlen:>8}
 min/max overhead-adjusted size: {min_adjlen:>8} /{max_adjlen:>8}
 average network hdr offset: {:>12}

",
        size(stats.memory_used),
        show_size(stats.memory_limit),
        show_rate(stats.capacity_estimate),
        stats.average_network_offset
    );
    let tins = &stats.tins;
    text += &match tins.len() {
        3 => heading(&["Bulk", "Best Effort", "Voice"]),
        4 => heading(&["Bulk", "Best Effort", "Video", "Voice"]),
        count => {
            let names: Vec<String> = (0..count).map(|tin| format!("Tin {tin}")).collect();
            heading(&names)
        }
    };
    let mut row = |name: &str, value: &dyn Fn(&CakeTinXstats) -> String| {
        text += &format!("  {name:<8}");
        tins.iter().for_each(|tin| text += &format!(" {:>12}", value(tin)));
        text += "\n";
    };
    let time = |nanos: Nanos| show_time((nanos / MICRO) as f64);
    row("thresh", &|tin| show_rate(tin.threshold));
    row("target", &|tin| time(tin.target));
    row("interval", &|tin| time(tin.interval));
    row("pk_delay", &|tin| time(tin.peak_delay));
    row("av_delay", &|tin| time(tin.average_delay));
    row("sp_delay", &|tin| time(tin.base_delay));
    row("backlog", &|tin| size(tin.backlog));
    row("pkts", &|tin| format!("{}", tin.packets));
    row("bytes", &|tin| format!("{}", tin.bytes));
    row("way_inds", &|tin| format!("{}", tin.way_indirect_hits));
    row("way_miss", &|tin| format!("{}", tin.way_misses));
    row("way_cols", &|tin| format!("{}", tin.way_collisions));
    row("drops", &|tin| format!("{}", tin.drops));
    row("marks", &|tin| format!("{}", tin.ecn_marks));
    row("ack_drop", &|tin| format!("{}", tin.ack_drops));
    row("sp_flows", &|tin| format!("{}", tin.sparse_flows));
    row("bk_flows", &|tin| format!("{}", tin.bulk_flows));
    row("un_flows", &|tin| format!("{}", tin.unresponsive_flows));
    row("max_len", &|tin| format!("{}", tin.max_len));
    row("quantum", &|tin| format!("{}", tin.quantum));
    text + "\n"
}

fn heading(names: &[impl AsRef<str>]) -> String {
    let names: String = names.iter().map(|name| format!(" {:>12}", name.as_ref())).collect();
    format!("          {names}\n")
}
