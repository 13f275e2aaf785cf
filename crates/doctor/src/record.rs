//! Samples saved, to be judged elsewhere; addresses can be masked.
use crate::sample::{Address, Sample};
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
    pub const VERSION: u32 = 2;

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
        let mut mask = |address: &mut Address| {
            if !address.0.is_loopback() && !address.0.is_unspecified() {
                let next = u32::try_from(masks.len() + 1).unwrap_or(u32::MAX);
                address.0 = *masks.entry(address.0).or_insert_with_key(|address| masked(*address, next));
            }
        };
        for sample in self.before.iter_mut().chain([&mut self.now]) {
            sample
                .sockets
                .iter_mut()
                .for_each(|socket| [&mut socket.local, &mut socket.peer].into_iter().for_each(&mut mask));
            sample
                .paths
                .iter_mut()
                .for_each(|path| [&mut path.peer, &mut path.source].into_iter().for_each(&mut mask));
            for route in &mut sample.routes {
                let words = route.route.split(' ').map(|word| masked_word(word, &mut mask));
                route.route = words.collect::<Vec<_>>().join(" ");
            }
        }
    }
}

/// A word of a route: an address, or one with a prefix length.
fn masked_word(word: &str, mask: &mut impl FnMut(&mut Address)) -> String {
    let (address, rest) = word.split_once('/').unwrap_or((word, ""));
    let Ok(address) = address.parse() else { return word.to_owned() };
    let mut address = Address(address);
    mask(&mut address);
    if rest.is_empty() { address.to_string() } else { format!("{address}/{rest}") }
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
