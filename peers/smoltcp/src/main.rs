//! Two smoltcp interfaces in one process: `exchange COUNT AT_ONCE REQUEST RESPONSE`, or `bulk
//! SECONDS`. Prints the CPU time as JSON. `cargo xtask peers` starts it.
use rustix::time::{ClockId, clock_gettime};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const SERVER: IpAddress = IpAddress::v4(10, 80, 0, 2);
const PORT: u16 = 7000;
const BLOCK: usize = 256 * 1024;
/// Bytes of each buffer of a socket of an exchange.
const SMALL: usize = 4096;
const WARM_UP: usize = 4 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments[at].parse::<usize>().expect("a number");
    match arguments.first().map(String::as_str) {
        Some("exchange") => exchange(number(1), number(2), number(3), number(4)),
        Some("bulk") => bulk(arguments[1].parse().expect("seconds")),
        _ => panic!("usage: exchange COUNT AT_ONCE REQUEST RESPONSE | bulk SECONDS"),
    }
}

fn exchange(count: usize, at_once: usize, request: usize, response: usize) {
    let (mut client, mut server) = pair();
    let mut slots: Vec<Slot> = (0..at_once).map(|_| client.slot(SMALL)).collect();
    // A socket listens for one connection. Each client may open the next one before the server has
    // seen the end of the last.
    let mut listeners: Vec<Slot> = (0..2 * at_once).map(|_| server.slot(SMALL)).collect();
    let mut next_port = 10_000;
    let mut run = |count: usize| {
        let (mut started, mut done) = (0, 0);
        while done < count {
            client.poll();
            for slot in &mut slots {
                let socket = client.sockets.get_mut::<Socket>(slot.handle);
                if slot.is_busy && slot.ask(socket, request, response) {
                    done += 1;
                }
                if !slot.is_busy && started < count {
                    started += 1;
                    next_port = if next_port == 60_000 { 10_000 } else { next_port + 1 };
                    let context = client.interface.context();
                    socket.connect(context, (SERVER, PORT), next_port).expect("connect");
                    slot.begin();
                }
            }
            server.poll();
            for slot in &mut listeners {
                slot.answer(server.sockets.get_mut::<Socket>(slot.handle), request, response);
            }
        }
        client.link.borrow().packets + server.link.borrow().packets
    };
    let packets = run(count / 10 + 1);
    let begun = cpu();
    let packets = run(count) - packets;
    let (spent, count) = (cpu() - begun, count as f64);
    let per_exchange = packets as f64 / count;
    println!("{{\"cpu_us_per_xchg\":{},\"pkts_per_xchg\":{per_exchange}}}", spent * 1e6 / count);
}

fn bulk(seconds: f64) {
    let (mut client, mut server) = pair();
    let (sender, receiver) = (client.slot(BLOCK).handle, server.slot(BLOCK).handle);
    server.sockets.get_mut::<Socket>(receiver).listen(PORT).expect("listen");
    let socket = client.sockets.get_mut::<Socket>(sender);
    socket.connect(client.interface.context(), (SERVER, PORT), 10_000).expect("connect");
    let (block, mut buffer) = (vec![0x42; BLOCK], vec![0; BLOCK]);
    let mut received = 0;
    let mut round = || {
        client.poll();
        let socket = client.sockets.get_mut::<Socket>(sender);
        while socket.can_send() && socket.send_slice(&block).expect("send") > 0 {}
        server.poll();
        let socket = server.sockets.get_mut::<Socket>(receiver);
        while socket.can_recv() {
            received += socket.recv_slice(&mut buffer).expect("receive");
        }
        received
    };
    while round() < WARM_UP {}
    let (begun, before, end) = (cpu(), round(), wall() + seconds);
    while wall() < end {
        round();
    }
    let bytes = round() - before;
    println!("{{\"cpu_s_per_gb\":{}}}", (cpu() - begun) * 1e9 / bytes as f64);
}

/// A socket, and what its connection has received.
struct Slot {
    handle: SocketHandle,
    is_busy: bool,
    has_sent: bool,
    received: usize,
}

impl Slot {
    fn begin(&mut self) {
        (self.is_busy, self.has_sent, self.received) = (true, false, 0);
    }

    fn read(&mut self, socket: &mut Socket) {
        let mut buffer = [0; SMALL];
        while socket.can_recv() {
            self.received += socket.recv_slice(&mut buffer).expect("receive");
        }
    }

    /// Plays the client. Returns true when the server's FIN has arrived.
    fn ask(&mut self, socket: &mut Socket, request: usize, response: usize) -> bool {
        if !self.has_sent && socket.can_send() {
            assert_eq!(socket.send_slice(&[0x51; SMALL][..request]).expect("send"), request);
            self.has_sent = true;
        }
        self.read(socket);
        match socket.state() {
            State::Established if self.received == response => socket.close(),
            State::TimeWait => self.is_busy = false,
            State::Closed => panic!("a connection was reset"),
            _ => {}
        }
        !self.is_busy
    }

    /// Plays the server; it answers, and closes after the client.
    fn answer(&mut self, socket: &mut Socket, request: usize, response: usize) {
        self.read(socket);
        if !self.has_sent && self.received == request {
            assert_eq!(socket.send_slice(&[0x52; SMALL][..response]).expect("send"), response);
            self.has_sent = true;
        }
        match socket.state() {
            State::CloseWait => socket.close(),
            State::Closed => {
                socket.listen(PORT).expect("listen");
                self.begin();
            }
            _ => {}
        }
    }
}

/// Packets to one host.
#[derive(Default)]
struct Link {
    queue: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    packets: u64,
}

struct Host {
    interface: Interface,
    sockets: SocketSet<'static>,
    /// The packets that leave.
    link: Rc<RefCell<Link>>,
    port: Port,
}

fn pair() -> (Host, Host) {
    let (there, back) = (Rc::default(), Rc::default());
    let client = Host::new(IpAddress::v4(10, 80, 0, 1), Port { rx: Rc::clone(&back), tx: Rc::clone(&there) });
    (client, Host::new(SERVER, Port { rx: there, tx: back }))
}

impl Host {
    fn new(address: IpAddress, mut port: Port) -> Host {
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut port, now());
        interface.update_ip_addrs(|list| list.push(IpCidr::new(address, 24)).expect("room"));
        Host { interface, sockets: SocketSet::new(Vec::new()), link: Rc::clone(&port.tx), port }
    }

    fn slot(&mut self, buffer: usize) -> Slot {
        let new = || SocketBuffer::new(vec![0; buffer]);
        let mut socket = Socket::new(new(), new());
        socket.set_nagle_enabled(false);
        let handle = self.sockets.add(socket);
        Slot { handle, is_busy: false, has_sent: false, received: 0 }
    }

    fn poll(&mut self) {
        self.interface.poll(now(), &mut self.port, &mut self.sockets);
    }
}

/// The device of one host. A packet is written once, into a buffer that is used again.
struct Port {
    rx: Rc<RefCell<Link>>,
    tx: Rc<RefCell<Link>>,
}

struct Arrived<'a>(Vec<u8>, &'a RefCell<Link>);
struct Free<'a>(&'a RefCell<Link>);

impl Device for Port {
    type RxToken<'a> = Arrived<'a>;
    type TxToken<'a> = Free<'a>;

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities
    }

    fn receive(&mut self, _: Instant) -> Option<(Arrived<'_>, Free<'_>)> {
        let packet = self.rx.borrow_mut().queue.pop_front()?;
        Some((Arrived(packet, &self.rx), Free(&self.tx)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Free<'_>> {
        Some(Free(&self.tx))
    }
}

impl RxToken for Arrived<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        let result = read(&self.0);
        self.1.borrow_mut().spare.push(self.0);
        result
    }
}

impl TxToken for Free<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = self.0.borrow_mut().spare.pop().unwrap_or_default();
        packet.resize(len, 0);
        let result = write(&mut packet);
        let mut link = self.0.borrow_mut();
        link.queue.push_back(packet);
        link.packets += 1;
        result
    }
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn cpu() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn wall() -> f64 {
    seconds(ClockId::Monotonic)
}

fn now() -> Instant {
    Instant::from_micros((wall() * 1e6) as i64)
}
