//! Calls that really sleep, over a clock that jumps: [`posix::VirtualProcess`].

use posix::{Connect, Errno, Receive, Sockets, Stop, VirtualProcess};
use proto::{Capabilities, Config, Instant, Stack};
use std::sync::Arc;
use std::time::Duration;

fn process() -> Arc<VirtualProcess> {
    let ethernet = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
    let mut stack = Stack::new(Config::linux(), ethernet, [3; 32]);
    stack.add_address("10.0.0.1".parse().unwrap(), 24);
    Arc::new(VirtualProcess::new(Sockets::new(stack, 3), Instant::ZERO + Duration::from_secs(10)))
}

fn socket(process: &VirtualProcess) -> i32 {
    process.call(|sockets, _| sockets.socket(libc::AF_INET, libc::SOCK_STREAM, 0)).unwrap()
}

#[test]
fn a_call_in_another_thread_sleeps_and_ends_at_the_time_of_its_end() {
    let process = process();
    let fd = socket(&process);
    process
        .call(|sockets, now| {
            sockets.stack_mut().set(now, "net.ipv4.tcp_syn_linear_timeouts", "0").unwrap();
            sockets.set_option(now, fd, libc::IPPROTO_TCP, libc::TCP_SYNCNT, &1_i32.to_ne_bytes())
        })
        .unwrap();
    let begun = process.time();
    let other = Arc::clone(&process);
    let caller = std::thread::spawn(move || {
        let mut call = Connect::new(fd, Some("10.0.0.2:80".parse().unwrap()));
        let ended = other.wait(|sockets, now| call.attempt(sockets, now));
        (ended, other.time())
    });
    let (first, _) = loop {
        if let Some(packet) = process.next_packet(Duration::ZERO) {
            break packet;
        }
        std::thread::yield_now();
    };
    let (second, _) = process.next_packet(Duration::from_secs(10)).unwrap();
    assert_eq!(second.since(first), Duration::from_secs(1));
    assert!(process.next_packet(Duration::from_secs(100)).is_none(), "one retransmission was allowed");
    process.sleep(Duration::from_secs(100));
    let (ended, at) = caller.join().unwrap();
    assert_eq!(ended, Err(Errno::ETIMEDOUT));
    let took = at.since(begun);
    assert!(took >= Duration::from_secs(3) && took < Duration::from_millis(3_001), "{took:?}");
}

#[test]
fn the_thread_that_drives_time_takes_it_along_or_is_told_of_the_deadlock() {
    let process = process();
    let fd = socket(&process);
    let mut call = Receive::new(fd, 0);
    let wait = process.wait(|sockets, now| call.attempt(sockets, now, &mut [0]));
    assert_eq!(wait, Err(Errno::ENOTCONN));
    let before = process.time();
    let until = before + Duration::from_secs(5);
    let waited = process.wait(|_, now| if now < until { Err(Stop::Wait(Some(until))) } else { Ok(now) });
    assert_eq!(waited, Ok(until));
    let never: Result<(), Errno> = process.wait(|_, _| Err(Stop::Wait(None)));
    assert_eq!(never, Err(Errno::EDEADLK));
}
