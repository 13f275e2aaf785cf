//! Clients of the server: greedy connections, and the honest peer's.

use super::{Greed, Habit};
use crate::Random;
use bytes::Bytes;
use core::time::Duration;
use proto::{ConnId, ConnectOptions, FastOpen, Instant, ReadError, SocketOptions, Stack};
use std::net::SocketAddr;
use wire::{Flags, TcpHeader};

/// Bytes that a greedy connection asks for.
const MUCH: u32 = 1 << 28;
/// Delay before another connection follows one that has ended or could not be opened.
const AGAIN: Duration = Duration::from_millis(500);
/// Time after which this side gives up a half-open connection.
const HALF_OPEN: Duration = Duration::from_secs(3);

/// A greedy connection, or its successor.
pub(super) struct Taker {
    pub(super) host: usize,
    pub(super) habit: Habit,
    pub(super) due_at: Instant,
    id: Option<ConnId>,
}

impl Taker {
    pub(super) fn new(host: usize, habit: Habit, due_at: Instant) -> Taker {
        Taker { host, habit, due_at, id: None }
    }

    /// Takes the next step. Returns the local port if it has opened a connection.
    pub(super) fn act(&mut self, now: Instant, stack: &mut Stack, server: SocketAddr) -> Option<u16> {
        let Some(id) = self.id.filter(|id| stack.close_reason(*id).is_none() && stack.state(*id).is_some())
        else {
            self.id.into_iter().for_each(|id| stack.close(now, id));
            self.id = stack.connect(now, server, self.options()).ok();
            self.due_at = now + self.pause(AGAIN);
            return Some(stack.names(self.id?)?.0.port());
        };
        match self.habit {
            Habit::ReadsSlowly { bytes, .. } => {
                let _ = stack.read(now, id, &mut vec![0; bytes as usize]);
            }
            Habit::WritesOn | Habit::LeavesHole => {
                let _ = stack.write(now, id, &[0xff; 65_536]);
            }
            Habit::HalfOpens | Habit::HalfOpensFast => {
                stack.abort(now, id);
                self.id = None;
            }
            // The old one stays.
            Habit::OpensMore(_) => self.id = None,
            Habit::NeverReads | Habit::Idles => {}
        }
        self.due_at = now + self.pause(Duration::from_secs(1));
        None
    }

    fn pause(&self, usual: Duration) -> Duration {
        match self.habit {
            Habit::ReadsSlowly { every_ms, .. } | Habit::OpensMore(every_ms) => {
                Duration::from_millis(every_ms)
            }
            Habit::HalfOpens | Habit::HalfOpensFast => HALF_OPEN,
            _ => usual,
        }
    }

    fn options(&self) -> ConnectOptions {
        let first = match self.habit {
            Habit::Idles | Habit::HalfOpens => Bytes::new(),
            _ => Bytes::copy_from_slice(&MUCH.to_be_bytes()),
        };
        let fast_open = if self.habit == Habit::HalfOpensFast { FastOpen::NoCookie } else { FastOpen::Off };
        let socket = SocketOptions { recv_buffer: Some(4096), ..SocketOptions::default() };
        ConnectOptions { first_bytes: first, fast_open, socket, ..ConnectOptions::default() }
    }
}

impl Habit {
    /// Returns whether the wire delivers this packet of a connection with this habit.
    pub(super) fn lets_through(
        self,
        to_server: bool,
        header: &TcpHeader,
        text: usize,
        iss: Option<u32>,
    ) -> bool {
        match self {
            Habit::HalfOpens | Habit::HalfOpensFast => to_server && header.flags.contains(Flags::SYN),
            Habit::LeavesHole => {
                !to_server || text == 0 || iss.is_none_or(|iss| header.seq.0 != iss.wrapping_add(1))
            }
            _ => true,
        }
    }
}

/// The honest peer.
pub(super) struct Honest {
    random: Random,
    pub(super) due_at: Instant,
    open: Vec<Exchange>,
    pub(super) served: u64,
    pub(super) longest: Duration,
}

struct Exchange {
    id: ConnId,
    opened_at: Instant,
    left: usize,
}

impl Honest {
    pub(super) fn new(greed: &Greed, due_at: Instant) -> Honest {
        Honest { random: Random(greed.seed), due_at, open: Vec::new(), served: 0, longest: Duration::ZERO }
    }

    /// Opens the next connection if it is due.
    pub(super) fn act(
        &mut self,
        now: Instant,
        stack: &mut Stack,
        server: SocketAddr,
        greed: &Greed,
    ) -> Result<(), String> {
        if now >= self.due_at {
            self.due_at = now + Duration::from_millis(1 + self.random.below(2 * greed.every_ms));
            let fast_open = if greed.honest_fast_open { FastOpen::Auto } else { FastOpen::Off };
            let first_bytes = Bytes::copy_from_slice(&greed.wants.to_be_bytes());
            let options = ConnectOptions { first_bytes, fast_open, ..ConnectOptions::default() };
            let id = stack.connect(now, server, options).map_err(|error| error.to_string())?;
            self.open.push(Exchange { id, opened_at: now, left: greed.wants as usize });
        }
        self.read(now, stack)
    }

    /// Reads all available data, and closes connections whose answer is complete.
    fn read(&mut self, now: Instant, stack: &mut Stack) -> Result<(), String> {
        let mut buffer = [0; 4096];
        for exchange in &mut self.open {
            while exchange.left > 0 {
                match stack.read(now, exchange.id, &mut buffer) {
                    Ok(0) => return Err("the answer ended too early".to_owned()),
                    Ok(read) => exchange.left -= read,
                    Err(ReadError::Blocked) => break,
                    Err(error) => return Err(format!("opened at {:?}: {error}", exchange.opened_at)),
                }
            }
            if exchange.left == 0 {
                stack.close(now, exchange.id);
                self.served += 1;
                self.longest = self.longest.max(now.since(exchange.opened_at));
            }
        }
        self.open.retain(|exchange| exchange.left > 0);
        Ok(())
    }

    /// Returns when the oldest unserved connection was opened.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.open.iter().map(|exchange| exchange.opened_at).min()
    }
}
