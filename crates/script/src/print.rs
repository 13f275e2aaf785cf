//! From values back to the language. What is printed means the same when it is read again.

use crate::ast::{
    Action, Body, Call, Direction, Event, Expr, Icmp, Ip, Packet, Script, ScriptOption, Segment, TcpOption,
    Tos, When,
};
use crate::options::counter_names;
use std::fmt::{self, Display, Formatter};
use wire::{Ecn, Flags};

impl Display for Script {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for option in &self.options {
            writeln!(f, "{option}")?;
        }
        if let Some(init) = &self.init {
            writeln!(f, "`{}`", init.value)?;
        }
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        match &self.cleanup {
            Some(cleanup) => writeln!(f, "`{}`", cleanup.value),
            None => Ok(()),
        }
    }
}

impl Display for ScriptOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "--{}", self.name.value)?;
        match &self.value {
            Some(value) => write!(f, "={value}"),
            None => Ok(()),
        }
    }
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.time)?;
        match &self.action.value {
            Action::Packet(packet) => write!(f, " {packet}"),
            Action::Call(call) => write!(f, "{}{call}", if call.end.is_some() { "" } else { " " }),
            Action::Command(text) => write!(f, " `{text}`"),
            Action::Code(text) if text.starts_with([' ', '\t']) => write!(f, " %{{\n{text}\n}}%"),
            Action::Code(text) => write!(f, " %{{ {text} }}%"),
        }
    }
}

impl Display for When {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            When::Absolute(at) => write!(f, "{}", Seconds(at)),
            When::Relative(at) => write!(f, "+{}", Seconds(at)),
            When::Any => f.write_str("*"),
            When::AbsoluteRange(from, to) => write!(f, "{}~{}", Seconds(from), Seconds(to)),
            When::RelativeRange(from, to) => write!(f, "+{}~+{}", Seconds(from), Seconds(to)),
        }
    }
}

/// Microseconds, shown as seconds with as many digits as they need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub i64);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (sign, micros) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let fraction = format!("{:06}", micros % 1_000_000);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{}{point}{fraction}", micros / 1_000_000)
    }
}

impl Display for Packet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.direction == Direction::In { "<" } else { ">" })?;
        write!(f, "{}", self.ip)?;
        match &self.body {
            Body::Tcp(segment) => write!(f, " {segment}"),
            Body::Icmp(icmp) => write!(f, " {icmp}"),
        }
    }
}

impl Display for Ip {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tos = self.tos.map(|tos| match tos {
            Tos::Ecn(Ecn::NotEct) => "noecn".to_owned(),
            Tos::Ecn(Ecn::Ect0) => "ect0".to_owned(),
            Tos::Ecn(Ecn::Ect1) => "ect1".to_owned(),
            Tos::Ecn(Ecn::Ce) => "ce".to_owned(),
            Tos::Ect01 => "ect01".to_owned(),
            Tos::Byte(byte) => format!("tos {byte:#x}"),
        });
        let label = self.flow_label.map(|label| format!("flowlabel {label:#x}"));
        let ttl = self.ttl.map(|ttl| format!("ttl {ttl}"));
        let said: Vec<String> = [tos, label, ttl].into_iter().flatten().collect();
        if said.is_empty() { Ok(()) } else { write!(f, " [{}]", said.join(",")) }
    }
}

impl Display for Segment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some((from, to)) = self.ports {
            write!(f, "{from} > {to} ")?;
        }
        write!(f, "{} {}:{}({})", FlagsText(self.flags, self.ace), self.seq, self.end(), self.len)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if let Some(urgent) = self.urgent {
            write!(f, " urg {urgent}")?;
        }
        match &self.options {
            None => f.write_str(" <...>"),
            Some(options) if options.is_empty() => Ok(()),
            Some(options) => {
                let options: Vec<String> = options.iter().map(ToString::to_string).collect();
                write!(f, " <{}>", options.join(","))
            }
        }
    }
}

struct FlagsText(Flags, bool);

impl Display for FlagsText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let FlagsText(flags, ace) = *self;
        if flags.is_empty() && !ace {
            return f.write_str("-");
        }
        let ecn = [(Flags::ECE, 'E'), (Flags::CWR, 'W'), (Flags::AE, 'A')];
        let first =
            [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R'), (Flags::PSH, 'P'), (Flags::URG, 'U')];
        let letters = first.iter().chain(ecn.iter().filter(|_| !ace));
        let text: String =
            letters.filter(|(flag, _)| flags.contains(*flag)).map(|(_, letter)| letter).collect();
        f.write_str(&text)?;
        if flags.contains(Flags::ACK) {
            f.write_str(".")?;
        }
        if ace {
            let bit = |flag, value| if flags.contains(flag) { value } else { 0 };
            write!(f, "{}", bit(Flags::ECE, 1) + bit(Flags::CWR, 2) + bit(Flags::AE, 4))?;
        }
        Ok(())
    }
}

impl Display for TcpOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TcpOption::Nop => f.write_str("nop"),
            TcpOption::End => f.write_str("eol"),
            TcpOption::Mss(mss) => write!(f, "mss {mss}"),
            TcpOption::WindowScale(shift) => write!(f, "wscale {shift}"),
            TcpOption::SackPermitted => f.write_str("sackOK"),
            TcpOption::Sack(blocks) => {
                let blocks: Vec<String> =
                    blocks.iter().map(|(left, right)| format!("{left}:{right}")).collect();
                write!(f, "sack {}", blocks.join(" "))
            }
            TcpOption::Timestamps { val, ecr } => write!(f, "TS val {val} ecr {ecr}"),
            TcpOption::Md5(digest) => write!(f, "md5 {}", hex(digest)),
            TcpOption::FastOpen(cookie) => f.write_str(format!("FO {}", hex(cookie)).trim_end()),
            TcpOption::FastOpenExperimental(cookie) => {
                f.write_str(format!("FOEXP {}", hex(cookie)).trim_end())
            }
            TcpOption::AccurateEcn { order, counters } => {
                f.write_str("ECN")?;
                counter_names(*order).zip(counters).try_for_each(|(name, count)| write!(f, " {name} {count}"))
            }
            TcpOption::Other { kind, data } => f.write_str(format!("kind-{kind} {}", hex(data)).trim_end()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Display for Icmp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "icmp {}", self.kind)?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        }
        if let Some(mtu) = self.mtu {
            write!(f, " mtu {mtu}")?;
        }
        if let Some(id) = self.id {
            write!(f, " id {id}")?;
        }
        match self.quote {
            Some((first, len)) => write!(f, " [{first}:{}({len})]", first.wrapping_add(len.into())),
            None => Ok(()),
        }
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(end) = self.end {
            write!(f, "...{} ", Seconds(end))?;
        }
        write!(f, "{}({}) = {}", self.name, Commas(&self.arguments), self.result)?;
        if let Some(errno) = &self.errno {
            write!(f, " {errno}")?;
        }
        match &self.note {
            Some(note) => write!(f, " ({note})"),
            None => Ok(()),
        }
    }
}

struct Commas<'a>(&'a [Expr]);

impl Display for Commas<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, expr) in self.0.iter().enumerate() {
            write!(f, "{}{expr}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Ellipsis => f.write_str("..."),
            Expr::Int(value) => write!(f, "{value}"),
            Expr::Hex(value) => write!(f, "{value:#x}"),
            Expr::Word(word) => f.write_str(word),
            Expr::Text(text) => write!(f, "\"{text}\""),
            Expr::TextMore(text) => write!(f, "\"{text}\"..."),
            Expr::Or(left, right) => write!(f, "{left}|{right}"),
            Expr::Apply(name, arguments) => write!(f, "{name}({})", Commas(arguments)),
            Expr::List(list) => write!(f, "[{}]", Commas(list)),
            Expr::Tuple(list) => write!(f, "{{{}}}", Commas(list)),
            Expr::Fields(fields) => {
                f.write_str("{")?;
                for (at, field) in fields.iter().enumerate() {
                    write!(f, "{}{}", if at == 0 { "" } else { ", " }, field.name)?;
                    if let Some(count) = &field.count {
                        write!(f, "({count})")?;
                    }
                    write!(f, "={}", field.value)?;
                }
                f.write_str("}")
            }
        }
    }
}
