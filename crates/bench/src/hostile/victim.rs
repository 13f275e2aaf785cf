//! Who is attacked: a trait, and our stack in virtual time behind it.

use crate::meter::Stopwatch;
use crate::report::Failure;
use bytes::Bytes;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use proto::{
    Capabilities, Config, ConnId, ConnectOptions, Instant, ListenOptions, ListenerId, RxBatch, RxPacket,
    Stack, TxPacket,
};

/// The victim's address, and its listening port.
pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// Its IPv6 address.
pub const HOST_V6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 2);
/// The port that listens.
pub const PORT: u16 = 80;
/// Another one, which nobody has.
pub const CLOSED_PORT: u16 = 81;
/// Connections that wait to be accepted.
pub const BACKLOG: u32 = 4096;
/// Fast Open connections that wait for their handshake's end.
const PENDING: u32 = 256;
/// Between two packets of a flood.
const APART: Duration = Duration::from_micros(1);
const MTU: usize = 1500;

/// The effect of packets.
pub struct Taken {
    /// CPU time, nanoseconds.
    pub nanos: u64,
    /// Packets that were sent.
    pub answers: Vec<Bytes>,
}

/// The stack under attack. A connection is named by its number, in the order of acceptance.
pub trait Victim {
    /// Takes packets that come together, and sends.
    ///
    /// # Errors
    /// It cannot be reached.
    fn take(&mut self, packets: &[Bytes]) -> Result<Taken, Failure>;

    /// Accepts a connection.
    ///
    /// # Errors
    /// There is none.
    fn accept(&mut self) -> Result<usize, Failure>;

    /// Accepts and resets all that wait to be accepted.
    ///
    /// # Errors
    /// The system's.
    fn accept_and_reset_all(&mut self) -> Result<(), Failure>;

    /// Writes as much as the connection takes of `len` bytes; returns that. What leaves comes with
    /// the next [`take`](Victim::take).
    ///
    /// # Errors
    /// The connection is over.
    fn write(&mut self, connection: usize, len: usize) -> Result<usize, Failure>;

    /// Reads all that has come.
    ///
    /// # Errors
    /// The connection is over.
    fn read(&mut self, connection: usize) -> Result<usize, Failure>;

    /// Time passes, where it can be made to: a round trip takes it.
    fn wait(&mut self, time: Duration);

    /// Our stack, for what only it can do: time that jumps, and connections that it opens.
    fn ours(&mut self) -> Option<&mut Ours>;
}

/// Our stack, its settings the default ones.
pub struct Ours {
    /// The stack.
    pub stack: Stack,
    /// Its time.
    pub now: Instant,
    listener: ListenerId,
    accepted: Vec<ConnId>,
    batch: RxBatch,
    buffer: Vec<u8>,
    text: Vec<u8>,
}

impl Ours {
    /// One that listens.
    ///
    /// # Panics
    /// If the default settings refuse a listener.
    #[expect(clippy::expect_used, reason = "a fresh stack has the port free")]
    pub fn new() -> Ours {
        let capabilities = Capabilities { mtu: MTU, gso_max_size: 0, tx_checksum: false };
        let mut stack = Stack::new(Config::default(), capabilities, [9; 32]);
        stack.add_address(HOST.into(), 8);
        stack.add_address(HOST_V6.into(), 16);
        let now = Instant::ZERO + Duration::from_secs(1000);
        let options =
            ListenOptions { backlog: BACKLOG, fast_open: Some(PENDING), ..ListenOptions::default() };
        let listener = stack.listen(now, SocketAddr::new(HOST.into(), PORT), options).expect("a free port");
        let v6 = ListenOptions { backlog: BACKLOG, ..ListenOptions::default() };
        stack.listen(now, SocketAddr::new(HOST_V6.into(), PORT), v6).expect("a free port");
        Ours {
            stack,
            now,
            listener,
            accepted: Vec::new(),
            batch: RxBatch::with_capacity(64),
            buffer: vec![0; 1 << 20],
            text: vec![b'x'; 1 << 16],
        }
    }

    /// Changes a setting.
    ///
    /// # Errors
    /// There is no such setting.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        self.stack.set(self.now, name, value).map(drop).map_err(|error| format!("{name}: {error}").into())
    }

    /// Resets a connection.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn abort(&mut self, connection: usize) -> Result<(), Failure> {
        self.stack.abort(self.now, self.id(connection)?);
        Ok(())
    }

    /// Opens a connection to this address; the local port is the stack's choice.
    ///
    /// # Errors
    /// The stack refuses.
    pub fn connect(&mut self, peer: SocketAddr) -> Result<ConnId, Failure> {
        let id = self.stack.connect(self.now, peer, ConnectOptions::default());
        id.map_err(|error| format!("connect: {error:?}").into())
    }

    /// Time passes until the next deadline, and `longer`: what comes soon after it comes with it.
    /// False: there is none.
    pub fn sleep(&mut self, longer: Duration) -> bool {
        let next = self.stack.poll_timeout();
        self.now = next.map_or(self.now, |next| self.now.max(next) + longer);
        next.is_some()
    }

    fn send(&mut self, out: &mut Vec<TxPacket>) {
        let mut packet = TxPacket::default();
        while self.stack.poll_transmit_into(self.now, &mut packet) {
            out.push(std::mem::take(&mut packet));
        }
        while self.stack.poll_event().is_some() {}
    }

    fn id(&self, connection: usize) -> Result<ConnId, Failure> {
        self.accepted.get(connection).copied().ok_or_else(|| "there is no such connection".into())
    }
}

impl Default for Ours {
    fn default() -> Ours {
        Ours::new()
    }
}

impl Victim for Ours {
    fn take(&mut self, packets: &[Bytes]) -> Result<Taken, Failure> {
        self.batch.clear();
        packets.iter().for_each(|packet| self.batch.push(RxPacket::new(packet.clone())));
        self.now = self.now + APART.saturating_mul(packets.len() as u32);
        let mut out = Vec::with_capacity(4 * packets.len() + 64);
        let watch = Stopwatch::start();
        self.stack.handle_timeout(self.now);
        self.stack.handle_packets(self.now, &mut self.batch);
        self.send(&mut out);
        let nanos = watch.nanos();
        self.batch.clear();
        Ok(Taken { nanos, answers: out.iter().map(TxPacket::to_bytes).collect() })
    }

    fn accept(&mut self) -> Result<usize, Failure> {
        let (id, _) =
            self.stack.accept(self.now, self.listener).map_err(|error| format!("accept: {error:?}"))?;
        self.accepted.push(id);
        Ok(self.accepted.len() - 1)
    }

    fn accept_and_reset_all(&mut self) -> Result<(), Failure> {
        while let Ok((id, _)) = self.stack.accept(self.now, self.listener) {
            self.stack.abort(self.now, id);
        }
        Ok(())
    }

    fn write(&mut self, connection: usize, len: usize) -> Result<usize, Failure> {
        let (id, mut written) = (self.id(connection)?, 0);
        while written < len {
            let part = &self.text[..self.text.len().min(len - written)];
            match self.stack.write(self.now, id, part) {
                Ok(taken) => written += taken,
                Err(proto::WriteError::Blocked) => break,
                Err(error) => return Err(format!("write: {error:?}").into()),
            }
        }
        Ok(written)
    }

    fn read(&mut self, connection: usize) -> Result<usize, Failure> {
        let (id, mut read) = (self.id(connection)?, 0);
        while let Ok(len @ 1..) = self.stack.read(self.now, id, &mut self.buffer) {
            read += len;
        }
        Ok(read)
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn ours(&mut self) -> Option<&mut Ours> {
        Some(self)
    }
}
