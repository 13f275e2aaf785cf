//! Every TCP option as values: parsing and emission.
use super::raw_options::{FAST_OPEN_EXID, RawOption, RawOptions, kind};
use super::{AccurateEcnOption, FastOpenKind, FastOpenOption, SackBlocks, TCP_OPTIONS_MAX, UnknownOptions};
use crate::SeqNum;
use smallvec::SmallVec;

/// TSval and TSecr (RFC 7323).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval
    pub tsval: u32,
    /// TSecr
    pub tsecr: u32,
}

impl Timestamps {
    fn from_bytes([v0, v1, v2, v3, e0, e1, e2, e3]: [u8; 8]) -> Timestamps {
        Timestamps {
            tsval: u32::from_be_bytes([v0, v1, v2, v3]),
            tsecr: u32::from_be_bytes([e0, e1, e2, e3]),
        }
    }

    fn to_bytes(self) -> [u8; 8] {
        (u64::from(self.tsval) << 32 | u64::from(self.tsecr)).to_be_bytes()
    }
}

/// What comes before the values when timestamps are the only option, as of nearly every segment of a connection (RFC 7323
/// appendix A), and how long it is with them.
const LONE_TIMESTAMPS: [u8; 4] = [kind::NOP, kind::NOP, kind::TIMESTAMPS, 10];
const LONE_TIMESTAMPS_LEN: usize = 12;

#[inline(always)]
pub(crate) fn lone_timestamps(bytes: &[u8]) -> Option<Timestamps> {
    let whole: &[u8; LONE_TIMESTAMPS_LEN] = bytes.try_into().ok()?;
    let [p0, p1, p2, p3, values @ ..] = *whole;
    ([p0, p1, p2, p3] == LONE_TIMESTAMPS).then(|| Timestamps::from_bytes(values))
}

/// Bytes of the usual options of a SYN: MSS, SACK permitted with timestamps, window scale.
pub const USUAL_SYN_LEN: usize = 20;

/// The usual options of a SYN: MSS, SACK permitted, timestamps, window scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsualSyn {
    /// See [`TcpOptions::mss`].
    pub mss: u16,
    /// See [`TcpOptions::window_scale`].
    pub window_scale: u8,
    /// See [`TcpOptions::timestamps`].
    pub timestamps: Timestamps,
}

impl UsualSyn {
    /// Parses the usual options in the usual order, if these bytes between the fixed header and the
    /// payload contain nothing else.
    #[inline(always)]
    pub fn read(bytes: &[u8]) -> Option<UsualSyn> {
        let whole: &[u8; USUAL_SYN_LEN] = bytes.try_into().ok()?;
        UsualSyn::of(whole)
    }

    #[inline(always)]
    fn of(bytes: &[u8; USUAL_SYN_LEN]) -> Option<UsualSyn> {
        let [k0, k1, m0, m1, k2, k3, k4, k5, v0, v1, v2, v3, e0, e1, e2, e3, k6, k7, k8, shift] = *bytes;
        let kinds = u64::from_be_bytes([k0, k1, k2, k3, k4, k5, k6, k7]);
        (kinds == USUAL_SYN_KINDS && k8 == 3).then(|| UsualSyn {
            mss: u16::from_be_bytes([m0, m1]),
            window_scale: shift,
            timestamps: Timestamps::from_bytes([v0, v1, v2, v3, e0, e1, e2, e3]),
        })
    }

    fn to_bytes(self) -> [u8; USUAL_SYN_LEN] {
        let [m0, m1] = self.mss.to_be_bytes();
        let [v0, v1, v2, v3, e0, e1, e2, e3] = self.timestamps.to_bytes();
        let [k0, k1, k2, k3, k4, k5, k6, k7] = USUAL_SYN_KINDS.to_be_bytes();
        let shift = self.window_scale;
        [k0, k1, m0, m1, k2, k3, k4, k5, v0, v1, v2, v3, e0, e1, e2, e3, k6, k7, 3, shift]
    }
}

/// What comes before the values: kinds and lengths, in the usual order, but for the length of the window scale.
const USUAL_SYN_KINDS: u64 = u64::from_be_bytes([
    kind::MSS,
    4,
    kind::SACK_PERMITTED,
    2,
    kind::TIMESTAMPS,
    10,
    kind::NOP,
    kind::WINDOW_SCALE,
]);

/// Bytes of the cookies that nearly all servers make.
pub const USUAL_COOKIE_LEN: usize = 8;

/// A Fast Open option with such a cookie, and what fills its last word.
const USUAL_COOKIE_WORDS: usize = USUAL_COOKIE_LEN + 4;

/// The cookie of a Fast Open option, if there is nothing else but what fills its last word.
#[inline(always)]
fn usual_cookie(bytes: &[u8]) -> Option<[u8; USUAL_COOKIE_LEN]> {
    let whole: &[u8; USUAL_COOKIE_WORDS] = bytes.try_into().ok()?;
    let [fast_open, len, cookie @ .., n0, n1] = *whole;
    ([fast_open, len, n0, n1] == [kind::FAST_OPEN, 10, kind::NOP, kind::NOP]).then_some(cookie)
}

fn lone_cookie(bytes: &[u8]) -> Option<FastOpenOption> {
    FastOpenOption::from_body(FastOpenKind::Standard, &usual_cookie(bytes)?)
}

/// All options of a segment.
///
/// Parsed like Linux does: of two options of one kind the last counts, and an option that exceeds
/// the header ends the parsing (earlier options are kept). An option with an invalid length counts
/// as unknown.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// Maximum segment size (kind 2), as received (may be 0, which Linux ignores).
    pub mss: Option<u16>,
    /// Window scale (kind 3), as received (may exceed 14; the engine clamps).
    pub window_scale: Option<u8>,
    /// SACK permitted (kind 4).
    pub sack_permitted: bool,
    /// SACK blocks (kind 5), [left, right).
    pub sack: SackBlocks,
    /// Timestamps (kind 8).
    pub timestamps: Option<Timestamps>,
    /// The Fast Open option (kind 34 or 254/0xF989). With an invalid length (RFC 7413 §4.1.1) the
    /// option is ignored and this field is not changed. It is parsed on any segment, but the engine
    /// uses it only on SYNs.
    pub fast_open: Option<FastOpenOption>,
    /// Accurate ECN (kinds 172 and 174).
    pub accurate_ecn: Option<AccurateEcnOption>,
    /// MD5 (kind 19) present. The option itself is kept in `unknown`, and emitted from there.
    pub md5: bool,
    /// TCP-AO (kind 29) present. The option itself is kept in `unknown`, and emitted from there.
    pub ao: bool,
    /// Other options, (kind, body), in order of arrival. Malformed known options also land here.
    pub unknown: UnknownOptions,
}

impl TcpOptions {
    /// Parses the bytes between the fixed header and the payload.
    #[inline(always)]
    pub fn parse(bytes: &[u8]) -> TcpOptions {
        match lone_timestamps(bytes) {
            Some(timestamps) => TcpOptions { timestamps: Some(timestamps), ..TcpOptions::default() },
            None => TcpOptions::parse_all(bytes),
        }
    }

    fn parse_all(bytes: &[u8]) -> TcpOptions {
        let mut options = TcpOptions::default();
        options.read(bytes);
        options
    }

    /// Adds the options in these bytes between the fixed header and the payload, like
    /// [`parse`](Self::parse). Parses options in place without moving them.
    #[inline(never)]
    pub fn read(&mut self, bytes: &[u8]) {
        let usual = bytes.split_first_chunk().and_then(|(usual, rest)| Some((UsualSyn::of(usual)?, rest)));
        let Some((usual, rest)) = usual else { return self.walk(bytes) };
        self.mss = Some(usual.mss);
        self.window_scale = Some(usual.window_scale);
        self.sack_permitted = true;
        self.timestamps = Some(usual.timestamps);
        match lone_cookie(rest) {
            None => self.walk(rest),
            cookie => self.fast_open = cookie,
        }
    }

    /// Takes one option after the other.
    fn walk(&mut self, bytes: &[u8]) {
        for option in RawOptions::new(bytes) {
            if let RawOption::Body(kind, body) = option {
                self.take(kind, body);
            }
        }
    }

    fn take(&mut self, kind: u8, body: &[u8]) {
        match (kind, body) {
            (kind::MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (kind::WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift),
            (kind::SACK_PERMITTED, []) => self.sack_permitted = true,
            (kind::SACK, blocks) if !blocks.is_empty() && blocks.len() % 8 == 0 => {
                self.sack = blocks.as_chunks().0.iter().map(sack_block).collect();
            }
            (kind::TIMESTAMPS, &[v0, v1, v2, v3, e0, e1, e2, e3]) => {
                self.timestamps = Some(Timestamps::from_bytes([v0, v1, v2, v3, e0, e1, e2, e3]));
            }
            (kind::FAST_OPEN, cookie) => self.take_fast_open(FastOpenKind::Standard, cookie, kind, body),
            (kind::EXPERIMENT, [e0, e1, cookie @ ..]) if [*e0, *e1] == FAST_OPEN_EXID => {
                self.take_fast_open(FastOpenKind::Experimental, cookie, kind, body);
            }
            (kind::ACCURATE_ECN_0 | kind::ACCURATE_ECN_1, counters) => {
                self.accurate_ecn = AccurateEcnOption::from_body(kind, counters);
            }
            _ => {
                self.md5 |= kind == kind::MD5;
                self.ao |= kind == kind::AO;
                self.take_unknown(kind, body);
            }
        }
    }

    fn take_fast_open(&mut self, format: FastOpenKind, cookie: &[u8], kind: u8, body: &[u8]) {
        match FastOpenOption::from_body(format, cookie) {
            Some(option) => self.fast_open = Some(option),
            None => self.take_unknown(kind, body),
        }
    }

    fn take_unknown(&mut self, kind: u8, body: &[u8]) {
        self.unknown.push((kind, SmallVec::from_slice(body)));
    }

    /// Returns the length when emitted, a multiple of 4. More than 40 bytes cannot be sent.
    ///
    /// The order is Linux's: MSS; SACK-permitted with timestamps, or NOP NOP and timestamps;
    /// Accurate ECN; NOP NOP SACK-permitted; NOP window scale; NOP NOP SACK blocks; unknown
    /// options; Fast Open. NOPs fill the last word. Accurate ECN bytes beyond whole words replace
    /// NOPs that follow. The inner NOPs are left out only if the options would exceed 40 bytes, so
    /// that all parsed options can be emitted.
    pub fn emit_len(&self) -> usize {
        match self.usual() {
            Some(Usual::Nothing) => 0,
            Some(Usual::Timestamps(_)) => LONE_TIMESTAMPS_LEN,
            Some(Usual::Syn(_)) => USUAL_SYN_LEN + self.fast_open_words(),
            None => self.layout().1,
        }
    }

    /// The sets of options that nearly all segments have.
    fn usual(&self) -> Option<Usual> {
        if !self.sack.is_empty() || self.accurate_ecn.is_some() || !self.unknown.is_empty() {
            return None;
        }
        match (self.timestamps, self.mss, self.window_scale, self.sack_permitted) {
            (Some(timestamps), Some(mss), Some(window_scale), true) => {
                Some(Usual::Syn(UsualSyn { mss, window_scale, timestamps }))
            }
            _ if self.fast_open.is_some() => None,
            (None, None, None, false) => Some(Usual::Nothing),
            (Some(timestamps), None, None, false) => Some(Usual::Timestamps(timestamps)),
            _ => None,
        }
    }

    /// Those that nearly every SYN has, if there is nothing else but perhaps Fast Open.
    pub(crate) fn usual_syn(&self) -> Option<UsualSyn> {
        match self.usual() {
            Some(Usual::Syn(usual)) => Some(usual),
            _ => None,
        }
    }

    /// Bytes of the Fast Open option behind options of whole words.
    fn fast_open_words(&self) -> usize {
        self.fast_open.map_or(0, |option| option.words_len())
    }

    /// How the options are aligned, and the bytes they take so.
    fn layout(&self) -> (Alignment, usize) {
        let aligned = self.len_as(Alignment::Words);
        if aligned <= TCP_OPTIONS_MAX {
            (Alignment::Words, aligned)
        } else {
            (Alignment::Packed, self.len_as(Alignment::Packed))
        }
    }

    fn len_as(&self, alignment: Alignment) -> usize {
        let nops = |count: usize| if alignment == Alignment::Words { count } else { 0 };
        let mss = self.mss.map_or(0, |_| 4);
        let accurate_ecn = self.accurate_ecn.map_or(0, |option| match alignment {
            Alignment::Words => self.words_of(option),
            Alignment::Packed => option.emit_len(),
        });
        let sack_permitted_timestamps = match (self.sack_permitted, self.timestamps) {
            (true, Some(_)) => 2 + 10,
            (true, None) => nops(2) + 2,
            (false, Some(_)) => nops(2) + 10,
            (false, None) => 0,
        };
        let window_scale = self.window_scale.map_or(0, |_| nops(1) + 3);
        let sack = if self.sack.is_empty() { 0 } else { nops(2) + 2 + 8 * self.sack.len() };
        let unknown: usize = self.unknown.iter().map(|(_, body)| 2 + body.len()).sum();
        let fast_open = self.fast_open.map_or(0, |option| option.emit_len());
        let usual = mss + sack_permitted_timestamps + window_scale + sack;
        (usual + accurate_ecn + unknown + fast_open).next_multiple_of(4)
    }

    /// Bytes that Accurate ECN takes beside NOPs of other options, in whole words.
    fn words_of(&self, option: AccurateEcnOption) -> usize {
        let (words, rest) = (option.emit_len() & !3, option.emit_len() & 3);
        let two = self.sack_permitted && self.timestamps.is_none() || !self.sack.is_empty();
        let room = if two { 2 } else { usize::from(self.window_scale.is_some()) };
        words + if rest > room { 4 } else { 0 }
    }

    /// Writes the options to the front of `buf` and returns their length.
    ///
    /// # Panics
    /// If that is more than 40, or `buf` is shorter.
    pub(super) fn emit(&self, buf: &mut [u8]) -> usize {
        match self.usual() {
            Some(Usual::Nothing) => 0,
            Some(Usual::Syn(syn)) => {
                let (usual, behind) = buf.split_at_mut(USUAL_SYN_LEN);
                usual.copy_from_slice(&syn.to_bytes());
                USUAL_SYN_LEN + self.fast_open.map_or(0, |option| option.emit_last(behind))
            }
            Some(Usual::Timestamps(timestamps)) => {
                let (prefix, values) = buf[..LONE_TIMESTAMPS_LEN].split_at_mut(LONE_TIMESTAMPS.len());
                prefix.copy_from_slice(&LONE_TIMESTAMPS);
                values.copy_from_slice(&timestamps.to_bytes());
                LONE_TIMESTAMPS_LEN
            }
            None => self.emit_all(buf),
        }
    }

    fn emit_all(&self, buf: &mut [u8]) -> usize {
        let (alignment, len) = self.layout();
        assert!(len <= TCP_OPTIONS_MAX, "{len} bytes of TCP options");
        let mut out = Writer::new(alignment, &mut buf[..len]);
        if let Some(mss) = self.mss {
            out.put(&[kind::MSS, 4]);
            out.put(&mss.to_be_bytes());
        }
        if let Some(timestamps) = self.timestamps {
            match self.sack_permitted {
                true => out.put(&[kind::SACK_PERMITTED, 2]),
                false => out.put_nops(2),
            }
            out.put(&[kind::TIMESTAMPS, 10]);
            out.put(&timestamps.to_bytes());
        }
        if let Some(option) = self.accurate_ecn {
            out.put_accurate_ecn(option);
        }
        if self.sack_permitted && self.timestamps.is_none() {
            out.put_nops(2);
            out.put(&[kind::SACK_PERMITTED, 2]);
        }
        if let Some(shift) = self.window_scale {
            out.put_nops(1);
            out.put(&[kind::WINDOW_SCALE, 3, shift]);
        }
        if !self.sack.is_empty() {
            out.put_nops(2);
            out.put(&[kind::SACK, (2 + 8 * self.sack.len()) as u8]);
            for (left, right) in self.sack.iter() {
                out.put(&left.0.to_be_bytes());
                out.put(&right.0.to_be_bytes());
            }
        }
        out.put_waiting();
        for (kind, body) in self.unknown.iter() {
            out.put(&[*kind, (2 + body.len()) as u8]);
            out.put(body);
        }
        match self.fast_open {
            Some(option) => out.end_with(option),
            None => out.rest.fill(kind::NOP),
        }
        len
    }
}

enum Usual {
    Nothing,
    Timestamps(Timestamps),
    /// And perhaps Fast Open.
    Syn(UsualSyn),
}

impl FastOpenOption {
    /// Its bytes behind options of whole words, with NOPs up to the next.
    #[inline]
    pub fn words_len(&self) -> usize {
        self.emit_len().next_multiple_of(4)
    }

    /// Writes it, and NOPs up to the next word, behind options of whole words; returns how much that is.
    #[inline(always)]
    pub(crate) fn emit_last(&self, buf: &mut [u8]) -> usize {
        if let (FastOpenKind::Standard, Some(cookie)) = (self.kind, &self.cookie)
            && let Some(cookie) = cookie.usual_bytes()
            && let Some(place) = buf.first_chunk_mut::<USUAL_COOKIE_WORDS>()
        {
            let [c0, c1, c2, c3, c4, c5, c6, c7] = cookie;
            *place = [kind::FAST_OPEN, 10, c0, c1, c2, c3, c4, c5, c6, c7, kind::NOP, kind::NOP];
            return USUAL_COOKIE_WORDS;
        }
        self.emit_any_last(buf)
    }

    #[inline(never)]
    fn emit_any_last(&self, buf: &mut [u8]) -> usize {
        let len = self.words_len();
        Writer::new(Alignment::Words, &mut buf[..len]).end_with(*self);
        len
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Alignment {
    /// Options whose length Linux pads start where their values lie on words.
    Words,
    /// No NOP except at the end.
    Packed,
}

fn sack_block(block: &[u8; 8]) -> (SeqNum, SeqNum) {
    let [l0, l1, l2, l3, r0, r1, r2, r3] = *block;
    (SeqNum(u32::from_be_bytes([l0, l1, l2, l3])), SeqNum(u32::from_be_bytes([r0, r1, r2, r3])))
}

struct Writer<'a> {
    alignment: Alignment,
    rest: &'a mut [u8],
    /// The end of an option beyond whole words, and its length: it goes where NOPs would.
    waiting: ([u8; 2], usize),
}

impl<'a> Writer<'a> {
    fn new(alignment: Alignment, rest: &'a mut [u8]) -> Writer<'a> {
        Writer { alignment, rest, waiting: ([kind::NOP; 2], 0) }
    }

    /// The last option, and NOPs behind it.
    fn end_with(mut self, option: FastOpenOption) {
        self.put_fast_open(option);
        self.rest.fill(kind::NOP);
    }

    fn put(&mut self, bytes: &[u8]) {
        let (written, rest) = core::mem::take(&mut self.rest).split_at_mut(bytes.len());
        written.copy_from_slice(bytes);
        self.rest = rest;
    }

    fn put_nops(&mut self, count: usize) {
        if self.alignment == Alignment::Packed {
            return;
        }
        let (waiting, len) = self.waiting;
        if len <= count {
            self.waiting = ([kind::NOP; 2], 0);
            return self.put(&waiting[..count]);
        }
        self.put(&[kind::NOP; 2][..count]);
    }

    /// What has found no NOPs takes a word of its own.
    fn put_waiting(&mut self) {
        if self.waiting.1 > 0 {
            self.put_nops(2);
            self.put_nops(2);
        }
    }

    fn put_accurate_ecn(&mut self, option: AccurateEcnOption) {
        let (bytes, len) = option.to_bytes();
        let rest = if self.alignment == Alignment::Packed { 0 } else { len & 3 };
        match rest {
            // As three bytes fit beside no other option, a NOP follows them.
            3 => {
                self.put(&bytes[..len]);
                self.put(&[kind::NOP]);
            }
            rest => {
                self.put(&bytes[..len - rest]);
                self.waiting.0[..rest].copy_from_slice(&bytes[len - rest..len]);
                self.waiting.1 = rest;
            }
        }
    }

    fn put_fast_open(&mut self, option: FastOpenOption) {
        let len = option.emit_len() as u8;
        match option.kind {
            FastOpenKind::Standard => self.put(&[kind::FAST_OPEN, len]),
            FastOpenKind::Experimental => {
                self.put(&[kind::EXPERIMENT, len]);
                self.put(&FAST_OPEN_EXID);
            }
        }
        if let Some(cookie) = option.cookie {
            self.put(cookie.as_bytes());
        }
    }
}
