//! One stack opposite hand-made segments, in virtual time.
//!
//! Segments are written as text, in numbers relative to the two initial sequence numbers:
//!
//! ```text
//! SA 0:10(10) ack 1 win 64240 <mss 1460,sackOK,TS 0 100,wscale 7,FO 0102030405060708>
//! ```
//!
//! Flags are letters of `S F R P A U E W`, and `e` for AE, in any order; `1:11` or `1:11(10)` or only `1` (no payload); a payload is a [`pattern`] of its
//! number. Options: `mss N`, `wscale N`, `sackOK`, `sack A:B C:D`, `TS VAL ECR`, `FO`, `FO HEX`, `FOEXP`, `FOEXP HEX`, `ECN E1B CEB E0B`. The stack's
//! timestamps are relative to its first. What an expectation does not name (window, options) is not compared.

use bytes::Bytes;
use core::ops::Range;
use core::time::Duration;
use proto::*;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use wire::{
    AccurateEcnOption, AccurateEcnOrder, Cookie, Ecn, FastOpenKind, FastOpenOption, Flags, IpHeader,
    TcpHeader, TcpOptions, Timestamps,
};

/// The hand-made peer's initial sequence number: soon to wrap.
pub(crate) const PEER_ISN: SeqNum = SeqNum(0xffff_ff00);

const FLAGS: [(Flags, char); 9] = [
    (Flags::SYN, 'S'),
    (Flags::FIN, 'F'),
    (Flags::RST, 'R'),
    (Flags::PSH, 'P'),
    (Flags::ACK, 'A'),
    (Flags::URG, 'U'),
    (Flags::ECE, 'E'),
    (Flags::CWR, 'W'),
    (Flags::AE, 'e'),
];

/// The byte of a stream with relative sequence number `at`.
pub(crate) fn pattern_at(at: u32) -> u8 {
    (at % 251) as u8
}

/// Bytes of a stream from relative sequence number `from` on (the first byte after a SYN is 1).
pub(crate) fn pattern(from: u32, len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| pattern_at(from + i)).collect()
}

/// Our profile, and Linux's.
pub(crate) fn both_profiles() -> [Config; 2] {
    [Config::default(), Config::linux()]
}

/// A stack, and the numbers of the peers it talks to.
pub(crate) struct Peer {
    pub(crate) stack: Stack,
    pub(crate) now: Instant,
    /// The stack's end.
    pub(crate) local: SocketAddr,
    /// The hand-made end; change the port to be another client.
    pub(crate) remote: SocketAddr,
    sent: VecDeque<Bytes>,
    /// The stack's initial number towards each remote port.
    isns: BTreeMap<u16, SeqNum>,
    /// Its first timestamp of each connection, by the ports.
    ts_bases: BTreeMap<(u16, u16), u32>,
    /// Nothing can leave; what wants to is counted.
    pub(crate) queue_is_full: bool,
    pub(crate) refused: usize,
}

/// A segment in relative numbers.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    flags: Flags,
    seq: u32,
    len: usize,
    ack: Option<u32>,
    win: Option<u16>,
    options: Option<TcpOptions>,
}

/// Our profile, and a connection that a client has opened to a listener whose sockets have these options.
pub(crate) fn established(socket: SocketOptions) -> (Peer, ConnId) {
    let mut p = Peer::ours();
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish(listener);
    (p, id)
}

impl Peer {
    pub(crate) fn with(config: Config, capabilities: Capabilities) -> Peer {
        let mut stack = Stack::new(config, capabilities, [7; 32]);
        stack.add_address("10.0.0.2".parse().unwrap(), 24);
        stack.add_address("fd00::2".parse().unwrap(), 64);
        Peer {
            stack,
            now: Instant::ZERO + Duration::from_secs(1000),
            local: "10.0.0.2:80".parse().unwrap(),
            remote: "10.0.0.1:40000".parse().unwrap(),
            sent: VecDeque::new(),
            isns: BTreeMap::new(),
            ts_bases: BTreeMap::new(),
            queue_is_full: false,
            refused: 0,
        }
    }

    pub(crate) fn new(config: Config) -> Peer {
        Peer::with(config, crate::pair::ethernet())
    }

    pub(crate) fn ours() -> Peer {
        Peer::new(Config::default())
    }

    /// The peer and the stack, with IPv6 addresses.
    pub(crate) fn v6(mut self) -> Peer {
        self.local = "[fd00::2]:80".parse().unwrap();
        self.remote = "[fd00::1]:40000".parse().unwrap();
        self
    }

    pub(crate) fn listen_with(&mut self, options: ListenOptions) -> ListenerId {
        self.stack.listen(self.now, self.local, options).unwrap()
    }

    pub(crate) fn listen(&mut self) -> ListenerId {
        self.listen_with(ListenOptions::default())
    }

    /// An active open towards the peer; `local`'s port becomes the chosen one.
    pub(crate) fn connect(&mut self, options: ConnectOptions) -> ConnId {
        let id = self.stack.connect(self.now, self.remote, options).unwrap();
        self.local = self.stack.info(id).unwrap().local;
        id
    }

    pub(crate) fn accept(&mut self, listener: ListenerId) -> ConnId {
        self.stack.accept(self.now, listener).expect("something to accept").0
    }

    /// Passive open without options but MSS 1000: every size below is easy to see.
    pub(crate) fn establish(&mut self, listener: ListenerId) -> ConnId {
        self.establish_with(listener, "S 0 win 65535 <mss 1000>")
    }

    /// Passive open by `syn`; the final ACK offers 65535 bytes, and has the SYN's timestamp.
    pub(crate) fn establish_with(&mut self, listener: ListenerId, syn: &str) -> ConnId {
        self.send(syn);
        self.expect("SA 0 ack 1");
        let tsval = syn.split_once("TS ").and_then(|(_, rest)| rest.split(' ').next());
        let timestamps = tsval.map_or(String::new(), |tsval| format!(" <TS {tsval} 0>"));
        self.send(&format!("A 1 ack 1 win 65535{timestamps}"));
        self.accept(listener)
    }

    pub(crate) fn write(&mut self, id: ConnId, data: &[u8]) {
        assert_eq!(self.stack.write(self.now, id, data), Ok(data.len()));
    }

    /// Everything readable now.
    pub(crate) fn read(&mut self, id: ConnId) -> Result<Vec<u8>, ReadError> {
        let mut buf = vec![0; 1 << 20];
        self.stack.read(self.now, id, &mut buf).map(|n| buf[..n].to_vec())
    }

    pub(crate) fn close(&mut self, id: ConnId) {
        self.stack.close(self.now, id);
    }

    pub(crate) fn state(&self, id: ConnId) -> State {
        self.stack.info(id).expect("the connection is known").state
    }

    /// All events since the last call, merged per socket, in order of first mention.
    pub(crate) fn events(&mut self) -> Vec<(SocketId, Events)> {
        let mut all: Vec<(SocketId, Events)> = Vec::new();
        while let Some((id, events)) = self.stack.poll_event() {
            match all.iter_mut().find(|(known, _)| *known == id) {
                Some((_, known)) => *known |= events,
                None => all.push((id, events)),
            }
        }
        all
    }

    /// Events of one connection since the last call; those of others are lost.
    pub(crate) fn events_of(&mut self, id: ConnId) -> Events {
        let of = |(socket, _): &(SocketId, Events)| *socket == SocketId::Connection(id);
        self.events().into_iter().find(of).map_or(Events::empty(), |(_, events)| events)
    }

    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        let sizes = self.stack.table_sizes();
        (sizes.connections, sizes.requests, sizes.time_wait)
    }

    pub(crate) fn isn(&self, port: u16) -> SeqNum {
        self.isns.get(&port).copied().unwrap_or(SeqNum(0))
    }

    /// The packet that `text` describes, from the peer.
    pub(crate) fn packet(&self, text: &str) -> Bytes {
        let parsed = Parsed::new(text);
        self.packet_with(text, &pattern(parsed.seq, parsed.len))
    }

    /// As [`packet`](Self::packet) with this payload.
    pub(crate) fn packet_with(&self, text: &str, payload: &[u8]) -> Bytes {
        let parsed = Parsed::new(text);
        let mut options = parsed.options.unwrap_or_default();
        let isn = self.isn(self.remote.port());
        if let Some(timestamps) = &mut options.timestamps {
            let base = self.ts_bases.get(&(self.local.port(), self.remote.port())).copied().unwrap_or(0);
            if parsed.ack.is_some() {
                timestamps.tsecr = timestamps.tsecr.wrapping_add(base);
            }
        }
        options.sack.iter_mut().for_each(|(left, right)| {
            *left = isn + left.0;
            *right = isn + right.0;
        });
        let header = TcpHeader {
            seq: PEER_ISN + parsed.seq,
            ack: parsed.ack.map_or(SeqNum(0), |ack| isn + ack),
            flags: parsed.flags,
            window: parsed.win.unwrap_or(65535),
            options,
            ..TcpHeader::new(self.remote.port(), self.local.port())
        };
        wire::build_tcp_packet(&self.ip(), &header, payload)
    }

    /// IP header of a packet from the peer.
    pub(crate) fn ip(&self) -> IpHeader {
        IpHeader::new(self.remote.ip().into(), self.local.ip().into(), wire::protocol::TCP)
    }

    /// The peer's segment arrives now.
    pub(crate) fn send(&mut self, text: &str) {
        let packet = self.packet(text);
        self.send_rx(RxPacket::new(packet));
    }

    /// As [`send`](Self::send) with this payload; the text names its first number only.
    pub(crate) fn send_bytes(&mut self, text: &str, payload: &[u8]) {
        let packet = self.packet_with(text, payload);
        self.send_rx(RxPacket::new(packet));
    }

    pub(crate) fn send_rx(&mut self, packet: RxPacket) {
        assert!(self.stack.handle_packet(self.now, packet).is_none(), "not taken by the stack");
    }

    /// Takes what the stack wants to send now.
    fn drain(&mut self) {
        while let Some(tx) = self.stack.poll_transmit(self.now) {
            if self.queue_is_full {
                self.refused += 1;
                self.stack.handle_refusal(self.now, &tx);
                continue;
            }
            self.sent.extend(tx.segments());
        }
        #[cfg(debug_assertions)]
        assert_eq!(self.stack.complaint(self.now), None);
    }

    /// Lets time pass until something was sent, or `until`.
    fn run_until_sent(&mut self, until: Instant) {
        self.drain();
        while self.sent.is_empty() {
            let next = self.stack.poll_timeout().filter(|at| *at <= until);
            let Some(next) = next else {
                self.now = self.now.max(until);
                return;
            };
            self.now = self.now.max(next);
            self.stack.handle_timeout(self.now);
            self.drain();
        }
    }

    /// The stack sends exactly this now. Returns the packet's header.
    pub(crate) fn expect(&mut self, text: &str) -> TcpHeader {
        self.expect_after(0, text)
    }

    /// The stack sends nothing for `ms`, and exactly then this.
    pub(crate) fn expect_after(&mut self, ms: u64, text: &str) -> TcpHeader {
        self.expect_after_exactly(Duration::from_millis(ms), text)
    }

    pub(crate) fn expect_after_exactly(&mut self, wait: Duration, text: &str) -> TcpHeader {
        let (header, _) = self.expect_packet_after(wait, text);
        header
    }

    /// As [`expect`](Self::expect), with the payload.
    pub(crate) fn expect_bytes(&mut self, text: &str, payload: &[u8]) -> TcpHeader {
        let (header, sent) = self.expect_packet_after(Duration::ZERO, text);
        assert_eq!(sent, payload, "payload of {text}");
        header
    }

    fn expect_packet_after(&mut self, wait: Duration, text: &str) -> (TcpHeader, Bytes) {
        let start = self.now;
        self.run_until_sent(start + wait);
        let Some(packet) = self.sent.pop_front() else {
            panic!("expected after {wait:?}: {text}\n     nothing was sent");
        };
        let (_, header, payload) = wire::parse_tcp_packet(&packet).expect("a stack sends valid packets");
        self.learn(&header);
        let shown = self.show(&header, payload.len());
        let (expected, actual) = (Parsed::new(text), Parsed::new(&shown));
        assert!(
            expected.holds_for(&actual) && self.now == start + wait,
            "expected after {wait:?}: {text}\n   sent after {:?}: {shown}",
            self.now.since(start)
        );
        (header, packet.slice(payload))
    }

    fn learn(&mut self, header: &TcpHeader) {
        if header.flags.contains(Flags::SYN) {
            self.isns.insert(header.dst_port, header.seq);
            if let Some(timestamps) = header.options.timestamps {
                self.ts_bases.entry((header.src_port, header.dst_port)).or_insert(timestamps.tsval);
            }
        }
    }

    /// `text` arrives; the SYN-ACK that answers it at once begins a new connection. Returns its distance from the old one's beginning.
    pub(crate) fn send_and_isn(&mut self, text: &str, answer: &str) -> u32 {
        let old = self.isn(self.remote.port());
        self.send(text);
        self.expect(answer).seq.since(old)
    }

    /// The stack sends a SYN now, and nothing else: its number.
    pub(crate) fn expect_syn(&mut self) -> SeqNum {
        assert_eq!(self.sent_now().len(), 1);
        self.isn(self.remote.port())
    }

    /// The stack sends nothing now.
    pub(crate) fn expect_nothing(&mut self) {
        self.expect_nothing_for(0);
    }

    /// The stack sends nothing for `ms`, which pass.
    pub(crate) fn expect_nothing_for(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        let start = self.now;
        while self.now < until || ms == 0 {
            self.run_until_sent(until);
            if let Some(packet) = self.sent.pop_front() {
                let (_, header, payload) = wire::parse_tcp_packet(&packet).unwrap();
                panic!(
                    "expected nothing, sent after {:?}: {}",
                    self.now.since(start),
                    self.show(&header, payload.len())
                );
            }
            if ms == 0 {
                break;
            }
        }
    }

    /// The stack sends the bytes with these numbers now, in order and in as many segments as it likes, and nothing else.
    pub(crate) fn expect_range(&mut self, numbers: Range<u32>) {
        let sent = self.sent_now();
        let mut next = numbers.start;
        for text in &sent {
            let segment = Parsed::new(text);
            assert_eq!((segment.seq, segment.len > 0), (next, true), "expected {numbers:?}, sent {sent:?}");
            next += segment.len as u32;
        }
        assert_eq!(next, numbers.end, "expected {numbers:?}, sent {sent:?}");
    }

    /// The stack sends this many packets now.
    pub(crate) fn expect_sent(&mut self, count: usize) {
        let sent = self.sent_now();
        assert_eq!(sent.len(), count, "{sent:?}");
    }

    /// The stack sends no more packets than this now.
    pub(crate) fn expect_at_most(&mut self, count: usize) {
        let sent = self.sent_now();
        assert!(sent.len() <= count, "{sent:?}");
    }

    /// The stack sends nothing but acknowledgements now, if anything.
    pub(crate) fn expect_only_acks(&mut self) {
        let sent = self.sent_now();
        let is_ack = |segment: Parsed| segment.flags == Flags::ACK && segment.len == 0;
        assert!(sent.iter().all(|text| is_ack(Parsed::new(text))), "{sent:?}");
    }

    /// The stack sends nothing but data now, if anything.
    pub(crate) fn expect_only_data(&mut self) {
        let sent = self.sent_now();
        assert!(sent.iter().all(|text| Parsed::new(text).len > 0), "{sent:?}");
    }

    /// Everything the stack sends now, as text with window and options.
    #[must_use = "packets that nobody looks at are not tested: say what they are, by one of the expectations"]
    pub(crate) fn sent_now(&mut self) -> Vec<String> {
        self.drain();
        let mut all = Vec::new();
        while let Some(packet) = self.sent.pop_front() {
            let (_, header, payload) = wire::parse_tcp_packet(&packet).unwrap();
            self.learn(&header);
            all.push(self.show(&header, payload.len()));
        }
        all
    }

    /// The next packet the stack sends now, raw.
    #[must_use = "a packet that nobody looks at is not tested"]
    pub(crate) fn take_packet(&mut self) -> Option<Bytes> {
        self.drain();
        let packet = self.sent.pop_front()?;
        if let Ok((_, header, _)) = wire::parse_tcp_packet(&packet) {
            self.learn(&header);
        }
        Some(packet)
    }

    /// Time passes until the stack sends something, which is thrown away, or has nothing to wait for.
    pub(crate) fn skip_until_sent(&mut self) {
        while let Some(at) = self.stack.poll_timeout()
            && self.sent.is_empty()
        {
            self.run_until_sent(at);
        }
        self.sent.clear();
    }

    /// Time passes; what is sent meanwhile is thrown away.
    pub(crate) fn skip(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        while self.now < until {
            self.run_until_sent(until);
            self.sent.clear();
        }
    }

    /// Time passes up to the next packet, at most so much; it has still to be looked at.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.run_until_sent(self.now + Duration::from_millis(ms));
    }

    fn show(&self, header: &TcpHeader, len: usize) -> String {
        let isn = self.isn(header.dst_port);
        let flags: String =
            FLAGS.iter().filter(|(flag, _)| header.flags.contains(*flag)).map(|(_, name)| *name).collect();
        let seq = header.seq.since(isn);
        let mut text = format!("{flags} {seq}:{}({len})", seq.wrapping_add(len as u32));
        if header.flags.contains(Flags::ACK) {
            text += &format!(" ack {}", header.ack.since(PEER_ISN));
        }
        text += &format!(" win {}", header.window);
        let base = self.ts_bases.get(&(header.src_port, header.dst_port)).copied().unwrap_or(0);
        text + " <" + &show_options(&header.options, base) + ">"
    }
}

fn show_options(options: &TcpOptions, ts_base: u32) -> String {
    let mut parts = Vec::new();
    parts.extend(options.mss.map(|mss| format!("mss {mss}")));
    parts.extend(options.sack_permitted.then(|| "sackOK".to_string()));
    parts.extend(options.timestamps.map(|t| format!("TS {} {}", t.tsval.wrapping_sub(ts_base), t.tsecr)));
    parts.extend(options.window_scale.map(|shift| format!("wscale {shift}")));
    if !options.sack.is_empty() {
        let block =
            |(left, right): &(SeqNum, SeqNum)| format!(" {}:{}", left.since(PEER_ISN), right.since(PEER_ISN));
        parts.push(format!("sack{}", options.sack.iter().map(block).collect::<String>()));
    }
    parts.extend(options.fast_open.map(|option| {
        let name = if option.kind == FastOpenKind::Standard { "FO" } else { "FOEXP" };
        option.cookie.map_or(name.to_string(), |cookie| format!("{name} {cookie}"))
    }));
    parts.extend(options.accurate_ecn.map(|option| {
        format!("ECN{}", option.counters().map(|(_, count)| format!(" {count}")).collect::<String>())
    }));
    parts.join(",")
}

impl Parsed {
    pub(crate) fn new(text: &str) -> Parsed {
        let (front, options) = match text.split_once('<') {
            Some((front, rest)) => (front, Some(parse_options(rest.trim_end().trim_end_matches('>')))),
            None => (text, None),
        };
        let mut words = front.split_whitespace();
        let flags = words.next().expect("flags").chars().map(flag_of).collect();
        let (seq, len) = parse_range(words.next().expect("numbers"));
        let mut parsed = Parsed { flags, seq, len, ack: None, win: None, options };
        while let Some(word) = words.next() {
            let value = words.next().unwrap_or_else(|| panic!("value of {word} in {text}"));
            match word {
                "ack" => parsed.ack = Some(value.parse().unwrap()),
                "win" => parsed.win = Some(value.parse().unwrap()),
                _ => panic!("{word} in {text}"),
            }
        }
        parsed
    }

    fn holds_for(&self, actual: &Parsed) -> bool {
        self.flags == actual.flags
            && (self.seq, self.len, self.ack) == (actual.seq, actual.len, actual.ack)
            && self.win.is_none_or(|win| Some(win) == actual.win)
            && self.options.as_ref().is_none_or(|options| Some(options) == actual.options.as_ref())
    }
}

fn flag_of(letter: char) -> Flags {
    FLAGS.iter().find(|(_, name)| *name == letter).unwrap_or_else(|| panic!("flag {letter}")).0
}

/// `1`, `1:11`, `1:11(10)`.
fn parse_range(text: &str) -> (u32, usize) {
    let text = text.split('(').next().unwrap_or(text);
    match text.split_once(':') {
        Some((start, end)) => {
            let (start, end): (u32, u32) = (start.parse().unwrap(), end.parse().unwrap());
            (start, end.wrapping_sub(start) as usize)
        }
        None => (text.parse().unwrap(), 0),
    }
}

fn parse_options(text: &str) -> TcpOptions {
    let mut options = TcpOptions::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let mut words = part.split_whitespace();
        let name = words.next().unwrap();
        let mut number = || words.next().unwrap_or_else(|| panic!("value of {part}"));
        match name {
            "mss" => options.mss = Some(number().parse().unwrap()),
            "wscale" => options.window_scale = Some(number().parse().unwrap()),
            "sackOK" => options.sack_permitted = true,
            "TS" => {
                let (tsval, tsecr) = (number().parse().unwrap(), number().parse().unwrap());
                options.timestamps = Some(Timestamps { tsval, tsecr });
            }
            "sack" => {
                options.sack = words
                    .map(|block| block.split_once(':').expect("left:right"))
                    .map(|(left, right)| (SeqNum(left.parse().unwrap()), SeqNum(right.parse().unwrap())))
                    .collect();
            }
            "FO" | "FOEXP" => {
                let kind = if name == "FO" { FastOpenKind::Standard } else { FastOpenKind::Experimental };
                options.fast_open = Some(FastOpenOption { kind, cookie: words.next().map(parse_cookie) });
            }
            "ECN" => {
                let counters: Vec<u32> = words.map(|word| word.parse().unwrap()).collect();
                let at = |codepoint| match codepoint {
                    Ecn::Ect1 => counters[0],
                    Ecn::Ce => counters[1],
                    _ => counters[2],
                };
                let order = AccurateEcnOrder::Ect1First;
                options.accurate_ecn = Some(AccurateEcnOption::new(order, counters.len(), at));
            }
            _ => panic!("option {part}"),
        }
    }
    options
}

fn parse_cookie(hex: &str) -> Cookie {
    let bytes: Vec<u8> =
        (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
    Cookie::new(&bytes).expect("4 to 16 bytes")
}
