//! Scenarios in real time: the same path, with hosts that may be the kernel's, and the results
//! beside those of virtual time.
//!
//! The caller has the clock, the namespaces and the sockets. [`RealRun`] describes the ends,
//! [`Standing`] is the network.

use super::file::EndPart;
use super::outcome::{Figures, finding};
use super::play::{Hosts, Played, Variant};
use super::topology::{CLIENT, SERVER};
use super::{Experiment, Finding};
use crate::apps::{Program, Step, Told};
use crate::capture::HostId;
use crate::network::Network;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;

/// The stack of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A Firstbyte stack.
    Firstbyte,
    /// The kernel.
    Kernel,
}

/// The setting that is a socket option here.
const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";

/// The part of a kernel's end.
#[derive(Clone, Debug)]
pub struct KernelEnd {
    /// Its own address; a server listens there.
    pub local: SocketAddr,
    /// The other end's address; a client connects to it.
    pub peer: SocketAddr,
    /// Settings by Linux's names.
    pub settings: Vec<(String, String)>,
    /// Congestion control, set per socket: a namespace cannot choose every algorithm as its
    /// default.
    pub congestion_control: String,
    /// Steps of each connection.
    pub steps: Vec<Step>,
    /// Number of connections of a client, one after the other.
    pub connections: usize,
    /// Time from the end of one connection to the start of the next.
    pub pause: Duration,
    /// Backlog of the listener.
    pub backlog: u32,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `SO_SNDBUF`, if set.
    pub send_buffer: Option<u32>,
    /// `SO_RCVBUF`, if set.
    pub receive_buffer: Option<u32>,
}

/// The report of a kernel's end.
#[derive(Clone, Debug, Default)]
pub struct KernelTold {
    /// Progress of each connection, as its program saw it.
    pub told: Vec<Told>,
    /// Counters by their full names, e.g. `TcpExtTCPTimeouts`.
    pub counters: BTreeMap<String, u64>,
}

/// A run with two hosts that are Firstbyte's or the kernel's.
pub struct RealRun<'a> {
    variant: Variant<'a>,
    whose: [Whose; 2],
}

/// The network of a run. Firstbyte hosts work in it as soon as they are started.
pub struct Standing {
    /// The hosts and the path between them.
    pub network: Network,
    /// The client and the server.
    pub ends: [HostId; 2],
    hosts: Hosts,
}

/// The results of a run in real time.
#[derive(Debug)]
pub struct RealPlayed(Played);

/// A check in virtual time beside the same check in real time.
#[derive(Clone, Debug)]
pub struct Beside {
    /// The check in virtual time.
    pub virtual_time: Finding,
    /// The check in real time, or the reason why it was not measured.
    pub real_time: Result<Finding, String>,
}

impl Beside {
    /// Returns the relative difference to virtual time; `None` if that value is zero or one is
    /// missing.
    pub fn difference(&self) -> Option<f64> {
        let (there, here) = (self.virtual_time.value?, self.real_time.as_ref().ok()?.value?);
        if here == there { Some(0.0) } else { (there != 0.0).then(|| (here - there) / there) }
    }
}

impl Experiment {
    /// Returns the runs with these hosts, the client's and the server's.
    ///
    /// # Errors
    /// The part of the file that needs more than two hosts and a path.
    pub fn real_runs(&self, whose: [Whose; 2]) -> Result<Vec<RealRun<'_>>, String> {
        let of = |run| {
            let variant = Variant::of(&self.file, run);
            check(&variant, whose).map_err(|what| format!("run `{}`: {what}", variant.name))?;
            Ok(RealRun { variant, whose })
        };
        match self.runs.is_empty() {
            true => Err("it has no run, only tc commands".into()),
            false => self.runs.iter().map(of).collect(),
        }
    }

    /// Returns the checks of these runs, each beside that of virtual time.
    ///
    /// # Errors
    /// A measure finds nothing to measure in virtual time.
    pub fn beside(&self, real: Vec<RealPlayed>) -> Result<Vec<Beside>, String> {
        let (there, here) = (self.play_all()?, real.into_iter().map(|RealPlayed(played)| played));
        let here: Vec<Played> = here.collect();
        let (there, here) = (Figures::new(&there), Figures::new(&here));
        let of = |expect: &super::file::Expect| {
            let told = |error: String| format!("\"{}\": {error}", expect.what);
            Ok(Beside {
                virtual_time: finding(expect, there.value(&expect.that).map_err(told)?),
                real_time: here.value(&expect.that).map(|value| finding(expect, value)),
            })
        };
        self.file.expect.iter().map(of).collect()
    }
}

/// Checks that the variant needs only two hosts and a path.
fn check(variant: &Variant<'_>, whose: [Whose; 2]) -> Result<(), String> {
    let [client, server] = &variant.ends;
    let path = &variant.path;
    let kernel = |end: usize| whose[end] == Whose::Kernel;
    let has_route = (0..2).any(|end| kernel(end) && variant.ends[end].route.is_some());
    let beyond = [
        ("router", path.router.is_some()),
        ("second", path.second.is_some()),
        ("bond", path.bond.is_some()),
        ("an event", !variant.events.is_empty()),
        ("clients", client.clients.is_some_and(|count| count > 1)),
        ("servers", server.servers.is_some_and(|count| count > 1)),
        ("ports", server.ports.is_some_and(|count| count > 1)),
        ("device", client.device.is_some() || server.device.is_some()),
        ("at_once", kernel(0) && client.at_once.is_some_and(|count| count > 1)),
        ("accepts", kernel(1) && server.accepts == Some(false)),
        ("route", has_route),
    ];
    match beyond.iter().find(|(_, is_there)| *is_there) {
        Some((word, _)) => Err(format!(
            "{word}: only in virtual time; in real time there are two hosts and a path between them"
        )),
        None => Ok(()),
    }
}

impl RealRun<'_> {
    /// Returns the name of the run.
    pub fn name(&self) -> &str {
        self.variant.name
    }

    /// Returns the maximum packet size of the path.
    pub fn mtu(&self) -> usize {
        self.variant.path.mtu.unwrap_or(1500)
    }

    /// Returns the duration of the run in virtual time.
    ///
    /// # Errors
    /// See [`Experiment::run`].
    pub fn takes(&self) -> Result<Duration, String> {
        let played = self.variant.play(&mut super::Limits::default())?;
        let last = played.capture.observations().last().map(|seen| seen.at);
        Ok(last.map_or(Duration::ZERO, |at| at.since(proto::Instant::ZERO)))
    }

    /// Returns the part of the client (0) or the server (1) if that end is the kernel's.
    pub fn kernel_end(&self, end: usize) -> Option<KernelEnd> {
        let part: &EndPart = &self.variant.ends[end];
        let client = SocketAddr::new(CLIENT.into(), 0);
        let (local, peer) = if end == 0 { (client, SERVER) } else { (SERVER, client) };
        let buffer = |size: Option<super::quantities::Size>| Some(u32::try_from(size?.0).unwrap_or(u32::MAX));
        // As for hosts in virtual time: a listener with a Fast Open queue needs no option (0x400).
        let fast_open = if part.fast_open.is_some() { "1027" } else { "3" };
        let mut settings = vec![("net.ipv4.tcp_fastopen".to_owned(), fast_open.to_owned())];
        let (chosen, others): (Vec<_>, Vec<_>) = part
            .set
            .iter()
            .map(|(name, value)| (name.clone(), value.text()))
            .partition(|(name, _)| name == CONGESTION_CONTROL);
        settings.extend(others);
        let congestion_control =
            chosen.into_iter().next().map_or_else(|| "cubic".to_owned(), |(_, value)| value);
        (self.whose[end] == Whose::Kernel).then(|| KernelEnd {
            local,
            peer,
            settings,
            congestion_control,
            steps: part.steps.clone().unwrap_or_default(),
            connections: part.connections.unwrap_or(1),
            pause: part.pause.map_or(Duration::ZERO, |pause| pause.0),
            backlog: part.backlog.unwrap_or(1024),
            nodelay: part.nodelay.unwrap_or_default(),
            send_buffer: buffer(part.sndbuf),
            receive_buffer: buffer(part.rcvbuf),
        })
    }

    /// Builds the network; a Firstbyte server is started.
    ///
    /// # Errors
    /// A host refuses a setting.
    pub fn stand(&self) -> Result<Standing, String> {
        let (network, hosts, _) = self.variant.build(self.whose.map(|whose| whose == Whose::Firstbyte))?;
        Ok(Standing { network, ends: [hosts.clients[0], hosts.servers[0]], hosts })
    }

    /// Starts a Firstbyte client.
    pub fn start_client(&self, standing: &mut Standing) {
        if self.whose[0] == Whose::Firstbyte {
            standing.network.set_app(standing.ends[0], self.variant.program(&[SERVER]));
        }
    }

    /// Finishes the run, with the reports of the kernel's ends.
    pub fn played(&self, standing: Standing, kernels: [Option<KernelTold>; 2]) -> RealPlayed {
        let Standing { network, ends, hosts } = standing;
        let ours = |end: usize| network.app::<Program>(ends[end]).told().cloned().collect::<Vec<Told>>();
        let told =
            [0, 1].map(|end| kernels[end].as_ref().map_or_else(|| ours(end), |kernel| kernel.told.clone()));
        let mut played = self.variant.seen(network, hosts, told);
        for (counters, kernel) in played.counters.iter_mut().zip(kernels) {
            if let Some(kernel) = kernel {
                *counters = kernel.counters;
            }
        }
        RealPlayed(played)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::SHELF;
    use proto::Instant;

    fn shelved_text(name: &str) -> &'static str {
        SHELF.iter().find(|shelved| shelved.name == name).unwrap().text
    }

    fn shelved(name: &str) -> Experiment {
        Experiment::parse(shelved_text(name)).unwrap()
    }

    #[test]
    fn at_an_exact_clock_both_are_the_same() {
        let experiment = shelved("round-trips");
        let mut played = Vec::new();
        for run in experiment.real_runs([Whose::Firstbyte; 2]).unwrap() {
            let mut standing = run.stand().unwrap();
            run.start_client(&mut standing);
            let span = run.takes().unwrap();
            standing.network.run_to(Instant::ZERO + span);
            played.push(run.played(standing, Default::default()));
        }
        for beside in experiment.beside(played).unwrap() {
            assert!(beside.difference().unwrap().abs() < 1e-9, "{beside:?}");
        }
    }

    #[test]
    fn of_nothing_there_is_no_share() {
        let beside = |there, here| Beside {
            virtual_time: Finding::near("drops", Some(there), "0", 0.0),
            real_time: Ok(Finding::near("drops", Some(here), "0", 0.0)),
        };
        assert_eq!(beside(0.0, 0.0).difference(), Some(0.0));
        assert_eq!(beside(0.0, 2.0).difference(), None);
        assert_eq!(beside(2.0, 3.0).difference(), Some(0.5));
    }

    #[test]
    fn what_needs_more_than_two_hosts_is_told() {
        let told = |name: &str| shelved(name).real_runs([Whose::Kernel; 2]).err().unwrap_or_default();
        assert!(told("crowd").contains("only in virtual time"), "{}", told("crowd"));
        assert!(told("byte-queue-limits").contains("device: only in virtual time"));
        assert_eq!(told("window-scaling"), "");
    }

    #[test]
    fn a_kernel_is_told_what_it_is_to_do() {
        let experiment = shelved("window-scaling");
        let runs = experiment.real_runs([Whose::Kernel, Whose::Firstbyte]).unwrap();
        let client = runs[0].kernel_end(0).unwrap();
        assert_eq!(client.settings[1], ("net.ipv4.tcp_window_scaling".into(), "0".into()));
        assert!(runs[0].kernel_end(1).is_none() && client.steps.len() == 4);
        assert_eq!(client.congestion_control, "cubic", "whatever this machine's default is");
    }

    #[test]
    fn the_congestion_control_that_is_set_is_its_sockets() {
        let text = shelved_text("round-trips");
        let text = text
            .replace("[server]\n", "[server]\nset = { \"net.ipv4.tcp_congestion_control\" = \"reno\" }\n");
        let experiment = Experiment::parse(&text).unwrap();
        let server = experiment.real_runs([Whose::Kernel; 2]).unwrap()[0].kernel_end(1).unwrap();
        assert_eq!((server.congestion_control.as_str(), server.settings.len()), ("reno", 1));
    }
}
