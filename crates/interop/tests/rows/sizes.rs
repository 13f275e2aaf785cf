//! How much fits: SYN data, the first flight of a reply, and a server that speaks first.
use super::{ONE_WAY, Pair, ask, fetch_cookie};
use interop::hook::clamp_mss;
use interop::{Ask, Bed, Direction, IpVersion, Serve, Way, counters};

super::rows! { syn_data_sizes, reply_of_43_kilobytes, server_speaks_first }

fn syn_data(bed: &mut Bed, version: IpVersion) -> usize {
    let (exchange, conversation) =
        ask(bed, &Ask { version, data: vec![b'q'; 3000], ..Ask::new(Way::FastOpen) });
    assert_eq!(exchange.reply, [b'r'; 43], "{conversation}");
    conversation.syn(0).segment.payload.len()
}

/// The peer's MSS less all forty bytes of options.
fn syn_data_sizes(pair: Pair) {
    for (version, mss, expected) in
        [(IpVersion::V4, None, 1420), (IpVersion::V6, None, 1400), (IpVersion::V4, Some(600), 560)]
    {
        let mut bed = pair.bed();
        if let Some(mss) = mss {
            bed.wire.set_hook(clamp_mss(mss));
        }
        bed.server.serve(&Serve { version, expect: 3000, ..Serve::new() });
        assert_eq!(syn_data(&mut bed, version), 0, "first a cookie");
        assert_eq!(syn_data(&mut bed, version), expected, "{version:?} MSS {mss:?}");
    }
}

/// Ten segments leave before the handshake's ACK arrives.
fn reply_of_43_kilobytes(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve { reply: vec![b'r'; 43_000], ..Serve::new() });
    fetch_cookie(&mut bed);
    let (exchange, conversation) = ask(&mut bed, &Ask::new(Way::FastOpen));
    assert_eq!(exchange.reply.len(), 43_000);
    let syn_ack_at = conversation.syn_ack(0).at;
    let before_ack = |packet: &&interop::record::Packet| {
        packet.direction == Direction::ToClient && packet.at < syn_ack_at + ONE_WAY
    };
    let flight: Vec<usize> =
        conversation.packets.iter().filter(before_ack).map(|packet| packet.segment.payload.len()).collect();
    assert_eq!(flight.iter().sum::<usize>(), 14_480, "{flight:?}\n{conversation}");
}

fn server_speaks_first(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve { expect: 0, ..Serve::new() });
    let hello = Ask { data: Vec::new(), ..Ask::new(Way::FastOpen) };
    let (_, first) = ask(&mut bed, &hello);
    assert_eq!(first.round_trips_to_first_byte(ONE_WAY), Some(2), "{first}");
    let (second, conversation) = ask(&mut bed, &hello);
    assert_eq!(second.reply, [b'r'; 43]);
    assert_eq!(conversation.round_trips_to_first_byte(ONE_WAY), Some(1), "{conversation}");
    assert_eq!(conversation.shapes()[..3], [">S", "<SA", "<PA(43)"], "{conversation}");
    assert!(conversation.syn(0).segment.cookie().is_some());
    assert_eq!(bed.client.counters(), counters(&[]), "no data, no Active");
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1), ("Passive", 1)]));
}
