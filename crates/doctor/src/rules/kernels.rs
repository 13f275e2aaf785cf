//! Kernel versions that a rule applies to.
use std::fmt;

/// A range of kernel versions without an upper end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels(Option<(u32, u32)>);

impl Kernels {
    /// Every kernel that provides the rule's sources.
    pub const ALL: Kernels = Kernels(None);

    /// Returns the range from this version on.
    pub const fn since(major: u32, minor: u32) -> Kernels {
        Kernels(Some((major, minor)))
    }

    /// Returns whether the range contains this version. An unknown version counts as contained.
    pub fn hold(self, version: Option<(u32, u32)>) -> bool {
        version.is_none_or(|version| self.0.is_none_or(|since| version >= since))
    }
}

impl fmt::Display for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("all"),
            Some((major, minor)) => write!(f, "{major}.{minor} and later"),
        }
    }
}
