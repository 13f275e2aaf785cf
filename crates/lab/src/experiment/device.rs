//! The network card of an end as given in a file, and its counters by name.

use super::kind;
use super::mistake::{Mistake, Within};
use super::quantities::{Rate, Size, Time, optional};
use crate::network::{CardPlan, CardStats, nanos};
use core::num::NonZeroU64;
use core::time::Duration;
use qdisc::{InputConfig, NicConfig, RingStats};
use serde::Deserialize;

/// A card. Missing values are [`CardPlan`]'s defaults.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct DevicePart {
    /// Rate of the line.
    #[serde(default, deserialize_with = "optional")]
    pub(super) rate: Option<Rate>,
    pub(super) queues: Option<usize>,
    pub(super) txqueuelen: Option<usize>,
    pub(super) qdisc: Option<String>,
    pub(super) tx_ring: Option<usize>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) tx_usecs: Option<Time>,
    pub(super) bql: Option<bool>,
    pub(super) tso: Option<bool>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) tcp_limit_output_bytes: Option<Size>,
    pub(super) rx_ring: Option<usize>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) rx_usecs: Option<Time>,
    /// Processor time per received packet.
    #[serde(default, deserialize_with = "optional")]
    pub(super) cost: Option<Time>,
    pub(super) netdev_max_backlog: Option<usize>,
    /// Processor time per packet in the input backlog.
    #[serde(default, deserialize_with = "optional")]
    pub(super) backlog_cost: Option<Time>,
    pub(super) gro: Option<bool>,
}

impl DevicePart {
    /// Fills missing values from `base`.
    pub(super) fn over(self, base: &DevicePart) -> DevicePart {
        DevicePart {
            rate: self.rate.or(base.rate),
            queues: self.queues.or(base.queues),
            txqueuelen: self.txqueuelen.or(base.txqueuelen),
            qdisc: self.qdisc.or_else(|| base.qdisc.clone()),
            tx_ring: self.tx_ring.or(base.tx_ring),
            tx_usecs: self.tx_usecs.or(base.tx_usecs),
            bql: self.bql.or(base.bql),
            tso: self.tso.or(base.tso),
            tcp_limit_output_bytes: self.tcp_limit_output_bytes.or(base.tcp_limit_output_bytes),
            rx_ring: self.rx_ring.or(base.rx_ring),
            rx_usecs: self.rx_usecs.or(base.rx_usecs),
            cost: self.cost.or(base.cost),
            netdev_max_backlog: self.netdev_max_backlog.or(base.netdev_max_backlog),
            backlog_cost: self.backlog_cost.or(base.backlog_cost),
            gro: self.gro.or(base.gro),
        }
    }

    pub(super) fn plan(&self) -> Result<CardPlan, Mistake> {
        let default = CardPlan::default();
        let time = |time: Option<Time>| nanos(time.map_or(Duration::ZERO, |time| time.0));
        if self.backlog_cost.is_some() && self.netdev_max_backlog.is_none() {
            let error = "`backlog_cost` needs `netdev_max_backlog`: without it there is no backlog";
            return Err(error).within("backlog_cost");
        }
        let plan = CardPlan {
            nic: NicConfig {
                rate: self.rate.and_then(|rate| NonZeroU64::new(rate.0)),
                queues: self.queues.unwrap_or(default.nic.queues),
                descriptors: self.tx_ring.unwrap_or(default.nic.descriptors),
                interrupt_after: time(self.tx_usecs),
                ..default.nic
            },
            byte_limits: self.bql.unwrap_or(default.byte_limits),
            txqueuelen: self.txqueuelen.unwrap_or(default.txqueuelen),
            qdisc: self.qdisc.clone(),
            small_queues: self.tcp_limit_output_bytes.map(|size| size.0),
            cuts: self.tso.unwrap_or(default.cuts),
            input: InputConfig {
                descriptors: self.rx_ring.unwrap_or(default.input.descriptors),
                interrupt_after: time(self.rx_usecs),
                cost: time(self.cost),
                backlog: self.netdev_max_backlog.map(|limit| (limit, time(self.backlog_cost))),
            },
            merges: self.gro.unwrap_or(default.merges),
        };
        plan.check()?;
        let words = self.qdisc.as_deref().unwrap_or_default();
        plan.check_qdisc().map_err(|error| kind::wrong(words, &error)).within("qdisc")?;
        Ok(plan)
    }
}

/// Counters of a card that can be measured.
pub(super) const COUNTERS: [&str; 23] = [
    "tx_packets",
    "tx_frames",
    "tx_dropped",
    "qdisc_backlog_max",
    "ring_max",
    "ring_bytes_max",
    "ring_wait_max",
    "ring_wait_mean",
    "ring_full",
    "bql_limit",
    "bql_stops",
    "tx_interrupts",
    "starved",
    "tsq_throttled",
    "tsq_bytes_max",
    "rx_packets",
    "rx_missed_errors",
    "rx_ring_max",
    "rx_interrupts",
    "softnet_dropped",
    "softnet_squeezed",
    "backlog_max",
    "gro_merged",
];

/// Returns the value of a counter over all rings of these cards: the sum, or the maximum of peaks.
pub(super) fn counter(cards: &[CardStats], name: &str) -> Result<f64, String> {
    let rings = || cards.iter().flat_map(|card| &card.rings);
    let sum = |of: fn(&RingStats) -> u64| rings().map(of).sum::<u64>() as f64;
    let most = |of: fn(&RingStats) -> u64| rings().map(of).max().unwrap_or(0) as f64;
    let sum_of_cards = |of: fn(&CardStats) -> u64| cards.iter().map(of).sum::<u64>() as f64;
    let most_of_cards = |of: fn(&CardStats) -> u64| cards.iter().map(of).max().unwrap_or(0) as f64;
    Ok(match name {
        "tx_packets" => sum(|ring| ring.packets),
        "tx_frames" => sum(|ring| ring.frames),
        "tx_dropped" => sum(|ring| ring.dropped),
        "qdisc_backlog_max" => most(|ring| ring.backlog_peak as u64),
        "ring_max" => most(|ring| ring.used_peak as u64),
        "ring_bytes_max" => most(|ring| ring.bytes_peak),
        "ring_wait_max" => most(|ring| ring.wait_max) / 1e9,
        "ring_wait_mean" => sum(|ring| ring.wait_sum) / sum(|ring| ring.packets).max(1.0) / 1e9,
        "ring_full" => sum(|ring| ring.stopped_by_ring),
        "bql_limit" => most(|ring| ring.limit.into()),
        "bql_stops" => sum(|ring| ring.stopped_by_limit),
        "tx_interrupts" => sum(|ring| ring.interrupts),
        "starved" => sum(|ring| ring.starved) / 1e9,
        "tsq_throttled" => sum_of_cards(|card| card.held_back),
        "tsq_bytes_max" => most_of_cards(|card| card.below_peak),
        "rx_packets" => sum_of_cards(|card| card.input.packets),
        "rx_missed_errors" => sum_of_cards(|card| card.input.missed),
        "rx_ring_max" => most_of_cards(|card| card.input.ring_peak as u64),
        "rx_interrupts" => sum_of_cards(|card| card.input.interrupts),
        "softnet_dropped" => sum_of_cards(|card| card.input.dropped),
        "softnet_squeezed" => sum_of_cards(|card| card.input.squeezed),
        "backlog_max" => most_of_cards(|card| card.input.backlog_peak as u64),
        "gro_merged" => sum_of_cards(|card| card.merged),
        name => return Err(unknown(name)),
    })
}

/// Returns the unit of a counter; empty for plain numbers.
pub(super) fn unit_of(name: &str) -> &'static str {
    match name {
        "ring_wait_max" | "ring_wait_mean" | "starved" => "ms",
        "ring_bytes_max" | "bql_limit" | "tsq_bytes_max" => "B",
        _ => "",
    }
}

/// Checks that a counter exists.
pub(super) fn check(name: &str) -> Result<(), String> {
    if COUNTERS.contains(&name) { Ok(()) } else { Err(unknown(name)) }
}

fn unknown(name: &str) -> String {
    let near = super::nearest(name, &COUNTERS);
    format!("a device has no counter `{name}`{near}; it has {}", COUNTERS.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_value() {
        for name in COUNTERS {
            assert_eq!(counter(&[CardStats::default()], name), Ok(0.0), "{name}");
        }
        assert!(
            counter(&[CardStats::default()], "bql_limits").is_err_and(|told| told.contains("bql_limit`?"))
        );
    }

    #[test]
    fn a_card_that_cannot_be_is_refused() {
        let without_ring = DevicePart { tx_ring: Some(0), ..DevicePart::default() };
        assert!(without_ring.plan().is_err_and(|told| told.text().contains("descriptor")));
        let with_error = DevicePart { qdisc: Some("fq_codel targt 5ms".into()), ..DevicePart::default() };
        assert!(with_error.plan().is_err_and(|told| told.text().contains("targt")));
    }
}
