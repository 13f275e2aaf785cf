//! Shell commands: the few that scripts need are understood; none is ever handed to a shell.
//!
//! | command | what it does here |
//! |---|---|
//! | `sysctl [-qw] name=value …` | changes settings of the stack |
//! | `….py /proc/sys/net/…=value …`, `echo value > /proc/sys/net/…` | likewise |
//! | `nstat` | counts from now on; `nstat … \| grep Name` fails if no such counter has moved since; `-s` does not count anew, `-a` counts from the beginning |
//! | `ip tcp_metrics flush` | forgets paths |
//! | `tc qdisc … pfifo` | nothing: packets leave at once |
//! | `sleep seconds`, `true`, `:` | time passes; nothing |
//! | `file.sh` | the commands in it, looked up beside the script |

use crate::code::{Value, Variables};
use crate::run::Runner;
use crate::run::failure::Failure;
use proto::{Counters, SettingError};
use std::path::Path;

/// Files within files.
const DEPTH_MAX: u32 = 4;
/// Settings that Linux has and that do nothing, or nothing that a stack without them could not do.
const IGNORED: [&str; 3] = ["net.ipv4.tcp_fack", "net.ipv4.tcp_frto", "net.ipv4.tcp_autocorking"];

impl Runner<'_> {
    /// Does what a command means.
    pub(super) fn command(&mut self, line: usize, text: &str) -> Result<(), Failure> {
        let folder = self.setup.folder.clone();
        self.commands(text, &folder, 0).map_err(|message| Failure::new(line, message))
    }

    fn commands(&mut self, text: &str, folder: &Path, depth: u32) -> Result<(), String> {
        let text = text.replace("\\\n", " ");
        for command in text.lines().flat_map(|line| split(line, ';')) {
            let words = words(&command)?;
            if !words.is_empty() {
                self.one(&words, folder, depth)?;
            }
        }
        Ok(())
    }

    fn one(&mut self, words: &[String], folder: &Path, depth: u32) -> Result<(), String> {
        let name = words[0].as_str();
        let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        match (name, arguments.as_slice()) {
            ("true" | ":", _) | ("tc", ["qdisc", _, .., "pfifo"]) => Ok(()),
            ("sleep", [seconds]) => {
                let seconds: f64 = seconds.parse().map_err(|_| format!("`{seconds}` is no time"))?;
                let until = self.world.micros() + (seconds * 1e6) as i64;
                self.world.wait_until(until);
                Ok(())
            }
            ("sysctl", words) => {
                words.iter().filter(|word| !word.starts_with('-')).try_for_each(|word| self.assign(word))
            }
            ("echo", [value, ">", file]) if file.starts_with("/proc/sys/") => {
                self.assign(&format!("{file}={value}"))
            }
            ("nstat", rest) => self.nstat(rest),
            ("ip", ["tcp_metrics", "flush", ..]) => {
                self.world.sockets.stack_mut().path_cache_mut().clear();
                Ok(())
            }
            (name, words) if name.ends_with(".py") && !words.is_empty() => {
                words.iter().try_for_each(|word| self.assign(word))
            }
            (name, _) if name.ends_with(".sh") && depth < DEPTH_MAX => {
                let path = folder.join(name);
                let text =
                    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                self.commands(&text, path.parent().unwrap_or(folder), depth + 1)
            }
            _ => {
                let known = "sysctl, nstat, `ip tcp_metrics flush`, sleep, true, and files of these";
                Err(format!("`{}` is not understood: commands are {known}", words.join(" ")))
            }
        }
    }

    /// `net.ipv4.tcp_sack=1`, `net/ipv4/tcp_sack=1` or with /proc/sys/ in front.
    fn assign(&mut self, assignment: &str) -> Result<(), String> {
        let (name, value) =
            assignment.split_once('=').ok_or_else(|| format!("`{assignment}` is not name=value"))?;
        let name = name.trim().trim_start_matches("/proc/sys/").replace('/', ".");
        let value = value.trim();
        if IGNORED.contains(&name.as_str()) {
            return Ok(());
        }
        let set = self.world.call(|sockets, now| sockets.stack_mut().set(now, &name, value));
        set.map(|_| ()).map_err(|error| match error {
            SettingError::Unknown => format!("{name} is no setting of the stack"),
            SettingError::Invalid(text) => format!("{name}={value}: {text}"),
        })
    }

    /// As nstat does it: `-n` and a bare `nstat` begin to count anew, `-s` does not, `-a` counts from the beginning.
    fn nstat(&mut self, words: &[&str]) -> Result<(), String> {
        let now = self.world.sockets.stack().counters().clone();
        let own = words.iter().take_while(|word| **word != "|");
        let has = |flag: char| own.clone().any(|word| word.starts_with('-') && word.contains(flag));
        let before = if has('a') { Counters::default() } else { self.counted.clone() };
        if !has('s') {
            self.counted = now.clone();
        }
        let mut rest = words.iter().skip_while(|word| **word != "|").skip(1);
        let Some(grep) = rest.next() else { return Ok(()) };
        let wanted = rest.find(|word| !word.starts_with('-')).filter(|_| *grep == "grep");
        let wanted = wanted.ok_or("behind nstat only `| grep Name` is understood")?;
        let mut pairs = now.nstat().zip(before.nstat());
        let moved = pairs.any(|((name, now), (_, then))| name.contains(*wanted) && now > then);
        if moved { Ok(()) } else { Err(format!("no counter like `{wanted}` has moved")) }
    }
}

/// Parts between signs that stand outside quotes.
fn split(text: &str, sign: char) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut quote = None;
    for c in text.chars() {
        if quote.is_none() && c == sign {
            parts.push(std::mem::take(&mut part));
            continue;
        }
        match quote {
            Some(open) if open == c => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    parts
}

/// Words of a command, without quotes, comments and where its output goes; `$((…))` is worked out.
fn words(command: &str) -> Result<Vec<String>, String> {
    let command = worked_out(command)?;
    let mut words = Vec::new();
    let mut rest = command.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let mut word = String::new();
        let mut quote = None;
        let mut len = 0;
        for c in rest.chars() {
            match quote {
                None if c.is_whitespace() => break,
                None if c == '"' || c == '\'' => quote = Some(c),
                Some(open) if open == c => quote = None,
                _ => word.push(c),
            }
            len += c.len_utf8();
        }
        rest = rest[len..].trim_start();
        words.push(word);
    }
    // Where the output goes does not matter, unless it is a setting.
    words.retain(|word| word != "2>&1" && word != "2>/dev/null");
    if let Some(at) = words.iter().position(|word| word == ">")
        && words.get(at + 1).is_some_and(|file| file == "/dev/null")
    {
        words.drain(at..at + 2);
    }
    Ok(words)
}

fn worked_out(command: &str) -> Result<String, String> {
    let mut text = command.to_owned();
    while let Some(from) = text.find("$((") {
        let inside = &text[from + 3..];
        let len = inside.find("))").ok_or("`$((` never ends")?;
        let Value::Int(value) = Variables::default().evaluate(&inside[..len], &|_| None)? else {
            return Err("`$((…))` is no number".into());
        };
        text.replace_range(from..from + 3 + len + 2, &value.to_string());
    }
    Ok(text)
}
