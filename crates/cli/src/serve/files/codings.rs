//! Precompressed files beside others (`--precompressed`), and which of them a client accepts
//! (RFC 9110 §12.5.3).
use hyper::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};

/// A content coding, and the ending of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coding {
    pub(crate) name: &'static str,
    pub(crate) ending: &'static str,
}

/// The codings, the best one first.
pub(crate) const CODINGS: [Coding; 3] = [
    Coding { name: "br", ending: ".br" },
    Coding { name: "zstd", ending: ".zst" },
    Coding { name: "gzip", ending: ".gz" },
];

/// Returns how much a client wants a coding, in thousandths; 0: not at all.
pub(crate) fn weight(headers: &HeaderMap, coding: Coding) -> u32 {
    let fields = headers.get_all(ACCEPT_ENCODING).iter().map(HeaderValue::as_bytes);
    let mut others = 0;
    for item in fields.flat_map(|list| list.split(|byte| *byte == b',')) {
        let Ok(item) = std::str::from_utf8(item) else { continue };
        let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
        let weight = parameters.trim().strip_prefix("q=").map_or(Some(1000), thousandths);
        let Some(weight) = weight else { continue };
        match name.trim() {
            name if name.eq_ignore_ascii_case(coding.name) => return weight,
            "*" => others = weight,
            _ => {}
        }
    }
    others
}

fn thousandths(text: &str) -> Option<u32> {
    let value: f32 = text.trim().parse().ok()?;
    (0.0..=1.0).contains(&value).then_some((value * 1000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_only_what_it_accepts() {
        let accepted = |field: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_str(field).unwrap());
            CODINGS.map(|coding| weight(&headers, coding))
        };
        assert_eq!(accepted("gzip, deflate, br, zstd"), [1000, 1000, 1000]);
        assert_eq!(accepted("gzip;q=0.5, BR ; q=0"), [0, 0, 500]);
        assert_eq!(accepted("*;q=0.1, gzip"), [100, 100, 1000]);
        assert_eq!(accepted("identity, brotli, gzip;q=2, zstd;q=x"), [0, 0, 0]);
        assert_eq!(CODINGS.map(|coding| weight(&HeaderMap::new(), coding)), [0, 0, 0]);
    }
}
