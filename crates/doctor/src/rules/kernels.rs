//! Which kernels a rule holds for.
use std::fmt;

/// Versions from one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels(Option<(u32, u32)>);

impl Kernels {
    /// Every kernel that has what the rule reads.
    pub const ALL: Kernels = Kernels(None);

    /// This version and later ones.
    pub const fn since(major: u32, minor: u32) -> Kernels {
        Kernels(Some((major, minor)))
    }

    /// Does it hold for this version? Of one that is not known it is supposed.
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
