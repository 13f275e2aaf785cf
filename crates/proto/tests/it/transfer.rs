//! A bulk transfer from client to server over a path with a rate: the sender writes whenever there is room, the receiver reads
//! whenever there is something, or as slowly as the test says.

use crate::pair::{CLIENT, Pair, SERVER};
use core::time::Duration;
use proto::*;

pub(crate) struct Transfer {
    pub(crate) pair: Pair,
    pub(crate) sender: ConnId,
    pub(crate) receiver: ConnId,
    pub(crate) begun: Instant,
    /// Bytes read.
    pub(crate) received: u64,
    /// Bytes the sender may write.
    pub(crate) total: u64,
    written: u64,
    /// What the receiver reads per second; `None`: all there is.
    pub(crate) reading_rate: Option<u64>,
}

/// Packets leave one after the other, at `rate` bytes of IP packet per second, in either direction.
pub(crate) fn limit_rate(pair: &mut Pair, rate: u64) {
    let mut free = [Instant::ZERO; 2];
    pair.copies = Box::new(move |sent| {
        let nanos = sent.packet.len() as u64 * 1_000_000_000 / rate;
        let done = free[sent.from].max(sent.at) + Duration::from_nanos(nanos);
        free[sent.from] = done;
        vec![done.since(sent.at)]
    });
}

impl Transfer {
    /// Established, nothing written yet.
    pub(crate) fn new(mut pair: Pair, client: SocketOptions, server: SocketOptions) -> Transfer {
        let options = ListenOptions { socket: server, ..Default::default() };
        let listener = pair.stacks[SERVER].listen(pair.now, pair.server, options).unwrap();
        let sender = pair.connect(ConnectOptions { socket: client, ..Default::default() });
        while pair.stacks[SERVER].table_sizes().connections == 0 {
            assert!(pair.step());
        }
        let receiver = pair.accept(listener).unwrap();
        pair.flush();
        let begun = pair.now;
        Transfer {
            pair,
            sender,
            receiver,
            begun,
            received: 0,
            total: u64::MAX,
            written: 0,
            reading_rate: None,
        }
    }

    pub(crate) fn run_for(&mut self, ms: u64) {
        let end = self.pair.now + Duration::from_millis(ms);
        self.run_while(|transfer| transfer.pair.now < end);
    }

    /// Until `bytes` have been read, which is how long after the beginning?
    pub(crate) fn run_to(&mut self, bytes: u64) -> Duration {
        self.run_while(|transfer| transfer.received < bytes);
        self.pair.now.since(self.begun)
    }

    fn run_while(&mut self, goes_on: impl Fn(&Transfer) -> bool) {
        while goes_on(self) {
            self.write();
            self.read();
            self.pair.flush();
            // A slow reader looks every millisecond.
            match (self.pair.next(), self.reading_rate) {
                (None, None) => panic!("nothing will ever happen"),
                (next, Some(_)) if next.is_none_or(|at| at > self.pair.now + Duration::from_millis(1)) => {
                    self.pair.now = self.pair.now + Duration::from_millis(1);
                }
                _ => assert!(self.pair.step()),
            }
            if self.pair.log.len() > 100_000 {
                self.pair.log.clear();
            }
        }
    }

    fn write(&mut self) {
        const BLOCK: &[u8] = &[0x5a; 65_536];
        while self.written < self.total {
            let len = (self.total - self.written).min(BLOCK.len() as u64) as usize;
            match self.pair.stacks[CLIENT].write(self.pair.now, self.sender, &BLOCK[..len]) {
                Ok(taken) => self.written += taken as u64,
                Err(WriteError::Blocked) => return,
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    fn read(&mut self) {
        loop {
            let due = self.reading_rate.map_or(u64::MAX, |rate| {
                let nanos = self.pair.now.since(self.begun).as_nanos() as u64;
                ((u128::from(rate) * u128::from(nanos) / 1_000_000_000) as u64).saturating_sub(self.received)
            });
            if due == 0 {
                return;
            }
            let max = due.min(1 << 20) as usize;
            match self.pair.stacks[SERVER].read_chunk(self.pair.now, self.receiver, max) {
                Ok(Some(chunk)) => self.received += chunk.len() as u64,
                Ok(None) => panic!("the stream has ended"),
                Err(ReadError::Blocked) => return,
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn sender_info(&self) -> ConnectionInfo {
        self.pair.stacks[CLIENT].info(self.sender).unwrap()
    }

    pub(crate) fn receiver_info(&self) -> ConnectionInfo {
        self.pair.stacks[SERVER].info(self.receiver).unwrap()
    }
}
