//! Which acknowledgment a later one makes needless (Linux's `cake_ack_filter`).
use super::CakeAckFilter;
use super::flow::Waiting;
use crate::{Packet, TcpFields};
use alloc::collections::VecDeque;

const SYN: u16 = 0x02;
const ACK: u16 = 0x10;
const ECE: u16 = 0x40;
const CWR: u16 = 0x80;
/// The bits of which only ACK may be set: all but the two of ECN, which are compared.
const FLAGS: u16 = 0xfff & !(ECE | CWR);
/// As many acknowledgments that could be spared stay, unless the filter is aggressive.
const SPARED: usize = 1;

/// The place in the queue of an acknowledgment that the last packet makes needless, the oldest if there are several.
pub(super) fn needless<P: Packet>(queue: &VecDeque<Waiting<P>>, filter: CakeAckFilter) -> Option<usize> {
    if filter == CakeAckFilter::Off {
        return None;
    }
    let newest = &queue.back()?.skb.packet;
    let last = queue.len() - 1;
    if last == 0 {
        return None;
    }
    let trigger = newest.tcp().filter(|tcp| tcp.flags & (ACK | SYN) == ACK)?;
    let connection = Connection::of(newest);
    let mut oldest: Option<(usize, u16)> = None;
    let mut found = 0;
    for (place, waiting) in queue.iter().take(last).enumerate() {
        let packet = &waiting.skb.packet;
        let Some(tcp) = packet.tcp().filter(|_| Connection::of(packet) == connection) else { continue };
        // The change of an ECN flag is told by the first that has it: nothing before it may be dropped for what comes after.
        if oldest.is_some_and(|(_, ecn)| tcp.flags & (ECE | CWR) != ecn) {
            oldest = None;
            found -= 1;
        }
        if !can_be_spared(&tcp, &trigger) {
            continue;
        }
        let (first, _) = *oldest.get_or_insert((place, tcp.flags & (ECE | CWR)));
        if found >= SPARED {
            return Some(first);
        }
        found += 1;
    }
    let is_next = |(place, ecn): &(usize, u16)| place + 1 == last && *ecn == trigger.flags & (ECE | CWR);
    oldest.filter(|oldest| filter == CakeAckFilter::Aggressive && is_next(oldest)).map(|(place, _)| place)
}

/// Which connection, and which direction of it.
#[derive(PartialEq, Eq)]
struct Connection {
    flow: u32,
    source: u32,
    destination: u32,
}

impl Connection {
    fn of<P: Packet>(packet: &P) -> Connection {
        Connection {
            flow: packet.flow_hash(),
            source: packet.source_hash(),
            destination: packet.destination_hash(),
        }
    }
}

/// Does the later segment say all that the earlier one says, and is that only an acknowledgment?
fn can_be_spared(earlier: &TcpFields, later: &TcpFields) -> bool {
    if earlier.flags & FLAGS != ACK || earlier.other_options || earlier.payload_len > 0 {
        return false;
    }
    if let Some((tsval, tsecr)) = earlier.timestamps {
        let (later_tsval, later_tsecr) = later.timestamps.unwrap_or_default();
        if is_after(tsval, later_tsval) || is_after(tsecr, later_tsecr) {
            return false;
        }
    }
    if is_after(earlier.ack, later.ack) {
        return false;
    }
    match covers(later, earlier) {
        Sacked::Less => false,
        // One that says the very same is a duplicate, which is counted by those who receive it.
        Sacked::Same => earlier.ack != later.ack,
        Sacked::More => true,
    }
}

/// How much more the later segment's SACK option says.
enum Sacked {
    /// Something that the earlier one tells is missing.
    Less,
    Same,
    More,
}

/// Linux's `cake_tcph_sack_compare`.
fn covers(later: &TcpFields, earlier: &TcpFields) -> Sacked {
    let blocks = |tcp: &TcpFields| tcp.sack.into_iter().flatten();
    let size = |tcp: &TcpFields| {
        blocks(tcp).fold(0u32, |bytes, (start, end)| bytes.wrapping_add(end.wrapping_sub(start)))
    };
    for (start, end) in blocks(earlier) {
        // A block below the cumulative acknowledgment tells of a segment that came twice (RFC 2883).
        let is_duplicate = is_after(earlier.ack, start);
        let is_covered = blocks(later).any(|(left, right)| !is_after(left, start) && !is_after(end, right));
        if is_duplicate || !is_covered {
            return Sacked::Less;
        }
    }
    if size(later) > size(earlier) { Sacked::More } else { Sacked::Same }
}

/// Is `a` later than `b` in the space of sequence numbers (RFC 9293 section 3.4)?
fn is_after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}
