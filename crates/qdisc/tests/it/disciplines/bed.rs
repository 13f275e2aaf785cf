//! A device in virtual time: frames are offered at their times, and a wire takes them away at a rate.
use qdisc::{Dequeue, Device, Dropped, Ecn, Packet, Qdisc, Segments, Skb, Stats, TcpFields, Verdict};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;

/// A frame of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    pub(crate) number: u32,
    pub(crate) flow: u32,
    pub(crate) priority: u32,
    pub(crate) mark: u32,
    pub(crate) ecn: Ecn,
    pub(crate) dscp: u8,
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// Bytes before the IP header.
    pub(crate) offset: u32,
    pub(crate) tcp: Option<TcpFields>,
    pub(crate) segments: Option<Segments>,
    pub(crate) departs_at: Option<u64>,
    pub(crate) flipped: Option<u64>,
}

impl Packet for Frame {
    fn flow_hash(&self) -> u32 {
        self.flow
    }

    fn priority(&self) -> u32 {
        self.priority
    }

    fn mark(&self) -> u32 {
        self.mark
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn clear_dscp(&mut self) {
        self.dscp = 0;
    }

    fn source_hash(&self) -> u32 {
        self.source
    }

    fn destination_hash(&self) -> u32 {
        self.destination
    }

    fn network_offset(&self) -> u32 {
        self.offset
    }

    fn tcp(&self) -> Option<TcpFields> {
        self.tcp
    }

    fn segments(&self) -> Option<Segments> {
        self.segments
    }

    fn into_segments(self) -> Result<Vec<(Frame, usize)>, Frame> {
        let Some(Segments { count, len, last_len }) = self.segments else { return Err(self) };
        let frame = |n| {
            let len = if n + 1 == count { last_len } else { len };
            (Frame { segments: None, ..self.clone() }, len as usize)
        };
        Ok((0..count).map(frame).collect())
    }

    fn departs_at(&self) -> Option<u64> {
        self.departs_at
    }

    fn flip_bit(&mut self, bit: u64) {
        self.flipped = Some(bit);
    }
}

/// A frame that left, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) at: u64,
    pub(crate) len: usize,
    pub(crate) frame: Frame,
}

pub(crate) struct Bed {
    pub(crate) device: Device<Frame>,
    pub(crate) now: u64,
    /// Bit/s of the wire; `None`: it takes everything at once.
    wire: Option<u64>,
    busy_until: u64,
    wakes_at: Option<u64>,
    pub(crate) left: Vec<Left>,
    pub(crate) dropped: Vec<Dropped<Frame>>,
}

impl Bed {
    /// A device with this discipline at its root, handle `1:`.
    pub(crate) fn new(qdisc: &str, wire: Option<u64>) -> Bed {
        Bed::seeded(qdisc, wire, 0)
    }

    pub(crate) fn seeded(qdisc: &str, wire: Option<u64>, seed: u64) -> Bed {
        let mut device = Device::new("eth0");
        device.set_seed(seed);
        let mut bed = Bed {
            device,
            now: 0,
            wire,
            busy_until: 0,
            wakes_at: None,
            left: Vec::new(),
            dropped: Vec::new(),
        };
        bed.tc(&format!("qdisc add root handle 1: {qdisc}"));
        bed
    }

    /// A command that must succeed.
    pub(crate) fn tc(&mut self, command: &str) -> String {
        match self.device.tc(self.now, command, &mut self.dropped) {
            Ok(text) => text,
            Err(error) => panic!("{command}: {error}"),
        }
    }

    /// Offers a frame now.
    pub(crate) fn offer(&mut self, frame: Frame, len: usize) -> Verdict {
        let verdict = self.device.enqueue(self.now, Skb::new(frame, len), &mut self.dropped);
        self.pull();
        verdict
    }

    /// Offers a plain frame of a flow.
    pub(crate) fn send(&mut self, number: u32, flow: u32, len: usize) -> Verdict {
        self.offer(Frame { number, flow, ..Frame::default() }, len)
    }

    fn pull(&mut self) {
        self.wakes_at = None;
        while self.busy_until <= self.now {
            match self.device.dequeue(self.now, &mut self.dropped) {
                Dequeue::Packet(skb) => {
                    let len = skb.wire_len();
                    self.left.push(Left { at: self.now, len, frame: skb.packet });
                    let Some(rate) = self.wire else { continue };
                    self.busy_until = self.now + (len as u64 * 8 * SECOND).div_ceil(rate);
                }
                Dequeue::Throttled(at) => {
                    assert!(at > self.now, "throttled until {at}, which is not after {}", self.now);
                    self.wakes_at = Some(at);
                    return;
                }
                Dequeue::Empty => return,
            }
        }
        self.wakes_at = Some(self.busy_until);
    }

    /// Lets time pass until `until`.
    pub(crate) fn advance(&mut self, until: u64) {
        while let Some(at) = self.wakes_at.filter(|at| *at <= until) {
            self.now = at;
            self.pull();
        }
        self.now = self.now.max(until);
    }

    /// Lets time pass until nothing waits. At most an hour.
    pub(crate) fn drain(&mut self) {
        let end = self.now + 3600 * SECOND;
        while let Some(at) = self.wakes_at.filter(|at| *at <= end) {
            self.advance(at);
        }
        assert_eq!(self.stats().qlen, 0, "something still waits: {:?}", self.stats());
    }

    pub(crate) fn stats(&self) -> Stats {
        self.device.stats()
    }

    /// The numbers of the frames that left.
    pub(crate) fn order(&self) -> Vec<u32> {
        self.left.iter().map(|left| left.frame.number).collect()
    }

    /// The numbers of the frames that were dropped.
    pub(crate) fn lost(&self) -> Vec<u32> {
        self.dropped.iter().map(|dropped| dropped.skb.packet.number).collect()
    }
}
