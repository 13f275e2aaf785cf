//! The two directions of a path.

/// Which way a packet travels. Clients sit at the first end, servers at the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the first end to the second.
    ToServer,
    /// From the second end to the first.
    ToClient,
}
