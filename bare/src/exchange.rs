//! A client and a server, joined by two links of `qdisc`, in virtual time.

use core::time::Duration;
use proto::{Capabilities, Config, ConnectOptions, Instant, ListenOptions, RxPacket, Stack, TxPacket};
use qdisc::{Link, LinkConfig, Nanos, Verdict};

const REQUEST: &[u8] = b"GET /";
const ANSWER: &[u8] = b"the answer";
/// More events than the exchange has.
const STEPS: usize = 1000;

/// `None` unless both ends get what the other sent.
pub(crate) fn run() -> Option<()> {
    let mut net = Net::new()?;
    let now = Instant::ZERO;
    let address = "10.0.0.2:80".parse().ok()?;
    let listener = net.server.listen(now, address, ListenOptions::default()).ok()?;
    let client = net.client.connect(now, address, ConnectOptions::default()).ok()?;
    net.play()?;
    let now = net.now();
    let (server, _) = net.server.accept(now, listener).ok()?;
    net.client.write(now, client, REQUEST).ok()?;
    net.play()?;
    let now = net.now();
    let mut text = [0; 64];
    let len = net.server.read(now, server, &mut text).ok()?;
    (text.get(..len)? == REQUEST).then_some(())?;
    net.server.write(now, server, ANSWER).ok()?;
    net.play()?;
    let len = net.client.read(net.now(), client, &mut text).ok()?;
    (text.get(..len)? == ANSWER).then_some(())
}

struct Net {
    client: Stack,
    server: Stack,
    to_server: Link<TxPacket>,
    to_client: Link<TxPacket>,
    nanos: Nanos,
}

impl Net {
    fn new() -> Option<Net> {
        let device = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
        let mut client = Stack::new(Config::default(), device, [1; 32]);
        let mut server = Stack::new(Config::linux(), device, [2; 32]);
        client.add_address("10.0.0.1".parse().ok()?, 24);
        server.add_address("10.0.0.2".parse().ok()?, 24);
        let link = |seed| Link::new(LinkConfig::new().rate(10_000_000).delay(1_000_000), seed);
        Some(Net { client, server, to_server: link(1), to_client: link(2), nanos: 0 })
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_nanos(self.nanos)
    }

    /// Until nothing is under way; `None` if that does not come, or a link refuses a packet.
    fn play(&mut self) -> Option<()> {
        for _ in 0..STEPS {
            let now = self.now();
            send(&mut self.client, &mut self.to_server, now, self.nanos)?;
            send(&mut self.server, &mut self.to_client, now, self.nanos)?;
            let next = [self.to_server.next_event(), self.to_client.next_event()].into_iter().flatten().min();
            let Some(next) = next else { return Some(()) };
            self.nanos = self.nanos.max(next);
            let now = self.now();
            while let Some(delivery) = self.to_server.poll(self.nanos) {
                self.server.handle_packet(now, RxPacket::new(delivery.packet.to_bytes()));
            }
            while let Some(delivery) = self.to_client.poll(self.nanos) {
                self.client.handle_packet(now, RxPacket::new(delivery.packet.to_bytes()));
            }
        }
        None
    }
}

fn send(stack: &mut Stack, link: &mut Link<TxPacket>, now: Instant, nanos: Nanos) -> Option<()> {
    while let Some(packet) = stack.poll_transmit(now) {
        let len = packet.to_bytes().len();
        (link.enqueue(nanos, packet, len) == Verdict::Queued).then_some(())?;
    }
    Some(())
}
