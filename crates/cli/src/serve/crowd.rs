//! Counts connections by network, so that one client cannot take all places.
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// One IPv4 address, or one IPv6 /64 network, which may belong to a single host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Neighbourhood {
    V4(Ipv4Addr),
    V6([u16; 4]),
}

impl Neighbourhood {
    pub(crate) fn of(addr: IpAddr) -> Neighbourhood {
        match addr.to_canonical() {
            IpAddr::V4(addr) => Neighbourhood::V4(addr),
            IpAddr::V6(addr) => {
                let [a, b, c, d, ..] = addr.segments();
                Neighbourhood::V6([a, b, c, d])
            }
        }
    }
}

impl std::fmt::Display for Neighbourhood {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Neighbourhood::V4(addr) => addr.fmt(f),
            Neighbourhood::V6([a, b, c, d]) => write!(f, "{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)),
        }
    }
}

/// Counts the connections of each network, and enforces a limit.
#[derive(Clone)]
pub(crate) struct Crowd {
    limit: u32,
    counts: Arc<Mutex<HashMap<Neighbourhood, Count>>>,
}

#[derive(Default)]
struct Count {
    admitted: u32,
    /// True if a connection was rejected since the first of these was admitted.
    is_full: bool,
}

/// A rejected connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TurnedAway {
    pub(crate) from: Neighbourhood,
    /// True for the first rejection since this network had no connections.
    pub(crate) is_first: bool,
}

/// A place, freed when it is dropped.
pub(crate) struct Admission {
    crowd: Crowd,
    from: Neighbourhood,
}

impl Crowd {
    pub(crate) fn new(limit: u32) -> Crowd {
        Crowd { limit, counts: Arc::default() }
    }

    pub(crate) fn admit(&self, addr: IpAddr) -> Result<Admission, TurnedAway> {
        let from = Neighbourhood::of(addr);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(from).or_default();
        if count.admitted >= self.limit {
            let is_first = !std::mem::replace(&mut count.is_full, true);
            return Err(TurnedAway { from, is_first });
        }
        count.admitted += 1;
        Ok(Admission { crowd: self.clone(), from })
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut counts = self.crowd.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.from) {
            count.admitted -= 1;
            if count.admitted == 0 {
                counts.remove(&self.from);
                // Frees the table after a peak.
                if counts.is_empty() {
                    counts.shrink_to_fit();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_no_more_places_than_the_limit_and_leaves_the_others_theirs() {
        let crowd = Crowd::new(2);
        let admit = |addr: &str| crowd.admit(addr.parse().unwrap());
        let first = admit("2001:db8::1").ok().unwrap();
        let second = admit("2001:db8::ffff:0:0:2").ok().unwrap();
        for is_first in [true, false] {
            let turned_away = admit("2001:db8::3").err().unwrap();
            assert_eq!(
                (turned_away.from.to_string(), turned_away.is_first),
                ("2001:db8::/64".into(), is_first)
            );
        }
        let other = admit("2001:db8:0:1::1").ok().unwrap();
        drop(second);
        let third = admit("2001:db8::3").ok().unwrap();
        drop((first, third, other));
        assert!(crowd.counts.lock().unwrap().is_empty());

        let mapped = [admit("192.0.2.1").ok().unwrap(), admit("::ffff:192.0.2.1").ok().unwrap()];
        assert_eq!(admit("192.0.2.1").err().unwrap().from.to_string(), "192.0.2.1");
        assert!(admit("192.0.2.2").is_ok());
        drop(mapped);
    }
}
