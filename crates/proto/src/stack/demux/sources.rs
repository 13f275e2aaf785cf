//! Validation of packet sources: the reverse path filter (RFC 3704, Linux's `rp_filter`), and
//! impossible sources.
//!
//! Only packets without a connection or half-open request are checked, as on Linux, where
//! connections remember the route (early demultiplexing). For requests the SYN was checked. A stack
//! has one device, so the route back is always the device of arrival, unless the route rejects
//! packets.

use crate::stack::Stack;
use crate::trace::Traced;
use crate::{DropReason, Instant, SettingError};
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use wire::Addr;

impl Stack {
    /// Names the device, which then has its own settings `net.ipv4.conf.NAME.rp_filter` and
    /// `….log_martians`.
    pub fn set_device_name(&mut self, name: &str) {
        self.device_name = name.into();
    }

    /// Returns the device's name; empty if it has none.
    pub fn device_name(&self) -> &str {
        &self.device_name
    }

    /// The row of the table that `net.ipv4.conf.NAME.…` is of our device.
    pub(in crate::stack) fn row_of_device(&self, name: &str) -> Option<&'static str> {
        let (device, row) = name.strip_prefix("net.ipv4.conf.")?.rsplit_once('.')?;
        if device.is_empty() || device != &*self.device_name {
            return None;
        }
        DEVICE_ROWS.iter().find(|(last, _)| *last == row).map(|(_, ours)| *ours)
    }

    /// Returns the settings under the device's own name: (name, value).
    pub fn device_settings(&self) -> Vec<(String, String)> {
        let all = self.config().all();
        let value = |row: &str| all.iter().find(|(name, _)| *name == row).map(|(_, value)| value.clone());
        let rows = DEVICE_ROWS.iter().filter(|_| !self.device_name.is_empty());
        rows.filter_map(|(last, ours)| {
            Some((format!("net.ipv4.conf.{}.{last}", self.device_name), value(ours)?))
        })
        .collect()
    }

    pub(in crate::stack) fn set_row(
        &mut self,
        name: &str,
        value: &str,
    ) -> Result<Option<String>, SettingError> {
        let row = self.row_of_device(name).unwrap_or(name);
        self.shared.config.set(row, value)
    }

    /// Nothing is taken from this source: it has been counted, and traced.
    pub(in crate::stack) fn is_martian(&mut self, now: Instant, local: Addr, peer: Addr) -> bool {
        let is_usual = matches!(peer.v4_bytes(), Some([1..=126 | 128..=223, ..]));
        !(is_usual && self.routes.reject_route(peer).is_none()) && self.is_strange(now, local, peer)
    }

    /// Checks in full a source that may be martian, and counts and traces it if it is.
    #[inline(never)]
    fn is_strange(&mut self, now: Instant, local: Addr, peer: Addr) -> bool {
        // RFC 1122 §3.2.1.3: nothing from a loopback address may come from outside.
        let impossible = peer.is_loopback() && !local.is_loopback();
        let reason = match () {
            () if impossible || peer.is_multicast() || peer.is_unspecified() => DropReason::BadAddress,
            () if self.fails_reverse_path(peer) => DropReason::ReversePath,
            () => return false,
        };
        self.shared.counters.ip_reverse_path_filter += u64::from(reason == DropReason::ReversePath);
        self.drops.count(reason);
        if self.shared.config.tells_martians() {
            let device = self.device_name.to_string();
            self.tell(now, None, Traced::Martian { source: peer.to_ip(), to: local.to_ip(), device });
        }
        true
    }

    /// Of IPv4 alone, as in Linux.
    fn fails_reverse_path(&self, peer: Addr) -> bool {
        self.routes.reject_route(peer).is_some()
            && peer.is_v4()
            && self.shared.config.reverse_path_filter() > 0
    }
}

/// Settings of a device: the last word of their names, and the row.
const DEVICE_ROWS: [(&str, &str); 2] =
    [("rp_filter", "firstbyte.rp_filter"), ("log_martians", "firstbyte.log_martians")];
