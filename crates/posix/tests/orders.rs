//! Threads that sleep in calls, their handlers, those that are cancelled, and the driver below them, in many orders of events: the code of
//! production over the checker's locks (`cargo xtask threads`).
//!
//! In each order of events every thread ends: a wake-up that is lost, or a deadlock, is told by the checker. That the driver does not go
//! to sleep with work pending it asserts itself.
#![cfg(feature = "shuttle")]
#![expect(clippy::unwrap_used, reason = "a test may")]

extern crate firstbyte_posix as posix;

use device::memory::{self, MemoryDevice};
use posix::{
    Close, Connect, Destination, Ended, Errno, Look, PollFd, Ready, Receive, Running, Send, Sockets, Source,
    Stop, Waits, Watch,
};
use proto::{Capabilities, Config, Instant, Stack};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use sync::model::{cancel, check, signals};
use sync::thread;

/// Of each test, random ones; and as many that prefer threads.
const ORDERS: usize = 150;

const WIRE: Capabilities = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };

/// A stack that hears only itself, or one end of a pair.
fn stack(address: &str, device: MemoryDevice) -> Arc<Running> {
    let mut stack = Stack::new(Config::linux(), WIRE, [3; 32]);
    stack.add_address(address.parse().unwrap(), 24);
    Arc::new(Running::start(Sockets::new(stack, 3), device, None).unwrap())
}

fn alone() -> Arc<Running> {
    stack("10.0.0.1", memory::loopback(WIRE))
}

fn on(fd: &i32) -> Watch<'_> {
    Watch { fds: std::slice::from_ref(fd) }
}

fn listener(stack: &Running, port: u16) -> i32 {
    stack.process().call(|sockets, now| {
        let fd = sockets.socket(libc::AF_INET, libc::SOCK_STREAM, 0).unwrap();
        sockets.bind(fd, SocketAddr::from(([10, 0, 0, 1], port))).unwrap();
        sockets.listen(now, fd, 16).unwrap();
        fd
    })
}

fn connected(stack: &Running, port: u16) -> i32 {
    let fd = stack.process().call(|sockets, _| sockets.socket(libc::AF_INET, libc::SOCK_STREAM, 0)).unwrap();
    let mut call = Connect::new(fd, Some(SocketAddr::from(([10, 0, 0, 1], port))));
    stack.process().wait(on(&fd), |sockets, now| call.attempt(sockets, now)).unwrap();
    fd
}

fn accept(stack: &Running, listener: i32) -> Result<i32, Errno> {
    let accepted = stack.process().wait(on(&listener), |sockets, now| sockets.accept(now, listener, 0));
    accepted.map(|(fd, _)| fd)
}

/// Both ends of a connection of a stack with itself.
fn pair(stack: &Running, port: u16) -> (i32, i32) {
    let listening = listener(stack, port);
    let client = connected(stack, port);
    let server = accept(stack, listening).unwrap();
    close(stack, listening);
    (client, server)
}

fn send(stack: &Running, fd: i32, data: &[u8], flags: i32) -> Result<usize, Errno> {
    let mut call = Send::new(fd, Source { data, faulty: false }, flags, Destination::None);
    stack.process().wait(on(&fd), |sockets, now| call.attempt(sockets, now))
}

fn receive(stack: &Running, fd: i32) -> Result<Vec<u8>, Errno> {
    let mut call = Receive::new(fd, 0);
    let mut buf = [0; 4096];
    let got = stack.process().wait(on(&fd), |sockets, now| call.attempt(sockets, now, &mut buf))?;
    Ok(buf[..got].to_vec())
}

fn receive_all(stack: &Running, fd: i32) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let some = receive(stack, fd).unwrap();
        if some.is_empty() {
            return all;
        }
        all.extend(some);
    }
}

fn close(stack: &Running, fd: i32) {
    let mut call = Close::new(fd);
    stack.process().wait(Watch::default(), |sockets, now| call.attempt(sockets, now)).unwrap();
}

struct Readable(PollFd);

impl Look for Readable {
    fn ours(&mut self, sockets: &mut Sockets) -> Result<bool, Errno> {
        let at_once = Instant::ZERO;
        Ok(sockets
            .poll(at_once, std::slice::from_mut(&mut self.0), Some(at_once))
            .is_ok_and(|found| found > 0))
    }

    fn kernels(&mut self) -> Result<bool, Errno> {
        Ok(false)
    }
}

/// As `poll` waits; what it finds of a descriptor that was closed before is an error here.
fn poll(stack: &Running, fd: i32, timeout: Option<Duration>) -> Result<Ready, Errno> {
    let mut look = Readable(PollFd { fd, events: Ready::IN, found: Ready::empty() });
    stack.process().wait_ready(&Waits { ours: &[fd], timeout, ..Waits::default() }, &mut look)?;
    if look.0.found.contains(Ready::NVAL) { Err(Errno::EBADF) } else { Ok(look.0.found) }
}

/// Nobody waits any more, and with the last descriptor the last connection has gone.
fn ends_clean(stack: &Running) {
    assert!(matches!(stack.stop(Duration::from_secs(3600)), Some(Ended::Delivered)));
    assert_eq!(stack.process().waiting_count(), 0, "somebody waits after the end");
    let left = stack.process().call(|sockets, _| sockets.stack().table_sizes().connections);
    assert_eq!(left, 0);
}

fn spawn<R: std::marker::Send + 'static>(
    stack: &Arc<Running>,
    body: impl FnOnce(&Running) -> R + std::marker::Send + 'static,
) -> thread::JoinHandle<R> {
    let stack = Arc::clone(stack);
    thread::spawn(move || body(&stack))
}

#[test]
fn sleepers_are_woken_by_connections_data_and_the_end_of_the_stream() {
    check(ORDERS, || {
        let stack = alone();
        let listening = listener(&stack, 80);
        let server = spawn(&stack, move |stack| {
            let fd = accept(stack, listening).unwrap();
            let all = receive_all(stack, fd);
            assert_eq!(send(stack, fd, b"thanks", 0), Ok(6));
            close(stack, fd);
            all
        });
        let client = connected(&stack, 80);
        for word in [&b"one "[..], b"two "] {
            assert_eq!(send(&stack, client, word, 0), Ok(4));
        }
        stack.process().call(|sockets, now| sockets.shutdown(now, client, libc::SHUT_WR)).unwrap();
        assert_eq!(receive_all(&stack, client), b"thanks");
        assert_eq!(server.join().unwrap(), b"one two ");
        close(&stack, client);
        ends_clean(&stack);
    });
}

#[test]
fn a_full_buffer_s_writer_is_woken_by_its_reader() {
    check(ORDERS / 4, || {
        let stack = alone();
        stack.process().call(|sockets, now| {
            sockets.stack_mut().set(now, "net.ipv4.tcp_wmem", "4096 8192 8192").unwrap();
            sockets.stack_mut().set(now, "net.ipv4.tcp_rmem", "4096 8192 8192").unwrap();
        });
        let (client, server) = pair(&stack, 70);
        let reader = spawn(&stack, move |stack| receive_all(stack, server).len());
        assert_eq!(send(&stack, client, &[7; 40_000], 0), Ok(40_000));
        close(&stack, client);
        assert_eq!(reader.join().unwrap(), 40_000);
        close(&stack, server);
        ends_clean(&stack);
    });
}

#[test]
fn a_reset_wakes() {
    check(ORDERS, || {
        let stack = alone();
        let (client, server) = pair(&stack, 70);
        let reader = spawn(&stack, move |stack| receive(stack, server));
        let poller = spawn(&stack, move |stack| poll(stack, server, None));
        // Linger 0.
        let linger: Vec<u8> = [1_i32, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        stack.process().call(|sockets, now| {
            sockets.set_option(now, client, libc::SOL_SOCKET, libc::SO_LINGER, &linger).unwrap();
        });
        close(&stack, client);
        // The error is told once: a reader that comes later finds the end.
        assert!(matches!(reader.join().unwrap(), Err(Errno::ECONNRESET)));
        assert!(poller.join().unwrap().unwrap().contains(Ready::IN));
        close(&stack, server);
        ends_clean(&stack);
    });
}

#[test]
fn every_waiter_ends_with_the_stack() {
    check(ORDERS, || {
        let stack = alone();
        let (_client, server) = pair(&stack, 70);
        let listening = listener(&stack, 80);
        let acceptors: Vec<_> =
            (0..2).map(|_| spawn(&stack, move |stack| accept(stack, listening))).collect();
        let reader = spawn(&stack, move |stack| receive(stack, server).map(|_| 0));
        let poller = spawn(&stack, move |stack| poll(stack, server, None).map(|_| 0));
        let stopper = spawn(&stack, |stack| stack.stop(Duration::from_secs(3600)));
        assert!(matches!(stopper.join().unwrap(), Some(Ended::Delivered)));
        for waiter in acceptors.into_iter().chain([reader, poller]) {
            // Who came too late has found no descriptor.
            let ended = waiter.join().unwrap();
            assert!(matches!(ended, Err(Errno::ENETDOWN | Errno::EBADF)), "{ended:?}");
        }
        assert_eq!(stack.process().waiting_count(), 0);
    });
}

#[test]
fn every_waiter_ends_with_the_device() {
    check(ORDERS, || {
        let (left, right) = memory::pair(WIRE);
        let stack = stack("10.0.0.1", left);
        let listening = listener(&stack, 80);
        let acceptor = spawn(&stack, move |stack| accept(stack, listening));
        drop(right);
        assert!(matches!(acceptor.join().unwrap(), Err(Errno::ENETDOWN)));
        assert!(matches!(stack.stop(Duration::ZERO), Some(Ended::Failed(_))));
        assert!(stack.stop(Duration::ZERO).is_none(), "once");
    });
}

#[test]
fn each_of_several_acceptors_is_served() {
    check(ORDERS, || {
        let stack = alone();
        let listening = listener(&stack, 80);
        let acceptors: Vec<_> = (0..2)
            .map(|_| {
                spawn(&stack, move |stack| {
                    let fd = accept(stack, listening).unwrap();
                    let got = receive(stack, fd).unwrap();
                    close(stack, fd);
                    got
                })
            })
            .collect();
        let clients: Vec<_> = (0..2)
            .map(|_| {
                spawn(&stack, |stack| {
                    let fd = connected(stack, 80);
                    assert_eq!(send(stack, fd, b"hello", 0), Ok(5));
                    close(stack, fd);
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        acceptors.into_iter().for_each(|acceptor| assert_eq!(acceptor.join().unwrap(), b"hello"));
        close(&stack, listening);
        ends_clean(&stack);
    });
}

/// `close` in another thread does not end a call (Linux): it goes on with the file, and what it held goes with it.
#[test]
fn a_call_outlives_its_descriptor() {
    check(ORDERS, || {
        let stack = alone();
        let (client, server) = pair(&stack, 70);
        let reader = spawn(&stack, move |stack| receive(stack, server));
        close(&stack, server);
        let sent = send(&stack, client, b"late", libc::MSG_NOSIGNAL);
        close(&stack, client);
        match reader.join().unwrap() {
            Ok(got) => assert_eq!((got, sent), (b"late".to_vec(), Ok(4))),
            Err(errno) => assert_eq!(errno, Errno::EBADF, "it came too late"),
        }
        ends_clean(&stack);
    });
}

#[test]
fn a_cancelled_thread_leaves_nothing_behind() {
    for polls in [false, true] {
        check(ORDERS, move || {
            let stack = alone();
            let (client, server) = pair(&stack, 70);
            let waiter = spawn(&stack, move |stack| {
                cancel::within(|| {
                    if polls {
                        poll(stack, server, None).map(|_| 0)
                    } else {
                        receive(stack, server).map(|_| 0)
                    }
                })
            });
            // It may be as much as asleep, cancelled, or not there yet.
            close(&stack, server);
            let ended = waiter.join().unwrap();
            assert!(matches!(ended, Err(cancel::Cancelled) | Ok(Err(Errno::EBADF))), "{ended:?}");
            assert_eq!(stack.process().waiting_count(), 0);
            close(&stack, client);
            ends_clean(&stack);
        });
    }
}

/// A call as the C libraries make it: handlers are held back, but while it sleeps.
fn entered<R>(holds_back: bool, call: impl FnOnce() -> R) -> R {
    let _masked = holds_back.then(signals::Masked::new);
    call()
}

/// A handler that makes calls, even one that sleeps, takes no wake-up away from the call it interrupts, and gets its own.
#[test]
fn a_handler_may_send_and_sleep_within_a_call_that_sleeps() {
    for (polls, holds_back) in [(false, false), (true, false), (false, true), (true, true)] {
        check(ORDERS, move || {
            let stack = alone();
            let (client, server) = pair(&stack, 70);
            let (questions, answers) = pair(&stack, 71);
            let answering = spawn(&stack, move |stack| {
                assert_eq!(receive(stack, answers).unwrap(), b"?");
                // While the handler waits for its answer, what the interrupted call waits for comes, and nothing after it.
                assert_eq!(send(stack, client, b"hello", 0), Ok(5));
                assert_eq!(send(stack, answers, b"yes", 0), Ok(3));
                close(stack, answers);
            });
            let in_handler = Arc::clone(&stack);
            let reader = spawn(&stack, move |stack| {
                signals::handle(1, true, move || {
                    let stack = &in_handler;
                    assert_eq!(entered(holds_back, || send(stack, questions, b"?", 0)), Ok(1));
                    while polls && entered(holds_back, || poll(stack, questions, None)) == Err(Errno::EINTR) {
                    }
                    assert_eq!(entered(holds_back, || receive(stack, questions)).unwrap(), b"yes");
                });
                while polls && entered(holds_back, || poll(stack, server, None)) == Err(Errno::EINTR) {}
                let got = entered(holds_back, || receive(stack, server)).unwrap();
                signals::end();
                close(stack, questions);
                got
            });
            assert_eq!(reader.join().unwrap(), b"hello");
            close(&stack, client);
            answering.join().unwrap();
            close(&stack, server);
            ends_clean(&stack);
        });
    }
}

/// signal(7): `poll` is never restarted, `recv` is not where `SA_RESTART` was not asked for.
#[test]
fn a_handler_interrupts_what_is_not_restarted() {
    for polls in [false, true] {
        check(ORDERS, move || {
            let stack = alone();
            let (client, server) = pair(&stack, 70);
            let waiter = spawn(&stack, move |stack| {
                signals::handle(2, polls, || {});
                let ended = loop {
                    let ended = if polls {
                        poll(stack, server, None).map(|_| 0)
                    } else {
                        receive(stack, server).map(|got| got.len())
                    };
                    if ended != Err(Errno::EINTR) {
                        break ended;
                    }
                };
                signals::end();
                ended
            });
            assert_eq!(send(&stack, client, b"x", 0), Ok(1));
            assert!(waiter.join().unwrap().is_ok());
            [client, server].iter().for_each(|fd| close(&stack, *fd));
            ends_clean(&stack);
        });
    }
}

#[test]
fn a_time_out_ends_a_wait_or_finds_what_came() {
    check(ORDERS, || {
        let stack = alone();
        let (client, server) = pair(&stack, 70);
        let poller = spawn(&stack, move |stack| poll(stack, server, Some(Duration::from_millis(5))));
        let until = stack.process().call(|_, now| now) + Duration::from_millis(5);
        let waited: Result<(), Errno> = stack
            .process()
            .wait(on(&server), |_, now| if now < until { Err(Stop::Wait(Some(until))) } else { Ok(()) });
        assert_eq!(waited, Ok(()));
        assert_eq!(send(&stack, client, b"x", 0), Ok(1));
        let found = poller.join().unwrap().unwrap();
        assert!(found.is_empty() || found == Ready::IN, "{found:?}");
        [client, server].iter().for_each(|fd| close(&stack, *fd));
        ends_clean(&stack);
    });
}

/// Nothing is to be sent, but at a time: of that, too, the driver is told.
#[test]
fn a_deadline_that_a_call_sets_reaches_the_driver() {
    check(ORDERS, || {
        let stack = alone();
        let (client, server) = pair(&stack, 70);
        stack.process().call(|sockets, now| {
            let on = 1_i32.to_ne_bytes();
            sockets.set_option(now, client, libc::SOL_SOCKET, libc::SO_KEEPALIVE, &on).unwrap();
        });
        [client, server].iter().for_each(|fd| close(&stack, *fd));
        ends_clean(&stack);
    });
}
