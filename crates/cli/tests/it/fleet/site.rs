//! Servers that share one address, each with its own kernel, and the load balancer.
use crate::firstbyte;
use crate::link::Namespace;
use doctor::sources::in_namespace;
use firstbyte::device::Device;
use firstbyte::device::tun::Tun;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Address of the balancer.
pub(super) const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 90, 0, 100)), 80);
pub(super) const REPLY: &[u8] = b"hello";
/// Error of an agent whose store does not answer.
const UNREACHABLE: &str = "cannot reach the store";

/// Servers, balancer and the clients' side.
pub(super) struct Site {
    pub(super) clients: Namespace,
    servers: Vec<Server>,
    store: String,
    /// Held during a visit: servers are killed between two visits.
    visiting: Arc<Mutex<()>>,
    ended: Arc<AtomicBool>,
    balancer: Option<JoinHandle<()>>,
}

struct Server {
    namespace: Namespace,
    state: PathBuf,
    serves: Arc<AtomicBool>,
    program: Option<JoinHandle<()>>,
    agent: Option<Child>,
    /// Standard error of the agent, as far as it was read.
    said: String,
}

impl Site {
    /// Creates servers that are not running yet; their agents will use the store at `store`.
    pub(super) fn new(count: usize, store: &str) -> Site {
        let clients = Namespace::new("clients").unwrap();
        let mut ends = vec![tun(&clients, Ipv4Addr::new(10, 90, 0, 1))];
        let mut servers = Vec::new();
        for number in 0..count {
            let namespace = Namespace::new(&format!("web{number}")).unwrap();
            let IpAddr::V4(address) = ADDRESS.ip() else { unreachable!() };
            ends.push(tun(&namespace, address));
            let state = std::env::temp_dir().join(format!("{}.plan", namespace.0));
            let _ = std::fs::remove_file(&state);
            servers.push(Server {
                namespace,
                state,
                serves: Arc::default(),
                program: None,
                agent: None,
                said: String::new(),
            });
        }
        let ended = Arc::new(AtomicBool::new(false));
        let serving: Vec<_> = servers.iter().map(|server| server.serves.clone()).collect();
        let over = ended.clone();
        let balancer = std::thread::spawn(move || balance(&ends, &serving, &over));
        Site {
            clients,
            servers,
            store: store.to_owned(),
            visiting: Arc::default(),
            ended,
            balancer: Some(balancer),
        }
    }

    /// Returns the lock that a visit or a kill holds.
    pub(super) fn turn(&self) -> Arc<Mutex<()>> {
        self.visiting.clone()
    }

    /// Boots a server: the agent applies the keys once, then the server starts, and the balancer
    /// uses it.
    pub(super) fn start(&mut self, number: usize) {
        let server = &mut self.servers[number];
        let once = server.agent(number, &self.store, &["--once"]).wait_with_output().unwrap();
        assert!(once.status.success(), "{once:?}");
        let listener = in_namespace(&server.namespace.0, || {
            testnet::sysctl("net.ipv4.tcp_fastopen", "1027");
            TcpListener::bind(ADDRESS).unwrap()
        });
        server.serves.store(true, Relaxed);
        let serves = server.serves.clone();
        server.program = Some(std::thread::spawn(move || serve(&listener.unwrap(), &serves)));
        server.agent = Some(server.agent(number, &self.store, &[]));
    }

    /// Simulates a power failure: server, agent and the kernel's keys are gone.
    pub(super) fn kill(&mut self, number: usize) {
        let _between = lock(&self.visiting);
        let server = &mut self.servers[number];
        server.end();
        in_namespace(&server.namespace.0, || {
            testnet::sysctl("net.ipv4.tcp_fastopen_key", "00000001-00000002-00000003-00000004");
        })
        .unwrap();
    }

    pub(super) fn counters(&self, number: usize) -> testnet::Counters {
        in_namespace(&self.servers[number].namespace.0, testnet::counters).unwrap()
    }

    /// Waits until every agent has found the store unreachable.
    pub(super) fn until_cut_off(&mut self) {
        for server in &mut self.servers {
            let stderr = server.agent.as_mut().unwrap().stderr.as_mut().unwrap();
            let mut stderr = BufReader::new(stderr);
            while !server.said.contains(UNREACHABLE) {
                let read = stderr.read_line(&mut server.said).unwrap();
                assert!(read > 0, "the agent ended: {}", server.said);
            }
            server.said.push_str(&String::from_utf8_lossy(stderr.buffer()));
        }
    }

    /// Checks that the keys are in a file of root's and in the kernel, and nowhere that others can
    /// read.
    pub(super) fn check_secrets(&mut self) {
        for server in &mut self.servers {
            let mode = std::fs::metadata(&server.state).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let saved = std::fs::read_to_string(&server.state).unwrap();
            let agent = server.agent.as_mut().unwrap();
            let mut shown = std::fs::read_to_string(format!("/proc/{}/cmdline", agent.id())).unwrap();
            shown.push_str(&server.said);
            agent.kill().unwrap();
            agent.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
            agent.stderr.take().unwrap().read_to_string(&mut shown).unwrap();
            assert!(shown.contains("version 7, settled, is in use: primary "), "{shown}");
            assert!(shown.contains(UNREACHABLE), "{shown}");
            let keys =
                in_namespace(&server.namespace.0, || testnet::read_sysctl("net.ipv4.tcp_fastopen_key"));
            let keys = keys.unwrap();
            assert!(saved.contains(&format!("\"{keys}\"")) && !shown.contains(&keys));
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.servers.iter_mut().for_each(Server::end);
        self.ended.store(true, Relaxed);
        let _ = self.balancer.take().map(JoinHandle::join);
        for server in &self.servers {
            let _ = std::fs::remove_file(&server.state);
        }
    }
}

impl Server {
    fn agent(&self, number: usize, store: &str, more: &[&str]) -> Child {
        let mut command = firstbyte();
        command.args(["fleet", "agent", "web", "--host", &format!("web{number}"), "--interval", "200ms"]);
        command.args(["--store", store, "--netns", &self.namespace.0]).args(more);
        command.arg("--state").arg(&self.state);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn end(&mut self) {
        self.serves.store(false, Relaxed);
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
        let _ = self.program.take().map(JoinHandle::join);
    }
}

/// Creates a device of this address, and returns its other side.
fn tun(namespace: &Namespace, address: Ipv4Addr) -> OwnedFd {
    let opened = in_namespace(&namespace.0, || {
        Tun::builder().name("tun0").offload(false).address(address.into(), 24).open().unwrap()
    });
    // The device disappears with its last descriptor.
    opened.unwrap().as_fd().unwrap().try_clone_to_owned().unwrap()
}

/// Replies, and closes first.
fn serve(listener: &TcpListener, serves: &AtomicBool) {
    while serves.load(Relaxed) {
        if !readable(&[listener], Duration::from_millis(20))[0] {
            continue;
        }
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 100];
        // A client that is gone gets no reply.
        let _ = stream.read(&mut request).and_then(|_| stream.write_all(REPLY));
    }
}

/// Balances connections over the running servers, in turn.
fn balance(ends: &[OwnedFd], serving: &[Arc<AtomicBool>], ended: &AtomicBool) {
    let mut chosen: HashMap<[u8; 6], usize> = HashMap::new();
    let mut turn = 0;
    let mut packet = [0; 2000];
    while !ended.load(Relaxed) {
        let ready = readable(&ends.iter().collect::<Vec<_>>(), Duration::from_millis(20));
        for (from, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
            let Ok(len) = rustix::io::read(&ends[from], &mut packet) else { continue };
            let packet = &packet[..len];
            // IPv4 and TCP without IP options; IPv6 packets of the kernels are dropped.
            if len < 40 || packet[0] != 0x45 {
                continue;
            }
            let to = if from > 0 {
                0
            } else {
                let flow = [packet[12], packet[13], packet[14], packet[15], packet[20], packet[21]];
                if packet[33] & 0x12 == 0x02 {
                    let next = (0..serving.len()).map(|n| (turn + n) % serving.len());
                    let Some(server) = next.into_iter().find(|server| serving[*server].load(Relaxed)) else {
                        continue;
                    };
                    (turn, _) = (server + 1, chosen.insert(flow, server));
                }
                match chosen.get(&flow) {
                    Some(server) => server + 1,
                    None => continue,
                }
            };
            let _ = rustix::io::write(&ends[to], packet);
        }
    }
}

fn readable<F: std::os::fd::AsFd>(ends: &[F], timeout: Duration) -> Vec<bool> {
    let mut polled: Vec<PollFd<'_>> = ends.iter().map(|end| PollFd::new(end, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(timeout).unwrap();
    let _ = poll(&mut polled, Some(&timeout));
    polled.iter().map(|polled| polled.revents().contains(PollFlags::IN)).collect()
}

pub(super) fn lock(turn: &Mutex<()>) -> MutexGuard<'_, ()> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}
