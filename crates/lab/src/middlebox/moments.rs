//! A middlebox that loses data at chosen times.

use super::{Direction, Middlebox, Passed, pass};
use crate::segment::Segment;
use bytes::Bytes;
use proto::Instant;

/// The share of the segments of one instant that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All segments.
    All,
    /// The first segment.
    First,
}

/// Loses segments with data that travel backward at exactly these times.
#[derive(Clone, Debug, Default)]
pub struct LoseAt {
    moments: Vec<(Instant, Share)>,
}

impl LoseAt {
    /// Creates the box. A time with [`Share::First`] is used up by its first segment.
    pub fn new(moments: impl IntoIterator<Item = (Instant, Share)>) -> LoseAt {
        LoseAt { moments: moments.into_iter().collect() }
    }
}

impl Middlebox for LoseAt {
    fn name(&self) -> &str {
        "lossy hop"
    }

    fn handle_packet(&mut self, now: Instant, direction: Direction, packet: Bytes) -> Passed {
        let Some(index) = self.moments.iter().position(|(at, _)| *at == now) else { return pass(packet) };
        let is_data = Segment::parse(&packet).is_some_and(|segment| segment.text_len() > 0);
        if direction == Direction::Forward || !is_data {
            return pass(packet);
        }
        if self.moments[index].1 == Share::First {
            self.moments.remove(index);
        }
        Passed::new()
    }
}
