//! The walk over the bytes of TCP options (RFC 9293 §3.2), as Linux walks: an option that does not fit ends it.

/// Option kinds with a meaning here (IANA "TCP Option Kind Numbers").
pub(crate) mod kind {
    pub(crate) const END: u8 = 0;
    pub(crate) const NOP: u8 = 1;
    pub(crate) const MSS: u8 = 2;
    pub(crate) const WINDOW_SCALE: u8 = 3;
    pub(crate) const SACK_PERMITTED: u8 = 4;
    pub(crate) const SACK: u8 = 5;
    pub(crate) const TIMESTAMPS: u8 = 8;
    pub(crate) const MD5: u8 = 19;
    pub(crate) const AO: u8 = 29;
    pub(crate) const FAST_OPEN: u8 = 34;
    pub(crate) const ACCURATE_ECN_0: u8 = 172;
    pub(crate) const ACCURATE_ECN_1: u8 = 174;
    /// RFC 6994: the first two bytes of the body are an ExID.
    pub(crate) const EXPERIMENT: u8 = 254;
}

/// ExID of Fast Open before it had its own kind (RFC 7413 §9).
pub(crate) const FAST_OPEN_EXID: [u8; 2] = [0xf9, 0x89];

/// One step of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawOption<'a> {
    /// Nothing after this counts.
    End,
    Nop,
    /// Kind, and what follows the length byte.
    Body(u8, &'a [u8]),
    /// Kind of an option whose length is below 2, missing, or beyond the header. Nothing after it can be read.
    Broken(u8),
}

/// Ends after [`RawOption::End`] and [`RawOption::Broken`].
pub(crate) struct RawOptions<'a>(&'a [u8]);

impl<'a> RawOptions<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> RawOptions<'a> {
        RawOptions(bytes)
    }
}

impl<'a> Iterator for RawOptions<'a> {
    type Item = RawOption<'a>;

    fn next(&mut self) -> Option<RawOption<'a>> {
        let (&kind, rest) = self.0.split_first()?;
        let (option, remaining) = match kind {
            kind::END => (RawOption::End, &[][..]),
            kind::NOP => (RawOption::Nop, rest),
            _ => {
                let len = rest.first().map_or(0, |len| usize::from(*len));
                match (self.0.get(2..len), self.0.get(len..)) {
                    (Some(body), Some(remaining)) => (RawOption::Body(kind, body), remaining),
                    _ => (RawOption::Broken(kind), &[][..]),
                }
            }
        };
        self.0 = remaining;
        Some(option)
    }
}
