//! Chooses one of several links for a packet, with the seven modes of Linux's bonding driver.
//!
//! The caller owns the links and reports which are up. The modes `xor`, `802.3ad`, `tlb` and `alb`
//! keep the packets of a flow in order. `balance-rr` does not.

use crate::Nanos;
use alloc::vec::Vec;
use core::str::FromStr;

/// The mode of a bond (`Documentation/networking/bonding.rst`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BondMode {
    /// 0: one packet after another, over all links.
    BalanceRr,
    /// 1: one link, and another when that fails.
    ActiveBackup,
    /// 2: by a hash of the flow (`xmit_hash_policy=layer3+4`).
    BalanceXor,
    /// 3: every packet on every link.
    Broadcast,
    /// 4: like `BalanceXor`, over the links that the peer's LACP has agreed to. Here all links that
    /// are up.
    Ieee8023ad,
    /// 5: a new flow uses the link with the least load. Replies use one link.
    BalanceTlb,
    /// 6: like 5, and replies are also spread, with different ARP answers to peers.
    BalanceAlb,
}

impl BondMode {
    /// All modes, by number, with their names.
    pub const ALL: [(&'static str, BondMode); 7] = [
        ("balance-rr", BondMode::BalanceRr),
        ("active-backup", BondMode::ActiveBackup),
        ("balance-xor", BondMode::BalanceXor),
        ("broadcast", BondMode::Broadcast),
        ("802.3ad", BondMode::Ieee8023ad),
        ("balance-tlb", BondMode::BalanceTlb),
        ("balance-alb", BondMode::BalanceAlb),
    ];
}

impl FromStr for BondMode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<BondMode, &'static str> {
        let by_name = BondMode::ALL.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode);
        let by_number = || Some(BondMode::ALL.get(text.parse::<usize>().ok()?)?.1);
        by_name.or_else(by_number).ok_or(
            "modes are balance-rr, active-backup, balance-xor, broadcast, 802.3ad, balance-tlb, balance-alb, or 0 to 6",
        )
    }
}

/// Counters of a bond.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BondStats {
    /// Packets given to each link.
    pub packets: Vec<u64>,
    /// Number of failures of the active link.
    pub failovers: u64,
    /// Packets for which no link was up.
    pub lost: u64,
}

/// A bond over some links, seen from one end.
#[derive(Clone, Debug)]
pub struct Bond {
    mode: BondMode,
    /// From a link's failure to the moment it is noticed (`miimon`).
    notice_after: Nanos,
    /// Of each link: since when it is down.
    down_since: Vec<Option<Nanos>>,
    active: usize,
    next: usize,
    /// Of each bucket of flows, its link (Linux's `tlb_hash_table` of 256).
    flows: Vec<Option<usize>>,
    load: Vec<u64>,
    stats: BondStats,
}

/// Buckets of flows (`TLB_HASH_TABLE_SIZE`).
const BUCKETS: usize = 256;

impl Bond {
    /// Creates a bond of `links` links, at least one. It notices a failure after `notice_after`.
    /// Until then it sends packets to a link that is down.
    pub fn new(mode: BondMode, links: usize, notice_after: Nanos) -> Bond {
        let links = links.max(1);
        Bond {
            mode,
            notice_after,
            down_since: vec![None; links],
            active: 0,
            next: 0,
            flows: vec![None; BUCKETS],
            load: vec![0; links],
            stats: BondStats { packets: vec![0; links], ..BondStats::default() },
        }
    }

    /// Counters.
    pub fn stats(&self) -> &BondStats {
        &self.stats
    }

    /// A link goes down or comes back.
    pub fn set_up(&mut self, now: Nanos, link: usize, up: bool) {
        if let Some(down_since) = self.down_since.get_mut(link) {
            *down_since = if up { None } else { down_since.or(Some(now)) };
        }
    }

    /// Returns the links for a packet of this flow: one, or all for a broadcast. `is_return`: the
    /// packet goes towards the bond's host, so the switch on the other side chooses.
    pub fn choose(&mut self, now: Nanos, flow: u32, len: usize, is_return: bool) -> Vec<usize> {
        let usable: Vec<usize> =
            (0..self.down_since.len()).filter(|&link| self.seems_up(now, link)).collect();
        let Some(&first) = usable.first() else {
            self.stats.lost += 1;
            return Vec::new();
        };
        let by_hash = usable[flow as usize % usable.len()];
        let chosen = match self.mode {
            BondMode::Broadcast => usable,
            BondMode::BalanceRr => vec![self.after_the_last(&usable)],
            BondMode::BalanceXor | BondMode::Ieee8023ad => vec![by_hash],
            BondMode::BalanceTlb | BondMode::BalanceAlb if !is_return => {
                vec![self.least_loaded(flow, &usable)]
            }
            BondMode::BalanceAlb => vec![by_hash],
            BondMode::ActiveBackup | BondMode::BalanceTlb => vec![self.active(first, &usable)],
        };
        for &link in &chosen {
            self.stats.packets[link] += 1;
            self.load[link] += len as u64;
        }
        chosen
    }

    fn seems_up(&self, now: Nanos, link: usize) -> bool {
        self.down_since[link].is_none_or(|since| now < since.saturating_add(self.notice_after))
    }

    fn after_the_last(&mut self, usable: &[usize]) -> usize {
        self.next = self.next.wrapping_add(1);
        usable[self.next.wrapping_sub(1) % usable.len()]
    }

    /// A backup stays active when the first comes back (`primary_reselect` has no primary to look at).
    fn active(&mut self, first: usize, usable: &[usize]) -> usize {
        if !usable.contains(&self.active) {
            self.active = first;
            self.stats.failovers += 1;
        }
        self.active
    }

    fn least_loaded(&mut self, flow: u32, usable: &[usize]) -> usize {
        let bucket = flow as usize % BUCKETS;
        if let Some(link) = self.flows[bucket].filter(|link| usable.contains(link)) {
            return link;
        }
        let link = usable.iter().copied().min_by_key(|&link| (self.load[link], link)).unwrap_or_default();
        self.flows[bucket] = Some(link);
        link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links that packets of the given flows take, of a bond of two.
    fn links(mode: BondMode, flows: &[u32]) -> Vec<Vec<usize>> {
        let mut bond = Bond::new(mode, 2, 0);
        flows.iter().map(|flow| bond.choose(0, *flow, 1500, false)).collect()
    }

    #[test]
    fn only_round_robin_spreads_one_flow_and_only_broadcast_copies() {
        for (name, mode) in BondMode::ALL {
            let of_one = links(mode, &[4, 4, 4, 4]);
            let expected = match mode {
                BondMode::BalanceRr => [vec![0], vec![1], vec![0], vec![1]],
                BondMode::Broadcast => [(); 4].map(|()| vec![0, 1]),
                _ => [(); 4].map(|()| vec![0]),
            };
            assert_eq!(of_one, expected, "{name}");
        }
    }

    #[test]
    fn flows_are_spread_by_hash_or_by_load() {
        assert_eq!(links(BondMode::BalanceXor, &[4, 5, 6]), [[0], [1], [0]]);
        assert_eq!(links(BondMode::Ieee8023ad, &[4, 6]), [[0], [0]]);
        // By load: two flows of one hash's parity find different links.
        assert_eq!(links(BondMode::BalanceTlb, &[4, 6]), [[0], [1]]);
        assert_eq!(links(BondMode::ActiveBackup, &[4, 5]), [[0], [0]]);
    }

    #[test]
    fn what_comes_back_uses_one_link_under_tlb_and_all_under_alb() {
        let back = |mode| {
            let mut bond = Bond::new(mode, 2, 0);
            [4, 5].map(|flow| bond.choose(0, flow, 100, true)[0])
        };
        assert_eq!(back(BondMode::BalanceTlb), [0, 0]);
        assert_eq!(back(BondMode::BalanceAlb), [0, 1]);
    }

    #[test]
    fn a_backup_takes_over_when_the_failure_is_noticed_and_stays() {
        let mut bond = Bond::new(BondMode::ActiveBackup, 2, 100);
        bond.set_up(50, 0, false);
        assert_eq!(bond.choose(149, 1, 1, false), [0], "not noticed yet");
        assert_eq!(bond.choose(150, 1, 1, false), [1]);
        bond.set_up(200, 0, true);
        assert_eq!(bond.choose(201, 1, 1, false), [1]);
        assert_eq!((bond.stats().failovers, bond.stats().packets.as_slice()), (1, &[1, 2][..]));
        bond.set_up(300, 1, false);
        bond.set_up(300, 0, false);
        assert!(bond.choose(400, 1, 1, false).is_empty());
        assert_eq!(bond.stats().lost, 1);
    }

    #[test]
    fn modes_have_numbers_and_names() {
        assert_eq!("6".parse(), Ok(BondMode::BalanceAlb));
        assert_eq!("802.3ad".parse(), Ok(BondMode::Ieee8023ad));
        assert!("7".parse::<BondMode>().is_err() && "rr".parse::<BondMode>().is_err());
    }
}
