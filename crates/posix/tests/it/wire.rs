//! Two hosts with sockets, a wire with a delay, one clock.

use posix::{Connect, Destination, Errno, Receive, Send, Sockets, Source, Stop};
use proto::{Capabilities, Config, Instant, RxPacket, Stack};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const SERVER: &str = "10.0.0.2:80";
/// One way.
pub(crate) const DELAY: Duration = Duration::from_millis(10);
/// Lowest descriptor of each host.
pub(crate) const BASE: i32 = 3;

/// Two hosts and what is between them.
pub(crate) struct Wire {
    pub(crate) client: Sockets,
    pub(crate) server: Sockets,
    pub(crate) now: Instant,
    flying: VecDeque<(Instant, bool, proto::TxPacket)>,
    /// Packets that left the client.
    pub(crate) from_client: usize,
    /// Nothing arrives.
    pub(crate) cut: bool,
}

impl Wire {
    pub(crate) fn new() -> Wire {
        let host = |addr: &str, v6: &str, seed| {
            let ethernet = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
            let mut stack = Stack::new(Config::linux(), ethernet, [seed; 32]);
            stack.add_address(addr.parse().unwrap(), 24);
            stack.add_address(v6.parse().unwrap(), 64);
            stack.set(Instant::ZERO, "net.ipv4.tcp_fastopen", "3").unwrap();
            Sockets::new(stack, BASE)
        };
        Wire {
            client: host("10.0.0.1", "fd00::1", 1),
            server: host("10.0.0.2", "fd00::2", 2),
            now: Instant::ZERO + Duration::from_secs(1000),
            flying: VecDeque::new(),
            from_client: 0,
            cut: false,
        }
    }

    /// A listener at [`SERVER`], and its descriptor.
    pub(crate) fn listen(&mut self) -> i32 {
        let fd = self.server.socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0).unwrap();
        self.server.bind(fd, server()).unwrap();
        self.server.listen(self.now, fd, 5).unwrap();
        fd
    }

    /// A socket of the client that does not wait.
    pub(crate) fn socket(&mut self) -> i32 {
        self.client.socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0).unwrap()
    }

    /// Both ends of a connection: the client's descriptor, the server's.
    pub(crate) fn connected(&mut self) -> (i32, i32) {
        let listener = self.listen();
        let client = self.socket();
        assert_eq!(self.connect(client), Err(Errno::EINPROGRESS));
        self.run(DELAY * 3);
        let (accepted, _) = self.server.accept(self.now, listener, libc::SOCK_NONBLOCK).unwrap();
        (client, accepted)
    }

    pub(crate) fn connect(&mut self, fd: i32) -> Result<(), Errno> {
        errno(Connect::new(fd, Some(server())).attempt(&mut self.client, self.now))
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, by: Duration) {
        let until = self.now + by;
        loop {
            self.exchange();
            let timers = [self.client.stack_mut().poll_timeout(), self.server.stack_mut().poll_timeout()];
            let arrival = self.flying.front().map(|(at, ..)| *at);
            let next = timers.into_iter().flatten().chain(arrival).min().filter(|next| *next <= until);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
        }
        self.now = until;
        self.exchange();
    }

    fn exchange(&mut self) {
        let now = self.now;
        while self.flying.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, to_server, packet)) = self.flying.pop_front() else { break };
            let host = if to_server { &mut self.server } else { &mut self.client };
            host.stack_mut().handle_packet(now, RxPacket::new(packet.to_bytes()));
        }
        for (to_server, host) in [(true, &mut self.client), (false, &mut self.server)] {
            host.stack_mut().handle_timeout(now);
            host.notice();
            while let Some(packet) = host.stack_mut().poll_transmit(now) {
                self.from_client += usize::from(to_server);
                if !self.cut {
                    self.flying.push_back((now + DELAY, to_server, packet));
                }
            }
            host.notice();
        }
    }
}

pub(crate) fn server() -> SocketAddr {
    SERVER.parse().unwrap()
}

/// The errno of a call that does not wait.
pub(crate) fn errno<T>(result: Result<T, Stop>) -> Result<T, Errno> {
    result.map_err(|stop| match stop {
        Stop::Errno(errno) => errno,
        Stop::Wait(until) => panic!("it waits until {until:?}"),
    })
}

pub(crate) fn send(sockets: &mut Sockets, now: Instant, fd: i32, data: &[u8]) -> Result<usize, Errno> {
    send_with(sockets, now, fd, data, 0, Destination::None)
}

pub(crate) fn send_with(
    sockets: &mut Sockets,
    now: Instant,
    fd: i32,
    data: &[u8],
    flags: i32,
    to: Destination,
) -> Result<usize, Errno> {
    errno(Send::new(fd, Source { data, faulty: false }, flags, to).attempt(sockets, now))
}

pub(crate) fn recv(
    sockets: &mut Sockets,
    now: Instant,
    fd: i32,
    len: usize,
    flags: i32,
) -> Result<Vec<u8>, Errno> {
    let mut buf = vec![0; len];
    let got = errno(Receive::new(fd, flags).attempt(sockets, now, &mut buf))?;
    buf.truncate(got);
    Ok(buf)
}
