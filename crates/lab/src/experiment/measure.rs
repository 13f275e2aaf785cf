//! Measures of a run: from its packets, its counters, and its programs.

use super::play::{PROBE, Played, Variant};
use super::{device, path, seen};
use crate::apps::Told;
use crate::capture::{PacketId, Place, QueueSample};
use crate::exchange::{Exchange, exchanges_of};
use core::time::Duration;
use proto::{Instant, LimitedBy, State, Traced};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Measures: name, arguments after the run, and description.
pub(super) const MEASURES: [(&str, &str, &str); 31] = [
    ("time", "[n]", "time from the first step of a client's connection to its last; the n-th, or the mean"),
    ("first byte", "[n]", "from the first SYN to the first byte of the reply"),
    ("goodput", "", "bytes of data per second, from the first SYN to the last arrival of data"),
    ("packets", "[n]", "packets of a connection, in both directions"),
    ("syns", "[n]", "SYNs of a connection"),
    ("syn data", "[n]", "bytes of data on the first SYN"),
    ("syn-ack data", "[n]", "bytes of data on the first SYN-ACK"),
    ("resent", "[n]", "bytes of data the client retransmitted"),
    ("data packets", "client|server [n]", "packets with data sent by an end"),
    ("repeated acks", "client|server [n]", "most acknowledgments of one byte by an end"),
    ("acknowledged", "client|server [n]", "bytes of an end's data acknowledged by the other end"),
    ("mark", "NAME [n]", "time from the first step of a connection to a mark of either end"),
    ("failed after", "[n]", "time from the first step of a client's connection to its failure"),
    ("count", "client|server COUNTER", "a counter by Linux's name, e.g. TcpExtTCPLossProbes"),
    ("connected", "", "connections opened, as the client saw it"),
    ("accepted", "", "connections accepted by the server's program"),
    ("failed", "", "connections of the client that failed before their last step"),
    ("refused", "ERROR", "connections of the client for which `connect` failed, e.g. with `EADDRNOTAVAIL`"),
    ("done", "", "connections of the client that completed all steps"),
    ("read", "client|server", "bytes read by the programs of an end"),
    ("fairness", "", "fairness between the client's connections: Jain's index of the bytes read by each"),
    ("state", "client|server STATE", "connections in a state at the end, e.g. CLOSE-WAIT"),
    (
        "limited",
        "REASON",
        "share of the time with unacknowledged data in which a limit applied: cwnd, rwnd, sndbuf, app",
    ),
    ("queue", "", "longest queue in packets, in the direction of `towards`"),
    ("wait", "PERCENTILE", "time in the queue and the transmitter in that direction, e.g. wait(fifo, 95)"),
    ("probe", "PERCENTILE", "`wait` for the packets of `probe N every TIME` only"),
    ("drops", "", "packets lost by queues"),
    ("martians", "", "lines written by the server's log_martians"),
    ("link", "N", "packets towards the client on the N-th link of a bond"),
    ("device", "client|server COUNTER", "a counter of an end's device"),
    ("cwnd", "", "largest congestion window in bytes, if it ever changed"),
];

/// Checks the arguments after the run. Arguments in brackets are optional.
pub(super) fn check_arguments(name: &str, arguments: &[String]) -> Result<(), String> {
    let taken = MEASURES.iter().find(|(known, ..)| *known == name).map_or("", |(_, taken, _)| taken);
    let words: Vec<&str> = taken.split_whitespace().collect();
    let needed = words.iter().filter(|word| !word.starts_with('[')).count();
    if arguments.len() < needed {
        let call = format!("{name}(RUN, {})", taken.replace(' ', ", "));
        return Err(format!("`{name}` needs {taken} after the run: {call}"));
    }
    if let Some(more) = arguments.get(words.len()) {
        let takes = if words.is_empty() { "only a run".into() } else { format!("{taken} after the run") };
        return Err(format!("unexpected `{more}`: `{name}` takes {takes}"));
    }
    let mut pairs = words.iter().zip(arguments);
    pairs.try_for_each(|(word, argument)| check_argument(name, word, argument))
}

fn check_argument(name: &str, word: &str, argument: &str) -> Result<(), String> {
    match word {
        "client|server" => end(Some(argument)).map(drop),
        "[n]" | "N" => number(argument).map(drop),
        "STATE" => state(Some(argument)).map(drop),
        "REASON" => reason(Some(argument)).map(drop),
        "PERCENTILE" => percentile(Some(argument)).map(drop),
        "COUNTER" if name == "device" => device::check(argument),
        _ => Ok(()),
    }
}

/// Checks that the variant has the device or link that a measure needs.
pub(super) fn check_looked_at(variant: &Variant<'_>, name: &str, arguments: &[String]) -> Result<(), String> {
    match (name, arguments) {
        ("device", [of, _]) if variant.ends[end(Some(of))?].device.is_none() => Err(NO_DEVICE.into()),
        ("link", [link]) => variant.path.check_link(number(link)?),
        _ => Ok(()),
    }
}

/// Returns the unit in which a measure is shown if no file names one; empty for plain numbers.
pub(super) fn unit_of(name: &str, arguments: &[String]) -> &'static str {
    match name {
        "time" | "first byte" | "mark" | "failed after" | "wait" | "probe" => "ms",
        "goodput" => "MB/s",
        "syn data" | "syn-ack data" | "resent" | "acknowledged" | "read" | "cwnd" => "B",
        "device" => arguments.last().map_or("", |counter| device::unit_of(counter)),
        _ => "",
    }
}

/// Checks that a measure exists. The error lists the known ones.
pub(super) fn check(name: &str) -> Result<(), String> {
    if MEASURES.iter().any(|(known, ..)| *known == name) {
        return Ok(());
    }
    let names: Vec<&str> = MEASURES.iter().map(|(name, ..)| *name).collect();
    Err(format!(
        "unknown measure `{name}`{}; measures are: {}",
        super::nearest(name, &names),
        names.join(", ")
    ))
}

const NO_DEVICE: &str = "this end has no `device`";
/// The reason why a kernel's end has no such value.
const NOT_TOLD: &str = "the state of the kernel; only virtual time shows it";

pub(super) struct Measured<'a> {
    played: &'a Played,
    exchanges: Vec<Exchange>,
}

impl<'a> Measured<'a> {
    pub(super) fn new(played: &'a Played) -> Measured<'a> {
        Measured { played, exchanges: exchanges_of(&played.capture, &played.clients) }
    }

    /// Measures in seconds, bytes, bytes per second or plain numbers.
    pub(super) fn measure(&self, name: &str, arguments: &[String]) -> Result<f64, String> {
        let argument = |n: usize| arguments.get(n).map(String::as_str);
        let first = argument(0);
        let client = &self.played.told[0];
        Ok(match name {
            "time" => self.of_told(first, |told| told.done_at)?,
            "failed after" => self.of_told(first, |told| told.failed_at)?,
            "first byte" => {
                self.of_exchange(first, |one| one.time_to_first_byte().map(|time| time.as_secs_f64()))?
            }
            "packets" => self.of_exchange(first, |one| Some(one.packets() as f64))?,
            "syns" => self.of_exchange(first, |one| Some(one.syns.into()))?,
            "syn data" => self.of_exchange(first, |one| Some(one.syn_data_len.into()))?,
            "syn-ack data" => self.of_exchange(first, |one| Some(one.synack_data_len.into()))?,
            "resent" => self.of_exchange(first, |one| Some(one.bytes_resent as f64))?,
            "data packets" => {
                self.of_sender(first, argument(1), |one, by| seen::data_segments(one, by) as f64)?
            }
            "repeated acks" => {
                self.of_sender(first, argument(1), |one, by| seen::repeated_acks(one, by) as f64)?
            }
            "acknowledged" => {
                self.of_sender(first, argument(1), |one, by| seen::acknowledged(one, by).into())?
            }
            "goodput" => self.goodput()?,
            "fairness" => fairness(client)?,
            "refused" => {
                let name = first.ok_or("refused needs an ERROR, e.g. EADDRNOTAVAIL")?;
                client.iter().filter(|told| told.refused == Some(name)).count() as f64
            }
            "mark" => self.mark(first.ok_or("mark needs a NAME")?, argument(1))?,
            "state" if !self.played.ours[end(first)?] => return Err(NOT_TOLD.into()),
            "limited" | "cwnd" if self.played.ours != [true; 2] => return Err(NOT_TOLD.into()),
            "count" => {
                let counters = &self.played.counters[end(first)?];
                let name = argument(1).ok_or("count needs a COUNTER")?;
                *counters.get(name).ok_or_else(|| no_counter(name, counters))? as f64
            }
            "connected" => client.iter().filter(|told| told.connected).count() as f64,
            "failed" => client.iter().filter(|told| told.failed_at.is_some()).count() as f64,
            "done" => client.iter().filter(|told| told.done_at.is_some()).count() as f64,
            "accepted" => self.played.told[1].len() as f64,
            "read" => self.played.told[end(first)?].iter().map(|told| told.read as f64).sum(),
            "state" => {
                let state = state(argument(1))?;
                self.played.states[end(first)?].iter().map(|counts| counts.of(state) as f64).sum()
            }
            "limited" => self.limited(first)?,
            "queue" => self.longest_queue(),
            "wait" => self.wait(first, |_| true)?,
            "probe" => {
                let probes = self.probes();
                self.wait(first, |packet| probes.contains(&packet))?
            }
            "drops" => self.played.links.iter().flatten().map(|link| link.drops_queue as f64).sum(),
            "martians" => self.played.martians as f64,
            "link" => {
                let number = number(first.unwrap_or_default())?;
                let packets = self.played.bonded.get(number - 1);
                *packets.ok_or_else(|| path::no_link(number, self.played.bonded.len()))? as f64
            }
            "device" => {
                let cards = &self.played.cards[end(first)?];
                if cards.is_empty() {
                    return Err(NO_DEVICE.into());
                }
                device::counter(cards, argument(1).ok_or("device needs a COUNTER")?)?
            }
            "cwnd" => self.largest_window().ok_or("no congestion window ever changed")?,
            name => return check(name).and(Err(format!("`{name}` is not measured"))),
        })
    }

    fn of_told(&self, which: Option<&str>, at: impl Fn(&Told) -> Option<Instant>) -> Result<f64, String> {
        let span = |told: &Told| Some(at(told)?.since(told.begun_at?).as_secs_f64());
        pick(which, self.played.told[0].iter().map(span).collect())
    }

    fn of_exchange(
        &self,
        which: Option<&str>,
        value: impl Fn(&Exchange) -> Option<f64>,
    ) -> Result<f64, String> {
        pick(which, self.exchanges.iter().map(value).collect())
    }

    /// Measures the packets that one end of a connection sent.
    fn of_sender(
        &self,
        sender: Option<&str>,
        which: Option<&str>,
        value: impl Fn(&Exchange, bool) -> f64,
    ) -> Result<f64, String> {
        let is_client = end(sender)? == 0;
        self.of_exchange(which, |one| Some(value(one, is_client)))
    }

    fn mark(&self, name: &str, which: Option<&str>) -> Result<f64, String> {
        let span = |told: &Told| {
            let (_, at) = told.marks.iter().find(|(known, _)| known == name)?;
            Some(at.since(told.begun_at?).as_secs_f64())
        };
        let [client, server] = &self.played.told;
        let of = |side: &[Told]| side.iter().map(span).collect::<Vec<_>>();
        let (client, server) = (of(client), of(server));
        pick(which, if client.iter().any(Option::is_some) { client } else { server })
    }

    fn goodput(&self) -> Result<f64, String> {
        let start = self.exchanges.iter().map(|one| one.started_at).min().ok_or("nobody connected")?;
        let (mut bytes, mut last) = ([0u64; 2], start);
        let journeys = self.exchanges.iter().flat_map(|one| one.journeys.iter().map(|way| (one.server, way)));
        for (server, journey) in journeys {
            if let (Some(segment), Some(seen)) = (journey.received_segment(), &journey.received)
                && segment.text_len() > 0
            {
                bytes[usize::from(segment.dst() == server)] += u64::from(segment.text_len());
                last = last.max(seen.at);
            }
        }
        let read: usize = self.played.told.iter().flatten().map(|told| told.read).max().unwrap_or(0);
        // Duplicates do not count: at most as much as the programs read.
        let bytes = bytes[0].max(bytes[1]).min(self.read_by_all().max(read as u64));
        Ok(bytes as f64 / last.since(start).as_secs_f64())
    }

    /// Returns the bytes read at the end that read more.
    fn read_by_all(&self) -> u64 {
        let sums = self.played.told.iter().map(|side| side.iter().map(|told| told.read as u64).sum());
        sums.max().unwrap_or(0)
    }

    fn limited(&self, reason: Option<&str>) -> Result<f64, String> {
        let wanted = self::reason(reason)?;
        let mut spent = [Duration::ZERO; 2];
        // The current limit of each connection's senders, and its start.
        let mut limits = HashMap::new();
        for (host, event) in self.played.capture.traced() {
            let sender = (*host, event.ends);
            let before = match event.what {
                Traced::Limited { to, .. } => limits.insert(sender, (event.at, to)),
                // A later connection with the same addresses and ports.
                Traced::State { from: None, .. } => limits.remove(&sender).and(None),
                _ => None,
            };
            let Some((since, by)) = before else { continue };
            let span = event.at.since(since);
            spent[0] += if by == wanted { span } else { Duration::ZERO };
            let is_busy = !matches!(by, LimitedBy::Idle | LimitedBy::Handshake);
            spent[1] += if is_busy { span } else { Duration::ZERO };
        }
        Ok(spent[0].as_secs_f64() / spent[1].as_secs_f64().max(1e-9))
    }

    /// Returns the samples of the queue that the file describes, without those of the opposite
    /// direction.
    fn samples(&self) -> impl Iterator<Item = &QueueSample> {
        let samples = self.played.capture.queues().iter();
        samples.filter(|sample| sample.wire().direction() == self.played.narrow)
    }

    fn longest_queue(&self) -> f64 {
        let lengths = self.samples().filter_map(|sample| match sample {
            QueueSample::Length { packets, .. } => Some(*packets as f64),
            QueueSample::Waited { .. } => None,
        });
        lengths.fold(0.0, f64::max)
    }

    fn probes(&self) -> HashSet<PacketId> {
        let seen = self.played.capture.observations().iter();
        let probes = seen.filter(|one| matches!(one.place, Place::Injected { by: PROBE }));
        probes.map(|one| one.packet).collect()
    }

    /// Measures the waiting time of the packets selected by `meant`.
    fn wait(&self, percentile: Option<&str>, meant: impl Fn(PacketId) -> bool) -> Result<f64, String> {
        let share = self::percentile(percentile)?;
        let waits = self.samples().filter_map(|sample| match sample {
            QueueSample::Waited { nanos, packet, .. } if meant(*packet) => Some(*nanos),
            QueueSample::Waited { .. } | QueueSample::Length { .. } => None,
        });
        let mut waits: Vec<u64> = waits.collect();
        waits.sort_unstable();
        let rank = (share / 100.0 * waits.len() as f64).ceil().max(1.0) as usize - 1;
        let nanos = waits.get(rank.min(waits.len().saturating_sub(1))).ok_or("nothing waited")?;
        Ok(*nanos as f64 / 1e9)
    }

    fn largest_window(&self) -> Option<f64> {
        let windows = self.played.capture.traced().iter().filter_map(|(_, event)| match event.what {
            Traced::Cwnd { from, to } => Some(from.max(to)),
            _ => None,
        });
        windows.max().map(f64::from)
    }
}

/// Computes Jain's index: 1 if all have equal shares, 1/n if one of n has everything.
fn fairness(connections: &[Told]) -> Result<f64, String> {
    let read: Vec<f64> = connections.iter().map(|told| told.read as f64).collect();
    let (sum, squares): (f64, f64) = (read.iter().sum(), read.iter().map(|bytes| bytes * bytes).sum());
    if squares > 0.0 {
        Ok(sum * sum / (read.len() as f64 * squares))
    } else {
        Err("nobody read anything".into())
    }
}

/// Returns the n-th value, or the mean of the present ones.
fn pick(which: Option<&str>, values: Vec<Option<f64>>) -> Result<f64, String> {
    if let Some(which) = which {
        let number = number(which)?;
        let value = values.get(number - 1);
        let value = value
            .ok_or_else(|| format!("cannot measure connection {number}: the run has {}", values.len()))?;
        return value.ok_or_else(|| format!("connection {number} did not get this far"));
    }
    let known: Vec<f64> = values.into_iter().flatten().collect();
    if known.is_empty() {
        return Err("no connection got this far".into());
    }
    Ok(known.iter().sum::<f64>() / known.len() as f64)
}

/// Explains that no host counts this.
pub(super) fn no_counter(name: &str, counters: &BTreeMap<String, u64>) -> String {
    let names: Vec<&str> = counters.keys().map(String::as_str).collect();
    let near = super::nearest(name, &names);
    format!("unknown counter `{name}`{near}; counters have Linux's names, as `nstat -az` shows them")
}

/// Parses the number of a connection or link, counted from 1.
fn number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("expected a run or a number from 1 on, found `{text}`"))
}

fn end(text: Option<&str>) -> Result<usize, String> {
    let known = ["client", "server"];
    let text = text.ok_or("name an end: client or server")?;
    let end = known.iter().position(|known| *known == text);
    end.ok_or_else(|| format!("unknown end `{text}`: write client or server{}", super::nearest(text, &known)))
}

fn reason(text: Option<&str>) -> Result<LimitedBy, String> {
    Ok(match text {
        Some("cwnd") => LimitedBy::Congestion,
        Some("rwnd") => LimitedBy::Receiver,
        Some("sndbuf") => LimitedBy::SendBuffer,
        Some("device") => LimitedBy::Device,
        Some("app") => LimitedBy::Application,
        text => {
            let near = super::nearest(text.unwrap_or_default(), &["cwnd", "rwnd", "sndbuf", "device", "app"]);
            return Err(format!("limited needs a reason: cwnd, rwnd, sndbuf, device or app{near}"));
        }
    })
}

fn percentile(text: Option<&str>) -> Result<f64, String> {
    let share = text.and_then(|text| text.parse().ok()).filter(|share| (0.0..=100.0).contains(share));
    share.ok_or_else(|| "it needs a percentile from 0 to 100, e.g. 95".into())
}

fn state(text: Option<&str>) -> Result<State, String> {
    let states = [
        ("SYN-SENT", State::SynSent),
        ("SYN-RECEIVED", State::SynReceived),
        ("ESTABLISHED", State::Established),
        ("FIN-WAIT-1", State::FinWait1),
        ("FIN-WAIT-2", State::FinWait2),
        ("CLOSE-WAIT", State::CloseWait),
        ("CLOSING", State::Closing),
        ("LAST-ACK", State::LastAck),
        ("TIME-WAIT", State::TimeWait),
    ];
    let found = states.iter().find(|(name, _)| Some(*name) == text).map(|(_, state)| *state);
    found.ok_or_else(|| {
        let names = states.map(|(name, _)| name);
        format!("name a state: {}{}", names.join(", "), super::nearest(text.unwrap_or_default(), &names))
    })
}
