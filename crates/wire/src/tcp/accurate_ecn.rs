//! The Accurate ECN option (RFC 9768 §3.2.3): how many payload bytes have arrived with each ECN codepoint.
use super::raw_options::kind;
use crate::Ecn;

/// Bytes of one counter.
const FIELD_LEN: usize = 3;
/// A counter's bits.
const FIELD_MASK: u32 = 0xff_ffff;

/// The first counter of an Accurate ECN option. The second is always CE, and the third is the other
/// one (RFC 9768 §3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccurateEcnOrder {
    /// Kind 172: ECT(0), CE, ECT(1).
    Ect0First,
    /// Kind 174: ECT(1), CE, ECT(0).
    Ect1First,
}

impl AccurateEcnOrder {
    /// The codepoints in the order of their counters.
    pub fn codepoints(self) -> [Ecn; AccurateEcnOption::FIELDS_MAX] {
        match self {
            AccurateEcnOrder::Ect0First => [Ecn::Ect0, Ecn::Ce, Ecn::Ect1],
            AccurateEcnOrder::Ect1First => [Ecn::Ect1, Ecn::Ce, Ecn::Ect0],
        }
    }
}

/// An Accurate ECN option: none to three counters of 24 bits, from the front of its order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccurateEcnOption {
    order: AccurateEcnOrder,
    len: u8,
    fields: [[u8; FIELD_LEN]; AccurateEcnOption::FIELDS_MAX],
}

impl AccurateEcnOption {
    /// Most counters of an option.
    pub const FIELDS_MAX: usize = 3;

    /// With the first `fields` counters of `order`, three at most; `of` gives them, modulo 2²⁴.
    pub fn new(order: AccurateEcnOrder, fields: usize, of: impl Fn(Ecn) -> u32) -> AccurateEcnOption {
        let [_, high, middle, low] = [0; 4];
        let mut option = AccurateEcnOption { order, len: 0, fields: [[high, middle, low]; 3] };
        for (field, codepoint) in option.fields.iter_mut().zip(order.codepoints()).take(fields) {
            let [_, high, middle, low] = of(codepoint).to_be_bytes();
            *field = [high, middle, low];
            option.len += 1;
        }
        option
    }

    /// From what follows kind and length. Of any length the whole counters count, three at most (as Linux's
    /// `tcp_accecn_process_option`); `None`: another kind.
    pub(crate) fn from_body(option_kind: u8, body: &[u8]) -> Option<AccurateEcnOption> {
        let order = match option_kind {
            kind::ACCURATE_ECN_0 => AccurateEcnOrder::Ect0First,
            kind::ACCURATE_ECN_1 => AccurateEcnOrder::Ect1First,
            _ => return None,
        };
        let (fields, _) = body.as_chunks::<FIELD_LEN>();
        let mut option = AccurateEcnOption::new(order, 0, |_| 0);
        for (field, value) in option.fields.iter_mut().zip(fields) {
            *field = *value;
            option.len += 1;
        }
        Some(option)
    }

    /// Which counter comes first.
    pub fn order(&self) -> AccurateEcnOrder {
        self.order
    }

    /// The counters there are, in their order, each with its codepoint.
    pub fn counters(&self) -> impl Iterator<Item = (Ecn, u32)> + '_ {
        let values =
            self.fields.iter().map(|[high, middle, low]| u32::from_be_bytes([0, *high, *middle, *low]));
        self.order.codepoints().into_iter().zip(values).take(self.fields_len())
    }

    /// Returns the number of counters.
    pub fn fields_len(&self) -> usize {
        usize::from(self.len)
    }

    /// Bytes on the wire, without padding: 2, 5, 8 or 11.
    pub fn emit_len(&self) -> usize {
        2 + FIELD_LEN * self.fields_len()
    }

    /// Kind, length and counters, and how many bytes of them there are.
    pub(crate) fn to_bytes(self) -> ([u8; 2 + FIELD_LEN * AccurateEcnOption::FIELDS_MAX], usize) {
        let kind = match self.order {
            AccurateEcnOrder::Ect0First => kind::ACCURATE_ECN_0,
            AccurateEcnOrder::Ect1First => kind::ACCURATE_ECN_1,
        };
        let [[a, b, c], [d, e, f], [g, h, i]] = self.fields;
        let len = self.emit_len();
        ([kind, len as u8, a, b, c, d, e, f, g, h, i], len)
    }
}

impl core::fmt::Debug for AccurateEcnOption {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_map().entries(self.counters()).finish()
    }
}

/// Returns the difference between two counts of 24 bits, assuming that it is at most 2²³ in either
/// direction.
pub fn accurate_ecn_difference(later: u32, earlier: u32) -> i32 {
    (((later.wrapping_sub(earlier) & FIELD_MASK) << 8).cast_signed()) >> 8
}
