//! Arguments of system calls: numbers by name, descriptors, addresses.

use crate::ast::{Expr, Field};
use crate::run::Runner;
use core::net::{IpAddr, SocketAddr};
use posix::Destination;

/// Linux's numbers that `libc` does not have under these names.
const EXTRA: &[(&str, i64)] = &[
    ("SO_EE_ORIGIN_ICMP", 2),
    ("SO_EE_ORIGIN_ICMP6", 3),
    ("SO_EE_ORIGIN_TIMESTAMPING", 4),
    ("SO_EE_ORIGIN_ZEROCOPY", 5),
    ("SO_EE_CODE_ZEROCOPY_COPIED", 1),
    ("SCM_TSTAMP_SND", 0),
    ("SCM_TSTAMP_SCHED", 1),
    ("SCM_TSTAMP_ACK", 2),
    ("SOF_TIMESTAMPING_TX_HARDWARE", 1 << 0),
    ("SOF_TIMESTAMPING_TX_SOFTWARE", 1 << 1),
    ("SOF_TIMESTAMPING_RX_HARDWARE", 1 << 2),
    ("SOF_TIMESTAMPING_RX_SOFTWARE", 1 << 3),
    ("SOF_TIMESTAMPING_SOFTWARE", 1 << 4),
    ("SOF_TIMESTAMPING_OPT_ID", 1 << 7),
    ("SOF_TIMESTAMPING_TX_SCHED", 1 << 8),
    ("SOF_TIMESTAMPING_TX_ACK", 1 << 9),
    ("SOF_TIMESTAMPING_OPT_TSONLY", 1 << 11),
    ("SOF_TIMESTAMPING_OPT_ID_TCP", 1 << 16),
    ("EPOLLEXCLUSIVE", 1 << 28),
    ("SIOCINQ", 0x541b),
    ("SIOCOUTQ", 0x5411),
    ("FIONREAD", 0x541b),
    ("SIOCOUTQNSD", 0x894b),
    ("SIOCATMARK", 0x8905),
    ("SOL_TCP", libc::IPPROTO_TCP as i64),
    ("SOL_IP", 0),
    ("SOL_IPV6", 41),
    ("TCP_INQ", 36),
    ("TCP_TX_DELAY", 37),
    ("TCP_FASTOPEN_NO_COOKIE", 34),
    ("TCP_FASTOPEN_KEY", 33),
];

macro_rules! constants {
    ($($name:ident)+) => {
        fn of_libc(name: &str) -> Option<i64> {
            match name {
                $(stringify!($name) => Some(i64::from(libc::$name)),)+
                _ => None,
            }
        }
    };
}

constants! {
    AF_UNSPEC AF_INET AF_INET6 PF_INET PF_INET6 SOCK_STREAM SOCK_DGRAM SOCK_RAW SOCK_NONBLOCK SOCK_CLOEXEC IPPROTO_IP IPPROTO_IPV6
    IPPROTO_TCP IPPROTO_UDP IPPROTO_ICMP
    MSG_OOB MSG_PEEK MSG_DONTROUTE MSG_TRUNC MSG_DONTWAIT MSG_EOR MSG_WAITALL MSG_NOSIGNAL MSG_MORE MSG_FASTOPEN MSG_ERRQUEUE
    MSG_ZEROCOPY ENOMSG ENETUNREACH EHOSTUNREACH ECONNREFUSED
    O_RDONLY O_WRONLY O_RDWR O_NONBLOCK F_GETFL F_SETFL F_GETFD F_SETFD FD_CLOEXEC SHUT_RD SHUT_WR SHUT_RDWR
    SOL_SOCKET SO_ACCEPTCONN SO_BROADCAST SO_BUSY_POLL SO_DOMAIN SO_DONTROUTE SO_ERROR SO_KEEPALIVE SO_LINGER SO_MARK
    SO_MAX_PACING_RATE SO_OOBINLINE SO_PRIORITY SO_PROTOCOL SO_RCVBUF SO_RCVBUFFORCE SO_RCVLOWAT SO_RCVTIMEO SO_REUSEADDR SO_REUSEPORT
    SO_SNDBUF SO_SNDBUFFORCE SO_SNDLOWAT SO_SNDTIMEO SO_TIMESTAMP SO_TIMESTAMPNS SO_TIMESTAMPING SO_TYPE SO_ZEROCOPY
    IP_TOS IP_TTL IP_MTU IP_MTU_DISCOVER IP_RECVERR IP_FREEBIND IP_PMTUDISC_DONT IP_PMTUDISC_WANT IP_PMTUDISC_DO IP_PMTUDISC_PROBE
    IPV6_V6ONLY IPV6_TCLASS IPV6_UNICAST_HOPS IPV6_RECVERR IPV6_MTU IPV6_MTU_DISCOVER
    TCP_NODELAY TCP_MAXSEG TCP_CORK TCP_KEEPIDLE TCP_KEEPINTVL TCP_KEEPCNT TCP_SYNCNT TCP_LINGER2 TCP_DEFER_ACCEPT TCP_WINDOW_CLAMP
    TCP_INFO TCP_QUICKACK TCP_CONGESTION TCP_MD5SIG TCP_THIN_LINEAR_TIMEOUTS TCP_THIN_DUPACK TCP_USER_TIMEOUT TCP_FASTOPEN
    TCP_TIMESTAMP TCP_NOTSENT_LOWAT TCP_CC_INFO TCP_SAVE_SYN TCP_SAVED_SYN TCP_FASTOPEN_CONNECT TCP_ULP
    POLLIN POLLPRI POLLOUT POLLERR POLLHUP POLLNVAL POLLRDNORM POLLRDBAND POLLWRNORM POLLWRBAND POLLRDHUP
    EPOLLIN EPOLLPRI EPOLLOUT EPOLLERR EPOLLHUP EPOLLRDHUP EPOLLRDNORM EPOLLWRNORM EPOLLONESHOT EPOLL_CTL_ADD EPOLL_CTL_DEL
    EPOLL_CTL_MOD EPOLL_CLOEXEC
    EACCES EADDRINUSE EADDRNOTAVAIL EAGAIN EALREADY EBADF ECONNABORTED ECONNREFUSED ECONNRESET EHOSTDOWN EHOSTUNREACH EINPROGRESS EINVAL
    EISCONN EMSGSIZE ENETUNREACH ENONET ENOPROTOOPT ENOTCONN EOPNOTSUPP EPIPE EPROTO ETIMEDOUT
}

/// The value of a name of Linux's headers.
fn constant(name: &str) -> Option<i64> {
    match name {
        "NULL" => Some(0),
        "EPOLLET" => Some(1 << 31),
        _ => {
            of_libc(name).or_else(|| EXTRA.iter().find(|(extra, _)| *extra == name).map(|(_, value)| *value))
        }
    }
}

/// A number: decimal, hexadecimal, a name, or several joined by `|`.
pub(super) fn number(expr: &Expr) -> Result<i64, String> {
    match expr {
        Expr::Int(value) => Ok(*value),
        Expr::Hex(value) => Ok(value.cast_signed()),
        Expr::Word(name) => constant(name).ok_or_else(|| format!("`{name}` is no name that is known here")),
        Expr::Or(left, right) => Ok(number(left)? | number(right)?),
        Expr::Apply(name, arguments) if name == "htons" => match arguments.as_slice() {
            [port] => number(port),
            _ => Err("htons takes one number".into()),
        },
        other => Err(format!("`{other}` is no number")),
    }
}

/// An `int`; unsigned ones beyond it wrap, as in C.
pub(super) fn int(expr: &Expr) -> Result<i32, String> {
    let value = number(expr)?;
    let unsigned = u32::try_from(value).map(u32::cast_signed);
    i32::try_from(value).or(unsigned).map_err(|_| format!("{value} is no int"))
}

pub(super) fn size(expr: &Expr) -> Result<usize, String> {
    let value = number(expr)?;
    usize::try_from(value).map_err(|_| format!("{value} is no size"))
}

pub(super) fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Word(name) if name == "NULL")
}

/// The only entry of `[value]`.
pub(super) fn only(expr: &Expr) -> Result<&Expr, String> {
    match expr {
        Expr::List(list) if list.len() == 1 => Ok(&list[0]),
        other => Err(format!("`{other}`: one value in brackets is expected")),
    }
}

pub(super) fn fields(expr: &Expr) -> Result<&[Field], String> {
    match expr {
        Expr::Fields(fields) => Ok(fields),
        other => Err(format!("`{other}`: a structure `{{name=value, …}}` is expected")),
    }
}

pub(super) fn field<'e>(fields: &'e [Field], name: &str) -> Option<&'e Expr> {
    fields.iter().find(|field| field.name == name).map(|field| &field.value)
}

impl Runner<'_> {
    /// The stack's descriptor for the script's. One that is not open stays what it is: no descriptor of the stack is that low.
    pub(super) fn fd(&self, expr: &Expr) -> Result<i32, String> {
        let script = number(expr)?;
        Ok(self.fds.get(&script).copied().unwrap_or(i32::try_from(script).unwrap_or(-1)))
    }

    /// An address; `...` stands for `usual`.
    pub(super) fn address(&self, expr: &Expr, usual: SocketAddr) -> Result<Destination, String> {
        if *expr == Expr::Ellipsis {
            return Ok(Destination::Address(usual));
        }
        if is_null(expr) {
            return Ok(Destination::None);
        }
        let fields = fields(expr)?;
        let family = field(fields, "sa_family").ok_or("sa_family is missing")?;
        if number(family)? == i64::from(libc::AF_UNSPEC) {
            return Ok(Destination::Unspecified);
        }
        let port = field(fields, "sin_port").or(field(fields, "sin6_port")).ok_or("sin_port is missing")?;
        let port = u16::try_from(number(port)?).map_err(|_| "a port is 0 to 65535")?;
        let ip = field(fields, "sin_addr").or(field(fields, "sin6_addr")).ok_or("sin_addr is missing")?;
        let text = match ip {
            Expr::Apply(_, arguments) => match arguments.as_slice() {
                [Expr::Text(text)] => text,
                _ => return Err(format!("`{ip}` is no address")),
            },
            _ => return Err(format!("`{ip}` is no address")),
        };
        let ip: IpAddr = text.parse().map_err(|_| format!("`{text}` is no address"))?;
        Ok(Destination::Address(SocketAddr::new(ip, port)))
    }
}
