//! Byte ranges (RFC 9110 §14): the requested parts of a file, and the body with several of them.
use bytes::Bytes;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;

/// The requested part of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Whole,
    Part(Range<u64>),
    /// At least two ranges, in the order of the request.
    Parts(Vec<Range<u64>>),
    /// A request whose ranges all lie outside the file.
    Unsatisfiable,
}

/// Most parts of one reply.
const PARTS_MAX: usize = 16;

/// Parses the field `Range`, without ranges beyond the end. Ignores a field that is not a list of
/// byte ranges, has more than 16, or requests more bytes than the file has. The reply is then the
/// whole file, as RFC 9110 §14.2 allows.
pub(crate) fn ranges_of(len: u64, field: &str) -> Asked {
    let Some(list) = unit_bytes(field) else { return Asked::Whole };
    // A list may have empty elements (RFC 9110 §5.6.1.2).
    let elements = list.split(',').map(|element| element.trim_matches([' ', '\t']));
    let elements: Vec<&str> = elements.filter(|element| !element.is_empty()).collect();
    if elements.is_empty() || elements.len() > PARTS_MAX {
        return Asked::Whole;
    }
    let Some(mut parts) = elements.iter().map(|element| range_of(len, element)).collect::<Option<Vec<_>>>()
    else {
        return Asked::Whole;
    };
    parts.retain(|part| !part.is_empty());
    let total: u64 = parts.iter().fold(0, |total, part| total.saturating_add(part.end - part.start));
    match &parts[..] {
        [] => Asked::Unsatisfiable,
        [part] => Asked::Part(part.clone()),
        _ if total > len => Asked::Whole,
        _ => Asked::Parts(parts),
    }
}

/// Returns the list after `bytes=`. Names of units are case-insensitive (RFC 9110 §14.1).
fn unit_bytes(field: &str) -> Option<&str> {
    let (unit, list) = field.split_once('=')?;
    unit.eq_ignore_ascii_case("bytes").then_some(list)
}

/// Parses one range, cut to the file; empty if it is beyond the end. Returns `None` if it is not a
/// range.
fn range_of(len: u64, range: &str) -> Option<Range<u64>> {
    let (first, last) = range.split_once('-')?;
    match (first.is_empty(), last.is_empty()) {
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then(|| first.min(len)..len.min(last.saturating_add(1)))
        }
        (false, true) => Some(number(first)?.min(len)..len),
        (true, false) => Some(len.saturating_sub(number(last)?)..len),
        (true, true) => None,
    }
}

/// Parses digits without a sign. A number that is too large counts as larger than any file.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// The frame of a `multipart/byteranges` (RFC 9110 §14.6).
pub(crate) struct Multipart {
    boundary: String,
}

impl Multipart {
    /// Creates a frame with a boundary that cannot be in the file.
    pub(crate) fn new() -> Multipart {
        let random = || RandomState::new().build_hasher().finish();
        Multipart { boundary: format!("{:016x}{:016x}", random(), random()) }
    }

    pub(crate) fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// Returns the text before a part. `is_first`: no part comes before it.
    pub(crate) fn head(&self, is_first: bool, content_type: &str, part: &Range<u64>, len: u64) -> Bytes {
        let end = if is_first { "" } else { "\r\n" };
        let Multipart { boundary } = self;
        let range = content_range(part, len);
        format!("{end}--{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: {range}\r\n\r\n").into()
    }

    /// Returns the text after the last part.
    pub(crate) fn tail(&self) -> Bytes {
        format!("\r\n--{}--\r\n", self.boundary).into()
    }
}

/// Returns the field `Content-Range` of a part.
pub(crate) fn content_range(part: &Range<u64>, len: u64) -> String {
    format!("bytes {}-{}/{len}", part.start, part.end.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_file() {
        use Asked::{Part, Parts, Unsatisfiable, Whole};
        let many = format!("bytes={}", "0-0,".repeat(PARTS_MAX + 1));
        let cases = [
            ("bytes=0-", Part(0..10)),
            ("Bytes=0-1", Part(0..2)),
            ("bytes=9-99", Part(9..10)),
            ("bytes=-3", Part(7..10)),
            ("bytes=-99", Part(0..10)),
            ("bytes=10-", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=4-2", Whole),
            ("bytes=0-18446744073709551615", Part(0..10)),
            ("bytes=99999999999999999999-", Unsatisfiable),
            ("bytes=-99999999999999999999", Part(0..10)),
            ("lines=1-2", Whole),
            ("bytes=+1-+2", Whole),
            ("bytes=-+2", Whole),
            ("bytes=-", Whole),
            ("bytes=", Whole),
            ("bytes=0-1,5-6", Parts(vec![0..2, 5..7])),
            ("bytes=5-6, ,0-1", Parts(vec![5..7, 0..2])),
            ("bytes=0-1,20-30", Part(0..2)),
            ("bytes=20-30,40-", Unsatisfiable),
            ("bytes=0-1,4-2", Whole),
            ("bytes=0-9,0-9", Whole),
            (&many, Whole),
        ];
        for (range, expected) in cases {
            assert_eq!(ranges_of(10, range), expected, "{range}");
        }
        assert_eq!(ranges_of(0, "bytes=0-"), Unsatisfiable);
    }
}
