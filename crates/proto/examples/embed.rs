//! The engine behind a device of its own: a tunnel that carries IP packets in UDP datagrams.
use firstbyte_proto::{Capabilities, Config, ConnectOptions, FastOpen, Instant, ListenOptions};
use firstbyte_proto::{RxPacket, SocketId, Stack};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant as Clock};

/// A host: the engine, its device and its clock.
struct Host {
    stack: Stack,
    tunnel: UdpSocket,
    started: Clock,
}

impl Host {
    fn new(address: &str, seed: u8, tunnel: UdpSocket) -> Host {
        let device = Capabilities { mtu: 1400, gso_max_size: 0, tx_checksum: false };
        let mut stack = Stack::new(Config::default(), device, [seed; 32]); // use random bytes
        stack.add_address(address.parse().expect("an IP address"), 24);
        Host { stack, tunnel, started: Clock::now() }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    /// Sends what is due, then waits for a packet or for the next deadline.
    fn step(&mut self) {
        let now = self.now();
        while let Some(packet) = self.stack.poll_transmit(now) {
            self.tunnel.send(&packet.to_bytes()).expect("the tunnel takes packets");
        }
        let wait = self.stack.poll_timeout().map_or(Duration::MAX, |at| at.since(now));
        let wait = wait.clamp(Duration::from_millis(1), Duration::from_secs(1));
        self.tunnel.set_read_timeout(Some(wait)).expect("a valid timeout");
        let mut buffer = [0; 2048];
        if let Ok(len) = self.tunnel.recv(&mut buffer) {
            let packet = RxPacket::new(buffer[..len].to_vec().into());
            if let Some(other) = self.stack.handle_packet(self.now(), packet) {
                println!("handed back: IP protocol {}, {len} bytes", other.data[9]);
            }
        }
        self.stack.handle_timeout(self.now());
    }
}

/// Answers each request in capitals. The answer leaves on the SYN-ACK.
fn serve(mut host: Host, name: SocketAddr) {
    let options = ListenOptions { fast_open: Some(16), ..ListenOptions::default() };
    let listener = host.stack.listen(host.now(), name, options).expect("a free port");
    loop {
        host.step();
        let now = host.now();
        while let Some((socket, _)) = host.stack.poll_event() {
            let id = match socket {
                SocketId::Connection(id) => Some(id),
                SocketId::Listener(_) => host.stack.accept(now, listener).ok().map(|(id, _)| id),
            };
            let mut request = [0; 100];
            if let Some(id) = id
                && let Ok(len @ 1..) = host.stack.read(now, id, &mut request)
            {
                host.stack.write(now, id, &request[..len].to_ascii_uppercase()).expect("an empty buffer");
                host.stack.close(now, id);
            }
        }
    }
}

fn main() -> std::io::Result<()> {
    let (left, right) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    left.connect(right.local_addr()?)?;
    right.connect(left.local_addr()?)?;
    let name = SocketAddr::from(([10, 0, 0, 2], 7));
    std::thread::spawn(move || serve(Host::new("10.0.0.2", 2, right), name));
    let mut client = Host::new("10.0.0.1", 1, left);
    for visit in 1..=2 {
        let mut options = ConnectOptions { fast_open: FastOpen::Auto, ..ConnectOptions::default() };
        options.first_bytes = "hello".into();
        let id = client.stack.connect(client.now(), name, options).expect("a route");
        let mut answer = [0; 100];
        let len = loop {
            client.step();
            while client.stack.poll_event().is_some() {}
            if let Ok(len) = client.stack.read(client.now(), id, &mut answer) {
                break len;
            }
        };
        let outcome = client.stack.outcome(id);
        println!("visit {visit}: {} {outcome:?}", String::from_utf8_lossy(&answer[..len]));
        client.stack.close(client.now(), id);
    }
    // A DNS query, say: UDP is not for the engine.
    let udp = b"\x45\0\0\x20\0\0\x40\0\x40\x11\x26\xcb\x0a\0\0\x01\x0a\0\0\x02\x13\x88\0\x35\0\x0c\0\0hi!!";
    client.tunnel.send(udp)?;
    client.step();
    Ok(())
}
