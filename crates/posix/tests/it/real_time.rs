//! Calls that really sleep, in real time: [`posix::Running`] over a device in memory.

use device::memory::{self, MemoryDevice};
use posix::sysctl::SysctlTree;
use posix::{Connect, Errno, Receive, Running, Send, Sockets, Source, Watch};
use posix::{Destination, Ended};
use proto::{Capabilities, Config, Stack};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// For what happens at once on a machine that has time.
const TIMEOUT: Duration = Duration::from_secs(10);

const WIRE: Capabilities = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };

fn host(address: &str, device: MemoryDevice) -> Running {
    let mut stack = Stack::new(Config::linux(), WIRE, [3; 32]);
    stack.add_address(address.parse().unwrap(), 24);
    Running::start(Sockets::new(stack, 3), device, None).unwrap()
}

fn listener(host: &Running) -> i32 {
    host.process().call(|sockets, now| {
        let fd = sockets.socket(libc::AF_INET, libc::SOCK_STREAM, 0).unwrap();
        sockets.bind(fd, "10.0.0.1:80".parse().unwrap()).unwrap();
        sockets.listen(now, fd, 16).unwrap();
        fd
    })
}

fn on(fd: &i32) -> Watch<'_> {
    Watch { fds: std::slice::from_ref(fd) }
}

fn connected(host: &Running) -> i32 {
    let process = host.process();
    let fd = process.call(|sockets, _| sockets.socket(libc::AF_INET, libc::SOCK_STREAM, 0)).unwrap();
    let mut call = Connect::new(fd, Some("10.0.0.1:80".parse().unwrap()));
    process.wait(on(&fd), |sockets, now| call.attempt(sockets, now)).unwrap();
    fd
}

fn accepted(host: &Running, listener: i32) -> i32 {
    host.process().wait(on(&listener), |sockets, now| sockets.accept(now, listener, 0)).unwrap().0
}

fn send(host: &Running, fd: i32, data: &[u8]) {
    let mut call = Send::new(fd, Source { data, faulty: false }, 0, Destination::None);
    let sent = host.process().wait(on(&fd), |sockets, now| call.attempt(sockets, now));
    assert_eq!(sent, Ok(data.len()));
}

fn counted(host: &Running, counter: &str) -> u64 {
    let counters = host.process().call(|sockets, _| sockets.stack().nstat());
    counters.iter().find(|(name, _)| name == counter).unwrap().1
}

/// Reads once, and counts how often that was tried.
fn receive(host: &Running, fd: i32, attempts: &AtomicUsize) -> Result<Vec<u8>, Errno> {
    let mut call = Receive::new(fd, 0);
    let mut buf = [0; 100];
    let got = host.process().wait(on(&fd), |sockets, now| {
        attempts.fetch_add(1, Ordering::SeqCst);
        call.attempt(sockets, now, &mut buf)
    })?;
    Ok(buf[..got].to_vec())
}

#[test]
fn a_sleeping_call_is_woken_by_what_happens_to_its_descriptor_only() {
    let (left, right) = memory::pair(WIRE);
    let (server, client) = (host("10.0.0.1", left), host("10.0.0.2", right));
    let listening = listener(&server);
    let pairs = [0, 1].map(|_| (connected(&client), accepted(&server, listening)));
    let attempts = AtomicUsize::new(0);
    thread::scope(|scope| {
        let sleeping = scope.spawn(|| receive(&server, pairs[0].1, &attempts));
        while attempts.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        for _ in 0..100 {
            send(&client, pairs[1].0, b"other");
            receive(&server, pairs[1].1, &AtomicUsize::new(0)).unwrap();
        }
        let before = attempts.load(Ordering::SeqCst);
        assert!(before <= 2, "a hundred times something happened elsewhere, and it looked {before} times");
        send(&client, pairs[0].0, b"own");
        assert_eq!(sleeping.join().unwrap(), Ok(b"own".to_vec()));
    });
    assert!(matches!(client.stop(Duration::from_secs(5)), Some(Ended::Delivered)));
}

#[test]
fn a_setting_written_to_a_file_is_felt_while_the_stack_runs() {
    let folder = std::env::temp_dir().join(format!("firstbyte-real-time-{}", std::process::id()));
    let file = folder.join("ipv4/tcp_fin_timeout");
    std::fs::create_dir_all(folder.join("ipv4")).unwrap();
    std::fs::write(&file, "17\n").unwrap();
    let mut stack = Stack::new(Config::linux(), WIRE, [3; 32]);
    stack.add_address("10.0.0.1".parse().unwrap(), 24);
    let tree = SysctlTree::new(&folder, &stack);
    let host = Running::start(Sockets::new(stack, 3), memory::loopback(WIRE), Some(tree)).unwrap();
    for seconds in [17, 5] {
        std::fs::write(&file, format!("{seconds}\n")).unwrap();
        let begun = Instant::now();
        let is_felt = || {
            let now = host.process().call(|sockets, _| sockets.stack().config().tcp_fin_timeout);
            now == Duration::from_secs(seconds)
        };
        while !is_felt() && begun.elapsed() < TIMEOUT {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(is_felt(), "{seconds}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_call_ends_with_the_device_below_it() {
    let (left, right) = memory::pair(WIRE);
    let server = host("10.0.0.1", left);
    let listening = listener(&server);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            server.process().wait(on(&listening), |sockets, now| sockets.accept(now, listening, 0))
        });
        drop(right);
        assert_eq!(waiting.join().unwrap(), Err(Errno::ENETDOWN));
    });
    server.process().call(|sockets, _| {
        assert_eq!(sockets.socket(libc::AF_INET, libc::SOCK_STREAM, 0), Err(Errno::ENETDOWN));
        assert_eq!(sockets.epoll_create(false), Err(Errno::ENETDOWN));
        assert_eq!(sockets.pipe(), Err(Errno::ENETDOWN));
    });
    assert!(matches!(server.stop(TIMEOUT), Some(Ended::Failed(_))));
    assert!(server.stop(Duration::ZERO).is_none(), "once");
}

#[test]
fn what_a_silent_peer_does_not_acknowledge_is_reset_when_time_is_up() {
    let (left, right) = memory::pair(WIRE);
    let (server, client) = (host("10.0.0.1", left), host("10.0.0.2", right));
    let listening = listener(&server);
    let fd = connected(&client);
    accepted(&server, listening);
    // A window that stays shut: more than both buffers hold is written, and nobody reads.
    client.process().call(|sockets, _| sockets.set_flags(fd, libc::O_NONBLOCK)).unwrap();
    let data = vec![0; 1 << 20];
    let begun = Instant::now();
    while counted(&server, "TcpExtTCPToZeroWindowAdv") == 0 && begun.elapsed() < TIMEOUT {
        let mut call = Send::new(fd, Source { data: &data, faulty: false }, 0, Destination::None);
        // A full buffer empties as long as the window is open.
        let _ = client.process().call(|sockets, now| call.attempt(sockets, now));
        thread::yield_now();
    }
    let begun = Instant::now();
    assert!(matches!(client.stop(Duration::from_millis(50)), Some(Ended::TimedOut)));
    assert!(begun.elapsed() >= Duration::from_millis(50));
    // What was on the wire when its other end went is received still.
    while counted(&server, "TcpEstabResets") == 0 && begun.elapsed() < TIMEOUT {
        thread::yield_now();
    }
    assert_eq!(counted(&server, "TcpEstabResets"), 1);
    assert!(matches!(server.stop(TIMEOUT), Some(Ended::Failed(_))));
}

#[test]
fn time_stamps_are_the_wall_clocks() {
    let (left, right) = memory::pair(WIRE);
    let (server, client) = (host("10.0.0.1", left), host("10.0.0.2", right));
    let listening = listener(&server);
    let on_option = 1_i32.to_ne_bytes();
    server.process().call(|sockets, now| {
        sockets.set_option(now, listening, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on_option).unwrap();
    });
    let fd = connected(&client);
    let accepted = accepted(&server, listening);
    let wall = || std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let begun = wall();
    send(&client, fd, b"now");
    let got = receive(&server, accepted, &AtomicUsize::new(0)).unwrap();
    assert_eq!(got, b"now");
    let told = server.process().call(|sockets, _| sockets.ancillary(accepted, got.len(), false)).unwrap();
    let [posix::Ancillary::TimestampNs { at, .. }] = told[..] else { panic!("one time stamp, not {told:?}") };
    // The two clocks were compared when the stack began: they may have parted a little.
    let slack = Duration::from_millis(50);
    let range = begun - slack..=wall() + slack;
    assert!(range.contains(&at), "{at:?} in {range:?}");
}
