//! `--settings FILE`: settings as sysctl.conf(5) has them, a name, `=` and a value a line; `#` and `;` begin remarks.
use crate::failure::{Failure, warn};
use crate::serve::key::SETTING;
use firstbyte::KeyRing;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Far more than all settings take.
const LEN_MAX: u64 = 1 << 20;

/// What a file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// Names and values, in the file's order.
    pub(super) pairs: Vec<(String, String)>,
    /// The cookie key, if it is there.
    pub(super) key: Option<KeyRing>,
}

/// Reads one.
pub(super) fn read(path: &Path) -> Result<Settings, Failure> {
    let failure = |error: std::io::Error| Failure::file("read", path, &error);
    let metadata = fs::metadata(path).map_err(failure)?;
    if metadata.len() > LEN_MAX || !metadata.is_file() {
        return Err(Failure::failed(format!("{} is no file of settings", path.display())));
    }
    let text = fs::read_to_string(path).map_err(failure)?;
    let settings = parse(&text).map_err(|why| Failure::failed(format!("{}, {why}", path.display())))?;
    if settings.key.is_some() && metadata.permissions().mode() & 0o077 != 0 {
        warn(format!("others can read the key in {0}: chmod 600 {0}", path.display()));
    }
    Ok(settings)
}

fn parse(text: &str) -> Result<Settings, String> {
    let mut settings = Settings::default();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or_else(|| format!("line {at}: it is NAME = VALUE"))?;
        // A leading dash means to sysctl(8) that a failure does not matter; here it matters.
        let name = name.trim().trim_start_matches('-').replace('/', ".");
        match name.as_str() {
            // Its value must not stand in an error.
            SETTING => {
                let ring = value.trim().parse().map_err(|error| format!("line {at}: {error}"))?;
                settings.key = Some(ring);
            }
            _ => settings.pairs.push((name, value.trim().to_owned())),
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_sysctl_conf() {
        let key = "00010203-04050607-08090a0b-0c0d0e0f";
        let text = format!(
            "# a server\n\nnet.ipv4.tcp_fin_timeout = 30\n; old\nnet/ipv4/ip_local_port_range=1024 2047\n{SETTING} = {key}\n"
        );
        let settings = parse(&text).unwrap();
        let pairs = [("net.ipv4.tcp_fin_timeout", "30"), ("net.ipv4.ip_local_port_range", "1024 2047")];
        assert_eq!(settings.pairs, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(settings.key, Some(key.parse().unwrap()));
        assert_eq!(parse("\nnonsense").unwrap_err(), "line 2: it is NAME = VALUE");
        let wrong = parse(&format!("{SETTING} = secret")).unwrap_err();
        assert!(wrong.starts_with("line 1: ") && !wrong.contains("secret"), "{wrong}");
    }
}
