//! `pfifo`, `bfifo`, `pfifo_head_drop`: options.
use super::error::{TcError, usage};
use super::units;
use super::words::Words;

/// The limit, if one is given.
pub(super) fn parse(kind: &str, mut words: Words<'_>) -> Result<Option<u32>, TcError> {
    let mut limit = None;
    while let Some(word) = words.next() {
        if word != "limit" {
            return Err(usage(format!("{kind}: unknown parameter \"{word}\"")));
        }
        let value = words.value()?;
        let read = units::size(value);
        limit = Some(read.ok_or_else(|| usage(format!("{kind}: Illegal value for \"limit\": \"{value}\"")))?);
    }
    Ok(limit)
}
