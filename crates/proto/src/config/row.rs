//! What can be set, for programs that list the settings or draw values for them.

/// One row of the table of settings: what [`Config::set`](crate::Config::set) takes under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingRow {
    /// Linux's name, or one that begins with `firstbyte.` where Linux has none.
    pub name: &'static str,
    /// What its values are.
    pub kind: SettingKind,
    /// The range of a number as a Rust pattern, for example `1..=127`; `_` where every value of the kind is in range.
    pub range: &'static str,
}

/// Kinds of setting, and how their values are written.
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
