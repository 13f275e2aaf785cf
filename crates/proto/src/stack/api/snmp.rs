//! SNMP: connections by state, and the counters of `/proc/net/snmp` and `/proc/net/netstat`, as
//! `nstat` lists them. Both are computed on request.

use crate::stack::Stack;
use crate::{State, StateCounts};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

/// "Constant, RFC 2988 …" of RFC 4022 has no number in Linux, which says 1, other.
const RTO_ALGORITHM_OTHER: u64 = 1;
/// A host that does not forward.
const NOT_FORWARDING: u64 = 2;

impl Stack {
    /// Counts connections by state, as `ss -s` and `netstat` do: half-open requests are in
    /// SYN-RECEIVED, and TIME-WAIT has its entries. Visits each connection once.
    pub fn states(&self) -> StateCounts {
        let mut counts = StateCounts::default();
        for (_, connection) in self.connections.iter().filter(|(_, connection)| connection.mapped) {
            counts.add(connection.state, 1);
        }
        let awaiting_fin = self.time_wait.awaiting_fin();
        counts.add(State::SynReceived, self.requests.len());
        counts.add(State::FinWait2, awaiting_fin);
        counts.add(State::TimeWait, self.time_wait.len() - awaiting_fin);
        counts.listening = self.listeners.len();
        counts
    }

    /// Returns all lines that `nstat -az` lists, counters and others. Visits each connection once,
    /// for `TcpCurrEstab`.
    /// ```
    /// # use firstbyte_proto::{Capabilities, Config, Stack};
    /// let stack = Stack::new(Config::default(), Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false }, [1; 32]);
    /// assert!(stack.nstat().contains(&("TcpRtoMin".to_owned(), 200)));
    /// ```
    pub fn nstat(&self) -> Vec<(String, u64)> {
        let (config, states) = (self.config(), self.states());
        let established = states.of(State::Established) + states.of(State::CloseWait);
        let gauges = [
            ("IpForwarding", NOT_FORWARDING),
            ("IpDefaultTTL", config.hop_limit().into()),
            ("TcpRtoAlgorithm", RTO_ALGORITHM_OTHER),
            ("TcpRtoMin", config.rto_min().as_millis() as u64),
            ("TcpRtoMax", config.tcp_rto_max_ms.into()),
            ("TcpMaxConn", config.max_connections.into()),
            ("TcpCurrEstab", established as u64),
        ];
        let gauges = gauges.into_iter().map(|(name, value)| (name.to_owned(), value));
        gauges.chain(self.counters().nstat()).collect()
    }
}
