//! What tc says when it does not work.
use alloc::string::String;
use core::fmt;

/// A rejected command, with the error message of tc or the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TcError {
    /// tc itself: the command is not understood.
    Usage(String),
    /// The kernel, with an explanation.
    Kernel(String),
    /// The kernel, with only an error number's words.
    Errno(&'static str),
}

/// `EINVAL`.
pub(super) const EINVAL: TcError = TcError::Errno("Invalid argument");
/// `ENOENT`.
pub(super) const ENOENT: TcError = TcError::Errno("No such file or directory");
/// `EEXIST`.
pub(super) const EEXIST: TcError = TcError::Errno("File exists");
/// `EOPNOTSUPP`.
pub(super) const EOPNOTSUPP: TcError = TcError::Errno("Operation not supported");

pub(super) fn usage(text: impl Into<String>) -> TcError {
    TcError::Usage(text.into())
}

pub(super) fn kernel(text: impl Into<String>) -> TcError {
    TcError::Kernel(text.into())
}

impl fmt::Display for TcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TcError::Usage(text) => f.write_str(text),
            TcError::Kernel(text) => write!(f, "Error: {text}."),
            TcError::Errno(text) => write!(f, "RTNETLINK answers: {text}"),
        }
    }
}

impl core::error::Error for TcError {}
