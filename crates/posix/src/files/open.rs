//! What several descriptors may stand for.

/// An open file, by whatever numbers it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Open(pub(super) usize);
