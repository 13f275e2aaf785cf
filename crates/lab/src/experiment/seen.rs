//! Evaluation of one connection's packets: segments and acknowledgments of each end.

use crate::exchange::Exchange;
use crate::segment::Segment;
use std::collections::BTreeMap;

/// Returns the segments that an end sent, lost ones included, without copies of middleboxes.
fn sent(exchange: &Exchange, by_client: bool) -> impl Iterator<Item = Segment> {
    let own =
        exchange.journeys.iter().filter(|journey| !journey.copy).filter_map(|journey| journey.segment());
    own.filter(move |segment| (segment.dst() == exchange.server) == by_client)
}

/// Counts the segments with data that an end sent.
pub(super) fn data_segments(exchange: &Exchange, by_client: bool) -> usize {
    sent(exchange, by_client).filter(|segment| segment.text_len() > 0).count()
}

/// Returns how often an end repeated one acknowledgment without data: the maximum over all
/// acknowledgments.
pub(super) fn repeated_acks(exchange: &Exchange, by_client: bool) -> usize {
    let mut times = BTreeMap::new();
    let bare = sent(exchange, by_client).filter(|segment| {
        segment.text_len() == 0 && !segment.is_syn() && !segment.is_syn_ack() && !segment.is_reset()
    });
    for segment in bare {
        *times.entry(segment.tcp.ack.0).or_insert(0) += 1;
    }
    times.into_values().max().unwrap_or(0)
}

/// Returns how many bytes of an end's data the other end acknowledged.
pub(super) fn acknowledged(exchange: &Exchange, of_client: bool) -> u32 {
    let first = if of_client { Some(exchange.client_isn) } else { exchange.server_isn };
    let Some(first) = first.map(|isn| isn + 1) else { return 0 };
    let data_end =
        sent(exchange, of_client).map(|segment| (segment.text_seq() + segment.text_len()).since(first));
    let acks = sent(exchange, !of_client).filter(|segment| segment.tcp.flags.contains(wire::Flags::ACK));
    let most = acks.map(|segment| segment.tcp.ack.since(first)).max().unwrap_or(0);
    // A FIN occupies a sequence number but is not data.
    most.min(data_end.max().unwrap_or(0))
}
