//! Batches of packets that have arrived.

use bytes::Bytes;
use wire::{RxBatch, RxChecksum, RxPacket};

const SHARED: &[u8] = b"shared";

/// Two that lie in the batch, and one between them that does not.
fn batch() -> RxBatch {
    let mut batch = RxBatch::default();
    batch.copy(b"first", RxChecksum::Trusted, 3);
    batch.push(RxPacket::new(Bytes::from_static(SHARED)));
    batch.place(4, RxChecksum::Verify, |place| place.copy_from_slice(b"last"));
    batch
}

fn contents(batch: &RxBatch) -> Vec<&[u8]> {
    (0..batch.len()).filter_map(|at| batch.data(at)).collect()
}

#[test]
fn packets_come_in_their_order_wherever_they_lie() {
    let mut batch = batch();
    assert_eq!(contents(&batch), [b"first", SHARED, b"last"]);
    assert!(batch.data(3).is_none() && batch.get_mut(3).is_none());
    let first = batch.get_mut(0).unwrap();
    assert_eq!((first.truesize, first.checksum, first.gso_size), (5, RxChecksum::Trusted, 3));
    batch.swap(0, 1);
    batch.truncate(2);
    batch.copy(b"more", RxChecksum::Verify, 0);
    let packets: Vec<Bytes> = batch.drain().map(|packet| packet.data).collect();
    assert_eq!(packets, [SHARED, b"first", b"more"]);
    assert!(batch.is_empty());
}

#[test]
fn what_is_taken_of_a_packet_is_shared_or_copied() {
    let mut batch = batch();
    let mut lies = batch.get_mut(0).unwrap();
    assert!(!lies.data.is_shared());
    assert_eq!((lies.data.take(1..3), lies.data.take(2..9)), (Bytes::from_static(b"ir"), Bytes::new()));
    let mut shared = batch.get_mut(1).unwrap();
    assert!(shared.data.is_shared());
    assert_eq!(shared.data.take(2..6).as_ptr(), SHARED[2..].as_ptr());
    assert_eq!(shared.data.take(2..6), Bytes::new(), "it is not there any more");
}

#[test]
fn its_memory_serves_the_next_batch() {
    let mut batch = batch();
    let place = batch.data(0).unwrap().as_ptr();
    batch.clear();
    batch.copy(b"again", RxChecksum::Verify, 0);
    assert_eq!((batch.data(0).unwrap().as_ptr(), contents(&batch)), (place, vec![&b"again"[..]]));
}
