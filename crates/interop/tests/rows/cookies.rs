//! Keys and cookies: equal to the vectors, rotated, stale, of every length.
use super::{ONE_WAY, Pair, ask, assert_served, exchange, fetch_cookie};
use interop::craft::with_cookie;
use interop::kernel_end::hex;
use interop::{Ask, Bed, Direction, IpVersion, Serve, Verdict, Way, counters};

super::rows! {
    cookies_of_known_keys, cookie_of_a_fresh_key, stale_cookie, rotated_key_with_backup, listener_key, cookie_lengths_taken, cookie_lengths_ignored
}

const FIRST_KEY: &str = "00010203-04050607-08090a0b-0c0d0e0f";
const SECOND_KEY: &str = "deadbeef-00000001-00000002-00000003";

fn cookie_for(bed: &mut Bed, port: u16, version: IpVersion) -> String {
    bed.server.serve(&Serve { port, version, ..Serve::new() });
    let (_, conversation) = ask(bed, &Ask { port, version, ..Ask::new(Way::FastOpen) });
    hex(conversation.syn_ack(0).segment.cookie().expect("a cookie"))
}

/// SipHash-2-4 over both addresses, as the kernel computes it for these keys.
fn cookies_of_known_keys(pair: Pair) {
    for (key, version, cookie) in [
        (FIRST_KEY, IpVersion::V4, "1d0aa246d060bffa"),
        (FIRST_KEY, IpVersion::V6, "440340d4fa43d746"),
        (SECOND_KEY, IpVersion::V4, "200da0545bae4387"),
    ] {
        let mut bed = pair.bed();
        bed.server.set_key(key);
        assert_eq!(cookie_for(&mut bed, 80, version), cookie, "{key} {version:?}");
    }
}

/// The cookie on the wire is the one our key ring computes.
fn cookie_of_a_fresh_key(pair: Pair) {
    use std::hash::{BuildHasher as _, RandomState};
    let random = [0, 1].map(|half| RandomState::new().hash_one(half).to_le_bytes()).concat();
    let ring = proto::fast_open::KeyRing::from_bytes(&random).expect("sixteen bytes");
    let mut bed = pair.bed();
    bed.server.set_key(&ring.to_string());
    for (port, version) in [(80, IpVersion::V4), (81, IpVersion::V6)] {
        let (client, server) = (bed.client.addresses().of(version), bed.server.addresses().of(version));
        let computed = ring.cookie(client.into(), server.into());
        assert_eq!(cookie_for(&mut bed, port, version), hex(computed.as_bytes()), "{ring} {version:?}");
    }
}

fn stale_cookie(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.set_key(FIRST_KEY);
    bed.server.serve(&Serve::new());
    fetch_cookie(&mut bed);
    bed.server.set_key(SECOND_KEY);

    let visit = exchange(&mut bed, Way::FastOpen);
    assert_served(pair, &visit, 2, 8);
    let conversation = &visit.1;
    assert_eq!(
        conversation.shapes()[..3],
        [">S(27)", "<SA", ">PA(27)"],
        "refused data is retransmitted with the first ACK"
    );
    assert_eq!(conversation.syn_data_acked(), 0);
    assert_eq!(hex(conversation.syn_ack(0).segment.cookie().expect("the new cookie")), "200da0545bae4387");
    assert_eq!(visit.0.client_fail, 2);
    assert_eq!(bed.client.counters(), counters(&[("ActiveFail", 1)]));
    assert_eq!(bed.client.counter("RetransSegs"), 1);
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1), ("PassiveFail", 1)]));

    let next = exchange(&mut bed, Way::FastOpen);
    assert_served(pair, &next, 1, 8);
    assert_eq!(
        hex(next.1.syn(0).segment.cookie().expect("a cookie")),
        "200da0545bae4387",
        "the cache was updated"
    );
}

fn rotated_key_with_backup(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.set_key(FIRST_KEY);
    bed.server.serve(&Serve::new());
    fetch_cookie(&mut bed);
    bed.server.set_key(&format!("{SECOND_KEY},{FIRST_KEY}"));

    let visit = exchange(&mut bed, Way::FastOpen);
    assert_served(pair, &visit, 1, 8);
    assert_eq!(visit.1.syn_data_acked(), 27);
    assert_eq!(hex(visit.1.syn(0).segment.cookie().expect("a cookie")), "1d0aa246d060bffa");
    assert_eq!(hex(visit.1.syn_ack(0).segment.cookie().expect("a new cookie")), "200da0545bae4387");
    assert_eq!(bed.client.counters(), counters(&[("Active", 1)]));
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1), ("Passive", 1), ("PassiveAltKey", 1)]));
}

/// `TCP_FASTOPEN_KEY`: the sixteen bytes of the key text's words in little-endian order.
fn listener_key(pair: Pair) {
    let mut bed = pair.bed();
    let key = [0x0302_0100_u32, 0x0706_0504, 0x0b0a_0908, 0x0f0e_0d0c].map(u32::to_be_bytes).concat();
    bed.server.serve(&Serve { key: Some(key), ..Serve::new() });
    let granted = fetch_cookie(&mut bed);
    assert_eq!(hex(granted.syn_ack(0).segment.cookie().expect("a cookie")), "1d0aa246d060bffa");
}

fn cookie_lengths_taken(pair: Pair) {
    for len in [4, 6, 8, 16] {
        assert_eq!(cached_after_cookie_of(pair, len), Some(len), "{len} bytes");
    }
}

fn cookie_lengths_ignored(pair: Pair) {
    for len in [2, 3, 5, 15, 18] {
        assert_eq!(cached_after_cookie_of(pair, len), None, "{len} bytes");
    }
}

/// The length of the cookie a client sends after a SYN-ACK brought one of `len` bytes.
fn cached_after_cookie_of(pair: Pair, len: usize) -> Option<usize> {
    let mut bed = Bed::new(pair.client, pair.server, ONE_WAY / 10);
    bed.server.serve(&Serve::new());
    bed.wire.set_hook(Box::new(move |direction, segment, packet| {
        let granted = direction == Direction::ToClient && segment.cookie().is_some();
        if granted { Verdict::Replace(with_cookie(packet, Some(&vec![0xaa; len]))) } else { Verdict::Pass }
    }));
    let first = fetch_cookie(&mut bed);
    assert!(first.syn(0).segment.requests_cookie(), "{first}");
    exchange(&mut bed, Way::FastOpen).1.syn(0).segment.cookie().map(<[u8]>::len)
}
