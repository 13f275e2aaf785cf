//! Errors of a TUN interface, with advice.
use rustix::io::Errno;
use std::fmt;
use std::io;

/// A failed step of setting up or using a TUN interface. It is the source of the [`io::Error`]s
/// that [`crate::tun`] returns, whose kind is that of the system's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunError {
    action: &'static str,
    interface: String,
    errno: i32,
}

impl TunError {
    pub(super) fn new(action: &'static str, interface: &str, errno: Errno) -> TunError {
        TunError { action, interface: interface.to_owned(), errno: errno.raw_os_error() }
    }

    pub(super) fn from_io(action: &'static str, interface: &str, error: io::Error) -> io::Error {
        match error.raw_os_error() {
            Some(errno) => TunError { action, interface: interface.to_owned(), errno }.into(),
            None => error,
        }
    }

    /// Returns the system's error number.
    pub fn raw_os_error(&self) -> i32 {
        self.errno
    }

    /// Returns advice for the user, or an empty text.
    pub fn hint(&self) -> String {
        let name = if self.interface.is_empty() { "tun0" } else { &self.interface };
        match (Errno::from_raw_os_error(self.errno), self.action) {
            (Errno::PERM | Errno::ACCESS, OPEN) => {
                "run as root (the mode and group of /dev/net/tun give you no access)".to_owned()
            }
            (Errno::ACCESS, ADDRESS) => {
                format!("IPv6 is disabled on it: sysctl net.ipv6.conf.{name}.disable_ipv6=0")
            }
            (Errno::PERM | Errno::ACCESS, _) => format!(
                "run as root, or let root create it for you: ip tuntap add dev {name} mode tun user \
                $USER; ip addr add 10.0.0.1/24 dev {name}; ip link set {name} up"
            ),
            (Errno::NOENT | Errno::NODEV | Errno::NXIO, OPEN) => {
                "this kernel has no TUN driver: modprobe tun; in a container, add the device: \
                --device /dev/net/tun"
                    .to_owned()
            }
            (Errno::BUSY, ATTACH) => {
                format!("another process uses {name}; stop it, or choose another name")
            }
            (Errno::INVAL, ATTACH) => format!(
                "either {name} is not a valid name (1 to 15 bytes, no '/' or space), or the \
                interface of that name is not a TUN, or it was created with (or without) \
                multi_queue: see ip -d link show {name}"
            ),
            (Errno::TOOBIG, ATTACH) => format!("{name} has as many queues as the kernel allows"),
            (Errno::INVAL, MTU) => "an MTU must be 68 to 65535 bytes, at least 1280 for IPv6".to_owned(),
            (Errno::INVAL, ADDRESS | ROUTE) => {
                "a prefix must be 0 to 32 (IPv4) or 128 (IPv6), and a route must have no bits \
                beyond its prefix"
                    .to_owned()
            }
            (Errno::IO, _) => format!("the interface is down: ip link set {name} up"),
            (Errno::BADFD | Errno::FAULT, _) => "the interface was deleted".to_owned(),
            _ => String::new(),
        }
    }
}

/// Actions that the advice depends on.
pub(super) const OPEN: &str = "open";
pub(super) const ATTACH: &str = "create or attach";
pub(super) const MTU: &str = "set the MTU of";
pub(super) const ADDRESS: &str = "give an address to";
pub(super) const ROUTE: &str = "add a route to";

impl fmt::Display for TunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TunError { action, interface, errno } = self;
        let what = match (*action, interface.as_str()) {
            (OPEN, _) => "/dev/net/tun",
            (_, "") => "a TUN interface",
            (_, name) => name,
        };
        write!(f, "cannot {action} {what}: {}", io::Error::from_raw_os_error(*errno))?;
        match self.hint() {
            hint if hint.is_empty() => Ok(()),
            hint => write!(f, "; {hint}"),
        }
    }
}

impl std::error::Error for TunError {}

impl From<TunError> for io::Error {
    fn from(error: TunError) -> io::Error {
        io::Error::new(io::Error::from_raw_os_error(error.errno).kind(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do() {
        let cases = [
            (OPEN, Errno::ACCESS, "cannot open /dev/net/tun: Permission denied (os error 13); run as root"),
            (OPEN, Errno::NOENT, "modprobe tun"),
            (ATTACH, Errno::PERM, "ip tuntap add dev tun7 mode tun user $USER"),
            (ATTACH, Errno::BUSY, "another process uses tun7"),
            (ATTACH, Errno::INVAL, "multi_queue"),
            (MTU, Errno::INVAL, "68 to 65535"),
            (ADDRESS, Errno::ACCESS, "net.ipv6.conf.tun7.disable_ipv6=0"),
            (
                "send to",
                Errno::IO,
                "cannot send to tun7: Input/output error (os error 5); the interface is down",
            ),
            ("receive from", Errno::BADFD, "the interface was deleted"),
        ];
        for (action, errno, part) in cases {
            let text = io::Error::from(TunError::new(action, "tun7", errno)).to_string();
            assert!(text.contains(part), "{text}");
        }
        let unknown = TunError::new(ATTACH, "", Errno::NOSPC);
        assert_eq!(unknown.hint(), "");
        assert!(unknown.to_string().starts_with("cannot create or attach a TUN interface: "));
    }

    #[test]
    fn the_kind_is_the_systems() {
        assert_eq!(
            io::Error::from(TunError::new(OPEN, "", Errno::ACCESS)).kind(),
            io::ErrorKind::PermissionDenied
        );
    }
}
