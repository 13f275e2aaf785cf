//! The limits of a sender. Times in tenths of a millisecond. The round trip is 40 ms.
use crate::written::{Draft, connection, down, syn, syn_ack, up};
use capture::{Limit, Side};
use core::time::Duration;

const MSS: usize = 1460;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Returns a capture at the server: its reply to the SYN takes no time, the client's reply to the
/// SYN-ACK takes a round trip.
fn opening() -> Vec<(u64, Draft)> {
    vec![(0, syn()), (0, syn_ack(1)), (400, up(1, 1, 100))]
}

#[test]
fn a_full_window_that_an_acknowledgement_opens_is_the_congestion_window() {
    let mut packets = opening();
    packets.extend([(400, down(1, 101, MSS)), (401, down(1461, 101, MSS))]);
    packets.extend([(801, up(101, 2921, 0)), (801, down(2921, 101, MSS)), (802, down(4381, 101, MSS))]);
    let seen = connection(&packets);
    let server = seen.half(Side::Server).sender();
    assert_eq!(server.waited(Limit::Congestion), Duration::from_micros(40_000));
    assert_eq!(server.longest(), Some(Limit::Congestion));
    assert!(!Limit::Congestion.is_certain(&seen, Side::Server), "a full send buffer looks the same");
}

#[test]
fn a_window_without_room_is_the_receivers() {
    let mut packets = opening();
    packets[2].1 = up(1, 1, 100).window(2920);
    packets.extend([(400, down(1, 101, MSS)), (401, down(1461, 101, MSS))]);
    packets.extend([
        (801, up(101, 2921, 0).window(0)),
        (9801, up(101, 2921, 0).window(2920)),
        (9801, down(2921, 101, MSS)),
    ]);
    let seen = connection(&packets);
    let server = seen.half(Side::Server).sender();
    assert_eq!(server.waited(Limit::ReceiveWindow), ms(940));
    assert_eq!(seen.half(Side::Client).zero_windows(), 1);
    assert!(Limit::ReceiveWindow.is_certain(&seen, Side::Server));
}

#[test]
fn who_waits_for_a_request_waits_for_the_peer() {
    let mut packets = opening();
    packets.extend([(400, down(1, 101, 200)), (800, up(101, 201, 0))]);
    packets.extend([(20_000, up(101, 201, 100)), (20_500, down(201, 201, 200))]);
    let seen = connection(&packets);
    let server = seen.half(Side::Server).sender();
    assert_eq!(server.waited(Limit::Peer), ms(1960));
    assert_eq!(server.waited(Limit::Application), ms(50), "from the request to the answer");
}

#[test]
fn text_that_nothing_released_waited_for_its_application() {
    let mut packets = opening();
    packets.extend([(400, down(1, 101, 200)), (800, up(101, 201, 0)), (5_400, down(201, 101, 200))]);
    let seen = connection(&packets);
    assert_eq!(seen.half(Side::Server).sender().waited(Limit::Application), ms(500));
    assert!(Limit::Application.is_certain(&seen, Side::Server));
}

/// Write, write, read: the second small segment waits for the acknowledgement of the first, which
/// the receiver delays by 40 ms.
#[test]
fn a_small_segment_that_waits_for_a_delayed_acknowledgement_is_nagles() {
    let mut packets = opening();
    packets.extend([(400, down(1, 101, 200)), (1_200, up(101, 201, 0)), (1_200, down(201, 101, 200))]);
    let seen = connection(&packets);
    let server = seen.half(Side::Server).sender();
    assert_eq!(server.waited(Limit::Nagle), ms(80));
    assert_eq!(server.delayed_acks(), 1);
}

#[test]
fn what_waits_for_a_retransmission_waits_for_the_repair() {
    let mut packets = opening();
    packets.extend([(400, down(1, 101, MSS)), (401, down(1461, 101, MSS))]);
    packets.extend([(3_400, down(1, 101, MSS)), (3_800, up(101, 2921, 0)), (3_800, down(2921, 101, MSS))]);
    let seen = connection(&packets);
    let server = seen.half(Side::Server).sender();
    assert_eq!(server.waited(Limit::Loss), Duration::from_micros(299_900));
    assert_eq!(server.waited(Limit::Congestion), ms(40), "the transfer continues after the acknowledgement");
}

/// In a capture at the client, acknowledgements reach the sender and release data a round trip
/// later.
#[test]
fn a_capture_at_the_receiver_places_acknowledgements_at_the_sender() {
    let seen = connection(&[
        (0, syn()),
        (400, syn_ack(1)),
        (400, up(1, 1, 100)),
        (800, down(1, 101, MSS)),
        (801, down(1461, 101, MSS)),
        (801, up(101, 2921, 0)),
        (1_201, down(2921, 101, MSS)),
        (1_202, down(4381, 101, MSS)),
    ]);
    let server = seen.half(Side::Server).sender();
    assert_eq!(server.waited(Limit::Congestion), ms(40));
    assert_eq!(server.flight_max(), 2 * MSS as u32);
    assert!(!Limit::ReceiveWindow.is_certain(&seen, Side::Server));
}

/// Twenty segments in flight before a pause, ten after it, then the rest.
#[test]
fn a_window_that_begins_again_after_a_pause_is_seen() {
    let mut packets = opening();
    let burst = |at: u64, first: u32, count: u32| {
        (0..count).map(move |index| (at, down(1 + (first + index) * MSS as u32, 101, MSS)))
    };
    packets.extend(burst(400, 0, 20));
    packets.push((800, up(101, 1 + 20 * MSS as u32, 0)));
    packets.extend(burst(30_000, 20, 10));
    packets.push((30_400, up(101, 1 + 30 * MSS as u32, 0)));
    packets.extend(burst(30_400, 30, 10));
    assert_eq!(connection(&packets).half(Side::Server).sender().restarts(), 1);
}

/// The data ends a pause, not an acknowledgement next to it that acknowledges nothing.
#[test]
fn an_acknowledgement_of_nothing_releases_nothing() {
    let mut packets = opening();
    packets.extend([(400, down(1, 101, 200)), (800, up(101, 201, 0))]);
    packets.extend([(360_000, up(101, 201, 32)), (360_000, up(133, 201, 0)), (360_001, down(201, 133, 31))]);
    let seen = connection(&packets);
    let server = seen.half(Side::Server).sender();
    assert_eq!((server.waited(Limit::Nagle), server.delayed_acks()), (Duration::ZERO, 0));
    assert_eq!(server.longest(), Some(Limit::Peer));
}
