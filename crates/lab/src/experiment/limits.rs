//! Limits of a scenario file: packets, hosts and memory. The file may come from a stranger.

use super::event::Act;
use super::file::{EndPart, EventPart, PathPart};
use super::mistake::{Mistake, Within};
use super::{nearest, units};
use crate::apps::Step;
use core::str::FromStr;

/// Limits that all runs of a file share. Written `packets=20000000,memory=8GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Packets that hosts send and events inject.
    pub packets: u64,
    /// Hosts of a run, and paths between them.
    pub hosts: u64,
    /// Bytes of recorded data: packets, and reports of stacks and queues.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { packets: 5_000_000, hosts: 20_000, memory: 4_000_000_000 }
    }
}

const NAMES: [&str; 3] = ["packets", "hosts", "memory"];

impl FromStr for Limits {
    type Err = String;

    fn from_str(text: &str) -> Result<Limits, String> {
        let mut limits = Limits::default();
        for part in text.split(',') {
            let form = "write packets=N, hosts=N or memory=SIZE, several with commas";
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("`{part}` is not a limit; {form}"))?;
            let count = || value.parse().map_err(|_| format!("`{value}` is not a number of {name}; {form}"));
            match name.trim() {
                "packets" => limits.packets = count()?,
                "hosts" => limits.hosts = count()?,
                "memory" => limits.memory = units::bytes(value)?,
                name => return Err(format!("there is no limit `{name}`{}; {form}", nearest(name, &NAMES))),
            }
        }
        Ok(limits)
    }
}

impl Limits {
    /// Checks the needs of a variant before it runs.
    pub(super) fn check(
        &self,
        path: &PathPart,
        ends: &[EndPart; 2],
        events: &[EventPart],
    ) -> Result<(), Mistake> {
        self.check_hosts(path, ends)?;
        self.check_events(events)?;
        for (end, name) in ends.iter().zip(["client", "server"]) {
            let longest = end.steps.iter().flatten().map(Step::text_len).max().unwrap_or_default() as u64;
            if longest > self.memory {
                return Err(over(&format!("a step writes {longest} bytes"), "memory", self.memory))
                    .within("steps")
                    .within(name);
            }
        }
        Ok(())
    }

    fn check_hosts(&self, path: &PathPart, [client, server]: &[EndPart; 2]) -> Result<(), Mistake> {
        let (clients, servers) = (u64::from(client.clients.unwrap_or(1)), server.servers.unwrap_or(1) as u64);
        let paths = match path.router {
            Some(_) => clients.saturating_add(1),
            None => clients.saturating_mul(servers),
        };
        let links = path.links.unwrap_or(1).max(1) as u64;
        let paths = paths.saturating_mul(links);
        if clients.saturating_add(servers).saturating_add(paths) > self.hosts {
            let what = format!("clients are {clients}, servers {servers}, links between them {paths}");
            let (key, part) = match (links > 1, clients > servers) {
                (true, _) => ("links", "path"),
                (false, true) => ("clients", "client"),
                (false, false) => ("servers", "server"),
            };
            return Err(over(&what, "hosts", self.hosts)).within(key).within(part);
        }
        // Each connection sends at least a SYN.
        let at_once = client.at_once.unwrap_or(1).min(client.connections.unwrap_or(1)) as u64;
        let begun = clients.saturating_mul(at_once);
        if begun > self.packets {
            let what = format!("{begun} connections start at once");
            return Err(over(&what, "packets", self.packets)).within("at_once").within("client");
        }
        Ok(())
    }

    fn check_events(&self, events: &[EventPart]) -> Result<(), Mistake> {
        let mut brought = 0u64;
        for event in events {
            let (Act::SpoofSyns { count } | Act::Probe { count, .. }) = event.act else { continue };
            brought = brought.saturating_add(count.into());
            if brought > self.packets {
                let what = format!("events inject {brought} packets");
                return Err(event.mistake("do", over(&what, "packets", self.packets)));
            }
        }
        Ok(())
    }

    /// Returns the limits left for further runs. Fails if a run exceeded a limit.
    pub(super) fn without(self, packets: u64, memory: u64) -> Result<Limits, Mistake> {
        if packets > self.packets {
            return Err(over("it is not over", "packets", self.packets).into());
        }
        if memory > self.memory {
            return Err(over("it is not over", "memory", self.memory).into());
        }
        Ok(Limits { packets: self.packets - packets, memory: self.memory - memory, ..self })
    }
}

fn over(what: &str, name: &str, most: u64) -> String {
    let most = if name == "memory" { format!("{most} bytes of memory") } else { format!("{most} {name}") };
    format!("cannot run it: {what}, but the limit is {most}; raise it with --limit {name}=N")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    fn experiment(rest: &str) -> Experiment {
        let text = format!(
            "# How?\nchapter = \"Own\"\nlesson = \"So.\"\nfor = \"2s\"\n{rest}\n[[expect]]\nwhat = \"done\"\nthat = \"done()\"\nat_least = 0\n"
        );
        Experiment::parse(&text).unwrap()
    }

    fn refused(rest: &str, limits: &str) -> String {
        let experiment = experiment(rest).with_limits(limits.parse().unwrap());
        let checked = experiment.check_hosts().err();
        let run = experiment.run().err().unwrap_or_default();
        assert!(checked.is_none_or(|checked| checked == run), "both say the same");
        run
    }

    #[test]
    fn limits_are_written_as_words() {
        let limits: Limits = "packets=7,memory=2GB".parse().unwrap();
        assert_eq!(limits, Limits { packets: 7, memory: 2_000_000_000, ..Limits::default() });
        for (text, part) in [
            ("packets", "write packets=N"),
            ("packet=5", "did you mean `packets`"),
            ("hosts=many", "`many` is not a number of hosts"),
            ("memory=lots", "not a number of bytes"),
        ] {
            let error = text.parse::<Limits>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_that_takes_too_much_is_refused_with_its_line() {
        for (rest, limits, part) in [
            (
                "event = [{ at = \"1s\", do = \"spoof 4294967295 SYNs\" }]",
                "",
                "events inject 4294967295 packets",
            ),
            ("client.clients = 100000\n", "", "clients are 100000"),
            ("client.clients = 1000\nserver.servers = 1000\n", "", "links between them 1000000"),
            ("client.connections = 4000000000\nclient.at_once = 4000000000\n", "", "start at once"),
            ("client.steps = [\"connect\", \"write 2MB\"]", "memory=1MB", "a step writes 2000000 bytes"),
            ("path = { bond = \"balance-rr\", links = 4000000000 }", "", "links between them 4000000000"),
            ("event = [{ at = \"1s\", do = \"spoof 11 SYNs\" }]", "packets=10", "the limit is 10 packets"),
        ] {
            let limits = if limits.is_empty() { "packets=5000000" } else { limits };
            let error = refused(rest, limits);
            assert!(error.contains(part) && error.contains("--limit"), "{rest}: {error}");
            assert!(error.starts_with("line "), "{error}");
        }
    }

    /// A download of 10 MB in packets of 1,500 bytes, captured at both ends.
    const DOWNLOAD: &str =
        "client.steps = [\"connect\", \"read 10MB\", \"close\"]\nserver.steps = [\"write 10MB\", \"close\"]";

    #[test]
    fn a_run_ends_when_it_has_taken_what_it_may() {
        let error = refused(DOWNLOAD, "packets=1000");
        assert!(error.contains("the limit is 1000 packets"), "{error}");
        let error = refused(DOWNLOAD, "memory=1MB");
        assert!(
            error.contains("the limit is 1000000 bytes of memory; raise it with --limit memory=N"),
            "{error}"
        );
        assert!(experiment(DOWNLOAD).run().is_ok());
    }

    #[test]
    fn runs_share_a_limit() {
        let two =
            format!("{DOWNLOAD}\n[[run]]\nname = \"a\"\n[[run]]\nname = \"b\"\n").replace("10MB", "1MB");
        let text = format!(
            "# How?\nchapter = \"Own\"\nlesson = \"So.\"\n{two}[[expect]]\nwhat = \"done\"\nthat = \"done(a)\"\nat_least = 0\n"
        );
        let run = |packets: u64| {
            let limits = Limits { packets, ..Limits::default() };
            Experiment::parse(&text).unwrap().with_limits(limits).run().err().unwrap_or_default()
        };
        // A run has 691 packets with data and fewer acknowledgments.
        assert!(run(1000).contains("run `b`"), "{}", run(1000));
        assert_eq!(run(3000), "");
    }
}
