//! What several descriptors may stand for.

/// An open file, by whatever numbers it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Open(pub(super) usize);

impl Open {
    /// None: that of a socket that lingers, of whose end only its `close` is to hear.
    pub(crate) const NOBODYS: Open = Open(usize::MAX);
}
