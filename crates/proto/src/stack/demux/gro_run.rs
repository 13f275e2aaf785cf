//! Batches of received packets, and the GRO runs in them: consecutive segments of one connection. A
//! run needs one lookup and one `settle`.
//!
//! A run changes the connection exactly as its packets would one by one. [`wire::GroRun`] finds
//! runs, `tcp/input/gro_run` handles each of their segments.
//!
//! Saves 23 % of the instructions of a bulk transfer in packets of 1500 bytes.

use crate::fast_paths::FastPath;
use crate::stack::Stack;
use crate::tcp::recv::payload::Payload;
use crate::tcp::recv::receive_buffer::pinned;
use crate::tuple::FourTuple;
use crate::{ConnId, Instant};
use wire::{Ecn, GroRun, IpHeader, RxBatch, RxChecksum, SeqNum, TcpHeader};

impl Stack {
    /// Handles a batch. Acknowledgments are decided at its end. Packets of other protocols and
    /// destinations stay in it.
    #[inline]
    pub fn handle_packets(&mut self, now: Instant, batch: &mut RxBatch) {
        if batch.len() > 1 {
            return self.handle_batch(now, batch);
        }
        if let Some(mut packet) = batch.get_mut(0)
            && self.claim_packet(now, &mut packet)
        {
            batch.clear();
        }
    }

    fn handle_batch(&mut self, now: Instant, batch: &mut RxBatch) {
        let (mut at, mut unclaimed) = (0, 0);
        while at < batch.len() {
            let run = match (batch.data(at), batch.data(at + 1)) {
                (Some(first), Some(second))
                    if self.trace.is_none() && self.hooks.is_none() && self.shared.takes_fast_paths() =>
                {
                    GroRun::between(first, second)
                }
                _ => None,
            };
            let receiver = run.as_ref().and_then(|run| self.run_receiver(run));
            if let Some(mut packet) = batch.get_mut(at)
                && !self.claim_packet(now, &mut packet)
            {
                batch.swap(unclaimed, at);
                unclaimed += 1;
                at += 1;
                continue;
            }
            at += 1;
            if let (Some(run), Some(receiver)) = (&run, receiver) {
                at += self.handle_run(now, run, receiver, batch, at);
            }
        }
        batch.truncate(unclaimed);
    }

    /// Returns the connection of a run, and its RCV.NXT before the run.
    #[inline(never)]
    fn run_receiver(&self, run: &GroRun) -> Option<(ConnId, SeqNum)> {
        let index = self.find_connection(&tuple_of(run))?;
        let generation = self.connections.generation(index)?;
        Some((ConnId { index, generation }, self.connections.get(index)?.rcv.nxt))
    }

    /// Handles the packets from index `from` on that continue the run. Returns their number.
    /// Returns 0 if the first packet of the run, handled before, was dropped or brought nothing
    /// new.
    fn handle_run(
        &mut self,
        now: Instant,
        run: &GroRun,
        (id, rcv_nxt): (ConnId, SeqNum),
        batch: &mut RxBatch,
        from: usize,
    ) -> usize {
        let Some((ecn, header)) = batch.data(from).and_then(header_of) else { return 0 };
        let Some(connection) = self.connections.find_mut(id.index, id.generation) else { return 0 };
        if connection.rcv.nxt == rcv_nxt {
            return 0;
        }
        // Memory is charged when the run has settled. Packets that would cause memory pressure are
        // handled one by one.
        let mut room = self.shared.memory.room();
        let cx = self.shared.context(now);
        if !connection.continues(ecn, &header) {
            return 0;
        }
        let mut taken = 0;
        while let Some(mut packet) = batch.get_mut(from + taken) {
            // The packet may be shorter than its headers, so its length is checked after them.
            let (data, verify) = (&packet.data[..], packet.checksum == RxChecksum::Verify);
            let Some((seq, pushed)) = run.text(data, verify) else { break };
            let place = run.header_len..data.len();
            let len = place.len();
            if !connection.rcv.takes_at_once(seq, len) {
                break;
            }
            let Some(left) = room.checked_sub(pinned(len, packet.truesize) as u64) else { break };
            room = left;
            connection.take_run_segment(cx, &header, seq, pushed, Payload::new(&mut packet, place));
            taken += 1;
        }
        if taken > 0 {
            cx.took(FastPath::Run);
            self.shared.counters.in_segs += taken as u64;
            self.settle(now, id.index);
        }
        taken
    }
}

/// Returns the ECN codepoint and the TCP header, without a check of the checksum.
fn header_of(packet: &[u8]) -> Option<(Ecn, TcpHeader)> {
    let (ip, range) = IpHeader::parse(packet).ok()?;
    let (header, _) = TcpHeader::parse(packet.get(range)?, None).ok()?;
    Some((ip.ecn, header))
}

fn tuple_of(run: &GroRun) -> FourTuple {
    let ((peer, peer_port), (local, local_port)) = (run.src, run.dst);
    FourTuple { local, local_port, peer, peer_port }
}

#[cfg(test)]
mod tests;
