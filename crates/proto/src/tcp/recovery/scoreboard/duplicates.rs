//! What arrived twice, by D-SACK (RFC 2883): what of it widens RACK's window.

use super::{Block, Scoreboard};
use crate::Config;
use wire::SeqNum;

impl Scoreboard {
    /// Something arrived twice. On a path that reorders, a segment may have been held to be lost too soon; a probe tells nothing of it.
    pub(crate) fn on_dsack(&mut self, config: &Config, snd_nxt: SeqNum, duplicate: Block) {
        let probe = self.probe.as_ref().is_some_and(|probe| probe.is_reported_by(duplicate));
        match config.loss_rules.dsack_rounds_by_delivery() {
            _ if probe || !self.rack.reordering_seen => {}
            true => self.rack.note_dsack(),
            false => self.rack.on_dsack(snd_nxt),
        }
    }

    /// See [`Rack::widen`].
    pub(crate) fn widen(&mut self, delivered: (u32, u32)) {
        self.rack.widen(delivered);
    }

    /// D-SACKs show the recovery to be spurious: the wider window lasts a recovery longer.
    pub(crate) fn counts_on(&mut self) {
        self.rack.on_spurious();
    }
}

/// The duplicate that the first block reports (RFC 2883 §4): it begins with what is acknowledged, or lies within the second.
pub(crate) fn dsack(blocks: &[Block], ack: SeqNum) -> Option<Block> {
    let first = *blocks.first()?;
    let within = |outer: &Block| outer.0.before_or_eq(first.0) && first.1.before_or_eq(outer.1);
    let duplicate = first.0.before(ack) || blocks.get(1).is_some_and(within);
    (first.0.before(first.1) && duplicate).then_some(first)
}
