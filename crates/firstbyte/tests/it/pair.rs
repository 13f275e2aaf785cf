//! Two stacks, a wire between them, and a record of its packets.
use firstbyte::device::memory::{self, MemoryDevice};
use firstbyte::device::{Capabilities, Device, RxBatch, TxPacket};
use firstbyte::{Config, Net, TcpListener, TcpStream};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const SERVER: &str = "10.0.0.1:80";

pub(crate) const WIRE: Capabilities = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };

/// The parts of an IPv4 TCP packet that these tests check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) from_client: bool,
    /// SYN, FIN, RST, ACK as `S`, `F`, `R`, `.`.
    pub(crate) flags: String,
    pub(crate) payload_len: usize,
}

type Log = Arc<Mutex<Vec<Segment>>>;

/// The data of each SYN.
type SynData = Arc<Mutex<Vec<Vec<u8>>>>;

/// Number of receive calls of the devices of both sides.
type Reads = Arc<AtomicUsize>;

/// A device that records the packets sent through it.
pub(crate) struct Recorded<D> {
    device: D,
    from_client: bool,
    log: Log,
    syn_data: SynData,
    reads: Reads,
}

impl<D: Device> Device for Recorded<D> {
    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }

    fn recv(&mut self, batch: &mut RxBatch, max: usize) -> io::Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.device.recv(batch, max)
    }

    fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize> {
        let packets: Vec<Vec<u8>> = batch.iter().map(|packet| packet.to_bytes().to_vec()).collect();
        let mut log = self.log.lock().unwrap();
        let sent = self.device.send(batch)?;
        for packet in &packets[..sent] {
            let segment = describe(packet, self.from_client);
            if segment.flags == "S" {
                let data = packet[packet.len() - segment.payload_len..].to_vec();
                self.syn_data.lock().unwrap().push(data);
            }
            log.push(segment);
        }
        Ok(sent)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.device.as_fd()
    }

    fn set_notify(&mut self, notify: Arc<dyn Fn() + Send + Sync>) {
        self.device.set_notify(notify);
    }
}

fn describe(packet: &[u8], from_client: bool) -> Segment {
    let tcp = usize::from(packet[0] & 15) * 4;
    let data = tcp + usize::from(packet[tcp + 12] >> 4) * 4;
    let names = [(0x02, 'S'), (0x01, 'F'), (0x04, 'R'), (0x10, '.')];
    let flags = names.iter().filter(|(bit, _)| packet[tcp + 13] & bit != 0).map(|(_, name)| name).collect();
    Segment { from_client, flags, payload_len: packet.len() - data }
}

/// Two running stacks.
pub(crate) struct Pair {
    pub(crate) server: Net,
    pub(crate) client: Net,
    log: Log,
    syn_data: SynData,
    reads: Reads,
}

impl Pair {
    pub(crate) fn new() -> Pair {
        Pair::with(Config::default(), Config::default())
    }

    pub(crate) fn with(server: Config, client: Config) -> Pair {
        Pair::over(memory::pair(WIRE), server, client)
    }

    /// Creates a pair over a wire that holds this many packets in each direction, with [`patient`]
    /// ends.
    pub(crate) fn with_queue(queue_len: usize) -> Pair {
        Pair::over(memory::pair_with(WIRE, WIRE, queue_len), patient(), patient())
    }

    fn over(wire: (MemoryDevice, MemoryDevice), server: Config, client: Config) -> Pair {
        let (log, syn_data, reads) = (Log::default(), SynData::default(), Reads::default());
        let record = |device, from_client| {
            let (log, syn_data, reads) = (log.clone(), syn_data.clone(), reads.clone());
            Recorded { device, from_client, log, syn_data, reads }
        };
        let start = |device, address, config, seed| {
            Net::builder().device(device).address(address).config(config).seed([seed; 32]).start().unwrap()
        };
        Pair {
            server: start(record(wire.0, false), "10.0.0.1/24", server, 1),
            client: start(record(wire.1, true), "10.0.0.2/24", client, 2),
            log: log.clone(),
            syn_data: syn_data.clone(),
            reads: reads.clone(),
        }
    }

    /// Returns how often the drivers have polled for packets.
    pub(crate) fn read_count(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    /// Opens a listener on [`SERVER`] with Fast Open.
    pub(crate) async fn listen(&self) -> TcpListener {
        TcpListener::builder(&self.server).fast_open(128).bind(SERVER).await.unwrap()
    }

    /// Opens a connection with a plain handshake, and returns both ends.
    pub(crate) async fn connected(&self) -> (TcpStream, TcpStream) {
        let listener = self.listen().await;
        let (client, accepted) = tokio::join!(TcpStream::connect(&self.client, SERVER), listener.accept());
        (client.unwrap(), accepted.unwrap().0)
    }

    /// Returns the packets since the last call, in order.
    pub(crate) fn take_log(&self) -> Vec<Segment> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    /// Returns the data of the last SYN.
    pub(crate) fn last_syn_data(&self) -> Vec<u8> {
        self.syn_data.lock().unwrap().last().unwrap().clone()
    }

    /// Waits until neither side has a connection or a half-open request left.
    pub(crate) async fn until_empty(&self) {
        for net in [&self.server, &self.client] {
            until(|| {
                net.stack().unwrap().table_sizes().connections == 0
                    && net.stack().unwrap().table_sizes().requests == 0
            })
            .await;
        }
    }
}

/// Returns settings that make packets independent of a busy machine: no retransmission and no
/// timeout within a test. Only ACKs are delayed as usual.
pub(crate) fn patient() -> Config {
    let forever = Duration::from_secs(60);
    Config::default()
        .rto_initial(forever)
        .tcp_rto_min_us(60_000_000)
        .tcp_early_retrans(0)
        .fast_fallback(false)
        .synack_hold(forever)
        // A cached round trip of microseconds would shorten the hold to a quarter of it.
        .tcp_no_metrics_save(true)
        .path_rtt_at_once(false)
}

/// Lets other tasks run until they are idle, at least for a thousand rounds. For tests on one
/// thread.
pub(crate) async fn let_others_run() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

/// Waits until a condition becomes true.
pub(crate) async fn until(mut is_true: impl FnMut() -> bool) {
    while !is_true() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Fails a test that hangs.
pub(crate) async fn bounded<R>(test: impl Future<Output = R>) -> R {
    tokio::time::timeout(Duration::from_secs(20), test).await.expect("the test hangs")
}

/// A device that is slow to close.
pub(crate) struct SlowToClose {
    pub(crate) device: MemoryDevice,
    pub(crate) is_closed: Arc<AtomicBool>,
}

impl Device for SlowToClose {
    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }

    fn recv(&mut self, batch: &mut RxBatch, max: usize) -> io::Result<usize> {
        self.device.recv(batch, max)
    }

    fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize> {
        self.device.send(batch)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn set_notify(&mut self, notify: Arc<dyn Fn() + Send + Sync>) {
        self.device.set_notify(notify);
    }
}

impl Drop for SlowToClose {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(100));
        self.is_closed.store(true, Ordering::SeqCst);
    }
}

/// Returns `len` bytes that do not repeat in step with any packet size.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8 ^ (i / 251 % 256) as u8).collect()
}
