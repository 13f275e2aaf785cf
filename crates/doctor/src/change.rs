//! Changes that several findings may make to the same setting, or to the metrics of the same route.
use crate::sample::RouteMetrics;
use std::fmt;

/// The change of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets this value.
    To(&'static str),
    /// Raises the value to at least this number. A larger value stays.
    AtLeast(i64),
    /// Lowers the value to at most this number. A smaller value stays.
    AtMost(i64),
    /// Sets these bits. The others stay.
    Set(i64),
    /// Clears these bits. The others stay.
    Clear(i64),
}

/// The target of a step, where several findings may change the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Act {
    /// A change that no other finding makes.
    #[default]
    Own,
    /// A setting, by its name.
    Set(String, Want),
    /// Metrics of a route, with the command that would leave the route unchanged.
    Route(String, Box<RouteMetrics>),
}

/// The value that a finding wants for a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A change that a rule names.
    Change(Change),
    /// This value.
    Value(String),
    /// At least this number, at this position in a list.
    Nth(usize, i64),
    /// The value in a file, unless the kernel's present value is better.
    Configured(String),
}

impl Want {
    /// Returns the new value.
    pub(crate) fn apply(&self, present: &str) -> String {
        let kept = || present.to_owned();
        match self {
            Want::Change(change) => change.apply(present).unwrap_or_else(kept),
            Want::Value(value) | Want::Configured(value) => value.clone(),
            Want::Nth(n, least) => {
                let mut words: Vec<String> = present.split_whitespace().map(str::to_owned).collect();
                let number = words.get(*n).and_then(|word| word.parse::<i64>().ok());
                if number.is_some_and(|number| number < *least) {
                    words[*n] = least.to_string();
                }
                words.join(" ")
            }
        }
    }
}

impl Change {
    /// Returns the new value, or `None` if the present one needs no change.
    pub(crate) fn apply(self, present: &str) -> Option<String> {
        let number = || present.trim().parse::<i64>().ok();
        let value = match self {
            Change::To(value) => value.to_owned(),
            Change::AtLeast(least) => number()?.max(least).to_string(),
            Change::AtMost(most) => number()?.min(most).to_string(),
            Change::Set(bits) => (number()? | bits).to_string(),
            Change::Clear(bits) => (number()? & !bits).to_string(),
        };
        let same = value.split_whitespace().eq(present.split_whitespace());
        (!same).then_some(value)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::To(value) => write!(f, "= {value}"),
            Change::AtLeast(least) => write!(f, ">= {least}"),
            Change::AtMost(most) => write!(f, "<= {most}"),
            Change::Set(bits) => write!(f, "with the bits {bits:#x}"),
            Change::Clear(bits) => write!(f, "without the bits {bits:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Want};

    #[test]
    fn a_fix_keeps_larger_values_and_other_bits() {
        assert_eq!(Change::AtLeast(4096).apply("128").as_deref(), Some("4096"));
        assert_eq!(Change::AtLeast(4096).apply("65535"), None);
        assert_eq!(Change::AtMost(10_000).apply("120000").as_deref(), Some("10000"));
        assert_eq!(Change::AtMost(10_000).apply("1000"), None);
        assert_eq!(Change::Set(1).apply("2").as_deref(), Some("3"));
        assert_eq!(Change::Clear(0x204).apply("517").as_deref(), Some("1"));
        assert_eq!(Change::To("1024 65535").apply("1024\t65535"), None);
        assert_eq!(Change::AtLeast(1).apply("text"), None);
    }

    #[test]
    fn one_number_of_several_is_raised_and_the_others_stay() {
        let raised = |present, least| Want::Nth(2, least).apply(present);
        assert_eq!(raised("4096\t131072\t6291456", 33_554_432), "4096 131072 33554432");
        assert_eq!(raised("4096\t131072\t67108864", 33_554_432), "4096 131072 67108864");
        assert_eq!(raised("4096", 1), "4096");
    }
}
