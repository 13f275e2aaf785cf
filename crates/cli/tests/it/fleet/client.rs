//! Clients: one kernel with several addresses, each with its own cookie.
use super::site::{ADDRESS, REPLY, Site, lock};
use doctor::sources::in_namespace;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, bind, ipproto, sendto, socket_with};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// 10.90.0.1 and those after it. A kernel keeps six paths to one address and no more
/// (TCP_METRICS_RECLAIM_DEPTH, net/ipv4/tcp_metrics.c).
pub(super) const ADDRESSES: usize = 5;
/// MSG_FASTOPEN (include/linux/socket.h).
const FAST_OPEN: u32 = 0x2000_0000;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Visits one after another until stopped; panics if a visit gets no reply.
pub(super) struct Clients {
    done: Arc<AtomicUsize>,
    stopped: Arc<AtomicBool>,
    visiting: JoinHandle<()>,
}

impl Clients {
    pub(super) fn start(site: &Site) -> Clients {
        for number in 2..=ADDRESSES {
            let mut add = testnet::command("ip");
            add.args([
                "-n",
                &site.clients.0,
                "address",
                "add",
                &format!("10.90.0.{number}/24"),
                "dev",
                "tun0",
            ]);
            assert!(add.status().unwrap().success());
        }
        let (done, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (visits, over, turn, name) = (done.clone(), stopped.clone(), site.turn(), site.clients.0.clone());
        let visiting = std::thread::spawn(move || {
            in_namespace(&name, || {
                while !over.load(Relaxed) {
                    let _turn = lock(&turn);
                    let number = visits.load(Relaxed);
                    let last = u8::try_from(1 + number % ADDRESSES).unwrap();
                    visit(Ipv4Addr::new(10, 90, 0, last))
                        .unwrap_or_else(|error| panic!("visit {number}: {error}"));
                    visits.store(number + 1, Relaxed);
                }
            })
            .unwrap();
        });
        Clients { done, stopped, visiting }
    }

    pub(super) fn done(&self) -> usize {
        self.done.load(Relaxed)
    }

    /// Waits for `more` visits.
    pub(super) fn wait_for(&self, more: usize) {
        let (goal, begun) = (self.done() + more, Instant::now());
        while self.done() < goal {
            assert!(!self.visiting.is_finished(), "a visit was lost");
            assert!(begun.elapsed() < Duration::from_secs(300), "{} of {goal} visits", self.done());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops the clients. Returns the number of visits.
    pub(super) fn stop(self) -> usize {
        self.stopped.store(true, Relaxed);
        self.visiting.join().unwrap();
        self.done.load(Relaxed)
    }
}

fn visit(from: Ipv4Addr) -> std::io::Result<()> {
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
    for timeout in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, timeout, Some(TIMEOUT))?;
    }
    bind(&socket, &SocketAddrV4::new(from, 0))?;
    sendto(&socket, b"hello?", SendFlags::from_bits_retain(FAST_OPEN), &ADDRESS)?;
    let mut reply = Vec::new();
    TcpStream::from(socket).read_to_end(&mut reply)?;
    assert_eq!(reply, REPLY);
    Ok(())
}
