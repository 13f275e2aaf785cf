//! Descriptions of settings, for programs that list them or draw values.

/// A row of the table of settings: a name that [`Config::set`](crate::Config::set) accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingRow {
    /// Linux's name, or one that begins with `firstbyte.` if Linux has none.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: SettingKind,
    /// The range of a number as a Rust pattern, for example `1..=127`; `_` if every value of the
    /// kind is valid.
    pub range: &'static str,
}

/// Kinds of settings and the form of their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingKind {
    /// A decimal or 0x number of 32 bits.
    Number,
    /// 0 or 1.
    Switch,
    /// Three numbers that do not decrease.
    Sizes,
    /// A time with its unit (s, ms, us, ns); seconds without.
    Time,
    /// Ports and ranges of ports, for example `8080,9000-9100`.
    Ports,
    /// One of these words.
    Choice(&'static [&'static str]),
}
