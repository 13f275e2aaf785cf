//! The path of a scenario, built from a file.

use super::file::{Bonding, BoxName, PathPart, Towards};
use super::mistake::{Mistake, Within};
use super::quantities::Time;
use super::{explained, kind};
use crate::middlebox::{
    AckThinner, AlternatingNat, BlackHole, Direction, DropNthSynAck, DropSynData, DropSynDataOf, Duplicate,
    Firewall, Middlebox, StripFastOpen, SynProxy,
};
use crate::network::Route;
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use qdisc::{Limit, LinkConfig, Loss, Probability};
use toml::{Table, Value};

/// Addresses of the server as seen behind the NAT, in turn.
pub(super) const PUBLIC: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)), IpAddr::V4(Ipv4Addr::new(203, 0, 113, 2))];
const RTT: Duration = Duration::from_millis(40);
/// Maximum packet size of a path with a black hole.
const BLACK_HOLE: usize = 1300;
/// Default number of links of a bond.
const LINKS: usize = 2;
/// The range of MTUs: from what every host must accept (RFC 791 §3.2) to the maximum of the length
/// field.
const MTU: core::ops::RangeInclusive<usize> = 68..=65_535;
/// Idle time after which the firewall forgets a connection.
const FIREWALL_IDLE: Duration = Duration::from_secs(60);

/// Parses a path in the words of `[path]`, each `KEY=VALUE`, e.g. `rtt=20ms`. Returns the route and
/// its MTU.
///
/// # Errors
/// The wrong word, and what was expected there.
pub fn route_of_words(words: &[String]) -> Result<(Route, usize), String> {
    let mut table = Table::new();
    for word in words {
        let (key, value) =
            word.split_once('=').ok_or_else(|| format!("`{word}`: write KEY=VALUE as in rtt=20ms"))?;
        if table.insert(key.to_owned(), literal(value)).is_some() {
            return Err(format!("duplicate `{key}`"));
        }
    }
    let path: PathPart = table.try_into().map_err(|error| explained(&error))?;
    if path.second.is_some() || path.router.is_some() {
        return Err("`second`, `router`: a link between two ends has neither".into());
    }
    Ok((route(&path)?, path.mtu.unwrap_or(1500)))
}

/// Parses a value as it would be written in TOML: a number, a list, or else a text.
pub(super) fn literal(text: &str) -> Value {
    let read =
        toml::from_str::<Table>(&format!("value = {text}")).ok().and_then(|mut table| table.remove("value"));
    read.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Builds the route.
pub(super) fn route(path: &PathPart) -> Result<Route, Mistake> {
    check(path)?;
    let rtt = path.rtt.map_or(RTT, |rtt| rtt.0).as_nanos() as u64;
    let plain = |share: u64| LinkConfig::new().delay(share);
    let mut narrow = plain(rtt / 2);
    if let Some(rate) = path.rate {
        narrow = narrow.rate(rate.0);
    }
    if let Some(packets) = path.queue {
        narrow = narrow.limit(Limit::packets(packets));
    }
    if let Some(loss) = path.loss {
        narrow = narrow.loss(Loss::Random(Probability::percent(loss.0)));
    }
    narrow = narrow.drop_nth(path.lose.clone().unwrap_or_default());
    let other = LinkConfig { rate: narrow.rate, ..plain(rtt - rtt / 2) };
    let way = path.narrow_way();
    let mut route = match way {
        Direction::Backward => Route::new().wire(other, narrow),
        Direction::Forward => Route::new().wire(narrow, other),
    };
    if let Some(words) = &path.qdisc {
        route = route.qdisc(way, words).map_err(|error| kind::wrong(words, &error)).within("qdisc")?;
    }
    if let Some(Bonding(mode)) = path.bond {
        let time = |time: Option<Time>| time.map_or(Duration::ZERO, |time| time.0);
        route = route.bond(mode, path.links.unwrap_or(LINKS), time(path.skew), time(path.miimon));
    } else {
        let given = [
            ("links", path.links.is_some()),
            ("skew", path.skew.is_some()),
            ("miimon", path.miimon.is_some()),
        ];
        if let Some((key, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(format!("`{key}` needs a `bond`: add its mode")).within(key);
        }
    }
    if let Some(share) = path.syn_data_loss {
        let firewall = DropSynDataOf::new(Probability::percent(share.0));
        route = route.boxed(Box::new(firewall)).wire(plain(0), plain(0));
    }
    if let Some(name) = path.middlebox {
        route = route.boxed(middlebox(name)).wire(plain(0), plain(0));
    }
    Ok(route)
}

impl PathPart {
    /// Returns the direction of the queue, discipline and losses.
    pub(super) fn narrow_way(&self) -> Direction {
        match self.towards.unwrap_or_default() {
            Towards::Client => Direction::Backward,
            Towards::Server => Direction::Forward,
        }
    }

    /// Checks that a link of this number exists, counted from 1.
    pub(super) fn check_link(&self, number: usize) -> Result<(), String> {
        let links = if self.bond.is_some() { self.links.unwrap_or(LINKS) } else { 0 };
        if number <= links { Ok(()) } else { Err(no_link(number, links)) }
    }
}

pub(super) fn no_link(number: usize, links: usize) -> String {
    match links {
        0 => format!("there is no link {number}: the path has no `bond`"),
        links => format!("there is no link {number}: the bond has {links}"),
    }
}

/// Checks for values that contradict each other.
fn check(path: &PathPart) -> Result<(), Mistake> {
    if let Some(mtu) = path.mtu.filter(|mtu| !MTU.contains(mtu)) {
        return Err(format!("`mtu = {mtu}`: from {} to {}", MTU.start(), MTU.end())).within("mtu");
    }
    if path.links == Some(0) {
        return Err("`links = 0`: write at least 1").within("links");
    }
    if path.queue.is_some() && path.rate.is_none() {
        return Err("`queue` needs a `rate`: without one, no packet waits").within("queue");
    }
    if path.lose.as_ref().is_some_and(|lost| lost.contains(&0)) {
        return Err("`lose`: packets are counted from 1").within("lose");
    }
    Ok(())
}

fn middlebox(name: BoxName) -> Box<dyn Middlebox> {
    match name {
        BoxName::DropSynData => Box::new(DropSynData),
        BoxName::StripFastOpen => Box::new(StripFastOpen),
        BoxName::DropSynAck => Box::new(DropNthSynAck::new(1)),
        BoxName::Duplicate => Box::new(Duplicate),
        BoxName::SynProxy => Box::new(SynProxy),
        BoxName::AlternatingNat => Box::new(AlternatingNat::new(PUBLIC)),
        BoxName::Firewall => Box::new(Firewall::new(FIREWALL_IDLE)),
        BoxName::AckThinner => Box::new(AckThinner::new(16)),
        BoxName::BlackHole => Box::new(BlackHole::new(BLACK_HOLE)),
    }
}

/// Fills missing values from `base`.
pub(super) fn over(own: &PathPart, base: &PathPart) -> PathPart {
    PathPart {
        rtt: own.rtt.or(base.rtt),
        rate: own.rate.or(base.rate),
        queue: own.queue.or(base.queue),
        qdisc: own.qdisc.clone().or_else(|| base.qdisc.clone()),
        loss: own.loss.or(base.loss),
        syn_data_loss: own.syn_data_loss.or(base.syn_data_loss),
        lose: own.lose.clone().or_else(|| base.lose.clone()),
        towards: own.towards.or(base.towards),
        middlebox: own.middlebox.or(base.middlebox),
        mtu: own.mtu.or(base.mtu),
        router: own.router.or(base.router),
        second: own.second.or(base.second),
        bond: own.bond.or(base.bond),
        links: own.links.or(base.links),
        skew: own.skew.or(base.skew),
        miimon: own.miimon.or(base.miimon),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_path_that_are_wrong_are_told() {
        for (words, told) in [
            ("rtt=20", "write e.g. 35ms"),
            ("rtt", "write KEY=VALUE"),
            ("rt=20ms", "did you mean `rtt`"),
            ("rtt=20ms rtt=30ms", "duplicate `rtt`"),
            ("router=10ms", "between two ends"),
            ("mtu=20", "from 68 to 65535"),
            ("lose=[0]", "counted from 1"),
            ("rate=0mbit", "rate of 0"),
            ("bond=balance-rr links=0", "write at least 1"),
            ("queue=5", "needs a `rate`"),
        ] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let error = route_of_words(&words).err().unwrap_or_default();
            assert!(error.contains(told), "{words:?}: {error}");
        }
    }
}
