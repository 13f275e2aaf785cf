//! A recorded SYN with data sent again.
use super::{Pair, ask_record, fetch_cookie};
use interop::hook::drop_if;
use interop::{Ask, Bed, Closes, Direction, Serve, Way, counters};
use std::time::Duration;

super::rows! { replay_after_the_client_closed, replay_after_the_server_closed }

const ORDER: &[u8; 27] = b"PAY 100 TO BOB, REF 000001\n";

/// One Fast Open exchange with the order, and its SYN.
pub(crate) fn pay(pair: Pair, closes: Closes) -> (Bed, Vec<u8>) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve { closes, ..Serve::new() });
    fetch_cookie(&mut bed);
    let closes_first = closes == Closes::ClientFirst;
    let (exchange, record) =
        ask_record(&mut bed, &Ask { data: ORDER.to_vec(), closes_first, ..Ask::new(Way::FastOpen) });
    assert_eq!(exchange.client_fail, 0, "{record}");
    assert_eq!(orders(&mut bed), 1);
    let syn = record.only().syn(0).bytes.clone();
    (bed, syn)
}

pub(crate) fn orders(bed: &mut Bed) -> usize {
    bed.server.received(80).iter().filter(|data| data.starts_with(ORDER)).count()
}

pub(crate) fn replay(bed: &Bed, syn: Vec<u8>) -> interop::Record {
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToClient));
    bed.wire.inject(Direction::ToServer, syn);
    bed.wire.settle(Duration::from_millis(300))
}

/// Nothing remembers the connection: the application gets the order twice.
fn replay_after_the_client_closed(pair: Pair) {
    let (mut bed, syn) = pay(pair, Closes::ClientFirst);
    let record = replay(&bed, syn);
    assert_eq!(orders(&mut bed), 2, "{record}");
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1), ("Passive", 2)]));
}

/// TIME-WAIT answers with an ACK.
fn replay_after_the_server_closed(pair: Pair) {
    let (mut bed, syn) = pay(pair, Closes::ServerFirst);
    let record = replay(&bed, syn);
    assert_eq!(orders(&mut bed), 1, "{record}");
    assert_eq!(record.only().shapes_of(Direction::ToClient), ["<A"], "{record}");
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1), ("Passive", 1)]));
}
