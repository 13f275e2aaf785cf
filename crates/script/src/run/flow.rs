//! One connection of a script: its ends, and how its numbers are those of the packets.
//!
//! A script counts from its own initial numbers: a SYN's sequence numbers are taken as they stand beside the script's initial number, all
//! others count from 0. TSvals of the stack are known by the packet that showed them first.

use crate::ast::{Segment, TcpOption};
use core::net::SocketAddr;
use std::collections::HashMap;
use wire::Flags;

#[derive(Debug)]
pub(crate) struct Flow {
    /// Its next inbound packet begins a flow of its own.
    pub(crate) listening: bool,
    /// `connect` was called: a SYN that left tells the local end.
    pub(crate) connects: bool,
    /// The local end its socket has, from which its next attempt comes.
    pub(crate) bound: Option<SocketAddr>,
    /// The stack's descriptor, once there is one.
    pub(crate) fd: Option<i32>,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    local_numbers: Numbers,
    remote_numbers: Numbers,
    /// TSvals of packets by the values the script has for them.
    tsvals: HashMap<u32, u32>,
    first_tsval: Option<(u32, u32)>,
}

/// Initial sequence numbers of one end.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    script: u32,
    live: u32,
    known: bool,
}

impl Numbers {
    /// What to add to a number of the script.
    fn offset(self, is_syn: bool) -> u32 {
        if is_syn { self.live.wrapping_sub(self.script) } else { self.live }
    }
}

impl Flow {
    pub(crate) fn new(fd: Option<i32>, local: SocketAddr, remote: SocketAddr) -> Flow {
        Flow {
            listening: false,
            connects: false,
            bound: None,
            fd,
            local,
            remote,
            local_numbers: Numbers::default(),
            remote_numbers: Numbers::default(),
            tsvals: HashMap::new(),
            first_tsval: None,
        }
    }

    /// Is this packet of the flow? Others pass unnoticed. The SYN of a new attempt to connect begins it anew.
    pub(crate) fn owns(
        &mut self,
        expected: &Segment,
        from: SocketAddr,
        to: SocketAddr,
        live: &Segment,
    ) -> bool {
        if let Some(ports) = expected.ports {
            return to.ip() == self.remote.ip() && ports == (from.port(), to.port());
        }
        if to != self.remote {
            return false;
        }
        let first = live.flags & (Flags::SYN | Flags::ACK) == Flags::SYN;
        let known = from == self.local && self.local_numbers.known && self.local_numbers.live == live.seq;
        let own = self.bound.is_none_or(|bound| bound == from);
        if self.connects && first && own && !known {
            self.local = from;
            self.local_numbers = Numbers::default();
            self.remote_numbers = Numbers::default();
        }
        from == self.local
    }

    /// What a segment of the script is on the wire to the stack. `isn` is added to the other end's first number.
    pub(crate) fn live_of(&mut self, segment: &Segment, isn: u32, scaled: bool) -> Result<Segment, String> {
        let is_syn = segment.flags.contains(Flags::SYN);
        if is_syn && !self.remote_numbers.known {
            let live = segment.seq.wrapping_add(isn);
            self.remote_numbers = Numbers { script: segment.seq, live, known: true };
        }
        let mut live = segment.clone();
        live.seq = segment.seq.wrapping_add(self.remote_numbers.offset(is_syn));
        let acked = self.local_numbers.offset(is_syn);
        let acks = segment.flags.contains(Flags::ACK);
        live.ack = segment.ack.filter(|_| acks).map(|ack| ack.wrapping_add(acked));
        for option in live.options.iter_mut().flatten() {
            match option {
                TcpOption::Sack(blocks) => shift(blocks, acked),
                TcpOption::Timestamps { ecr, .. } if acks => *ecr = self.live_tsval(*ecr, scaled)?,
                _ => {}
            }
        }
        Ok(live)
    }

    fn live_tsval(&self, script: u32, scaled: bool) -> Result<u32, String> {
        if let Some(live) = self.tsvals.get(&script) {
            return Ok(*live);
        }
        match self.first_tsval {
            Some((first, live)) if scaled => Ok(script.wrapping_sub(first).wrapping_add(live)),
            _ => Err(format!("no packet that was sent before has a TSval of {script} to be echoed")),
        }
    }

    /// A live sequence number of the stack for one that an ICMP message of the script quotes.
    pub(crate) fn quoted(&self, seq: u32) -> u32 {
        seq.wrapping_add(self.local_numbers.offset(false))
    }

    /// What a segment of the stack is in the script's numbers. The expected one tells what the script calls its initial number and TSval.
    pub(crate) fn seen_of(&mut self, live: &Segment, expected: &Segment) -> Segment {
        let is_syn = live.flags.contains(Flags::SYN);
        if is_syn && !self.local_numbers.known {
            let script = if expected.flags.contains(Flags::SYN) { expected.seq } else { 0 };
            self.local_numbers = Numbers { script, live: live.seq, known: true };
        }
        let mut seen = live.clone();
        seen.seq = live.seq.wrapping_sub(self.local_numbers.offset(is_syn));
        let acked = 0_u32.wrapping_sub(self.remote_numbers.offset(is_syn));
        let acks = live.flags.contains(Flags::ACK);
        seen.ack = live.ack.filter(|_| acks).map(|ack| ack.wrapping_add(acked));
        let named = expected.options.iter().flatten().find_map(|option| match option {
            TcpOption::Timestamps { val, .. } => Some(*val),
            _ => None,
        });
        for option in seen.options.iter_mut().flatten() {
            match option {
                TcpOption::Sack(blocks) => shift(blocks, acked),
                TcpOption::Timestamps { val, .. } => *val = self.script_tsval(*val, named),
                _ => {}
            }
        }
        seen
    }

    fn script_tsval(&mut self, live: u32, named: Option<u32>) -> u32 {
        let Some(named) = named else { return live };
        self.tsvals.insert(named, live);
        let (script, first) = *self.first_tsval.get_or_insert((named, live));
        live.wrapping_sub(first).wrapping_add(script)
    }
}

fn shift(blocks: &mut [(u32, u32)], by: u32) {
    for (left, right) in blocks {
        *left = left.wrapping_add(by);
        *right = right.wrapping_add(by);
    }
}
