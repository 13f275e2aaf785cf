//! Saves samples to be judged elsewhere, with addresses masked on request.
use crate::sample::{Address, Sample};
use crate::window::Window;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One sample, or two that are some time apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Version of the layout.
    pub version: u32,
    /// The earlier sample. Without one, counters are judged since boot.
    pub before: Option<Sample>,
    /// The later sample.
    pub now: Sample,
}

impl Record {
    /// The layout version that this crate writes and reads.
    pub const VERSION: u32 = 2;

    /// Creates a record of one or two samples.
    pub fn new(before: Option<Sample>, now: Sample) -> Record {
        Record { version: Record::VERSION, before, now }
    }

    /// Parses a record.
    ///
    /// # Errors
    /// Returns a message if the text is not a record, or has another layout version.
    pub fn parse(text: &str) -> Result<Record, String> {
        let record: Record = serde_json::from_str(text)
            .map_err(|error| format!("not a record of `doctor --record`: {error}"))?;
        if record.version != Record::VERSION {
            return Err(format!(
                "cannot read the record: it has layout {}, this version reads {}",
                record.version,
                Record::VERSION
            ));
        }
        Ok(record)
    }

    /// Returns the record as JSON.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the window to judge.
    pub fn window(&self) -> Window<'_> {
        match &self.before {
            Some(before) => Window::between(before, &self.now),
            None => Window::since_boot(&self.now),
        }
    }

    /// Replaces addresses by documentation addresses, as [`Mask`] does.
    pub fn mask(&mut self) {
        let mut mask = Mask::default();
        self.before.iter_mut().chain([&mut self.now]).for_each(|sample| mask.apply(sample));
    }
}

/// Replaces addresses by documentation addresses. Equal addresses get equal replacements, in every
/// sample that the mask is applied to. Loopback and unspecified addresses stay.
#[derive(Clone, Debug, Default)]
pub struct Mask(BTreeMap<IpAddr, IpAddr>);

impl Mask {
    /// Masks one sample.
    pub fn apply(&mut self, sample: &mut Sample) {
        // Bounds the memory of an endless watch. More addresses do not fit in the range anyway.
        if self.0.len() > MASKS_MAX {
            self.0.clear();
        }
        for socket in &mut sample.sockets {
            self.address(&mut socket.local);
            self.address(&mut socket.peer);
        }
        for path in &mut sample.paths {
            self.address(&mut path.peer);
            self.address(&mut path.source);
        }
        for route in &mut sample.routes {
            route.source.iter_mut().for_each(|source| self.address(source));
            let words: Vec<String> = route.route.split(' ').map(|word| self.word(word)).collect();
            route.route = words.join(" ");
        }
    }

    fn address(&mut self, address: &mut Address) {
        if !address.0.is_loopback() && !address.0.is_unspecified() {
            let next = u32::try_from(self.0.len() + 1).unwrap_or(u32::MAX);
            address.0 = *self.0.entry(address.0).or_insert_with_key(|address| masked(*address, next));
        }
    }

    /// Masks a word of a route: an address, or an address with a prefix length.
    fn word(&mut self, word: &str) -> String {
        let (address, rest) = word.split_once('/').unwrap_or((word, ""));
        let Ok(address) = address.parse() else { return word.to_owned() };
        let mut address = Address(address);
        self.address(&mut address);
        if rest.is_empty() { address.to_string() } else { format!("{address}/{rest}") }
    }
}

/// Number of addresses in 198.18.0.0/15.
const MASKS_MAX: usize = 1 << 17;

/// Returns an address in 198.18.0.0/15 (RFC 2544) or 2001:db8::/32 (RFC 3849).
fn masked(address: IpAddr, number: u32) -> IpAddr {
    match address {
        IpAddr::V4(_) => {
            Ipv4Addr::from_bits(u32::from_be_bytes([198, 18, 0, 0]) | (number & 0x1_ffff)).into()
        }
        IpAddr::V6(_) => Ipv6Addr::from_bits((0x2001_0db8 << 96) | u128::from(number)).into(),
    }
}
