//! Prints settings like sysctl(8).
use super::glossary;
use crate::finding::Finding;
use crate::sample::Sample;
use serde_json::{Map, Value};

/// Returns the settings with these names, or below them ("net.ipv4.tcp"). Without names, returns
/// all.
fn chosen<'a>(names: &[String], sample: &'a Sample) -> Vec<(&'a str, &'a str)> {
    let names: Vec<String> = names.iter().map(|name| dotted(name)).collect();
    let wanted = |setting: &str| names.is_empty() || names.iter().any(|name| belongs(setting, name));
    let all = sample.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    all.filter(|(name, _)| wanted(name)).collect()
}

/// Returns whether a setting is the named one, is below it, or ends in it ("tcp_sack").
fn belongs(setting: &str, name: &str) -> bool {
    let below = |rest: &str| rest.is_empty() || rest.starts_with(['.', '_']);
    setting.strip_prefix(name).is_some_and(below)
        || setting.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
}

/// Replaces slashes by dots: sysctl(8) accepts both.
fn dotted(name: &str) -> String {
    if name.contains('/') { name.replace('/', ".") } else { name.to_owned() }
}

/// Returns one line per setting.
///
/// # Errors
/// Returns the first name that no setting has.
pub fn text(names: &[String], sample: &Sample) -> Result<String, String> {
    missing(names, sample)?;
    let lines = chosen(names, sample).into_iter();
    Ok(lines.map(|(name, value)| format!("{name} = {}\n", one_line(value))).collect())
}

fn missing(names: &[String], sample: &Sample) -> Result<(), String> {
    let absent = names.iter().find(|name| chosen(std::slice::from_ref(*name), sample).is_empty());
    absent.map_or(Ok(()), |name| Err(name.clone()))
}

/// Returns whether the setting exists but this user cannot read it.
pub fn is_unreadable(name: &str, sample: &Sample) -> bool {
    let name = dotted(name);
    sample.unreadable.iter().any(|setting| belongs(setting, &name))
}

fn one_line(value: &str) -> String {
    value.lines().collect::<Vec<_>>().join(" ")
}

/// Returns a JSON object of names and values. Numbers stay numbers.
///
/// # Errors
/// Returns the first name that no setting has.
pub fn json(names: &[String], sample: &Sample) -> Result<Value, String> {
    missing(names, sample)?;
    let value = |text: &str| text.parse::<i64>().map_or_else(|_| text.into(), Value::from);
    let all: Map<String, Value> =
        chosen(names, sample).into_iter().map(|(name, text)| (name.to_owned(), value(text))).collect();
    Ok(all.into())
}

/// Explains each setting: its effect, its default, common misunderstandings and related settings.
///
/// # Errors
/// Returns the first name that is neither a setting of this kernel nor in the glossary.
pub fn explained(names: &[String], sample: &Sample, findings: &[Finding]) -> Result<String, String> {
    let mut text = String::new();
    for name in names {
        let name = dotted(name);
        let known = glossary::SETTINGS.keys().map(String::as_str);
        let here = sample.settings.keys().chain(&sample.unreadable).map(String::as_str);
        let mut wanted: Vec<&str> = here.chain(known).collect();
        wanted.retain(|setting| belongs(setting, &name));
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            return Err(name);
        }
        for setting in wanted {
            let value = match sample.setting(setting) {
                Some(value) => one_line(value),
                None if sample.unreadable.contains(setting) => "(only root can read it)".to_owned(),
                None => "not in this kernel or namespace".to_owned(),
            };
            text += &format!("{setting} = {value}\n");
            match glossary::explain(&glossary::SETTINGS, std::iter::once(setting), findings).split_once('\n')
            {
                Some((_, words)) => text += words,
                None => {
                    text +=
                        "    (no explanation here; see the kernel's Documentation/networking/ip-sysctl.rst)\n"
                }
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample {
        let settings = [
            ("net.ipv4.tcp_sack", "1"),
            ("net.ipv4.tcp_rmem", "4096\t131072\t6291456"),
            ("net.core.somaxconn", "4096"),
        ];
        Sample {
            unreadable: ["net.core.bpf_jit_harden".to_owned()].into(),
            settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..Sample::default()
        }
    }

    #[test]
    fn settings_are_found_by_name_by_prefix_and_by_their_last_word() {
        let named = |name: &str| text(&[name.to_owned()], &sample());
        assert_eq!(named("net.ipv4.tcp_sack").unwrap(), "net.ipv4.tcp_sack = 1\n");
        assert_eq!(named("net/ipv4/tcp_sack").unwrap(), "net.ipv4.tcp_sack = 1\n");
        assert_eq!(named("tcp_sack").unwrap(), "net.ipv4.tcp_sack = 1\n");
        assert_eq!(named("net.ipv4").unwrap().lines().count(), 2);
        assert_eq!(named("tcp_sa").unwrap_err(), "tcp_sa");
        assert_eq!(text(&[], &sample()).unwrap().lines().count(), 3);
    }

    #[test]
    fn a_setting_that_may_not_be_read_is_told_from_one_that_is_missing() {
        let is_unreadable = |name| is_unreadable(name, &sample());
        assert!(is_unreadable("net/core/bpf_jit_harden") && is_unreadable("bpf_jit_harden"));
        assert!(!is_unreadable("tcp_sack") && !is_unreadable("bpf_jit_enable"));
        let text = explained(&["bpf_jit_harden".to_owned()], &sample(), &[]).unwrap();
        assert!(text.starts_with("net.core.bpf_jit_harden = (only root can read it)\n"), "{text}");
    }

    #[test]
    fn an_explanation_tells_what_a_setting_does_not_do() {
        let text = explained(&["somaxconn".to_owned()], &sample(), &[]).unwrap();
        assert!(text.starts_with("net.core.somaxconn = 4096\n    Upper limit of the backlog"), "{text}");
        assert!(text.contains("    not: It does not change open listeners"), "{text}");
        assert!(explained(&["nonsense".to_owned()], &sample(), &[]).is_err());
    }
}
