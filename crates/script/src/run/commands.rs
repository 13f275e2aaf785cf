//! Shell commands: the few that scripts need are understood; none is ever handed to a shell.
//!
//! | command | what it does here |
//! |---|---|
//! | `sysctl [-qw] name=value …` | changes settings of the stack |
//! | `….py /proc/sys/net/…=value …`, `echo value > /proc/sys/net/…` | likewise |
//! | `nstat` | counts from now on, as `nstat -n` does; `nstat … \| grep [-q] Name` fails if no such counter has moved since; `-s` does not count anew, `-a` counts from the beginning |
//! | `ip tcp_metrics flush`, `ip route …`, `tc qdisc … pfifo limit N` | changes the network below the stack (`posix::tools`) |
//! | `rm`, `dd if=/dev/zero of=FILE`, `touch`, `truncate -s` | files for `open`, which only the script sees |
//! | `ethtool -K DEVICE tso off …` | nothing, and can do nothing (see [`Command::Nothing`]) |
//! | `sleep seconds`, `true`, `:`, `false`, `echo` | time passes; nothing; failure |
//! | `file.sh` | the commands in it, looked up beside the script |
//!
//! A command that fails fails the script, unless `||` says what else to do.

use crate::run::Runner;
use crate::run::failure::Failure;
use crate::run::settings;
use crate::run::shell::{Joined, Simple, pipelines};
use posix::tools::NetworkCommand;
use proto::Counters;
use proto::fast_open::Network;
use std::path::{Path, PathBuf};

/// Files within files.
const DEPTH_MAX: u32 = 4;
/// Blocks that `dd` copies if it is not told (coreutils): the whole of /dev/zero never ends.
const BLOCK: u64 = 512;

/// What a command asks for.
#[derive(Debug, PartialEq)]
enum Command {
    /// Nothing that could be seen: TCP makes bursts whatever a device says of
    /// segmentation (Linux's `sk_setup_caps` asks for it always), and they are cut to the wire's size here as there.
    Nothing,
    /// A status other than 0.
    Failure,
    Sleep(f64),
    Settings(Vec<String>),
    Nstat {
        flags: String,
        wanted: Option<String>,
    },
    Network(NetworkCommand),
    /// A file that comes to be, or becomes, of so many zeros.
    File(String, u64),
    /// A file that comes to be, if it is not there.
    Touch(String),
    Remove(Vec<String>, bool),
    Commands(PathBuf),
}

impl Runner<'_> {
    /// Does what a command means.
    pub(super) fn command(&mut self, line: usize, text: &str) -> Result<(), Failure> {
        let folder = self.setup.folder.clone();
        self.commands(text, &folder, 0).map_err(|message| Failure::new(line, message))
    }

    /// Is it understood? Nothing is done.
    pub(super) fn check_command(&self, line: usize, text: &str) -> Result<(), Failure> {
        let folder = self.setup.folder.clone();
        self.check_commands(text, &folder, 0).map_err(|message| Failure::new(line, message))
    }

    fn commands(&mut self, text: &str, folder: &Path, depth: u32) -> Result<(), String> {
        let mut status = Ok(());
        for pipeline in pipelines(text)? {
            match pipeline.joined {
                Joined::Then => status?,
                Joined::And if status.is_err() => continue,
                Joined::Or if status.is_ok() => continue,
                Joined::And | Joined::Or => {}
            }
            status = self.carry_out(understood(&pipeline.commands, folder)?, depth)?;
        }
        status
    }

    fn check_commands(&self, text: &str, folder: &Path, depth: u32) -> Result<(), String> {
        for pipeline in pipelines(text)? {
            match understood(&pipeline.commands, folder)? {
                Command::Settings(all) => {
                    for assignment in &all {
                        settings::check(assignment)?;
                    }
                }
                Command::Commands(path) if depth < DEPTH_MAX => {
                    self.check_commands(&text_of(&path)?, path.parent().unwrap_or(folder), depth + 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The outer error: it cannot be done here. The inner: it fails, as it does on Linux.
    fn carry_out(&mut self, command: Command, depth: u32) -> Result<Result<(), String>, String> {
        match command {
            Command::Nothing => {}
            Command::Failure => return Ok(Err("the command fails".into())),
            Command::Sleep(seconds) => {
                let until = self.world.after((seconds * 1e6) as i64)?;
                self.world.wait_until(until);
            }
            Command::Settings(all) => {
                // sysctl goes on behind one that it cannot set.
                let mut status = Ok(());
                for assignment in &all {
                    status = status
                        .and(self.world.call(|sockets, now| settings::assign(sockets, now, assignment))?);
                }
                return Ok(status);
            }
            Command::Nstat { flags, wanted } => return Ok(self.nstat(&flags, wanted.as_deref())),
            Command::Network(NetworkCommand::Queue { admits }) => self.world.admits = admits,
            Command::Network(command) => {
                let peer = self.setup.remote.into();
                // packetdrill makes a route to the peer.
                let known = |network| network == Network::new(peer, if peer.is_v4() { 32 } else { 128 });
                return Ok(self.world.call(|sockets, now| command.apply(sockets, now, known)));
            }
            Command::File(name, len) => {
                self.files.insert(name, len);
            }
            Command::Touch(name) => {
                self.files.entry(name).or_insert(0);
            }
            Command::Remove(names, forced) => {
                for name in names {
                    if self.files.remove(&name).is_none() && !forced {
                        return Ok(Err(format!("there is no `{name}` to remove")));
                    }
                }
            }
            Command::Commands(path) => {
                if depth >= DEPTH_MAX {
                    return Err(format!("{}: files within files, too deep", path.display()));
                }
                let folder = path.parent().unwrap_or(Path::new("")).to_owned();
                self.commands(&text_of(&path)?, &folder, depth + 1)?;
            }
        }
        Ok(Ok(()))
    }

    /// As nstat does it: `-n` and a bare `nstat` begin to count anew, `-s` does not, `-a` counts from the beginning.
    fn nstat(&mut self, flags: &str, wanted: Option<&str>) -> Result<(), String> {
        let now = self.world.sockets.stack().counters().clone();
        let before = if flags.contains('a') { Counters::default() } else { self.counted.clone() };
        if !flags.contains('s') {
            self.counted = now.clone();
        }
        let Some(wanted) = wanted else { return Ok(()) };
        let mut pairs = now.nstat().zip(before.nstat());
        let moved = pairs.any(|((name, now), (_, then))| name.contains(wanted) && now > then);
        if moved { Ok(()) } else { Err(format!("no counter like `{wanted}` has moved")) }
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// What commands with `|` between them mean. An error says what is not understood.
fn understood(commands: &[Simple], folder: &Path) -> Result<Command, String> {
    let refused = || {
        let known = "sysctl, nstat, `ip tcp_metrics flush`, `ip route`, `tc qdisc … pfifo`, rm, dd, touch, truncate, sleep, true, false, echo, and files of these";
        let text: Vec<String> = commands.iter().map(|command| command.words.join(" ")).collect();
        Err(format!("`{}` is not understood: commands are {known}", text.join(" | ")))
    };
    let words = |command: &Simple| command.words.clone();
    let (first, behind) = match commands {
        [one] => (words(one), None),
        [nstat, grep] if nstat.words[0] == "nstat" && grep.words[0] == "grep" && nstat.output.is_none() => {
            (words(nstat), Some(words(grep)))
        }
        _ => return refused(),
    };
    let name = first[0].rsplit_once("bin/").map_or(first[0].as_str(), |(_, name)| name);
    let arguments: Vec<&str> = first[1..].iter().map(String::as_str).collect();
    let output = commands.last().and_then(|command| command.output.as_deref());
    if let Some(file) = output {
        return match (name, arguments.as_slice()) {
            ("echo", [value]) if file.starts_with("/proc/sys/") => {
                Ok(Command::Settings(vec![format!("{file}={value}")]))
            }
            ("true" | ":", []) => Ok(Command::File(file.to_owned(), 0)),
            _ => refused(),
        };
    }
    Ok(match (name, arguments.as_slice()) {
        ("true" | ":" | "echo", _) => Command::Nothing,
        ("false", _) => Command::Failure,
        ("ethtool", ["-K", _, features @ ..]) if says_only_of_bursts(features) => Command::Nothing,
        ("sleep", [seconds]) => {
            let time = seconds.parse().ok().filter(|time: &f64| time.is_finite() && *time >= 0.0);
            Command::Sleep(
                time.ok_or_else(|| format!("`{seconds}` is no time to sleep: seconds are expected"))?,
            )
        }
        ("sysctl", words) => {
            let (flags, all): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
            if flags.iter().any(|flag| !flag[1..].chars().all(|c| matches!(c, 'q' | 'w'))) || all.is_empty() {
                return refused();
            }
            Command::Settings(all.into_iter().map(str::to_owned).collect())
        }
        ("nstat", flags) => counted(flags, behind.as_deref())?,
        ("ip" | "tc", arguments) => match NetworkCommand::parse(&[&[name][..], arguments].concat())? {
            Some(command) => Command::Network(command),
            None => return refused(),
        },
        ("rm", ["-f", files @ ..]) => Command::Remove(files.iter().map(ToString::to_string).collect(), true),
        ("rm", files @ [first, ..]) if !first.starts_with('-') => {
            Command::Remove(files.iter().map(ToString::to_string).collect(), false)
        }
        ("dd", operands) => copied_zeros(operands)?,
        ("touch", [file]) if !file.starts_with('-') => Command::Touch(file.to_string()),
        ("truncate", ["-s", len, file]) => {
            Command::File(file.to_string(), decimal(len).ok_or_else(|| format!("`{len}` is no length"))?)
        }
        (_, words) if name.ends_with(".py") && !words.is_empty() => {
            Command::Settings(words.iter().map(ToString::to_string).collect())
        }
        (_, _) if name.ends_with(".sh") => Command::Commands(folder.join(&first[0])),
        _ => return refused(),
    })
}

/// `nstat [-n] [-s] [-a]`, and `| grep [-q] NAME` behind it, which is a part of a counter's name.
fn counted(flags: &[&str], grep: Option<&[String]>) -> Result<Command, String> {
    for flag in flags {
        let known = flag.strip_prefix('-').is_some_and(|flag| flag.chars().all(|c| "nsa".contains(c)));
        if !known {
            return Err(format!("`{flag}` of nstat is not understood: -n, -s and -a are"));
        }
    }
    let flags = flags.concat();
    let wanted = match grep.map(|grep| grep[1..].iter().filter(|word| *word != "-q").collect::<Vec<_>>()) {
        None => None,
        Some(_) if flags.contains('n') => return Err("`nstat -n` shows nothing to grep".into()),
        Some(words) => match words.as_slice() {
            [name] if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_of_name) => {
                Some((*name).clone())
            }
            _ => return Err("grep is understood as `grep [-q] NAME`, of which letters and digits are".into()),
        },
    };
    Ok(Command::Nstat { flags, wanted })
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Digits, without the sign that means something else to most commands.
fn decimal(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// Pairs of a feature and `on` or `off`.
fn says_only_of_bursts(features: &[&str]) -> bool {
    let (pairs, rest) = features.as_chunks::<2>();
    !pairs.is_empty()
        && rest.is_empty()
        && pairs.iter().all(|[feature, state]| {
            matches!(*feature, "tso" | "gso" | "gro" | "lro") && matches!(*state, "on" | "off")
        })
}

/// `dd if=/dev/zero of=FILE bs=… count=…`
fn copied_zeros(operands: &[&str]) -> Result<Command, String> {
    let (mut file, mut from, mut bs, mut count) = (None, None, BLOCK, None);
    for operand in operands {
        match operand.split_once('=') {
            Some(("if", name)) => from = Some(name),
            Some(("of", name)) => file = Some(name.to_owned()),
            Some(("bs", size)) => bs = bytes(size).ok_or_else(|| format!("`{operand}` of dd is no size"))?,
            Some(("count", number)) => count = decimal(number),
            Some(("status", _)) => {}
            _ => return Err(format!("`{operand}` of dd is not understood")),
        }
    }
    match (file, from, count.and_then(|count| count.checked_mul(bs))) {
        (Some(file), Some("/dev/zero"), Some(len)) => Ok(Command::File(file, len)),
        _ => Err("dd is understood as `dd if=/dev/zero of=FILE bs=BYTES count=NUMBER`".into()),
    }
}

/// `512`, `4k`, `1M`.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['k', 'K', 'M']);
    let unit = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    decimal(digits)?.checked_mul(unit)
}
