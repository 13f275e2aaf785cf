//! Steps that edit the files which sysctl reads at boot.
//!
//! A file below /etc is edited in place. A file of a package is edited in a copy that hides it
//! (sysctl.d(5)). A line is only changed while it still names the setting.
use crate::escape;
use crate::finding::Step;
use crate::sample::{Configured, Sample};
use std::path::Path;

/// Returns the steps that give the effective line for a setting this value. Returns none if no line
/// names the setting.
pub(super) fn say(name: &str, value: &str, now: &Sample) -> Vec<Step> {
    let Some(line) = named(name, now).last() else { return Vec::new() };
    if line.value.split_whitespace().eq(value.split_whitespace()) {
        return Vec::new();
    }
    let says = |value: &str| {
        let text = format!("{name} = {}", value.split_whitespace().collect::<Vec<_>>().join(" "));
        format!("s/.*/{}/", text.replace('\\', r"\\").replace('/', r"\/").replace('&', r"\&"))
    };
    edit(line, &says(value), &says(&line.value))
}

/// Returns the steps that disable every line that names a setting.
pub(super) fn take_out(name: &str, now: &Sample) -> Vec<Step> {
    named(name, now).flat_map(take_out_line).collect()
}

/// Returns the steps that disable one line.
pub(super) fn take_out_line(line: &Configured) -> Vec<Step> {
    edit(line, "s/^[^#]/# &/", "s/^# //")
}

/// Returns every line that names a setting, the effective one last.
pub(super) fn named<'a>(name: &str, now: &'a Sample) -> impl DoubleEndedIterator<Item = &'a Configured> {
    now.configured.iter().filter(move |line| line.name == name)
}

fn edit(line: &Configured, edit: &str, undo: &str) -> Vec<Step> {
    let (file, copied) = in_etc(&line.file);
    let path = escape::word(&file).into_owned();
    let sed = |edit: &str| {
        let script = match guard(&line.name) {
            Some(word) => format!("{}{{/{word}/{edit}}}", line.line),
            None => format!("{}{edit}", line.line),
        };
        format!("sed -i {} {path}", escape::word(&script))
    };
    let copy = copied.then(|| Step {
        command: format!("test -e {path} || cp -p {} {path}", escape::word(&line.file)),
        undo: Some(format!("rm {path}")),
        ..Step::default()
    });
    copy.into_iter().chain([Step { command: sed(edit), undo: Some(sed(undo)), ..Step::default() }]).collect()
}

/// Returns the file below /etc that overrides a package's file, and whether it is a copy that may
/// have to be made.
fn in_etc(file: &str) -> (String, bool) {
    let name = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
    match name {
        Some(name) if !file.starts_with("/etc/") => (format!("/etc/sysctl.d/{name}"), true),
        _ => (file.to_owned(), false),
    }
}

/// Returns the last word of a setting's name, if sed takes it literally.
fn guard(name: &str) -> Option<&str> {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_plain =
        !last.is_empty() && last.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    is_plain.then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(file: &str, name: &str, value: &str) -> Configured {
        Configured { file: file.into(), line: 7, name: name.into(), value: value.into() }
    }

    fn commands(steps: Vec<Step>) -> Vec<String> {
        steps.into_iter().map(|step| step.command).collect()
    }

    #[test]
    fn a_line_is_edited_where_it_is_and_a_packages_in_a_copy() {
        let mut now = Sample::default();
        now.configured.push(line("/etc/sysctl.conf", "net.ipv4.tcp_sack", "0"));
        let expected = ["sed -i '7{/tcp_sack/s/.*/net.ipv4.tcp_sack = 1/}' /etc/sysctl.conf"];
        assert_eq!(commands(say("net.ipv4.tcp_sack", "1", &now)), expected);
        assert_eq!(say("net.ipv4.tcp_sack", "0", &now), []);
        assert_eq!(say("net.ipv4.tcp_fack", "0", &now), []);
        let packaged = line("/usr/lib/sysctl.d/50-x.conf", "net.ipv4.conf.eth0/5.rp_filter", "1");
        now.configured.push(packaged);
        let expected = [
            "test -e /etc/sysctl.d/50-x.conf || cp -p /usr/lib/sysctl.d/50-x.conf /etc/sysctl.d/50-x.conf",
            r"sed -i '7{/rp_filter/s/.*/net.ipv4.conf.eth0\/5.rp_filter = 2/}' /etc/sysctl.d/50-x.conf",
        ];
        assert_eq!(commands(say("net.ipv4.conf.eth0/5.rp_filter", "2", &now)), expected);
    }

    /// The name of a setting may contain anything except an equals sign.
    #[test]
    fn a_line_that_is_taken_out_is_no_command_for_sed_or_the_shell() {
        let odd = line("/etc/sysctl.d/a b.conf", "net.ipv4.x/w /etc/passwd", "1");
        let expected = ["sed -i '7s/^[^#]/# &/' '/etc/sysctl.d/a b.conf'"];
        assert_eq!(commands(take_out_line(&odd)), expected);
    }
}
