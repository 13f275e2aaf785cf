//! The form of an experiment's file.

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
    /// Which claim it is about, e.g. `L-WIN-1`.
    #[serde(default)]
    pub(super) id: String,
    /// Subject under which it is listed.
    pub(super) chapter: String,
    /// What is to be learnt from it.
    pub(super) lesson: String,
    #[serde(default)]
    pub(super) path: PathPart,
    #[serde(default)]
    pub(super) client: EndPart,
    #[serde(default)]
    pub(super) server: EndPart,
    /// Things that happen on the way.
    #[serde(default)]
    pub(super) event: Vec<EventPart>,
    /// Variants, each run once; without any the file is one.
    #[serde(default)]
    pub(super) run: Vec<RunPart>,
    #[serde(default)]
    pub(super) expect: Vec<Expect>,
    /// A conversation with `tc` about the device `eth0`.
    #[serde(default)]
    pub(super) tc: Vec<TcPart>,
    /// Virtual time after which a run is over; it ends earlier when nothing is under way any more.
    #[serde(rename = "for", default, deserialize_with = "optional")]
    pub(super) limit: Option<Time>,
    #[serde(default = "one")]
    pub(super) seed: u64,
}

impl File {
    /// Notes of each event where it stands.
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

/// A variant: what differs from the file's own values.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RunPart {
    pub(super) name: String,
    /// In the place of the file's.
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

/// The path. Rate, queue, discipline and loss are those of the way towards the client unless `towards` says otherwise.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct PathPart {
    #[serde(default, deserialize_with = "optional")]
    pub(super) rtt: Option<Time>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) rate: Option<Rate>,
    /// Packets that may wait.
    pub(super) queue: Option<usize>,
    pub(super) qdisc: Option<String>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) loss: Option<Share>,
    /// Share of connections whose SYNs with data are lost on the way to the server.
    #[serde(default, deserialize_with = "optional")]
    pub(super) syn_data_loss: Option<Share>,
    /// Packets that are lost, counted from 1.
    pub(super) lose: Option<Vec<u64>>,
    /// `client` or `server`.
    pub(super) towards: Option<Towards>,
    #[serde(rename = "box")]
    pub(super) middlebox: Option<BoxName>,
    pub(super) mtu: Option<usize>,
    /// Round trip between each client and a router, at which the rest of the path begins: all clients share that.
    #[serde(default, deserialize_with = "optional")]
    pub(super) router: Option<Time>,
    /// Round trip of a second path from the router, at which the server's `eth1` is.
    #[serde(default, deserialize_with = "optional")]
    pub(super) second: Option<Time>,
    /// Several links, and how the server's bond chooses; every further link is `skew` longer.
    #[serde(default, deserialize_with = "optional")]
    pub(super) bond: Option<Bonding>,
    pub(super) links: Option<usize>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) skew: Option<Time>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) miimon: Option<Time>,
}

/// A mode of bonding, by name or number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bonding(pub(super) qdisc::BondMode);

impl core::str::FromStr for Bonding {
    type Err = String;

    fn from_str(text: &str) -> Result<Bonding, String> {
        let names = qdisc::BondMode::ALL.map(|(name, _)| name);
        let wrong = |told| format!("`{text}` is no mode{}; {told}", super::nearest(text, &names));
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

/// An end.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct EndPart {
    pub(super) profile: Option<ProfileName>,
    /// Settings by their names in Linux.
    #[serde(default)]
    pub(super) set: BTreeMap<String, Scalar>,
    /// In the words of `ip route`.
    pub(super) route: Option<super::routes::Routes>,
    pub(super) nodelay: Option<bool>,
    pub(super) keepalive: Option<bool>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) sndbuf: Option<Size>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) rcvbuf: Option<Size>,
    #[serde(default, deserialize_with = "steps")]
    pub(super) steps: Option<Vec<Step>>,
    /// Its network card.
    pub(super) device: Option<super::device::DevicePart>,
    // Of a client.
    /// How many hosts there are that all do the same.
    pub(super) clients: Option<u32>,
    /// From the start of one of them to that of the next.
    #[serde(default, deserialize_with = "optional")]
    pub(super) stagger: Option<Time>,
    pub(super) connections: Option<usize>,
    /// How many connections come at first, one by one.
    pub(super) alone: Option<usize>,
    pub(super) at_once: Option<usize>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) pause: Option<Time>,
    // Of a server.
    pub(super) backlog: Option<u32>,
    pub(super) fast_open: Option<u32>,
    pub(super) accepts: Option<bool>,
    /// Ports it listens at, from 80 on; the client's connections take turns.
    pub(super) ports: Option<u16>,
    /// How many servers there are with the same address, behind a load balancer.
    pub(super) servers: Option<usize>,
    /// Each has a cookie key of its own.
    pub(super) own_keys: Option<bool>,
}

impl EndPart {
    /// A key that it has, and that only a client takes.
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

    /// A key that it has, and that only a server takes.
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

/// A setting's value: a number, a word, or yes and no.
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

/// A command to `tc`, and what it is to answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct TcPart {
    #[serde(rename = "do")]
    pub(super) command: String,
    /// Nothing, unless it is said.
    #[serde(default)]
    pub(super) says: String,
    /// What the literature says.
    #[serde(default)]
    pub(super) source: String,
    /// What Linux was seen to answer.
    #[serde(default)]
    pub(super) linux: String,
}

/// Something that happens at a moment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct EventPart {
    #[serde(deserialize_with = "required")]
    pub(super) at: Time,
    #[serde(rename = "do", deserialize_with = "required")]
    pub(super) act: Act,
    /// Under which keys of the file it stands.
    #[serde(skip)]
    pub(super) keys: Vec<String>,
}

impl EventPart {
    /// What is wrong with what it says under `key`.
    pub(super) fn mistake(&self, key: &str, error: String) -> Mistake {
        let outer = self.keys.iter().rev();
        outer.fold(Mistake::from(error).within(key), |mistake, key| mistake.within(key))
    }

    /// When it happens; probes come again and again.
    pub(super) fn moments(&self) -> impl Iterator<Item = Duration> {
        let (count, interval) = match self.act {
            Act::Probe { count, interval } => (count, interval),
            _ => (1, Duration::ZERO),
        };
        let Time(first) = self.at;
        (0..count).map(move |number| first.saturating_add(interval.saturating_mul(number)))
    }

    /// When it happens for the last time.
    pub(super) fn last_at(&self) -> Duration {
        self.moments().last().unwrap_or(self.at.0)
    }
}

/// Something that is expected.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct Expect {
    /// In words.
    pub(super) what: String,
    /// What is measured.
    #[serde(deserialize_with = "required")]
    pub(super) that: super::formula::Formula,
    /// What it should be.
    #[serde(default, deserialize_with = "text_or_number")]
    pub(super) is: Option<String>,
    /// How far it may be from that.
    #[serde(default, deserialize_with = "optional")]
    pub(super) within: Option<Share>,
    #[serde(default, deserialize_with = "text_or_number")]
    pub(super) at_least: Option<String>,
    #[serde(default, deserialize_with = "text_or_number")]
    pub(super) at_most: Option<String>,
    /// What the literature says.
    #[serde(default)]
    pub(super) source: String,
    /// What Linux was measured to do.
    #[serde(default)]
    pub(super) linux: String,
}

/// A quantity in words, or a number without a unit.
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
