//! `codel` and `fq_codel`: options and counters.
use super::error::TcError;
use super::units::{show_size, show_time};
use super::words::{Words, set, unknown};
use crate::{CodelConfig, CodelParams, CodelXstats, FqCodelConfig, FqCodelXstats, Nanos};
use alloc::string::String;

const MICRO: Nanos = 1000;

/// The kernel keeps CoDel's times in units of 1024 ns; tc gets back what that leaves.
fn shown(time: Nanos) -> f64 {
    (((time >> 10) << 10) / MICRO) as f64
}

/// An option that both have; false if it is none.
fn param(word: &str, words: &mut Words<'_>, params: &mut CodelParams) -> Result<bool, TcError> {
    match word {
        "target" => set(&mut params.target, Nanos::from(words.time(word)?) * MICRO),
        "interval" => set(&mut params.interval, Nanos::from(words.time(word)?) * MICRO),
        "ce_threshold" => params.ce_threshold = Some(Nanos::from(words.time(word)?) * MICRO),
        "ecn" => params.ecn = true,
        "noecn" => params.ecn = false,
        _ => return Ok(false),
    }
    Ok(true)
}

pub(super) fn parse(mut words: Words<'_>, config: &mut CodelConfig) -> Result<(), TcError> {
    while let Some(word) = words.next() {
        match word {
            "limit" => set(&mut config.limit, words.number::<u32>(word)? as usize),
            _ if param(word, &mut words, &mut config.params)? => {}
            _ => return Err(unknown(word)),
        }
    }
    Ok(())
}

pub(super) fn show(config: &CodelConfig) -> String {
    format!("limit {}p {}", config.limit, show_params(&config.params))
}

fn show_params(params: &CodelParams) -> String {
    let mut text = format!("target {} ", show_time(shown(params.target)));
    if let Some(threshold) = params.ce_threshold {
        text += &format!("ce_threshold {} ", show_time(shown(threshold)));
    }
    text += &format!("interval {} ", show_time(shown(params.interval)));
    if params.ecn {
        text += "ecn ";
    }
    text
}

pub(super) fn xstats(stats: &CodelXstats, now: Nanos) -> String {
    let mut text = format!(
        "  count {} lastcount {} ldelay {}",
        stats.count,
        stats.lastcount,
        show_time((stats.ldelay / MICRO) as f64)
    );
    if stats.dropping {
        text += " dropping";
    }
    let gap = |a: Nanos, b: Nanos| show_time(((a - b) / MICRO) as f64);
    if stats.drop_next != 0 {
        text += &match now > stats.drop_next {
            true => format!(" drop_next -{}", gap(now, stats.drop_next)),
            false => format!(" drop_next {}", gap(stats.drop_next, now)),
        };
    }
    text += &format!(
        "\n  maxpacket {} ecn_mark {} drop_overlimit {}",
        stats.maxpacket, stats.ecn_mark, stats.drop_overlimit
    );
    if stats.ce_mark > 0 {
        text += &format!(" ce_mark {}", stats.ce_mark);
    }
    text + "\n"
}

pub(super) fn parse_fq(mut words: Words<'_>, config: &mut FqCodelConfig) -> Result<(), TcError> {
    while let Some(word) = words.next() {
        match word {
            "limit" => set(&mut config.limit, words.number::<u32>(word)? as usize),
            "flows" => set(&mut config.flows, words.number(word)?),
            "quantum" => set(&mut config.quantum, words.number(word)?),
            "memory_limit" => config.memory_limit = words.size(word)?,
            "drop_batch" => set(&mut config.drop_batch, words.number(word)?),
            _ if param(word, &mut words, &mut config.params)? => {}
            _ => return Err(unknown(word)),
        }
    }
    Ok(())
}

pub(super) fn show_fq(config: &FqCodelConfig) -> String {
    let params = &config.params;
    let mut text = format!(
        "limit {}p flows {} quantum {} target {} ",
        config.limit,
        config.flows,
        config.quantum,
        show_time(shown(params.target))
    );
    if let Some(threshold) = params.ce_threshold {
        text += &format!("ce_threshold {} ", show_time(shown(threshold)));
    }
    text += &format!(
        "interval {} memory_limit {} ",
        show_time(shown(params.interval)),
        show_size(config.memory_limit)
    );
    if params.ecn {
        text += "ecn ";
    }
    text + &format!("drop_batch {} ", config.drop_batch)
}

pub(super) fn xstats_fq(stats: &FqCodelXstats) -> String {
    let mut text = format!(
        "  maxpacket {} drop_overlimit {} new_flow_count {} ecn_mark {}",
        stats.maxpacket, stats.drop_overlimit, stats.new_flow_count, stats.ecn_mark
    );
    if stats.ce_mark > 0 {
        text += &format!(" ce_mark {}", stats.ce_mark);
    }
    if stats.memory_usage > 0 {
        text += &format!(" memory_used {}", stats.memory_usage);
    }
    if stats.drop_overmemory > 0 {
        text += &format!(" drop_overmemory {}", stats.drop_overmemory);
    }
    text + &format!("\n  new_flows_len {} old_flows_len {}\n", stats.new_flows_len, stats.old_flows_len)
}
