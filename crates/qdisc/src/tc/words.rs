//! The words of a command, one after the other.
use super::error::{TcError, usage};
use super::units;

/// What is left of a command.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    left: &'a [&'a str],
}

impl<'a> Words<'a> {
    pub(super) fn new(left: &'a [&'a str]) -> Words<'a> {
        Words { left }
    }

    pub(super) fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.left.split_first()?;
        self.left = rest;
        Some(first)
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.left.first().copied()
    }

    pub(super) fn rest(self) -> &'a [&'a str] {
        self.left
    }

    /// The next word, which must be there (tc's `NEXT_ARG`).
    pub(super) fn value(&mut self) -> Result<&'a str, TcError> {
        self.next().ok_or_else(|| usage("Command line is not complete. Try option \"help\""))
    }

    /// The value of an option, or `Illegal "name"`.
    pub(super) fn read<T>(&mut self, name: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, TcError> {
        read(self.value()?).ok_or_else(|| usage(format!("Illegal \"{name}\"")))
    }

    pub(super) fn number<T: TryFrom<u64>>(&mut self, name: &str) -> Result<T, TcError> {
        self.read(name, units::number)
    }

    pub(super) fn size(&mut self, name: &str) -> Result<u32, TcError> {
        self.read(name, units::size)
    }

    pub(super) fn time(&mut self, name: &str) -> Result<u32, TcError> {
        self.read(name, units::time)
    }

    pub(super) fn rate(&mut self, name: &str) -> Result<u64, TcError> {
        self.read(name, units::rate)
    }

    /// The next word if it can be read so.
    pub(super) fn maybe<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let value = read(self.peek()?)?;
        self.next();
        Some(value)
    }
}

/// For an option of which tc sends no zero, or the kernel looks at none: what was there before stays.
pub(super) fn set<T: Default + PartialEq>(place: &mut T, value: T) {
    if value != T::default() {
        *place = value;
    }
}

/// tc's answer to a word that it does not know.
pub(super) fn unknown(word: &str) -> TcError {
    usage(format!("What is \"{word}\"?"))
}
