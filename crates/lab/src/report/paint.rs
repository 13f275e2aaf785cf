//! What a piece of a line means, from which a terminal's colour follows.

/// Meaning of a piece of text, and so its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Heading,
    Dim,
    Good,
    Bad,
}

/// A piece of a line, and its meaning if it has one.
pub(super) type Piece = (Option<Paint>, String);
