//! The cache of paths as text: one line each, with `key value` pairs after the addresses, in any
//! order.
//!
//! The first line is `firstbyte paths 1`, optionally followed by `saved` and seconds since the Unix
//! epoch. Lines that begin with `#` and empty lines are ignored. The version changes if an older
//! reader would misunderstand the text. An unknown word is an error.

use super::{PathRecord, Paths, VerdictRecord};
use crate::config::Value;
use crate::errors::sentences;
use crate::fast_open::{PathEntry, TryExperimental};
use crate::{Instant, Verdict};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use core::str::{FromStr, SplitWhitespace};
use core::time::Duration;
use wire::{Cookie, FastOpenKind};

/// The version this code writes, and reads.
const VERSION: &str = "1";

/// The reason why a text is not a cache of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathsError {
    /// The line, counted from 1.
    pub line: usize,
    /// The mistake in that line.
    pub why: String,
}

sentences! { PathsError { PathsError { line, why } => format_args!("line {line}: {why}"), } }

const VERDICTS: [(&str, Verdict); 6] = [
    ("dropped", Verdict::Dropped),
    ("not-acknowledged", Verdict::NotAcknowledged),
    ("stripped", Verdict::Stripped),
    ("reset", Verdict::Reset),
    ("stalled", Verdict::Stalled),
    ("syn-fin", Verdict::SynFin),
];

impl fmt::Display for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "firstbyte paths {VERSION}")?;
        match self.saved {
            Some(saved) => writeln!(f, " saved {}", saved.as_secs())?,
            None => writeln!(f)?,
        }
        self.paths.iter().try_for_each(|path| writeln!(f, "{path}"))?;
        self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))
    }
}

impl fmt::Display for PathRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {} {} used {}", self.local, self.peer, self.used.show())?;
        let mut pair =
            |name: &str, value: Option<String>| value.map_or(Ok(()), |value| write!(f, " {name} {value}"));
        pair("cookie", self.cookie.map(|cookie| cookie.to_string()))?;
        pair("kind", (self.kind == FastOpenKind::Experimental).then(|| "experimental".to_owned()))?;
        pair("mss", self.mss.map(|bytes| bytes.to_string()))?;
        pair(
            "ask",
            match self.try_experimental {
                TryExperimental::Untried => None,
                TryExperimental::Next => Some("experimental".to_owned()),
                TryExperimental::Done => Some("standard".to_owned()),
            },
        )?;
        pair("syn_drops", (self.syn_drops > 0).then(|| self.syn_drops.to_string()))?;
        pair("last_syn_drop", self.last_syn_drop.map(|age| age.show()))?;
        pair("syn_data", self.syn_data_passed.then(|| "passed".to_owned()))?;
        pair("rtt", self.rtt.map(|rtt| rtt.show()))?;
        pair("rttvar", (!self.rttvar.is_zero()).then(|| self.rttvar.show()))?;
        pair("ssthresh", self.ssthresh.map(|segments| segments.to_string()))?;
        pair("cwnd", self.cwnd.map(|segments| segments.to_string()))?;
        pair("reordering", self.reordering.map(|segments| segments.to_string()))?;
        pair("age", Some(self.age.show()))?;
        pair("mtu", self.path_mtu.map(|(bytes, _)| bytes.to_string()))?;
        pair("mtu_told", self.path_mtu_locked.then(|| "less".to_owned()))?;
        pair("mtu_age", self.path_mtu.map(|(_, age)| age.show()))
    }
}

impl fmt::Display for VerdictRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason =
            VERDICTS.iter().find(|(_, verdict)| *verdict == self.reason).map_or("", |(word, _)| word);
        let (age, length) = (self.age.show(), self.length.show());
        let VerdictRecord { network, peer, port, count, .. } = self;
        write!(f, "verdict {network} {peer} {port} {reason} count {count} age {age} length {length}")
    }
}

impl FromStr for Paths {
    type Err = PathsError;
    fn from_str(text: &str) -> Result<Paths, PathsError> {
        let mut lines =
            (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let at = |line| move |why| PathsError { line, why };
        let (first, header) = lines.next().unwrap_or((1, ""));
        let mut paths = Paths { saved: read_header(header).map_err(at(first))?, ..Paths::default() };
        for (line, text) in lines {
            paths.read_line(text).map_err(at(line))?;
        }
        Ok(paths)
    }
}

impl Paths {
    fn read_line(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("path") => self.paths.push(PathRecord::read(&mut words)?),
            Some("verdict") => self.verdicts.push(VerdictRecord::read(&mut words)?),
            word => return Err(format!("`{}` is neither `path` nor `verdict`", word.unwrap_or_default())),
        }
        Ok(())
    }
}

/// When it was saved.
fn read_header(line: &str) -> Result<Option<Duration>, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (version, rest) = match words[..] {
        ["firstbyte", "paths", version, ref rest @ ..] => (version, rest),
        _ => return Err(format!("this is no memory of paths: it begins with `firstbyte paths {VERSION}`")),
    };
    if version != VERSION {
        return Err(format!("version {version} is not known here; this program reads version {VERSION}"));
    }
    match rest {
        [] => Ok(None),
        ["saved", seconds] => {
            let seconds =
                seconds.parse().map_err(|_| format!("saved: `{seconds}` is not a number of seconds"))?;
            Ok(Some(Duration::from_secs(seconds)))
        }
        [word, ..] => Err(format!("`{word}` is not `saved` and the seconds since 1970")),
    }
}

impl PathRecord {
    fn read(words: &mut SplitWhitespace<'_>) -> Result<PathRecord, String> {
        let (local, peer) = (address(words)?, address(words)?);
        let mut record = PathRecord::of(Instant::ZERO, local, peer, &PathEntry::new(Instant::ZERO));
        let mut mtu_age = Duration::ZERO;
        while let Some(name) = words.next() {
            let text = words.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name {
                "used" => record.used = value(name, text)?,
                "cookie" => record.cookie = Some(cookie(text)?),
                "kind" if text == "experimental" => record.kind = FastOpenKind::Experimental,
                "mss" => record.mss = Some(small(name, text)?),
                "ask" if text == "experimental" => record.try_experimental = TryExperimental::Next,
                "ask" if text == "standard" => record.try_experimental = TryExperimental::Done,
                "syn_drops" => record.syn_drops = value(name, text)?,
                "last_syn_drop" => record.last_syn_drop = Some(value(name, text)?),
                "syn_data" if text == "passed" => record.syn_data_passed = true,
                "rtt" => record.rtt = Some(value(name, text)?),
                "rttvar" => record.rttvar = value(name, text)?,
                "ssthresh" => record.ssthresh = Some(value(name, text)?),
                "cwnd" => record.cwnd = Some(value(name, text)?),
                "reordering" => record.reordering = Some(value(name, text)?),
                "age" => record.age = value(name, text)?,
                "mtu" => record.path_mtu = Some((small(name, text)?, Duration::ZERO)),
                "mtu_told" if text == "less" => record.path_mtu_locked = true,
                "mtu_age" => mtu_age = value(name, text)?,
                _ => return Err(format!("`{name} {text}` means nothing here")),
            }
        }
        record.path_mtu = record.path_mtu.map(|(mtu, _)| (mtu, mtu_age));
        Ok(record)
    }
}

impl VerdictRecord {
    fn read(words: &mut SplitWhitespace<'_>) -> Result<VerdictRecord, String> {
        let network = words.next().unwrap_or_default().parse().map_err(|error| format!("{error}"))?;
        let peer = address(words)?;
        let port = small("port", words.next().unwrap_or_default())?;
        let word = words.next().unwrap_or_default();
        let reason = VERDICTS.iter().find(|(name, _)| *name == word).map(|(_, verdict)| *verdict);
        let reason = reason.ok_or_else(|| {
            format!("`{word}` is not one of: {}", VERDICTS.map(|(name, _)| name).join(", "))
        })?;
        let (count, age, length) = (1, Duration::ZERO, Duration::ZERO);
        let mut record = VerdictRecord { network, peer, port, reason, count, age, length };
        while let Some(name) = words.next() {
            let text = words.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name {
                "count" => record.count = value(name, text)?,
                "age" => record.age = value(name, text)?,
                "length" => record.length = value(name, text)?,
                _ => return Err(format!("`{name} {text}` means nothing here")),
            }
        }
        Ok(record)
    }
}

fn address(words: &mut SplitWhitespace<'_>) -> Result<IpAddr, String> {
    let word = words.next().unwrap_or_default();
    word.parse().map_err(|_| format!("`{word}` is not an address"))
}

fn value<T: Value>(name: &str, text: &str) -> Result<T, String> {
    Value::parse(text).map_err(|why| format!("{name}: {why}"))
}

fn small(name: &str, text: &str) -> Result<u16, String> {
    let number: u32 = value(name, text)?;
    u16::try_from(number).map_err(|_| format!("{name}: {text} is more than 65535"))
}

fn cookie(hex: &str) -> Result<Cookie, String> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |pair: &[u8]| Some((digit(pair.first()?)? * 16 + digit(pair.get(1)?)?) as u8);
    let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(byte).collect();
    bytes
        .and_then(|bytes| Cookie::new(&bytes))
        .ok_or_else(|| format!("cookie: `{hex}` is not 4 to 16 bytes in hex"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "firstbyte paths 1 saved 1763770000
path 10.0.0.1 10.0.0.2 used 1500ms cookie 0102030405060708 kind experimental mss 1460 ask standard syn_drops 2 last_syn_drop 7s \
syn_data passed rtt 40ms rttvar 20us ssthresh 12 cwnd 10 reordering 5 age 30s mtu 1400 mtu_age 1ns
path fd00::1 fd00::2 used 0 ask experimental age 0
verdict 10.0.0.0/24 10.0.0.2 80 dropped count 2 age 30s length 600s
verdict fd00::/64 fd00::2 443 syn-fin count 1 age 0 length 300s
";

    /// Seconds are shown without a unit.
    fn normal(text: &str) -> String {
        text.replace("7s ", "7 ").replace("30s", "30").replace("00s", "00")
    }

    #[test]
    fn every_field_is_written_and_read() {
        let paths: Paths = FULL.parse().unwrap();
        assert_eq!(paths.to_string(), normal(FULL));
        assert_eq!(paths.to_string().parse(), Ok(paths.clone()));
        assert_eq!((paths.paths.len(), paths.verdicts.len()), (2, 2));
        assert_eq!(paths.paths[0].path_mtu, Some((1400, Duration::from_nanos(1))));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, complaint) in [
            ("", "line 1: this is no memory of paths"),
            ("hello", "line 1: this is no memory of paths"),
            ("firstbyte paths 2", "line 1: version 2 is not known here"),
            ("firstbyte paths 1 saved now", "line 1: saved: `now`"),
            (
                "firstbyte paths 1\n\n# note\nroute 10.0.0.1",
                "line 4: `route` is neither `path` nor `verdict`",
            ),
            ("firstbyte paths 1\npath 10.0.0.1", "line 2: `` is not an address"),
            ("firstbyte paths 1\npath 10.0.0.1 10.0.0.2 rtt", "line 2: rtt needs a value"),
            ("firstbyte paths 1\npath 10.0.0.1 10.0.0.2 rtt soon", "line 2: rtt: `soon` is not a time"),
            ("firstbyte paths 1\npath 10.0.0.1 10.0.0.2 cookie 010", "line 2: cookie: `010`"),
            ("firstbyte paths 1\npath 10.0.0.1 10.0.0.2 cookie \u{e9}\u{e9}\u{e9}\u{e9}", "line 2: cookie"),
            ("firstbyte paths 1\npath 10.0.0.1 10.0.0.2 mss 70000", "line 2: mss: 70000 is more than 65535"),
            ("firstbyte paths 1\npath 10.0.0.1 10.0.0.2 hops 3", "line 2: `hops 3` means nothing here"),
            (
                "firstbyte paths 1\nverdict 10.0.0.0/24 10.0.0.2 80 bad",
                "line 2: `bad` is not one of: dropped",
            ),
        ] {
            let error = text.parse::<Paths>().unwrap_err().to_string();
            assert!(error.starts_with(complaint), "{text:?}: {error}");
        }
    }
}
