//! TCP options between values and bytes, in the order and with the padding that is given.

use crate::ast::TcpOption;
use wire::{AccurateEcnOption, AccurateEcnOrder, Ecn};

/// Kind numbers (IANA); 254 is the experimental one, whose first bytes say which experiment it is (RFC 6994).
mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const MSS: u8 = 2;
    pub(super) const WSCALE: u8 = 3;
    pub(super) const SACK_OK: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
    pub(super) const MD5: u8 = 19;
    pub(super) const FAST_OPEN: u8 = 34;
    pub(super) const ACCURATE_ECN_0: u8 = 172;
    pub(super) const ACCURATE_ECN_1: u8 = 174;
    pub(super) const EXPERIMENTAL: u8 = 254;
}

/// Fast Open's number among experiments (RFC 7413 §4.1.1).
const FAST_OPEN_MAGIC: [u8; 2] = [0xf9, 0x89];

impl TcpOption {
    /// Bytes it takes in a header.
    pub fn wire_len(&self) -> usize {
        match self {
            TcpOption::Nop | TcpOption::End => 1,
            other => 2 + other.data().len(),
        }
    }

    fn kind(&self) -> u8 {
        match self {
            TcpOption::End => kind::END,
            TcpOption::Nop => kind::NOP,
            TcpOption::Mss(_) => kind::MSS,
            TcpOption::WindowScale(_) => kind::WSCALE,
            TcpOption::SackPermitted => kind::SACK_OK,
            TcpOption::Sack(_) => kind::SACK,
            TcpOption::Timestamps { .. } => kind::TIMESTAMPS,
            TcpOption::Md5(_) => kind::MD5,
            TcpOption::FastOpen(_) => kind::FAST_OPEN,
            TcpOption::FastOpenExperimental(_) => kind::EXPERIMENTAL,
            TcpOption::AccurateEcn { order: AccurateEcnOrder::Ect0First, .. } => kind::ACCURATE_ECN_0,
            TcpOption::AccurateEcn { order: AccurateEcnOrder::Ect1First, .. } => kind::ACCURATE_ECN_1,
            TcpOption::Other { kind, .. } => *kind,
        }
    }

    fn data(&self) -> Vec<u8> {
        match self {
            TcpOption::Nop | TcpOption::End | TcpOption::SackPermitted => Vec::new(),
            TcpOption::Mss(mss) => mss.to_be_bytes().to_vec(),
            TcpOption::WindowScale(shift) => vec![*shift],
            TcpOption::Sack(blocks) => blocks
                .iter()
                .flat_map(|(left, right)| [left.to_be_bytes(), right.to_be_bytes()])
                .flatten()
                .collect(),
            TcpOption::Timestamps { val, ecr } => [val.to_be_bytes(), ecr.to_be_bytes()].concat(),
            TcpOption::Md5(data) | TcpOption::FastOpen(data) | TcpOption::Other { data, .. } => data.clone(),
            TcpOption::FastOpenExperimental(cookie) => [&FAST_OPEN_MAGIC, cookie.as_slice()].concat(),
            TcpOption::AccurateEcn { counters, .. } => {
                counters.iter().flat_map(|counter| counter.to_be_bytes().into_iter().skip(1)).collect()
            }
        }
    }
}

/// The options as they lie in a header.
pub fn emit(options: &[TcpOption]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in options {
        bytes.push(option.kind());
        if !matches!(option, TcpOption::Nop | TcpOption::End) {
            bytes.push(u8::try_from(option.wire_len()).unwrap_or(u8::MAX));
            bytes.extend(option.data());
        }
    }
    bytes
}

/// Reads options from a header. What cannot be one ends them.
pub fn read(mut bytes: &[u8]) -> Vec<TcpOption> {
    let mut options = Vec::new();
    loop {
        match bytes {
            [kind::END, rest @ ..] => {
                options.push(TcpOption::End);
                bytes = rest;
            }
            [kind::NOP, rest @ ..] => {
                options.push(TcpOption::Nop);
                bytes = rest;
            }
            [kind, len, ..] => {
                let Some(data) = bytes.get(2..usize::from(*len)) else { return options };
                options.push(value(*kind, data));
                bytes = &bytes[usize::from(*len)..];
            }
            _ => return options,
        }
    }
}

fn value(kind: u8, data: &[u8]) -> TcpOption {
    let word =
        |at: usize| data.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes);
    match (kind, data) {
        (kind::MSS, &[a, b]) => TcpOption::Mss(u16::from_be_bytes([a, b])),
        (kind::WSCALE, &[shift]) => TcpOption::WindowScale(shift),
        (kind::SACK_OK, []) => TcpOption::SackPermitted,
        (kind::SACK, _) if data.len().is_multiple_of(8) && !data.is_empty() => {
            TcpOption::Sack((0..data.len()).step_by(8).map(|at| (word(at), word(at + 4))).collect())
        }
        (kind::TIMESTAMPS, _) if data.len() == 8 => TcpOption::Timestamps { val: word(0), ecr: word(4) },
        (kind::MD5, _) if data.len() == 16 => TcpOption::Md5(data.to_vec()),
        (kind::FAST_OPEN, _) => TcpOption::FastOpen(data.to_vec()),
        (kind::ACCURATE_ECN_0 | kind::ACCURATE_ECN_1, _) => match counters(data) {
            Some(counters) => TcpOption::AccurateEcn { order: order_of(kind), counters },
            None => TcpOption::Other { kind, data: data.to_vec() },
        },
        (kind::EXPERIMENTAL, [a, b, cookie @ ..]) if [*a, *b] == FAST_OPEN_MAGIC => {
            TcpOption::FastOpenExperimental(cookie.to_vec())
        }
        _ => TcpOption::Other { kind, data: data.to_vec() },
    }
}

fn order_of(kind: u8) -> AccurateEcnOrder {
    match kind {
        kind::ACCURATE_ECN_0 => AccurateEcnOrder::Ect0First,
        _ => AccurateEcnOrder::Ect1First,
    }
}

/// Whole counters of 24 bits, three at most; `None` if there is anything else.
fn counters(data: &[u8]) -> Option<Vec<u32>> {
    let (counters, rest) = data.as_chunks::<3>();
    let whole = rest.is_empty() && counters.len() <= AccurateEcnOption::FIELDS_MAX;
    whole.then(|| counters.iter().map(|&[a, b, c]| u32::from_be_bytes([0, a, b, c])).collect())
}

/// The names of Accurate ECN's counters, in this order, as scripts have them.
pub(crate) fn counter_names(order: AccurateEcnOrder) -> impl Iterator<Item = &'static str> {
    order.codepoints().into_iter().map(|codepoint| match codepoint {
        Ecn::Ect0 => "e0b",
        Ecn::Ect1 => "e1b",
        Ecn::Ce | Ecn::NotEct => "ceb",
    })
}
