//! `firstbyte link`: a path of the lab between two network namespaces, in real time. Programs on
//! the kernel's TCP see the same delay, queue, losses and middleboxes as stacks in virtual time.
pub(crate) mod end;
mod ending;

use crate::failure::Failure;
use crate::source;
use crate::terminal::print;
use ::lab::experiment::route_of_words;
use ::lab::middlebox::Direction;
use ::lab::network::Passage;
use bytes::Bytes;
use clap::Args;
use end::End;
use ending::Ending;
use firstbyte::Instant;
use rustix::event::{PollFd, PollFlags};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

/// Join two network namespaces by an emulated path, in real time, for any program
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    ip netns add here; ip netns add there\n  \
    firstbyte link here there rtt=20ms rate=5mbit queue=128 &\n  \
    ip netns exec here ping 10.79.0.2\n\n\
    Both namespaces must exist. Each gets a TUN device `link0`, with 10.79.0.1 for the client \
    and 10.79.0.2 for the server. The devices are removed when the command ends. Needs root.\n\n\
    Keys are those of [path] in a scenario file: rtt, rate, queue, qdisc, loss, lose, towards, \
    mtu, box, bond, links, skew, miimon (docs/experiments.md). Rate, queue and loss apply towards \
    the client unless towards=server.")]
pub(crate) struct LinkArgs {
    /// Network namespace of the client
    client: String,
    /// Network namespace of the server
    server: String,
    /// Properties of the path, such as rtt=20ms
    #[arg(value_name = "KEY=VALUE")]
    path: Vec<String>,
    /// Seed for random events
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// End after this many seconds [default: at SIGINT, SIGTERM or SIGHUP]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
}

/// Addresses of the two ends, the client's first.
const ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 79, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 79, 0, 2))];

/// Runs the verb.
pub(crate) fn run(args: &LinkArgs) -> Result<ExitCode, Failure> {
    let (route, mtu) = route_of_words(&args.path).map_err(Failure::usage)?;
    if args.client == args.server {
        return Err(Failure::usage("cannot join a namespace with itself; give two different ones"));
    }
    let open = |name: &str, address| {
        source::in_namespace(Some(name), || end::open(mtu, |builder| builder.address(address, 24)))?
            .map_err(|error| Failure::failed(format!("in {name}: {error}")))
    };
    let devices = [open(&args.client, ADDRESSES[0])?, open(&args.server, ADDRESSES[1])?];
    let ending =
        Ending::install().map_err(|error| Failure::failed(format!("cannot wait for signals: {error}")))?;
    print(&format!("{} at 10.79.0.1 and {} at 10.79.0.2 are joined\n", args.client, args.server))?;
    // A script that started this in the background waits for the line.
    io::stdout()
        .flush()
        .map_err(|error| Failure::failed(format!("cannot write to standard output: {error}")))?;
    let mut link = Link { passage: Passage::new(route, args.seed), ends: devices.map(End::new), refused: 0 };
    link.carry(&ending, args.seconds.map(Duration::from_secs))
        .map_err(|error| Failure::failed(format!("the link failed: {error}")))?;
    print(&link.told())
}

struct Link {
    passage: Passage,
    /// The ends of client and server.
    ends: [End; 2],
    refused: u64,
}

impl Link {
    /// Carries packets until a signal or the limit.
    fn carry(&mut self, ending: &Ending, limit: Option<Duration>) -> io::Result<()> {
        let begun = std::time::Instant::now();
        let now = || Instant::ZERO + begun.elapsed();
        while !ending.has_come() && limit.is_none_or(|limit| begun.elapsed() < limit) {
            for (end, way) in [(0, Direction::Forward), (1, Direction::Backward)] {
                for packet in self.ends[end].read()? {
                    let out = self.passage.send(now(), way, packet);
                    self.hand_out(out)?;
                }
            }
            let out = self.passage.poll(now());
            self.hand_out(out)?;
            for end in &mut self.ends {
                end.flush()?;
            }
            let next = self.passage.next_event().map(|at| at.since(Instant::ZERO));
            let next = [next, limit].into_iter().flatten().min().map(|at| at.saturating_sub(begun.elapsed()));
            self.wait(ending, next)?;
        }
        Ok(())
    }

    fn hand_out(&mut self, packets: Vec<(Direction, Bytes)>) -> io::Result<()> {
        for (way, packet) in packets {
            let is_taken = self.ends[usize::from(way == Direction::Forward)].give(&packet)?;
            self.refused += u64::from(!is_taken);
        }
        Ok(())
    }

    /// Waits for a packet, for room in a device, for the next departure, or for the end.
    fn wait(&self, ending: &Ending, most: Option<Duration>) -> io::Result<()> {
        let mut descriptors = vec![PollFd::from_borrowed_fd(ending.as_fd(), PollFlags::IN)];
        descriptors.extend(self.ends.iter().filter_map(End::poll_fd));
        end::wait(&mut descriptors, most)
    }

    /// Describes the packets delivered and lost.
    fn told(&self) -> String {
        let mut text = String::new();
        for (way, name) in
            [(Direction::Forward, "client to server"), (Direction::Backward, "server to client")]
        {
            let delivered = self.passage.stats(way).last().map_or(0, |link| link.delivered_packets);
            text.push_str(&format!("{name}: {delivered} packets\n"));
        }
        for (by, count) in self.passage.lost() {
            text.push_str(&format!("lost, {by}: {count}\n"));
        }
        if self.refused > 0 {
            text.push_str(&format!("lost, the end does not accept them: {}\n", self.refused));
        }
        text
    }
}
