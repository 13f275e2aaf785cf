//! Violations of the file formats that the reader tolerates, and their numbers.

/// A violation of pcap or pcapng that does not end the reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Oddity {
    /// A comment that is not UTF-8. Comments are not used.
    Comment,
    /// An option with an invalid length, or one that does not fit into its block.
    OptionLength,
    /// A time stamp whose fraction is one second or more. The fraction is added to the seconds.
    Fraction,
    /// A time stamp before 1970, or more than [`TIME_MAX`](super::TIME_MAX) after it.
    Time,
    /// A block with a wrong length at its end, or with a length that is not a multiple of 4.
    BlockLength,
    /// A packet that claims more bytes than its block has.
    PacketLength,
    /// A packet of an interface that its section does not describe. The packet is skipped.
    Interface,
    /// A block that is too short for its kind. The block is skipped.
    ShortBlock,
}

impl Oddity {
    /// All oddities.
    pub const ALL: [Oddity; 8] = [
        Oddity::Comment,
        Oddity::OptionLength,
        Oddity::Fraction,
        Oddity::Time,
        Oddity::BlockLength,
        Oddity::PacketLength,
        Oddity::Interface,
        Oddity::ShortBlock,
    ];

    /// Returns a name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Oddity::Comment => "comment-not-utf8",
            Oddity::OptionLength => "option-length",
            Oddity::Fraction => "fraction-of-a-second",
            Oddity::Time => "time-out-of-range",
            Oddity::BlockLength => "block-length",
            Oddity::PacketLength => "packet-length",
            Oddity::Interface => "unknown-interface",
            Oddity::ShortBlock => "short-block",
        }
    }

    /// Returns a noun phrase for people, for one or several.
    pub fn describe(self, count: u64) -> String {
        let (one, many) = match self {
            Oddity::Comment => ("comment that is not UTF-8", "comments that are not UTF-8"),
            Oddity::OptionLength => ("option with a wrong length", "options with a wrong length"),
            Oddity::Fraction => {
                ("time with a fraction of more than a second", "times with a fraction of more than a second")
            }
            Oddity::Time => ("time out of range", "times out of range"),
            Oddity::BlockLength => ("block with a wrong length", "blocks with a wrong length"),
            Oddity::PacketLength => ("packet longer than its block", "packets longer than their blocks"),
            Oddity::Interface => (
                "packet of an interface that is not described",
                "packets of interfaces that are not described",
            ),
            Oddity::ShortBlock => ("block that is too short", "blocks that are too short"),
        };
        format!("{count} {}", if count == 1 { one } else { many })
    }
}

/// Numbers of the violations that were found.
#[derive(Clone, Debug, Default)]
pub(super) struct Oddities([u64; Oddity::ALL.len()]);

impl Oddities {
    pub(super) fn note(&mut self, oddity: Oddity) {
        self.0[oddity as usize] += 1;
    }

    pub(super) fn note_if(&mut self, oddity: Oddity, is_so: bool) {
        self.0[oddity as usize] += u64::from(is_so);
    }

    /// Iterates over those that were found.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Oddity, u64)> {
        let counts = Oddity::ALL.map(|oddity| (oddity, self.0[oddity as usize]));
        counts.into_iter().filter(|(_, count)| *count > 0)
    }
}
