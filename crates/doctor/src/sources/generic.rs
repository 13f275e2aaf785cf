//! Generic netlink: finds a family by its name, and parses answers as lists of attributes.
use super::netlink::{dump, get};
use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLA_TYPE_MASK, Nla, NlasIterator, Parseable, ParseableParametrized,
};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;
use std::io;

/// The attributes of an answer, or nested in another attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes(Vec<(u16, Vec<u8>)>);

/// A family of this kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    id: u16,
    version: u8,
}

impl Family {
    /// Finds the family. Returns `NotFound` if this kernel does not have it.
    pub(super) fn find(name: &str, version: u8) -> io::Result<Family> {
        let nlas = vec![GenlCtrlAttrs::FamilyName(name.to_owned())];
        let request = GenlMessage::from_payload(GenlCtrl { cmd: GenlCtrlCmd::GetFamily, nlas });
        let answer = get(NETLINK_GENERIC, request)?;
        let id = answer.iter().flat_map(|answer| &answer.payload.nlas).find_map(|nla| match nla {
            GenlCtrlAttrs::FamilyId(id) => Some(*id),
            _ => None,
        });
        id.map(|id| Family { id, version }).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Requests a dump of a command.
    pub(super) fn dump(self, command: u8, mut each: impl FnMut(&Attributes)) -> io::Result<()> {
        let header = GenlHeader { cmd: command, version: self.version };
        let request = GenlMessage::new(header, Command(Attributes::default()), self.id);
        dump(NETLINK_GENERIC, request, |answer: GenlMessage<Command>| each(&answer.payload.0))
    }
}

impl Attributes {
    fn parse(bytes: &[u8]) -> Result<Attributes, DecodeError> {
        let mut attributes = Vec::new();
        for attribute in NlasIterator::new(bytes) {
            let attribute = DefaultNla::parse(&attribute?)?;
            let mut value = vec![0; attribute.value_len()];
            attribute.emit_value(&mut value);
            attributes.push((attribute.kind() & NLA_TYPE_MASK, value));
        }
        Ok(Attributes(attributes))
    }

    /// Returns the value of the attribute with this number.
    pub(super) fn bytes(&self, kind: u16) -> Option<&[u8]> {
        self.all(kind).next()
    }

    /// Returns the values of all attributes with this number.
    pub(super) fn all(&self, kind: u16) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter(move |(number, _)| *number == kind).map(|(_, value)| value.as_slice())
    }

    /// Returns a number of any width.
    pub(super) fn number(&self, kind: u16) -> Option<u64> {
        Some(match *self.bytes(kind)? {
            [a] => a.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => return None,
        })
    }

    /// Returns a number cut to 32 bits, or 0 if absent.
    pub(super) fn u32(&self, kind: u16) -> u32 {
        self.number(kind).map_or(0, |value| u32::try_from(value).unwrap_or(u32::MAX))
    }

    /// Returns a text.
    pub(super) fn text(&self, kind: u16) -> Option<String> {
        let bytes = self.bytes(kind)?;
        Some(String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).into_owned())
    }

    /// Returns the attributes nested in an attribute.
    pub(super) fn nested(&self, kind: u16) -> Attributes {
        self.bytes(kind).map(Attributes::within).unwrap_or_default()
    }

    /// Parses a value as attributes. Returns none if it is not a list of attributes.
    pub(super) fn within(bytes: &[u8]) -> Attributes {
        Attributes::parse(bytes).unwrap_or_default()
    }
}

/// A message of any family.
#[derive(Clone, Debug)]
struct Command(Attributes);

impl GenlFamily for Command {
    fn family_name() -> &'static str {
        ""
    }

    // Both are in the header already.
    fn command(&self) -> u8 {
        0
    }

    fn version(&self) -> u8 {
        0
    }
}

impl Emitable for Command {
    fn buffer_len(&self) -> usize {
        0
    }

    fn emit(&self, _: &mut [u8]) {}
}

impl ParseableParametrized<[u8], GenlHeader> for Command {
    fn parse_with_param(bytes: &[u8], _: GenlHeader) -> Result<Self, DecodeError> {
        Ok(Command(Attributes::parse(bytes)?))
    }
}
