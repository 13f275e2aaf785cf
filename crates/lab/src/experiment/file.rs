//! The format of a scenario file.

use super::event::Act;
use super::mistake::Mistake;
use super::quantities::{Rate, Share, Size, Time, Words, optional, required};
use crate::apps::Step;
use core::time::Duration;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// A file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct File {
    /// Catalog id, e.g. `L-WIN-1`.
    #[serde(default)]
    pub(super) id: String,
    /// Chapter of the catalog.
    pub(super) chapter: String,
    /// The answer, for pages and indexes.
    pub(super) lesson: String,
    #[serde(default)]
    pub(super) path: PathPart,
    #[serde(default)]
    pub(super) client: EndPart,
    #[serde(default)]
    pub(super) server: EndPart,
    /// Events during the run.
    #[serde(default)]
    pub(super) event: Vec<EventPart>,
    /// Variants, each run once. Without any, the file is one run.
    #[serde(default)]
    pub(super) run: Vec<RunPart>,
    #[serde(default)]
    pub(super) expect: Vec<Expect>,
    /// A conversation with `tc` about the device `eth0`.
    #[serde(default)]
    pub(super) tc: Vec<TcPart>,
    /// Maximum virtual time of a run. A run ends earlier when nothing is left to happen.
    #[serde(rename = "for", default, deserialize_with = "optional")]
    pub(super) limit: Option<Time>,
    #[serde(default = "one")]
    pub(super) seed: u64,
}

impl File {
    /// Stores the place of each event in the file.
    pub(super) fn number_events(&mut self) {
        let numbers = |events: &mut Vec<EventPart>, outer: &[String]| {
            for (n, event) in events.iter_mut().enumerate() {
                event.keys = [outer, &["event".into(), n.to_string()]].concat();
            }
        };
        numbers(&mut self.event, &[]);
        for (n, run) in self.run.iter_mut().enumerate() {
            numbers(&mut run.event, &["run".into(), n.to_string()]);
        }
    }
}

fn one() -> u64 {
    1
}

/// A variant: the values that differ from the file's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RunPart {
    pub(super) name: String,
    /// Replaces the file's limit.
    #[serde(rename = "for", default, deserialize_with = "optional")]
    pub(super) limit: Option<Time>,
    #[serde(default)]
    pub(super) path: PathPart,
    #[serde(default)]
    pub(super) client: EndPart,
    #[serde(default)]
    pub(super) server: EndPart,
    #[serde(default)]
    pub(super) event: Vec<EventPart>,
}

/// The path. Rate, queue, discipline and loss apply towards the client unless `towards` says
/// otherwise.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct PathPart {
    #[serde(default, deserialize_with = "optional")]
    pub(super) rtt: Option<Time>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) rate: Option<Rate>,
    /// Maximum waiting packets.
    pub(super) queue: Option<usize>,
    pub(super) qdisc: Option<String>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) loss: Option<Share>,
    /// Share of connections that lose their SYNs with data on the way to the server.
    #[serde(default, deserialize_with = "optional")]
    pub(super) syn_data_loss: Option<Share>,
    /// Numbers of lost packets, counted from 1.
    pub(super) lose: Option<Vec<u64>>,
    /// `client` or `server`.
    pub(super) towards: Option<Towards>,
    #[serde(rename = "box")]
    pub(super) middlebox: Option<BoxName>,
    pub(super) mtu: Option<usize>,
    /// Round trip between each client and a router. The rest of the path begins at the router, and
    /// all clients share it.
    #[serde(default, deserialize_with = "optional")]
    pub(super) router: Option<Time>,
    /// Round trip of a second path, from the router to the server's `eth1`.
    #[serde(default, deserialize_with = "optional")]
    pub(super) second: Option<Time>,
    /// Several links and the server's bonding mode. Each link is longer than the one before by
    /// `skew`.
    #[serde(default, deserialize_with = "optional")]
    pub(super) bond: Option<Bonding>,
    pub(super) links: Option<usize>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) skew: Option<Time>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) miimon: Option<Time>,
}

/// A bonding mode, by name or number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bonding(pub(super) qdisc::BondMode);

impl core::str::FromStr for Bonding {
    type Err = String;

    fn from_str(text: &str) -> Result<Bonding, String> {
        let names = qdisc::BondMode::ALL.map(|(name, _)| name);
        let wrong = |told| format!("unknown mode `{text}`{}; {told}", super::nearest(text, &names));
        text.parse().map(Bonding).map_err(wrong)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Towards {
    #[default]
    Client,
    Server,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BoxName {
    DropSynData,
    StripFastOpen,
    DropSynAck,
    Duplicate,
    SynProxy,
    AlternatingNat,
    BlackHole,
    Firewall,
    AckThinner,
}

/// An end of the path.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct EndPart {
    pub(super) profile: Option<ProfileName>,
    /// Settings by their Linux names.
    #[serde(default)]
    pub(super) set: BTreeMap<String, Scalar>,
    /// Routes in the words of `ip route`.
    pub(super) route: Option<super::routes::Routes>,
    pub(super) nodelay: Option<bool>,
    pub(super) keepalive: Option<bool>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) sndbuf: Option<Size>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) rcvbuf: Option<Size>,
    #[serde(default, deserialize_with = "steps")]
    pub(super) steps: Option<Vec<Step>>,
    /// The network card.
    pub(super) device: Option<super::device::DevicePart>,
    // Keys of a client.
    /// Number of identical client hosts.
    pub(super) clients: Option<u32>,
    /// Time between the starts of two of them.
    #[serde(default, deserialize_with = "optional")]
    pub(super) stagger: Option<Time>,
    pub(super) connections: Option<usize>,
    /// Number of connections that run alone at first, one after the other.
    pub(super) alone: Option<usize>,
    pub(super) at_once: Option<usize>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) pause: Option<Time>,
    // Keys of a server.
    pub(super) backlog: Option<u32>,
    pub(super) fast_open: Option<u32>,
    pub(super) accepts: Option<bool>,
    /// Number of listening ports, from 80 on; the client's connections use them in turn.
    pub(super) ports: Option<u16>,
    /// Number of servers with the same address behind a load balancer.
    pub(super) servers: Option<usize>,
    /// True if each server has its own cookie key.
    pub(super) own_keys: Option<bool>,
}

impl EndPart {
    /// Returns a key that only a client may have, if one is set.
    pub(super) fn of_a_client(&self) -> Option<&'static str> {
        first_given([
            ("clients", self.clients.is_some()),
            ("stagger", self.stagger.is_some()),
            ("connections", self.connections.is_some()),
            ("alone", self.alone.is_some()),
            ("at_once", self.at_once.is_some()),
            ("pause", self.pause.is_some()),
        ])
    }

    /// Returns a key that only a server may have, if one is set.
    pub(super) fn of_a_server(&self) -> Option<&'static str> {
        first_given([
            ("backlog", self.backlog.is_some()),
            ("fast_open", self.fast_open.is_some()),
            ("accepts", self.accepts.is_some()),
            ("ports", self.ports.is_some()),
            ("servers", self.servers.is_some()),
            ("own_keys", self.own_keys.is_some()),
        ])
    }
}

fn first_given(keys: [(&'static str, bool); 6]) -> Option<&'static str> {
    keys.into_iter().find(|(_, is_given)| *is_given).map(|(key, _)| key)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ProfileName {
    Firstbyte,
    Linux,
}

/// The value of a setting: a number, a word or a boolean.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Scalar {
    Number(i64),
    Flag(bool),
    Text(String),
}

impl Scalar {
    pub(super) fn text(&self) -> String {
        match self {
            Scalar::Number(number) => number.to_string(),
            Scalar::Flag(flag) => u8::from(*flag).to_string(),
            Scalar::Text(text) => text.clone(),
        }
    }
}

/// A command to `tc` and its expected answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct TcPart {
    #[serde(rename = "do")]
    pub(super) command: String,
    /// The expected answer; empty for none.
    #[serde(default)]
    pub(super) says: String,
    /// The value in the literature.
    #[serde(default)]
    pub(super) source: String,
    /// The answer that Linux was seen to give.
    #[serde(default)]
    pub(super) linux: String,
}

/// An event and its time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct EventPart {
    #[serde(deserialize_with = "required")]
    pub(super) at: Time,
    #[serde(rename = "do", deserialize_with = "required")]
    pub(super) act: Act,
    /// Keys of the file that lead to the event.
    #[serde(skip)]
    pub(super) keys: Vec<String>,
}

impl EventPart {
    /// Returns a mistake in the value of `key`.
    pub(super) fn mistake(&self, key: &str, error: String) -> Mistake {
        let outer = self.keys.iter().rev();
        outer.fold(Mistake::from(error).within(key), |mistake, key| mistake.within(key))
    }

    /// Returns the times of the event; probes repeat.
    pub(super) fn moments(&self) -> impl Iterator<Item = Duration> {
        let (count, interval) = match self.act {
            Act::Probe { count, interval } => (count, interval),
            _ => (1, Duration::ZERO),
        };
        let Time(first) = self.at;
        (0..count).map(move |number| first.saturating_add(interval.saturating_mul(number)))
    }

    /// Returns the last time of the event.
    pub(super) fn last_at(&self) -> Duration {
        self.moments().last().unwrap_or(self.at.0)
    }
}

/// An expectation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct Expect {
    /// Its description.
    pub(super) what: String,
    /// The formula to measure.
    #[serde(deserialize_with = "required")]
    pub(super) that: super::formula::Formula,
    /// The expected value.
    #[serde(default, deserialize_with = "text_or_number")]
    pub(super) is: Option<String>,
    /// The tolerance, relative to that value.
    #[serde(default, deserialize_with = "optional")]
    pub(super) within: Option<Share>,
    #[serde(default, deserialize_with = "text_or_number")]
    pub(super) at_least: Option<String>,
    #[serde(default, deserialize_with = "text_or_number")]
    pub(super) at_most: Option<String>,
    /// The value in the literature.
    #[serde(default)]
    pub(super) source: String,
    /// The value measured on Linux.
    #[serde(default)]
    pub(super) linux: String,
}

/// Parses a quantity in words or a number without unit.
fn text_or_number<'de, D: Deserializer<'de>>(de: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a quantity with its unit in quotes, or a number")]
    enum Quantity {
        Text(String),
        Whole(i64),
        Fraction(f64),
    }
    Ok(Some(match Quantity::deserialize(de)? {
        Quantity::Text(text) => text,
        Quantity::Whole(number) => number.to_string(),
        Quantity::Fraction(number) => number.to_string(),
    }))
}

fn steps<'de, D: Deserializer<'de>>(de: D) -> Result<Option<Vec<Step>>, D::Error> {
    let steps = Vec::<Words<Step>>::deserialize(de)?;
    Ok(Some(steps.into_iter().map(|Words(step)| step).collect()))
}
