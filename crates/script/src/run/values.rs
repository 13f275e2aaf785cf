//! Arguments of system calls: numbers by name, descriptors, addresses.

use crate::ast::{Expr, Field};
use crate::run::Runner;
use crate::run::constants::constant;
use core::net::{IpAddr, SocketAddr};
use posix::Destination;

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
        // As it lies in memory: the network's order.
        Expr::Apply(name, arguments) if name == "inet_addr" => match address_of(arguments)? {
            IpAddr::V4(address) => Ok(i32::from_ne_bytes(address.octets()).into()),
            IpAddr::V6(_) => Err(format!("`{expr}` is no address of IPv4")),
        },
        other => Err(format!("`{other}` is no number")),
    }
}

/// The address in `("192.0.2.1")`.
pub(super) fn address_of(arguments: &[Expr]) -> Result<IpAddr, String> {
    match arguments {
        [Expr::Text(text)] => text.parse().map_err(|_| format!("`{text}` is no address")),
        _ => Err("an address is one text: `inet_addr(\"192.0.2.1\")`".into()),
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

fn fields(expr: &Expr) -> Result<&[Field], String> {
    match expr {
        Expr::Fields(fields) => Ok(fields),
        other => Err(format!("`{other}`: a structure `{{name=value, …}}` is expected")),
    }
}

/// The fields of a structure that has no others than these, each at most once. Only those of which it is known may say how many they are.
pub(super) fn fields_of<'e>(expr: &'e Expr, names: &[&str], counted: &[&str]) -> Result<&'e [Field], String> {
    let fields = fields(expr)?;
    for (at, Field { name, count, .. }) in fields.iter().enumerate() {
        if !names.contains(&name.as_str()) {
            return Err(format!("`{name}` is no field here: {} are", names.join(", ")));
        }
        if fields[..at].iter().any(|before| before.name == *name) {
            return Err(format!("`{name}` is said twice"));
        }
        if let Some(count) = count
            && !counted.contains(&name.as_str())
        {
            return Err(format!("`{name}({count})`: only {name} is understood"));
        }
    }
    Ok(fields)
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
        let usual = SocketAddr::new(self.setup.of_calls(usual.ip()), usual.port());
        if *expr == Expr::Ellipsis {
            return Ok(Destination::Address(usual));
        }
        if is_null(expr) {
            return Ok(Destination::None);
        }
        // A family alone stands for the usual address called so.
        if let Expr::Word(_) = expr {
            let own = if usual.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
            return match int(expr)? {
                libc::AF_UNSPEC => Ok(Destination::Unspecified),
                family if family == own => Ok(Destination::Address(usual)),
                _ => Err(format!("`{expr}` is not the family of {}", usual.ip())),
            };
        }
        named_address(expr)
    }
}

/// `{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("192.0.2.1")}`, or likewise of IPv6.
fn named_address(expr: &Expr) -> Result<Destination, String> {
    let family = number(field(fields(expr)?, "sa_family").ok_or("sa_family is missing")?)?;
    let is_v4 = match i32::try_from(family) {
        Ok(libc::AF_UNSPEC) => return Ok(Destination::Unspecified),
        Ok(libc::AF_INET) => true,
        Ok(libc::AF_INET6) => false,
        _ => return Err(format!("{family} is no family that is known here: AF_INET, AF_INET6 or AF_UNSPEC")),
    };
    let [port, ip, function] =
        if is_v4 { ["sin_port", "sin_addr", "inet_addr"] } else { ["sin6_port", "sin6_addr", "inet6_addr"] };
    let fields = fields_of(expr, &["sa_family", port, ip], &[])?;
    let part = |name| field(fields, name).ok_or(format!("{name} is missing"));
    let (port, ip) = (part(port)?, part(ip)?);
    let port = u16::try_from(number(port)?).map_err(|_| "a port is 0 to 65535")?;
    match ip {
        Expr::Apply(name, arguments) if name == function => {
            let address = address_of(arguments)?;
            if address.is_ipv4() != is_v4 {
                return Err(format!("`{ip}` is no address of the family that is said"));
            }
            Ok(Destination::Address(SocketAddr::new(address, port)))
        }
        _ => Err(format!("`{ip}`: `{function}(\"…\")` is expected")),
    }
}
