//! Tasks that wait for a host, and the pump, in many orders of events: the production code with the
//! checker's lock (`cargo xtask threads`).
//!
//! In each order of events every thread ends: the checker reports a lost wake-up or a deadlock.
#![cfg(feature = "shuttle")]
#![expect(clippy::unwrap_used, reason = "a test may")]

extern crate firstbyte_host as host;

use device::Device;
use device::memory::{self, MemoryDevice};
use host::{Clock, Error, Host, Phase, Pump, RealClock, Signal};
use proto::{
    AcceptError, Capabilities, Config, ConnId, ConnectOptions, Instant, ListenOptions, ListenerId, ReadError,
    Stack,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use sync::model::{Token, Waited, check};
use sync::thread;

/// Number of random orders in each test, and of orders that prefer threads.
const ORDERS: usize = 250;

const WIRE: Capabilities = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };

/// The object that a thread sleeps on.
#[derive(Default)]
struct Sleep(Token);

impl Wake for Sleep {
    fn wake(self: Arc<Sleep>) {
        self.0.post();
    }
}

/// Polls until ready, and sleeps in between.
fn wait<R>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<R>) -> R {
    let sleep = Arc::new(Sleep::default());
    let waker = Waker::from(Arc::clone(&sleep));
    loop {
        if let Poll::Ready(done) = poll(&mut Context::from_waker(&waker)) {
            return done;
        }
        sleep.0.wait(None, true);
    }
}

/// Polls until ready, or until the deadline, which may pass whenever the thread sleeps.
fn wait_until(deadline: Option<Instant>, host: &Host, mut poll: impl FnMut(&mut Context<'_>) -> Poll<()>) {
    let sleep = Arc::new(Sleep::default());
    let waker = Waker::from(Arc::clone(&sleep));
    while poll(&mut Context::from_waker(&waker)).is_pending() {
        let left = deadline.map(|at| at.since(host.clock().now()));
        if sleep.0.wait(left, true) == Waited::TimedOut {
            return;
        }
    }
}

/// A host and the thread that drives it like a runtime's task: it sleeps until a signal or the
/// deadline.
struct Side {
    host: Arc<Host>,
    driver: thread::JoinHandle<()>,
}

fn side(address: &str, mut device: MemoryDevice) -> Side {
    let mut stack = Stack::new(Config::default(), WIRE, [7; 32]);
    stack.add_address(address.parse().unwrap(), 24);
    let signal = Arc::new(Signal::default());
    let (of_device, of_host) = (Arc::clone(&signal), Arc::clone(&signal));
    device.set_notify(Arc::new(move || of_device.set()));
    let host = Arc::new(Host::new(stack, RealClock::new(), move || of_host.set()));
    let mut pump = Pump::new(Arc::clone(&host), device);
    let driver = thread::spawn(move || {
        let host = Arc::clone(pump.host());
        loop {
            let Ok(step) = pump.step(true) else { return host.stop() };
            if step.phase == Phase::Stopped || (step.phase == Phase::Closing && host.is_delivered()) {
                return host.stop();
            }
            if step.has_more || !step.is_drained {
                continue;
            }
            // A device that did not accept everything must signal when it has room: no timer
            // replaces that here.
            let deadline = step.deadline.filter(|_| !step.is_blocked);
            wait_until(deadline, &host, |cx| signal.poll_take(cx));
        }
    });
    Side { host, driver }
}

fn alone() -> Side {
    side("10.0.0.1", memory::loopback(WIRE))
}

impl Side {
    fn listen(&self) -> ListenerId {
        self.host.listen(address(), ListenOptions::default()).unwrap()
    }

    /// Returns both ends of a connection of the host with itself.
    fn pair(&self) -> (ConnId, ConnId) {
        let listener = self.listen();
        let client = self.host.connect(address(), ConnectOptions::default()).unwrap();
        wait(|cx| self.host.poll_connected(cx, client)).unwrap();
        let (server, _) = wait(|cx| self.host.poll_accept(cx, listener)).unwrap();
        self.host.close_listener(listener);
        (client, server)
    }

    fn spawn<R: Send + 'static>(
        &self,
        body: impl FnOnce(&Host) -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let host = Arc::clone(&self.host);
        thread::spawn(move || body(&host))
    }

    fn ends_clean(self) {
        self.host.begin_shutdown();
        self.driver.join().unwrap();
        assert_eq!(self.host.waiting_count(), 0, "somebody waits after the end");
        assert_eq!(self.host.inspect(|stack| stack.table_sizes().connections), 0);
    }
}

fn address() -> SocketAddr {
    "10.0.0.1:80".parse().unwrap()
}

fn read(host: &Host, id: ConnId) -> Result<Vec<u8>, Error<ReadError>> {
    let mut buf = [0; 4096];
    wait(|cx| host.poll_read(cx, id, &mut buf)).map(|len| buf[..len].to_vec())
}

fn read_all(host: &Host, id: ConnId) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let some = read(host, id).unwrap();
        if some.is_empty() {
            return all;
        }
        all.extend(some);
    }
}

fn write_all(host: &Host, id: ConnId, data: &[u8]) {
    let mut written = 0;
    while written < data.len() {
        written += wait(|cx| host.poll_write(cx, id, &data[written..])).unwrap();
    }
}

#[test]
fn tasks_are_woken_by_connections_data_and_the_end_of_the_stream() {
    check(ORDERS, || {
        let side = alone();
        let listener = side.listen();
        let server = side.spawn(move |host| {
            let (id, _) = wait(|cx| host.poll_accept(cx, listener)).unwrap();
            let all = read_all(host, id);
            write_all(host, id, b"thanks");
            wait(|cx| host.poll_delivered(cx, id)).unwrap();
            host.close(id);
            all
        });
        let client = side.host.connect(address(), ConnectOptions::default()).unwrap();
        wait(|cx| side.host.poll_connected(cx, client)).unwrap();
        write_all(&side.host, client, b"one ");
        write_all(&side.host, client, b"two ");
        side.host.shutdown(client).unwrap();
        assert_eq!(read_all(&side.host, client), b"thanks");
        assert_eq!(server.join().unwrap(), b"one two ");
        side.host.close(client);
        side.ends_clean();
    });
}

#[test]
fn a_writer_is_woken_when_there_is_room_and_a_window() {
    check(ORDERS / 4, || {
        let side = alone();
        side.host.configure(|stack, now| {
            stack.set(now, "net.ipv4.tcp_wmem", "4096 8192 8192").unwrap();
            stack.set(now, "net.ipv4.tcp_rmem", "4096 8192 8192").unwrap();
        });
        let (client, server) = side.pair();
        let reader = side.spawn(move |host| {
            let all = read_all(host, server).len();
            host.close(server);
            all
        });
        write_all(&side.host, client, &[7; 40_000]);
        side.host.close(client);
        assert_eq!(reader.join().unwrap(), 40_000);
        side.ends_clean();
    });
}

#[test]
fn a_reset_wakes_reader_and_writer() {
    check(ORDERS, || {
        let side = alone();
        let (client, server) = side.pair();
        let readers: Vec<_> = (0..2).map(|_| side.spawn(move |host| read(host, server))).collect();
        side.host.abort(client);
        let ended: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        assert!(ended.iter().any(Result::is_err), "{ended:?}");
        side.host.close(server);
        side.ends_clean();
    });
}

#[test]
fn every_task_ends_when_the_host_closes_or_stops() {
    for stops in [false, true] {
        check(ORDERS, move || {
            let side = alone();
            let (_client, server) = side.pair();
            let listener = side.listen();
            let reader = side.spawn(move |host| read(host, server));
            let acceptors: Vec<_> = (0..2)
                .map(|_| side.spawn(move |host| wait(|cx| host.poll_accept(cx, listener)).map(drop)))
                .collect();
            let stopper = side.spawn(move |host| if stops { host.stop() } else { host.begin_shutdown() });
            assert!(reader.join().unwrap().is_err());
            for acceptor in acceptors {
                let ended = acceptor.join().unwrap();
                assert!(
                    matches!(ended, Err(Error::Stopped | Error::Stack(AcceptError::Closed))),
                    "{ended:?}"
                );
            }
            stopper.join().unwrap();
            side.ends_clean();
        });
    }
}

#[test]
fn every_task_ends_with_the_device() {
    check(ORDERS, || {
        let (left, right) = memory::pair(WIRE);
        let side = side("10.0.0.1", left);
        let listener = side.listen();
        let acceptor = side.spawn(move |host| wait(|cx| host.poll_accept(cx, listener)).map(drop));
        drop(right);
        assert_eq!(acceptor.join().unwrap(), Err(Error::Stopped));
        side.driver.join().unwrap();
    });
}

/// A handle is released while a task waits on it: the task is woken.
#[test]
fn a_handle_let_go_wakes_who_waits_on_it() {
    check(ORDERS, || {
        let side = alone();
        let (client, server) = side.pair();
        let reader = side.spawn(move |host| read(host, server));
        side.host.close(server);
        assert!(reader.join().unwrap().is_err());
        side.host.close(client);
        side.ends_clean();
    });
}

/// A dropped future leaves its waker until the next event at most, and takes no wake-up from
/// others.
#[test]
fn a_task_that_gave_up_takes_nothing_from_others() {
    check(ORDERS, || {
        let side = alone();
        let (client, server) = side.pair();
        let given_up = side.spawn(move |host| {
            let mut cx = Context::from_waker(Waker::noop());
            host.poll_read(&mut cx, server, &mut []).is_pending()
        });
        let reader = side.spawn(move |host| read(host, server));
        write_all(&side.host, client, b"hello");
        assert_eq!(reader.join().unwrap(), Ok(b"hello".to_vec()));
        given_up.join().unwrap();
        side.host.close(client);
        side.host.close(server);
        side.ends_clean();
    });
}

/// Two hosts, two pumps, a wire with room for one packet in each direction.
#[test]
fn two_hosts_over_a_narrow_wire_go_on() {
    check(ORDERS / 2, || {
        let (left, right) = memory::pair_with(WIRE, WIRE, 1);
        let (server, client) = (side("10.0.0.1", left), side("10.0.0.2", right));
        let listener = server.listen();
        let reader = server.spawn(move |host| {
            let (id, _) = wait(|cx| host.poll_accept(cx, listener)).unwrap();
            let all = read_all(host, id).len();
            host.close(id);
            all
        });
        let id = client.host.connect(address(), ConnectOptions::default()).unwrap();
        write_all(&client.host, id, &[7; 10_000]);
        client.host.shutdown(id).unwrap();
        assert!(read_all(&client.host, id).is_empty());
        client.host.close(id);
        assert_eq!(reader.join().unwrap(), 10_000);
        server.host.begin_shutdown();
        client.host.begin_shutdown();
        // The side that ends first removes the wire.
        server.driver.join().unwrap();
        client.driver.join().unwrap();
    });
}
