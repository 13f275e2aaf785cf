//! The kernel's counters of this thread's namespace, by the names that nstat shows.
use std::collections::BTreeMap;

/// The counters of one moment, by name without prefix: `TCPFastOpenActive`, `RetransSegs`,
/// `InCsumErrors`.
///
/// A name that occurs in several groups is reached by its full name (`TcpInErrs`, `IpInDiscards`,
/// `TcpExtListenDrops`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    values: BTreeMap<String, i64>,
}

/// Reads `netstat` and `snmp` of this thread's network namespace (/proc/net would be the process's
/// first one).
///
/// # Panics
/// If they cannot be read.
pub fn counters() -> Counters {
    let read = |name: &str| {
        let path = format!("/proc/thread-self/net/{name}");
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let mut counters = Counters::default();
    counters.add(&read("snmp"));
    counters.add(&read("netstat"));
    counters
}

impl Counters {
    /// A counter's value, by its name with or without the group in front (`TcpExtTCPFastOpenActive`
    /// or `TCPFastOpenActive`; `TcpRetransSegs`).
    ///
    /// # Panics
    /// If there is none of that name: a misspelt counter must not read as 0.
    #[track_caller]
    pub fn of(&self, name: &str) -> i64 {
        self.find(name).unwrap_or_else(|| panic!("no counter is called {name}"))
    }

    /// Returns the same as [`Counters::of`], but `None` where this kernel has no such counter.
    pub fn find(&self, name: &str) -> Option<i64> {
        let full = self.values.get(name);
        full.or_else(|| GROUPS.iter().find_map(|group| self.values.get(&format!("{group}{name}")))).copied()
    }

    /// Returns the growth since `before`, without the counters that stayed the same.
    pub fn since(&self, before: &Counters) -> BTreeMap<String, i64> {
        let grown = |(name, value): (&String, &i64)| {
            let added = value - before.values.get(name).copied().unwrap_or(0);
            (added != 0).then(|| (name.clone(), added))
        };
        self.values.iter().filter_map(grown).collect()
    }

    /// Pairs of lines, "Group: name name …" and "Group: value value …".
    fn add(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks_exact(2) {
            let (Some((group, names)), Some((_, values))) =
                (pair[0].split_once(": "), pair[1].split_once(": "))
            else {
                continue;
            };
            for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
                if let Ok(value) = value.parse() {
                    self.values.insert(format!("{group}{name}"), value);
                }
            }
        }
    }
}

/// Where a bare name is looked for, in this order.
const GROUPS: [&str; 5] = ["TcpExt", "Tcp", "IpExt", "Ip", "Icmp"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_group() {
        let mut counters = Counters::default();
        counters.add("Tcp: RetransSegs InErrs\nTcp: 5 1\nUdp: InErrs\nUdp: 2\n");
        let mut later = counters.clone();
        later.add("Tcp: RetransSegs\nTcp: 7\n");
        assert_eq!(
            (counters.of("RetransSegs"), counters.of("TcpInErrs"), counters.of("UdpInErrs")),
            (5, 1, 2)
        );
        assert_eq!(counters.find("InErrs"), Some(1));
        assert_eq!(counters.find("NoSuch"), None);
        assert_eq!(later.since(&counters), BTreeMap::from([("TcpRetransSegs".to_owned(), 2)]));
    }
}
