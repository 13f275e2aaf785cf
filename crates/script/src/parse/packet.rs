//! Packets: direction, what is said of IP, then a TCP segment or an ICMP error.

use super::Parser;
use crate::ast::{Body, Direction, Icmp, Ip, Packet, Segment, TcpOption, Tos};
use crate::lex::Token;
use crate::options::counter_names;
use crate::problem::Problem;
use wire::{AccurateEcnOrder, Ecn, Flags, TCP_OPTIONS_MAX};

impl Parser<'_> {
    pub(super) fn packet(&mut self, direction: Direction) -> Result<Packet, Problem> {
        self.next += 1;
        let ip = self.ip()?;
        for other in ["ipv4", "ipv6", "gre", "GREv0", "mpls", "udp", "encap"] {
            if matches!(self.peek(), Some(Token::Word(word)) if word == other) {
                return Err(
                    self.problem(format!("`{other}`: only TCP and ICMP directly over IP are understood"))
                );
            }
        }
        let body =
            if self.word("icmp") { Body::Icmp(self.icmp()?) } else { Body::Tcp(self.segment(direction)?) };
        Ok(Packet { direction, ip, body })
    }

    fn ip(&mut self) -> Result<Ip, Problem> {
        let mut ip = Ip::default();
        let close = match self.peek() {
            Some(Token::Sign('[')) => ']',
            Some(Token::Sign('(')) => ')',
            _ => return Ok(ip),
        };
        self.next += 1;
        loop {
            let place = self.place();
            match self
                .any_word("`noecn`, `ect0`, `ect1`, `ect01`, `ce`, `tos`, `ttl` or `flowlabel`")?
                .as_str()
            {
                "noecn" => ip.tos = Some(Tos::Ecn(Ecn::NotEct)),
                "ect0" => ip.tos = Some(Tos::Ecn(Ecn::Ect0)),
                "ect1" => ip.tos = Some(Tos::Ecn(Ecn::Ect1)),
                "ce" => ip.tos = Some(Tos::Ecn(Ecn::Ce)),
                "ect01" => ip.tos = Some(Tos::Ect01),
                "tos" => ip.tos = Some(Tos::Byte(self.hex("a traffic class", 0xff)? as u8)),
                "ttl" => ip.ttl = Some(self.number("a TTL")?),
                "flowlabel" => ip.flow_label = Some(self.hex("a flow label", 0xf_ffff)? as u32),
                other => {
                    let message = format!("`{other}` says nothing of an IP header");
                    return Err(Problem::new(self.source, place, message));
                }
            }
            if !self.sign(',') {
                self.expect(close)?;
                return Ok(ip);
            }
        }
    }

    fn segment(&mut self, direction: Direction) -> Result<Segment, Problem> {
        let ports = self.ports()?;
        let (flags, ace) = self.flags()?;
        let (seq, len) = self.sequence()?;
        let place = self.place();
        let ack = if self.word("ack") { Some(self.number("an acknowledgment number")?) } else { None };
        if ack.is_some() && direction == Direction::In && !flags.contains(Flags::ACK) {
            let message =
                "a packet that comes in has `ack …` with the flag `.` only: add it, or leave `ack` out";
            return Err(Problem::new(self.source, place, message));
        }
        let place = self.place();
        let window = if self.word("win") { Some(self.number("a window")?) } else { None };
        if window.is_none() && direction == Direction::In {
            return Err(Problem::new(self.source, place, "a packet that comes in needs its window: `win …`"));
        }
        let urgent = if self.word("urg") { Some(self.number("an urgent pointer")?) } else { None };
        let options = self.options()?;
        Ok(Segment { ports, flags, ace, seq, len, ack, window, urgent, options })
    }

    fn ports(&mut self) -> Result<Option<(u16, u16)>, Problem> {
        if self.peek_at(1) != Some(&Token::Sign('>')) {
            return Ok(None);
        }
        let from = self.number("a port")?;
        self.expect('>')?;
        Ok(Some((from, self.number("a port")?)))
    }

    /// `SFRPEWAU`, `.` for ACK, a digit for accurate ECN's counter, or `-` for none.
    fn flags(&mut self) -> Result<(Flags, bool), Problem> {
        let place = self.place();
        let mut text = String::new();
        if self.sign('-') {
            return Ok((Flags::empty(), false));
        }
        if let Some(Token::Word(word)) = self.peek() {
            text.push_str(word);
            self.next += 1;
        }
        if !text.contains('.') {
            if self.sign('.') {
                text.push('.');
            } else if let Some(Token::Word(word)) = self.peek()
                && word.starts_with('.')
            {
                text.push_str(word);
                self.next += 1;
            }
        }
        if text.is_empty() {
            return Err(
                self.problem("TCP flags are expected: letters of `SFRPEWAU`, `.` for ACK, or `-` for none")
            );
        }
        let mut flags = Flags::empty();
        let mut ace = None;
        for c in text.chars() {
            flags |= match c {
                'S' => Flags::SYN,
                'F' => Flags::FIN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                '.' => Flags::ACK,
                'U' => Flags::URG,
                'E' => Flags::ECE,
                'W' => Flags::CWR,
                'A' => Flags::AE,
                '0'..='7' if ace.is_none() => {
                    let count = c.to_digit(8).unwrap_or(0);
                    ace = Some(count);
                    ace_flags(count)
                }
                other => {
                    return Err(Problem::new(self.source, place, format!("`{other}` is no TCP flag")));
                }
            };
        }
        if ace.is_some() && text.contains(['E', 'W', 'A']) {
            return Err(Problem::new(
                self.source,
                place,
                "`E`, `W`, `A` and a count of accurate ECN exclude each other",
            ));
        }
        Ok((flags, ace.is_some()))
    }

    /// `first:behind(length)`.
    fn sequence(&mut self) -> Result<(u32, u16), Problem> {
        let first: u32 = self.number("the first sequence number")?;
        self.expect(':')?;
        let place = self.place();
        let behind: u32 = self.number("the sequence number behind the payload")?;
        self.expect('(')?;
        let len: u16 = self.number("the payload's length")?;
        self.expect(')')?;
        if first.wrapping_add(len.into()) != behind {
            let sum = first.wrapping_add(len.into());
            let message = format!("{first} and {len} bytes make {sum}, not {behind}");
            return Err(Problem::new(self.source, place, message));
        }
        Ok((first, len))
    }

    /// `<option,…>`, `<...>`, or nothing.
    fn options(&mut self) -> Result<Option<Vec<TcpOption>>, Problem> {
        let mut options = Vec::new();
        let place = self.place();
        // The next event's packet may begin with `<` only after its time.
        if !self.sign('<') {
            return Ok(Some(options));
        }
        if self.peek() == Some(&Token::Ellipsis) {
            self.next += 1;
            self.expect('>')?;
            return Ok(None);
        }
        loop {
            options.push(self.option()?);
            if !self.sign(',') {
                break;
            }
        }
        self.expect('>')?;
        let bytes: usize = options.iter().map(TcpOption::wire_len).sum();
        let problem = |message| Err(Problem::new(self.source, place, message));
        match bytes {
            0..=TCP_OPTIONS_MAX if bytes.is_multiple_of(4) => Ok(Some(options)),
            0..=TCP_OPTIONS_MAX => {
                problem(format!("the options take {bytes} bytes: fill up to a multiple of 4 with `nop`"))
            }
            _ => problem(format!("the options take {bytes} bytes, and {TCP_OPTIONS_MAX} are the most")),
        }
    }

    fn option(&mut self) -> Result<TcpOption, Problem> {
        let place = self.place();
        Ok(match self.any_word("a TCP option")?.as_str() {
            "nop" => TcpOption::Nop,
            "eol" => TcpOption::End,
            "mss" => TcpOption::Mss(self.number("an MSS")?),
            "wscale" => TcpOption::WindowScale(self.number("a window scale")?),
            "sackOK" => TcpOption::SackPermitted,
            "sack" => TcpOption::Sack(self.sack()?),
            "TS" => {
                self.keyword("val")?;
                let val = self.number("a TSval")?;
                self.keyword("ecr")?;
                TcpOption::Timestamps { val, ecr: self.number("a TSecr")? }
            }
            "md5" => TcpOption::Md5(self.blob(16, 16)?),
            "FO" => TcpOption::FastOpen(self.blob(0, 32)?),
            "FOEXP" => TcpOption::FastOpenExperimental(self.blob(0, 32)?),
            "ECN" => self.accurate_ecn()?,
            other => {
                let message = format!(
                    "`{other}` is none of the TCP options known here: nop, eol, mss, wscale, sackOK, sack, TS, md5, FO, FOEXP, ECN"
                );
                return Err(Problem::new(self.source, place, message));
            }
        })
    }

    /// `e0b N ceb N e1b N` or the other way round, of which the end may be left out.
    fn accurate_ecn(&mut self) -> Result<TcpOption, Problem> {
        let order = match self.is_next("e0b") {
            true => AccurateEcnOrder::Ect0First,
            false => AccurateEcnOrder::Ect1First,
        };
        let mut counters = Vec::new();
        for name in counter_names(order) {
            if !counters.is_empty() && !self.is_next(name) {
                break;
            }
            self.keyword(name)?;
            let place = self.place();
            let counter: u32 = self.number("a count of bytes")?;
            if counter >> 24 != 0 {
                let message = format!("{counter} does not fit into the 24 bits of the counter");
                return Err(Problem::new(self.source, place, message));
            }
            counters.push(counter);
        }
        Ok(TcpOption::AccurateEcn { order, counters })
    }

    fn keyword(&mut self, wanted: &str) -> Result<(), Problem> {
        if self.word(wanted) { Ok(()) } else { Err(self.problem(format!("`{wanted}` is expected"))) }
    }

    fn sack(&mut self) -> Result<Vec<(u32, u32)>, Problem> {
        let mut blocks = Vec::new();
        while blocks.is_empty() || matches!(self.peek(), Some(Token::Word(_))) {
            let left = self.number("the left edge of a SACK block")?;
            self.expect(':')?;
            blocks.push((left, self.number("the right edge of a SACK block")?));
        }
        Ok(blocks)
    }

    /// Hexadecimal digits, of so many bytes.
    fn blob(&mut self, least: usize, most: usize) -> Result<Vec<u8>, Problem> {
        let Some(Token::Word(text)) = self.peek().cloned() else {
            return if least == 0 {
                Ok(Vec::new())
            } else {
                Err(self.problem("hexadecimal digits are expected"))
            };
        };
        let pairs = (0..text.len()).step_by(2);
        let bytes: Option<Vec<u8>> =
            pairs.map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect();
        match bytes {
            Some(bytes) if (least..=most).contains(&bytes.len()) => {
                self.next += 1;
                Ok(bytes)
            }
            _ => Err(self.problem(format!(
                "an even number of hexadecimal digits is expected, {least} to {most} bytes"
            ))),
        }
    }

    fn icmp(&mut self) -> Result<Icmp, Problem> {
        let kind = self.any_word("a type of ICMP")?;
        let mut icmp = Icmp { kind, code: None, mtu: None, id: None, quote: None };
        if !self.is_next("mtu")
            && !self.is_next("id")
            && matches!(self.peek(), Some(Token::Word(word)) if !is_time(word))
        {
            icmp.code = Some(self.any_word("a code of ICMP")?);
        }
        if self.word("mtu") {
            icmp.mtu = Some(self.number("an MTU")?);
        }
        if self.word("id") {
            icmp.id = Some(self.number("an echo's identifier")?);
        }
        if self.sign('[') {
            icmp.quote = Some(self.sequence()?);
            self.expect(']')?;
        }
        Ok(icmp)
    }

    fn is_next(&self, wanted: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(word)) if word == wanted)
    }
}

/// The next event may begin behind.
fn is_time(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// Accurate ECN's counter: AE, CWR, ECE from the highest bit.
fn ace_flags(count: u32) -> Flags {
    let mut flags = Flags::empty();
    flags.set(Flags::ECE, count & 1 != 0);
    flags.set(Flags::CWR, count & 2 != 0);
    flags.set(Flags::AE, count & 4 != 0);
    flags
}
