//! What goes wrong on the way between two hosts.

use super::draw;
use crate::RxPacket;
use crate::rng::Rng;
use core::time::Duration;
use wire::RxChecksum;

/// So many of a hundred packets are lost, come twice, late, or otherwise than they left.
#[derive(Clone, Copy, Default)]
pub(super) struct Path {
    lost: u64,
    twice: u64,
    late: u64,
    changed: u64,
}

impl Path {
    /// One in three is bad.
    pub(super) fn of(rng: &mut Rng) -> Path {
        match draw(rng, 3) {
            0 => Path { lost: 8, twice: 5, late: 5, changed: 10 },
            _ => Path::default(),
        }
    }

    /// What arrives of a packet, and how late. Where it is changed that is a bit of TCP's header or of its text, and nobody notices.
    pub(super) fn arrivals(self, rng: &mut Rng, mut packet: RxPacket) -> Vec<(Duration, RxPacket)> {
        let mut happens = |percent: u64| rng.next_u64() % 100 < percent;
        let (lost, twice, late, changed) =
            (happens(self.lost), happens(self.twice), happens(self.late), happens(self.changed));
        if lost {
            return Vec::new();
        }
        if changed {
            let mut data = packet.data.to_vec();
            // Behind the header of IP, which may have a checksum of its own.
            let begin = if data[0] >> 4 == 4 { 20 } else { 40 };
            let bit = begin * 8 + draw(rng, (data.len() - begin).min(60) * 8);
            data[bit / 8] ^= 1 << (bit % 8);
            packet = RxPacket { data: data.into(), checksum: RxChecksum::Trusted, ..packet };
        }
        let first = twice.then(|| (Duration::ZERO, packet.clone()));
        let wait = if late { [1, 30, 1_500][draw(rng, 3)] } else { 0 };
        first.into_iter().chain([(Duration::from_millis(wait), packet)]).collect()
    }
}
