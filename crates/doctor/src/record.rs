//! Samples saved, to be judged elsewhere; addresses can be masked.
use crate::sample::Sample;
use crate::window::Window;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One sample, or two with a time between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Of this layout.
    pub version: u32,
    /// The earlier sample; without it counters are judged since boot.
    pub before: Option<Sample>,
    /// The later sample.
    pub now: Sample,
}

impl Record {
    /// The layout this version writes and reads.
    pub const VERSION: u32 = 1;

    /// Of what was read.
    pub fn new(before: Option<Sample>, now: Sample) -> Record {
        Record { version: Record::VERSION, before, now }
    }

    /// Reads one back.
    ///
    /// # Errors
    /// A sentence: no such text, or another layout.
    pub fn parse(text: &str) -> Result<Record, String> {
        let record: Record =
            serde_json::from_str(text).map_err(|error| format!("not a record of the doctor: {error}"))?;
        if record.version != Record::VERSION {
            return Err(format!(
                "a record of layout {}; this version reads {}",
                record.version,
                Record::VERSION
            ));
        }
        Ok(record)
    }

    /// As text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What to judge.
    pub fn window(&self) -> Window<'_> {
        match &self.before {
            Some(before) => Window::between(before, &self.now),
            None => Window::since_boot(&self.now),
        }
    }

    /// Puts addresses for documentation in place of real ones, the same for the same; loopback and "any" stay.
    pub fn mask(&mut self) {
        let mut masks = BTreeMap::new();
        let sockets = self.before.iter_mut().chain([&mut self.now]).flat_map(|sample| &mut sample.sockets);
        for socket in sockets {
            for text in [&mut socket.local, &mut socket.peer] {
                let Ok(address) = text.parse::<IpAddr>() else { continue };
                if !address.is_loopback() && !address.is_unspecified() {
                    let next = u32::try_from(masks.len() + 1).unwrap_or(u32::MAX);
                    *text = masks.entry(address).or_insert_with(|| masked(address, next)).to_string();
                }
            }
        }
    }
}

/// In 198.18.0.0/15 (RFC 2544) or 2001:db8::/32 (RFC 3849).
fn masked(address: IpAddr, number: u32) -> IpAddr {
    match address {
        IpAddr::V4(_) => {
            Ipv4Addr::from_bits(u32::from_be_bytes([198, 18, 0, 0]) | (number & 0x1_ffff)).into()
        }
        IpAddr::V6(_) => Ipv6Addr::from_bits((0x2001_0db8 << 96) | u128::from(number)).into(),
    }
}
