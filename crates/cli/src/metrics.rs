//! `firstbyte metrics`: cached path metrics of the kernel or in a file.
use crate::control::ask;
use crate::failure::Failure;
use crate::source::{SourceArgs, StackOnly};
use crate::terminal::print;
use clap::{Args, Subcommand};
use control::Request;
use doctor::{Report, Window, sources};
use firstbyte::paths::{self, LoadError, PathRecord, Paths, VerdictRecord};
use std::fmt::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Show or forget cached paths: Fast Open cookies and failures, round trips, windows
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    firstbyte metrics show --explain                                              the kernel's\n  \
    firstbyte get http://10.78.0.1/ --cache paths && firstbyte metrics show paths\n\n\
    Without FILE: the kernel's paths. With FILE: those that serve or get saved.\n\
    Do not change the file of a running server: it overwrites the file when it ends.")]
pub(crate) struct MetricsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List a line per path, as `ip tcp_metrics` does, and a line per Fast Open failure
    Show {
        /// File of `--cache` [default: the kernel's paths, or those of a running stack with --stack
        /// or --control]
        #[arg(conflicts_with_all = ["kernel", "netns", "stack", "control"])]
        file: Option<PathBuf>,
        /// Explain each of the kernel's values below the list, and name the rules of `firstbyte
        /// doctor` that use it
        #[arg(long, conflicts_with_all = ["file", "json"])]
        explain: bool,
        /// Print the kernel's paths as JSON
        #[arg(long, conflicts_with = "file")]
        json: bool,
        #[command(flatten)]
        source: SourceArgs,
    },
    /// Forget everything about a peer
    Delete {
        /// File of `--cache`, unless --stack or --control selects a running stack; then the peer's
        /// address
        #[arg(required = true, num_args = 1..=2, value_names = ["FILE", "PEER"])]
        of: Vec<String>,
        #[command(flatten)]
        stack: StackOnly,
    },
    /// Forget everything
    Flush {
        /// File of `--cache`, unless --stack or --control selects a running stack
        #[arg(conflicts_with_all = ["stack", "control"])]
        file: Option<PathBuf>,
        #[command(flatten)]
        stack: StackOnly,
    },
}

/// Runs the verb.
pub(crate) fn run(args: MetricsArgs) -> Result<ExitCode, Failure> {
    match args.verb {
        Verb::Show { file: Some(file), .. } => {
            let (paths, elapsed) = read(&file)?;
            return print(&listing(&paths, elapsed));
        }
        Verb::Show { file: None, explain, json, source } => {
            let Some(control) = source.stack() else { return print(&kernel(explain, json, &source)?) };
            if explain || json {
                return Err(Failure::usage("--explain and --json only work for the kernel's paths"));
            }
            let paths: Paths = ask(control, &Request::Paths)?
                .parse()
                .map_err(|error| Failure::failed(format!("the stack's answer: {error}")))?;
            return print(&listing(&paths, Duration::ZERO));
        }
        Verb::Delete { of, stack } => {
            let address = |text: &String| {
                text.parse::<IpAddr>()
                    .map_err(|_| Failure::usage(format!("`{text}` is not an address of a peer")))
            };
            let (file, peer) = match (&of[..], stack.named()) {
                ([peer], Some(control)) => {
                    return print(&ask(control, &Request::PathsForget(Some(address(peer)?)))?);
                }
                ([file, peer], None) => (PathBuf::from(file), address(peer)?),
                ([_], None) => {
                    return Err(Failure::usage(
                        "choose what to change: a FILE of --cache before the peer, --stack or \
                        --control PATH; for the kernel use `ip tcp_metrics delete PEER`",
                    ));
                }
                _ => return Err(Failure::usage("expected a file or a running stack, not both")),
            };
            let (mut paths, elapsed) = read(&file)?;
            let before = paths.paths.len() + paths.verdicts.len();
            paths.paths.retain(|path| path.peer != peer);
            paths.verdicts.retain(|verdict| verdict.peer != peer);
            if paths.paths.len() + paths.verdicts.len() == before {
                return Err(Failure::failed(format!("nothing is cached for {peer} in {}", file.display())));
            }
            write(&file, &older(paths, elapsed))?;
        }
        Verb::Flush { file, stack } => {
            if let Some(control) = stack.named() {
                return print(&ask(control, &Request::PathsForget(None))?);
            }
            let file = file.ok_or(Failure::usage(
                "choose what to change: a FILE of --cache, --stack or --control PATH; for the \
                kernel use `ip tcp_metrics flush all`",
            ))?;
            read(&file)?;
            write(&file, &Paths::default())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn kernel(explain: bool, json: bool, source: &SourceArgs) -> Result<String, Failure> {
    let paths = source.read(sources::paths)?;
    let paths = paths.map_err(|error| Failure::failed(format!("cannot read tcp_metrics: {error}")))?;
    if json {
        return Ok(format!("{}\n", doctor::show::paths::json(&paths)));
    }
    let text = doctor::show::paths::text(&paths);
    if !explain {
        return Ok(text);
    }
    let now = source.read(sources::here)?;
    let findings = Report::of(&Window::since_boot(&now)).findings;
    Ok(format!("{text}\n{}", doctor::show::paths::explained(&paths, &findings)))
}

fn read(file: &Path) -> Result<(Paths, Duration), Failure> {
    paths::load(file).map_err(|error| bad_file(file, &error))
}

fn write(file: &Path, paths: &Paths) -> Result<(), Failure> {
    paths::save(file, paths).map_err(|error| Failure::file("write", file, &error))
}

/// Explains an unreadable file.
pub(crate) fn bad_file(file: &Path, error: &LoadError) -> Failure {
    match error {
        LoadError::Io(error) => Failure::file("read", file, error),
        LoadError::Content(error) => Failure::failed(format!(
            "cannot read {}, {error}\n(nothing was changed; fix the line, or delete the file to \
            start again)",
            file.display()
        )),
    }
}

/// Ages the cached paths by `elapsed`.
fn older(mut paths: Paths, elapsed: Duration) -> Paths {
    for path in &mut paths.paths {
        path.used += elapsed;
        path.age += elapsed;
        path.last_syn_drop = path.last_syn_drop.map(|age| age + elapsed);
        path.path_mtu = path.path_mtu.map(|(mtu, age)| (mtu, age + elapsed));
    }
    paths.verdicts.iter_mut().for_each(|verdict| verdict.age += elapsed);
    paths
}

fn listing(paths: &Paths, elapsed: Duration) -> String {
    let paths = older(paths.clone(), elapsed);
    let lines = paths.paths.iter().map(path_line).chain(paths.verdicts.iter().map(verdict_line));
    lines.map(|line| line + "\n").collect()
}

fn path_line(path: &PathRecord) -> String {
    let mut line = format!("{} age {:.3}sec", path.peer, path.age.as_secs_f64());
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(line, " {name} {value}");
        }
    };
    let micros = |time: Duration| format!("{}us", time.as_micros());
    add("ssthresh", path.ssthresh.map(|segments| segments.to_string()));
    add("cwnd", path.cwnd.map(|segments| segments.to_string()));
    add("reordering", path.reordering.map(|segments| segments.to_string()));
    add("rtt", path.rtt.map(micros));
    add("rttvar", path.rtt.map(|_| micros(path.rttvar)));
    add("fo_mss", path.mss.map(|bytes| bytes.to_string()));
    add("fo_syn_drops", (path.syn_drops > 0).then(|| path.syn_drops.to_string()));
    add("fo_cookie", path.cookie.map(|cookie| cookie.to_string()));
    add("mtu", path.path_mtu.map(|(bytes, _)| bytes.to_string()));
    add("source", Some(path.local.to_string()));
    line
}

fn verdict_line(verdict: &VerdictRecord) -> String {
    let left = verdict.length.saturating_sub(verdict.age).as_secs();
    let until = if left > 0 { format!("off for {left} s more") } else { "to be tried again".to_owned() };
    let VerdictRecord { peer, port, network, reason, count, .. } = verdict;
    if *count == 0 {
        return format!(
            "{peer} port {port} from {network}: one Fast Open SYN was lost, the next one \
            is sent as usual"
        );
    }
    format!("{peer} port {port} from {network}: Fast Open failed ({reason:?}, {count} in a row), {until}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_ip_tcp_metrics() {
        let text = "firstbyte paths 1\n\
                    path 10.0.0.1 10.0.0.2 used 3 cookie 0102030405060708 mss 1460 rtt 40ms rttvar 20ms ssthresh 7 cwnd 10 age 3\n\
                    path 10.0.0.1 10.0.0.3\n\
                    verdict 10.0.0.0/24 10.0.0.9 80 dropped count 2 age 100 length 600\n\
                    verdict 10.0.0.0/24 10.0.0.9 443 dropped count 0 age 100 length 0\n";
        let shown = listing(&text.parse().unwrap(), Duration::from_millis(1500));
        assert_eq!(
            shown,
            "10.0.0.2 age 4.500sec ssthresh 7 cwnd 10 rtt 40000us rttvar 20000us fo_mss 1460 fo_cookie 0102030405060708 source 10.0.0.1\n\
             10.0.0.3 age 1.500sec source 10.0.0.1\n\
             10.0.0.9 port 80 from 10.0.0.0/24: Fast Open failed (Dropped, 2 in a row), off for 498 s more\n\
             10.0.0.9 port 443 from 10.0.0.0/24: one Fast Open SYN was lost, the next one is sent as usual\n"
        );
    }
}
