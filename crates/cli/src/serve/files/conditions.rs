//! Conditions of requests (RFC 9110 §13), and the replies that they select.
use super::ranges::{Asked, ranges_of};
use hyper::Method;
use hyper::header::{
    HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, RANGE,
};
use std::fs::Metadata;
use std::time::{Duration, SystemTime};

/// Validators that distinguish the versions of a file.
pub(crate) struct Version {
    pub(crate) etag: String,
    /// The time of the last change, in whole seconds like HTTP's dates.
    pub(crate) modified: SystemTime,
}

impl Version {
    /// Returns the version of a file. A compressed one differs from the original (RFC 9110
    /// §8.8.3.3).
    pub(crate) fn of(metadata: &Metadata, coding: Option<&str>) -> Version {
        let since = metadata
            .modified()
            .ok()
            .and_then(|modified| modified.duration_since(SystemTime::UNIX_EPOCH).ok())
            .unwrap_or_default();
        let seconds = Duration::from_secs(since.as_secs());
        Version {
            etag: match coding {
                None => format!("\"{:x}-{:x}\"", metadata.len(), since.as_nanos()),
                Some(coding) => format!("\"{:x}-{:x}-{coding}\"", metadata.len(), since.as_nanos()),
            },
            modified: SystemTime::UNIX_EPOCH + seconds,
        }
    }

    /// True if the ETags of these fields name this version. Strong comparison accepts no weak ETag
    /// (RFC 9110 §8.8.3.2).
    fn is_in(&self, headers: &HeaderMap, name: HeaderName, comparison: Comparison) -> bool {
        let is_own = |etag: &[u8]| match comparison {
            Comparison::Strong => etag == self.etag.as_bytes(),
            Comparison::Weak => etag.strip_prefix(b"W/").unwrap_or(etag) == self.etag.as_bytes(),
        };
        let fields = headers.get_all(name).iter().map(HeaderValue::as_bytes);
        let mut etags = fields.flat_map(|list| list.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
        etags.any(|etag| etag == b"*" || is_own(etag))
    }
}

#[derive(Clone, Copy)]
enum Comparison {
    Strong,
    Weak,
}

/// The reply to a request whose file exists.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    PreconditionFailed,
    NotModified,
    /// The whole file, or parts of it.
    Send(Asked),
}

/// Chooses the reply to GET and HEAD (RFC 9110 §13.2.2). Only GET has ranges (§14.2).
pub(crate) fn choose(version: &Version, len: u64, method: &Method, headers: &HeaderMap) -> Choice {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let date = |name| text(name).and_then(|value| httpdate::parse_http_date(value).ok());
    let is_expected = match headers.contains_key(IF_MATCH) {
        true => version.is_in(headers, IF_MATCH, Comparison::Strong),
        false => date(IF_UNMODIFIED_SINCE).is_none_or(|since| version.modified <= since),
    };
    if !is_expected {
        return Choice::PreconditionFailed;
    }
    let is_fresh = match headers.contains_key(IF_NONE_MATCH) {
        true => version.is_in(headers, IF_NONE_MATCH, Comparison::Weak),
        false => date(IF_MODIFIED_SINCE).is_some_and(|since| version.modified <= since),
    };
    if is_fresh {
        return Choice::NotModified;
    }
    let is_same = match text(IF_RANGE) {
        Some(etag) if etag.starts_with('"') => etag == version.etag,
        Some(_) => date(IF_RANGE) == Some(version.modified),
        None => true,
    };
    match text(RANGE).filter(|_| is_same && method == Method::GET) {
        Some(range) => Choice::Send(ranges_of(len, range)),
        None => Choice::Send(Asked::Whole),
    }
}
