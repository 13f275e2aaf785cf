//! `--settings FILE`: reads settings in the format of sysctl.conf(5), `NAME = VALUE` per line; `#`
//! and `;` begin comments.
use crate::failure::Failure;
use crate::secret::warn_if_shared;
use crate::serve::key::{self, SETTING};
use firstbyte::KeyRing;
use std::fs;
use std::path::Path;

/// Largest settings file, bytes: far more than all settings need.
const LEN_MAX: u64 = 1 << 20;

/// A setting, and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) name: String,
    pub(super) value: String,
    /// File and line; `None` for the command line.
    pub(super) place: Option<String>,
}

impl Given {
    /// Returns the error for this setting, which blames the command line or the file.
    pub(super) fn failure(&self, why: &str) -> Failure {
        match &self.place {
            None => Failure::usage(why.to_owned()),
            Some(place) => Failure::failed(format!("{place}: {why}")),
        }
    }
}

/// The content of a settings file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// In the file's order.
    pub(super) given: Vec<Given>,
    /// The cookie key, if set.
    pub(super) key: Option<KeyRing>,
}

/// Reads a settings file.
pub(super) fn read(path: &Path) -> Result<Settings, Failure> {
    let failure = |error: std::io::Error| Failure::file("read", path, &error);
    let metadata = fs::metadata(path).map_err(failure)?;
    if metadata.len() > LEN_MAX || !metadata.is_file() {
        return Err(Failure::failed(format!("{} is not a settings file", path.display())));
    }
    let text = fs::read_to_string(path).map_err(failure)?;
    let settings = parse(&text, &path.display().to_string()).map_err(Failure::failed)?;
    if settings.key.is_some() {
        warn_if_shared(path, "the key");
    }
    Ok(settings)
}

fn parse(text: &str, file: &str) -> Result<Settings, String> {
    let mut settings = Settings::default();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let place = format!("{file}, line {at}");
        let (name, value) = line.split_once('=').ok_or_else(|| format!("{place}: expected NAME = VALUE"))?;
        // In sysctl(8) a leading dash ignores errors; here errors count.
        let name = name.trim().trim_start_matches('-').replace('/', ".");
        match name.as_str() {
            // Errors must not show the value.
            SETTING => {
                settings.key = Some(key::parse(value).map_err(|error| format!("{place}: {error}"))?);
            }
            _ => settings.given.push(Given { name, value: value.trim().to_owned(), place: Some(place) }),
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
        let settings = parse(&text, "ours").unwrap();
        let given = |name: &str, value: &str, line: usize| Given {
            name: name.to_owned(),
            value: value.to_owned(),
            place: Some(format!("ours, line {line}")),
        };
        let expected = [
            given("net.ipv4.tcp_fin_timeout", "30", 3),
            given("net.ipv4.ip_local_port_range", "1024 2047", 5),
        ];
        assert_eq!(settings.given, expected);
        assert_eq!(settings.key, Some(key.parse().unwrap()));
        assert_eq!(parse("\nnonsense", "ours").unwrap_err(), "ours, line 2: expected NAME = VALUE");
        let wrong = parse(&format!("{SETTING} = secret"), "ours").unwrap_err();
        assert!(wrong.starts_with("ours, line 1: ") && !wrong.contains("secret"), "{wrong}");
    }
}
