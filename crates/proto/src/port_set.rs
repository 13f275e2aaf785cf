//! A set of ports, as `ip_local_reserved_ports` writes it.

use alloc::vec::Vec;

/// Ports that automatic choice leaves alone: ranges in ascending order, with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSet(Vec<(u16, u16)>);

impl PortSet {
    /// The ranges, from low to high.
    pub(crate) fn ranges(&self) -> &[(u16, u16)] {
        &self.0
    }

    /// Is this port one of them?
    pub fn contains(&self, port: u16) -> bool {
        let behind = self.0.partition_point(|(low, _)| *low <= port);
        behind > 0 && port <= self.0[behind - 1].1
    }

    pub(crate) fn insert(&mut self, low: u16, high: u16) {
        self.0.push((low, high));
        self.0.sort_unstable();
        self.0.dedup_by(|next, before| {
            let joined = u32::from(next.0) <= u32::from(before.1) + 1;
            if joined {
                before.1 = before.1.max(next.1);
            }
            joined
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Value;

    #[test]
    fn ranges_are_told_in_order_and_joined() {
        for (given, shown) in [
            ("", ""),
            ("8080", "8080"),
            ("9148-9200,8080", "8080,9148-9200"),
            ("5,1-3,4,3-4,65535", "1-5,65535"),
            ("10-20,12-13,20-21,0", "0,10-21"),
        ] {
            assert_eq!(PortSet::parse(given).unwrap().show(), shown, "{given}");
        }
        for wrong in ["x", "1,,2", "1-", "-1", "3-2", "65536", "1 2", ","] {
            assert!(PortSet::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn both_ends_belong_to_a_range() {
        let ports = PortSet::parse("10-12,65535").unwrap();
        let held: Vec<u16> = (0..=u16::MAX).filter(|port| ports.contains(*port)).collect();
        assert_eq!(held, [10, 11, 12, 65_535]);
    }
}
