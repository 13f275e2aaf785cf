//! Reads the cookie key from a file or standard input: every user can read command lines.
use crate::failure::Failure;
use crate::secret::{self, warn_if_shared};
use firstbyte::KeyRing;
use firstbyte::fast_open::KeyError;
use std::io::{Read, stdin};
use std::path::Path;

/// Largest key file, bytes: two keys, a comma and a newline have 72.
const LEN_MAX: u64 = 256;

/// Reads a key and its optional backup.
pub(crate) fn read(path: &Path) -> Result<KeyRing, Failure> {
    let text = secret::read(path, LEN_MAX, "the key")?;
    let key = parse(&text).map_err(|why| Failure::failed(format!("{}: {why}", path.display())))?;
    warn_if_shared(path, "the key");
    Ok(key)
}

/// Calls [`read`], or reads standard input if the file is `-`.
pub(crate) fn read_or_stdin(path: &Path) -> Result<KeyRing, Failure> {
    if path.as_os_str() != "-" {
        return read(path);
    }
    let mut text = String::new();
    let taken = stdin().take(LEN_MAX).read_to_string(&mut text);
    taken.map_err(|error| Failure::failed(format!("cannot read the key from standard input: {error}")))?;
    parse(&text).map_err(|why| Failure::failed(format!("standard input: {why}")))
}

/// Reads keys as Linux writes them. The error does not show them.
pub(crate) fn parse(text: &str) -> Result<KeyRing, String> {
    let ring: KeyRing = text.trim().parse().map_err(|error: KeyError| error.to_string())?;
    if ring.has_zero_key() {
        return Err("the key is all zeros, which Linux shows while no key is set, and which everybody can \
            use to make cookies; make one with `firstbyte key new FILE`"
            .to_owned());
    }
    Ok(ring)
}

/// True for the setting that holds the key, as a name of sysctl(8) or only its last word.
pub(crate) fn is_setting(name: &str) -> bool {
    let name = name.trim_start_matches('-').replace('/', ".");
    name == SETTING || SETTING.rsplit('.').next() == Some(name.as_str())
}

/// Name of the setting that holds the key.
pub(crate) const SETTING: &str = "net.ipv4.tcp_fastopen_key";

/// Rejects a key on a command line, given with `option`.
pub(crate) fn given_openly(option: &str) -> Failure {
    Failure::usage(format!(
        "{option} would show the key to every user in the list of processes; write it to a file of \
        mode 0600 and give --key-file FILE (Linux's own is in /proc/sys/net/ipv4/tcp_fastopen_key)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_a_file_and_what_is_none_is_not_shown() {
        let path = std::env::temp_dir().join(format!("firstbyte-key-{}", std::process::id()));
        let text = "00010203-04050607-08090a0b-0c0d0e0f,10111213-14151617-18191a1b-1c1d1e1f";
        std::fs::write(&path, format!("{text}\n")).unwrap();
        assert_eq!(read(&path).unwrap(), text.parse().unwrap());
        std::fs::write(&path, "0-0-0-0").unwrap();
        assert!(read(&path).unwrap_err().message().contains("the key is all zeros"));
        std::fs::write(&path, "secret").unwrap();
        let failure = read(&path).unwrap_err();
        assert!(failure.message().contains("four hexadecimal words"), "{failure:?}");
        assert!(!failure.message().contains("secret"), "{failure:?}");
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path).unwrap_err().message().starts_with("cannot read "));
        assert!(read(Path::new("/dev/zero")).is_err(), "it has no end");
    }
}
