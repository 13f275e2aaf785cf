//! Meanings of pieces of a line, which determine their color on a terminal.

/// The meaning of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Heading,
    Dim,
    Good,
    Bad,
}

/// A piece of a line, and its meaning if it has one.
pub(super) type Piece = (Option<Paint>, String);
