//! The Fast Open queue: its limit, and what a reset frees.
use super::{Pair, fetch_cookie};
use interop::craft::{reset_after, with_port_and_seq};
use interop::hook::drop_if;
use interop::{Bed, Closes, Direction, Record, Serve, counters};
use std::time::Duration;

super::rows! { overflow, reset_after_accept_stays_counted, reset_before_accept_frees_its_slot }

/// A bed whose server has a Fast Open queue of two, whose client never hears it, and a SYN with
/// data to send again.
pub(crate) fn bed_with_queue_of_two(pair: Pair, accept: bool) -> (Bed, Vec<u8>) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve::new());
    let granted = fetch_cookie(&mut bed);
    bed.server.serve(&Serve { port: 81, qlen: 2, closes: Closes::Never, accept, ..Serve::new() });
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToClient));
    let cookie = granted.syn_ack(0).segment.cookie().expect("a cookie").to_vec();
    (bed, interop::craft::syn_with_data(&granted.syn(0).bytes, 81, &cookie, &[b'q'; 27]))
}

/// Sends SYNs from these ports and returns, port by port, the bytes of data each SYN-ACK took.
pub(crate) fn send_syns(bed: &Bed, syn: &[u8], ports: &[u16]) -> (Vec<u32>, Record) {
    drop(bed.wire.take_record());
    for port in ports {
        bed.wire.inject(Direction::ToServer, with_port_and_seq(syn, *port, u32::from(*port) << 8));
        std::thread::sleep(Duration::from_millis(30));
    }
    let record = bed.wire.settle(Duration::from_millis(200));
    (record.conversations().iter().map(interop::Conversation::syn_data_acked).collect(), record)
}

fn overflow(pair: Pair) {
    let (bed, syn) = bed_with_queue_of_two(pair, true);
    let (taken, record) = send_syns(&bed, &syn, &[50001, 50002, 50003, 50004]);
    assert_eq!(taken, [27, 27, 0, 0], "{record}");
    for refused in &record.conversations()[2..] {
        assert_eq!(refused.syn_ack(0).segment.fast_open, None, "Linux hands out no cookie here\n{record}");
    }
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1), ("Passive", 2), ("ListenOverflow", 2)]));
}

fn reset_after_accept_stays_counted(pair: Pair) {
    assert_eq!(taken_after_resets(pair, true), [0], "a minute must pass first");
}

fn reset_before_accept_frees_its_slot(pair: Pair) {
    assert_eq!(taken_after_resets(pair, false), [27]);
}

/// What the server takes of a third SYN after it took two and both were reset.
fn taken_after_resets(pair: Pair, accept: bool) -> Vec<u32> {
    let (bed, syn) = bed_with_queue_of_two(pair, accept);
    let (taken, record) = send_syns(&bed, &syn, &[50001, 50002]);
    assert_eq!(taken, [27, 27], "{record}");
    for conversation in record.conversations() {
        bed.wire.inject(Direction::ToServer, reset_after(&conversation.syn(0).bytes));
    }
    std::thread::sleep(Duration::from_millis(100));
    let (taken, _) = send_syns(&bed, &syn, &[50003]);
    taken
}
