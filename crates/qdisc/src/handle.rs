//! Names of disciplines and classes: `1:` and `1:10`.
use core::fmt;

/// Two numbers of 16 bits, written in hexadecimal. The minor number of a discipline is 0 (`1:`). A
/// class has both (`1:10`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Handle(u32);

impl Handle {
    /// No handle, as for a default discipline.
    pub const NONE: Handle = Handle(0);
    /// The place at the top of a device (`root`).
    pub const ROOT: Handle = Handle(u32::MAX);

    /// From both numbers.
    pub const fn new(major: u16, minor: u16) -> Handle {
        Handle((major as u32) << 16 | minor as u32)
    }

    /// The discipline's number.
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The class's number in it; 0 for the discipline itself.
    pub const fn minor(self) -> u16 {
        self.0 as u16
    }

    /// A class of this discipline.
    pub const fn class(self, minor: u16) -> Handle {
        Handle::new(self.major(), minor)
    }

    /// The discipline that this class belongs to.
    pub const fn qdisc(self) -> Handle {
        self.class(0)
    }
}

impl From<u32> for Handle {
    fn from(number: u32) -> Handle {
        Handle(number)
    }
}

impl From<Handle> for u32 {
    fn from(handle: Handle) -> u32 {
        handle.0
    }
}

/// As tc writes it: `1:`, `1:a`, `root`.
impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.major(), self.minor()) {
            (Handle::ROOT, ..) => f.write_str("root"),
            (_, 0, minor) => write!(f, ":{minor:x}"),
            (_, major, 0) => write!(f, "{major:x}:"),
            (_, major, minor) => write!(f, "{major:x}:{minor:x}"),
        }
    }
}
