//! A parsed script.
//!
//! Times are in microseconds. Sequence numbers are the script's own, and the runner translates
//! them. Lines count from 1 and are ignored by comparisons: two scripts are equal if their contents
//! are.

use wire::{AccurateEcnOrder, Ecn, Flags};

/// A whole script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// `--name=value` lines.
    pub options: Vec<ScriptOption>,
    /// Command that prepares the system, before time begins.
    pub init: Option<Line<String>>,
    /// Events, in the order of the script.
    pub events: Vec<Event>,
    /// Command after the last event.
    pub cleanup: Option<Line<String>>,
}

/// A value and the line it stands in.
#[derive(Clone, Debug, Eq)]
pub struct Line<T> {
    /// The line.
    pub line: usize,
    /// The value.
    pub value: T,
}

impl<T: PartialEq> PartialEq for Line<T> {
    fn eq(&self, other: &Line<T>) -> bool {
        self.value == other.value
    }
}

/// One option of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptOption {
    /// Name without the dashes, and its line.
    pub name: Line<String>,
    /// The text after `=`.
    pub value: Option<String>,
}

/// Something that happens at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub time: When,
    /// The action and its line.
    pub action: Line<Action>,
}

/// When an event happens, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After the beginning.
    Absolute(i64),
    /// After the event before.
    Relative(i64),
    /// `*`: at any time.
    Any,
    /// Between two times after the beginning.
    AbsoluteRange(i64, i64),
    /// Between two times after the event before.
    RelativeRange(i64, i64),
}

/// The action of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A packet comes, or is expected.
    Packet(Packet),
    /// The application makes a system call.
    Call(Call),
    /// A shell command, as written.
    Command(String),
    /// A snippet of assertions, as written.
    Code(String),
}

/// A packet of the script's one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Into the stack, or out of it.
    pub direction: Direction,
    /// Expectations about the IP header.
    pub ip: Ip,
    /// The content.
    pub body: Body,
}

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `<`: to the stack.
    In,
    /// `>`: from the stack.
    Out,
}

/// Expectations about an IP header. By default nothing is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ip {
    /// Traffic class.
    pub tos: Option<Tos>,
    /// IPv6 flow label, 20 bits.
    pub flow_label: Option<u32>,
    /// TTL, or hop limit.
    pub ttl: Option<u8>,
}

/// Expectation about the traffic-class byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tos {
    /// Its ECN bits.
    Ecn(Ecn),
    /// ECT(0) or ECT(1).
    Ect01,
    /// The whole byte.
    Byte(u8),
}

/// The content of an IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A TCP segment.
    Tcp(Segment),
    /// An ICMP message.
    Icmp(Icmp),
}

/// A TCP segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Source and destination port, where the script's own are not meant.
    pub ports: Option<(u16, u16)>,
    /// Control bits; AE, CWR and ECE too when they are given as a number ([`ace`](Self::ace)).
    pub flags: Flags,
    /// The three bits were given as accurate ECN's counter.
    pub ace: bool,
    /// First sequence number.
    pub seq: u32,
    /// Payload, bytes.
    pub len: u16,
    /// Acknowledgment.
    pub ack: Option<u32>,
    /// Window as it stands in the header.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: Option<u16>,
    /// Options; `None` stands for `<...>`, any.
    pub options: Option<Vec<TcpOption>>,
}

/// A TCP option as it lies in the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// Kind 1.
    Nop,
    /// Kind 0.
    End,
    /// Kind 2.
    Mss(u16),
    /// Kind 3.
    WindowScale(u8),
    /// Kind 4.
    SackPermitted,
    /// Kind 5: left and right edges.
    Sack(Vec<(u32, u32)>),
    /// Kind 8.
    Timestamps {
        /// TSval.
        val: u32,
        /// TSecr.
        ecr: u32,
    },
    /// Kind 19: the digest.
    Md5(Vec<u8>),
    /// Kind 34: the cookie, or nothing to ask for one.
    FastOpen(Vec<u8>),
    /// Kind 254 with 0xF989: likewise.
    FastOpenExperimental(Vec<u8>),
    /// Kinds 172 and 174: the counters of marks that there are, in their order.
    AccurateEcn {
        /// Which counter comes first.
        order: AccurateEcnOrder,
        /// 24 bits each, three at most.
        counters: Vec<u32>,
    },
    /// Any other, seen in a packet; scripts have no words for it.
    Other {
        /// Its number.
        kind: u8,
        /// What is behind the length.
        data: Vec<u8>,
    },
}

/// An ICMP error or echo, with type and code by name (`unreachable`, `frag_needed`, `echo_request`)
/// or number (`type_3`, `code_4`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// Type.
    pub kind: String,
    /// Code.
    pub code: Option<String>,
    /// MTU of the next hop.
    pub mtu: Option<u32>,
    /// Identifier of an echo.
    pub id: Option<u16>,
    /// First sequence number and length of the TCP segment it quotes.
    pub quote: Option<(u32, u16)>,
}

/// A system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When a call that waits returns, in microseconds counted as its event's time is.
    pub end: Option<i64>,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// The result.
    pub result: Expr,
    /// And the error, by name.
    pub errno: Option<String>,
    /// Words in parentheses behind, which mean nothing.
    pub note: Option<String>,
}

/// An argument, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// `...`
    Ellipsis,
    /// A decimal number.
    Int(i64),
    /// A number in hexadecimal.
    Hex(u64),
    /// A name.
    Word(String),
    /// A text as written, without its quotes.
    Text(String),
    /// A text, and whatever follows it.
    TextMore(String),
    /// `a | b`
    Or(Box<Expr>, Box<Expr>),
    /// `name(arguments)`
    Apply(String, Vec<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `{a, b}`
    Tuple(Vec<Expr>),
    /// `{name = value, …}`
    Fields(Vec<Field>),
}

/// One field of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The number in parentheses after the name.
    pub count: Option<Expr>,
    /// Its value.
    pub value: Expr,
}

impl Segment {
    /// Sequence space behind the payload, without SYN and FIN.
    pub fn end(&self) -> u32 {
        self.seq.wrapping_add(self.len.into())
    }
}
