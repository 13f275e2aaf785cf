//! The library as packetdrill meets it: loaded by its file, called through its table.
#![expect(unsafe_code, reason = "C's functions, through the pointers of a table")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use libc::{c_char, c_int, c_longlong, c_uint, c_void, sockaddr_in, socklen_t, ssize_t, timeval};
use std::ffi::{CString, OsStr};
use std::io::Error;
use std::mem::{size_of, transmute, zeroed};
use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use wire::{Flags, IpHeader, SeqNum, TcpHeader, TcpOptions, protocol};

const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PORT: u16 = 8080;
const PEER_PORT: u16 = 40_000;
const PEER_ISN: SeqNum = SeqNum(1000);

/// Pointers of packetdrill's `struct packetdrill_interface`, and where some of them lie.
const POINTERS: usize = 33;
const FREE: usize = 1;
const SOCKET: usize = 2;
const BIND: usize = 3;
const LISTEN: usize = 4;
const ACCEPT: usize = 5;
const READ: usize = 7;
const WRITE: usize = 12;
const CLOSE: usize = 19;
const GETSOCKOPT: usize = 21;
const NETDEV_SEND: usize = 24;
const NETDEV_RECEIVE: usize = 25;
const USLEEP: usize = 26;
const GETTIMEOFDAY: usize = 27;

type Ud = *mut c_void;
type Buffer = *mut c_void;

/// One conversation at a time: packetdrill has one library, with one table.
static TURN: Mutex<()> = Mutex::new(());

/// The table of a loaded library.
struct Loaded {
    table: [usize; POINTERS],
    _turn: MutexGuard<'static, ()>,
}

/// A function of the table: its type is named where it is called.
macro_rules! call {
    ($table:expr, $at:expr, ($($type:ty),*) -> $result:ty, $($argument:expr),*) => {{
        // SAFETY: the table has a function of this type there, which takes the table's own
        // userdata; the pointers of each call are to places of this test that are as long as it
        // says, or null where that is what is tested.
        unsafe {
            let function: unsafe extern "C" fn(Ud $(, $type)*) -> $result = transmute($table[$at]);
            function($table[0] as Ud $(, $argument)*)
        }
    }};
}

impl Loaded {
    fn new(flags: impl Into<Vec<u8>>) -> Loaded {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // Beside the test, where cargo puts what it is linked with.
        let path = std::env::current_exe().unwrap().with_file_name("libfirstbyte_packetdrill.so");
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        let flags = CString::new(flags).unwrap();
        let mut table = [0; POINTERS];
        // SAFETY: the file is the library, whose constructors are Rust's own; it stays loaded.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NODELETE) };
        assert!(!library.is_null(), "{path:?} cannot be loaded");
        // SAFETY: the handle is a library's, the name a C string.
        let init = unsafe { libc::dlsym(library, c"packetdrill_interface_init".as_ptr()) };
        assert!(!init.is_null(), "no packetdrill_interface_init");
        // SAFETY: that name has this type, and the table room for all that it writes.
        unsafe {
            let init: unsafe extern "C" fn(*const c_char, *mut usize) = transmute(init);
            init(flags.as_ptr(), table.as_mut_ptr());
        }
        Loaded { table, _turn: turn }
    }

    fn listening(&self) -> c_int {
        let fd =
            call!(self.table, SOCKET, (c_int, c_int, c_int) -> c_int, libc::AF_INET, libc::SOCK_STREAM, 0);
        assert!(fd >= 0);
        let addr = address(LOCAL, PORT);
        let len = size_of::<sockaddr_in>() as socklen_t;
        assert_eq!(
            call!(self.table, BIND, (c_int, *const sockaddr_in, socklen_t) -> c_int, fd, &raw const addr, len),
            0
        );
        assert_eq!(call!(self.table, LISTEN, (c_int, c_int) -> c_int, fd, 1), 0);
        fd
    }

    /// A packet comes from the peer.
    fn send(&self, flags: Flags, (seq, ack): (u32, SeqNum), payload: &[u8]) {
        let options = TcpOptions { mss: flags.contains(Flags::SYN).then_some(1460), ..TcpOptions::default() };
        let header = TcpHeader {
            seq: PEER_ISN + seq,
            ack,
            flags,
            window: 65535,
            options,
            ..TcpHeader::new(PEER_PORT, PORT)
        };
        let ip = IpHeader::new(REMOTE.into(), LOCAL.into(), protocol::TCP);
        let packet = wire::build_tcp_packet(&ip, &header, payload);
        let sent = call!(self.table, NETDEV_SEND, (*const u8, usize) -> c_int, packet.as_ptr(), packet.len());
        assert_eq!(sent, 0);
    }

    /// The next packet to the peer, its text, and when it left, microseconds.
    fn receive(&self) -> (TcpHeader, Vec<u8>, i64) {
        let (mut buf, mut micros) = ([0_u8; 2048], 0);
        let mut len = buf.len();
        let received = call!(
            self.table,
            NETDEV_RECEIVE,
            (*mut u8, *mut usize, *mut c_longlong) -> c_int,
            buf.as_mut_ptr(),
            &raw mut len,
            &raw mut micros
        );
        assert_eq!(received, 0);
        let (_, header, text) = wire::parse_tcp_packet(&buf[..len]).expect("a valid packet");
        (header, buf[text].to_vec(), micros)
    }

    /// Microseconds.
    fn time(&self) -> i64 {
        // SAFETY: a time of zeroes is one.
        let mut time: timeval = unsafe { zeroed() };
        let told =
            call!(self.table, GETTIMEOFDAY, (*mut timeval, Buffer) -> c_int, &raw mut time, null_mut());
        assert_eq!(told, 0);
        time.tv_sec * 1_000_000 + time.tv_usec
    }

    /// A connection that was accepted, and the number of its first byte to the peer.
    fn connected(&self, listener: c_int) -> (c_int, SeqNum) {
        let began = self.time();
        self.send(Flags::SYN, (0, SeqNum(0)), b"");
        let (syn_ack, _, at) = self.receive();
        assert_eq!((syn_ack.flags, syn_ack.ack), (Flags::SYN | Flags::ACK, PEER_ISN + 1));
        assert!(began <= at && at <= self.time(), "{began} {at}");
        self.send(Flags::ACK, (1, syn_ack.seq + 1), b"");
        let (mut peer, mut len) = (address(Ipv4Addr::UNSPECIFIED, 0), size_of::<sockaddr_in>() as socklen_t);
        let fd = call!(
            self.table,
            ACCEPT,
            (c_int, *mut sockaddr_in, *mut socklen_t) -> c_int,
            listener,
            &raw mut peer,
            &raw mut len
        );
        assert!(fd >= 0 && fd != listener);
        assert_eq!((peer.sin_family, u16::from_be(peer.sin_port)), (libc::AF_INET as u16, PEER_PORT));
        assert_eq!(Ipv4Addr::from(u32::from_be(peer.sin_addr.s_addr)), REMOTE);
        assert_eq!(len as usize, size_of::<sockaddr_in>());
        (fd, syn_ack.seq + 1)
    }

    fn read(&self, fd: c_int, buf: &mut [u8]) -> ssize_t {
        call!(self.table, READ, (c_int, *mut u8, usize) -> ssize_t, fd, buf.as_mut_ptr(), buf.len())
    }

    fn close(&self, fd: c_int) -> c_int {
        call!(self.table, CLOSE, (c_int) -> c_int, fd)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        call!(self.table, FREE, () -> (),);
    }
}

fn address(ip: Ipv4Addr, port: u16) -> sockaddr_in {
    // SAFETY: an address of zeroes is one.
    let mut addr: sockaddr_in = unsafe { zeroed() };
    addr.sin_family = libc::AF_INET as u16;
    (addr.sin_port, addr.sin_addr.s_addr) = (port.to_be(), u32::from(ip).to_be());
    addr
}

fn errno() -> Option<c_int> {
    Error::last_os_error().raw_os_error()
}

#[test]
fn the_table_is_full_and_a_conversation_goes_through_it() {
    let plugin = Loaded::new("local=192.168.0.1,mtu=1500");
    assert!(plugin.table.iter().all(|pointer| *pointer != 0), "a pointer is missing");
    let listener = plugin.listening();
    let (fd, first) = plugin.connected(listener);

    plugin.send(Flags::ACK | Flags::PSH, (1, first), b"hello");
    let mut buf = [0; 16];
    assert_eq!(plugin.read(fd, &mut buf), 5);
    assert_eq!(&buf[..5], b"hello");
    let written = call!(plugin.table, WRITE, (c_int, *const u8, usize) -> ssize_t, fd, b"world!".as_ptr(), 6);
    assert_eq!(written, 6);
    let (ack, text, _) = plugin.receive();
    assert_eq!((ack.ack, text.len()), (PEER_ISN + 6, 0), "it left before the answer was written");
    let (answer, text, _) = plugin.receive();
    assert_eq!((answer.seq, answer.ack, &text[..]), (first, PEER_ISN + 6, &b"world!"[..]));

    // Nobody acknowledges it: time passes until it is retransmitted.
    let before = plugin.time();
    let (again, _, at) = plugin.receive();
    assert_eq!(again.seq, first);
    assert!((before..before + 1_000_000).contains(&at), "{before} {at}");
    plugin.send(Flags::ACK, (6, first + 6), b"");
    assert_eq!(plugin.close(fd), 0);
    let (fin, ..) = plugin.receive();
    assert_eq!((fin.flags.contains(Flags::FIN), fin.seq), (true, first + 6));
    assert_eq!(plugin.close(listener), 0);
}

#[test]
fn a_call_that_waits_sleeps_in_its_own_thread() {
    let plugin = Loaded::new("local=192.168.0.1");
    let listener = plugin.listening();
    let (fd, first) = plugin.connected(listener);
    let (told, tells) = mpsc::channel();
    let other = &plugin;
    let (read, ended) = thread::scope(|scope| {
        let reader = scope.spawn(move || {
            told.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            let mut buf = [0; 16];
            let read = other.read(fd, &mut buf);
            (buf[..read as usize].to_vec(), other.time())
        });
        // packetdrill goes on only when the thread sleeps, and does not look whether it will again.
        let stat = std::path::Path::new("/proc").join(tells.recv().unwrap()).join("stat");
        while !std::fs::read_to_string(&stat).unwrap().rsplit_once(") ").unwrap().1.starts_with('S') {
            thread::yield_now();
        }
        let began = plugin.time();
        assert_eq!(call!(plugin.table, USLEEP, (c_uint) -> c_int, 30_000), 0);
        assert!(!reader.is_finished(), "nothing has come");
        plugin.send(Flags::ACK | Flags::PSH, (1, first), b"late");
        assert_eq!(call!(plugin.table, USLEEP, (c_uint) -> c_int, 70_000), 0);
        let (read, ended) = reader.join().unwrap();
        (read, ended - began)
    });
    assert_eq!(read, b"late");
    assert!((30_000..31_000).contains(&ended), "it ended with what it waited for, not after {ended} us");
}

#[test]
fn what_is_wrong_is_told_by_errno() {
    let plugin = Loaded::new("local=192.168.0.1");
    let listener = plugin.listening();
    let (fd, first) = plugin.connected(listener);
    plugin.send(Flags::ACK | Flags::PSH, (1, first), b"hello");

    assert_eq!((plugin.close(77), errno()), (-1, Some(libc::EBADF)));
    assert_eq!((plugin.read(77, &mut [0; 4]), errno()), (-1, Some(libc::EBADF)));
    let read = call!(plugin.table, READ, (c_int, Buffer, usize) -> ssize_t, fd, null_mut(), 4);
    assert_eq!((read, errno()), (-1, Some(libc::EFAULT)));
    let (addr, len) = (address(LOCAL, PORT + 1), 3);
    let spare =
        call!(plugin.table, SOCKET, (c_int, c_int, c_int) -> c_int, libc::AF_INET, libc::SOCK_STREAM, 0);
    let bound = call!(
        plugin.table,
        BIND,
        (c_int, *const sockaddr_in, socklen_t) -> c_int,
        spare,
        &raw const addr,
        len
    );
    assert_eq!((bound, errno()), (-1, Some(libc::EINVAL)));
    let mut value = 0;
    let mut len = size_of::<c_int>() as socklen_t;
    let got = call!(
        plugin.table,
        GETSOCKOPT,
        (c_int, c_int, c_int, *mut c_int, *mut socklen_t) -> c_int,
        fd,
        libc::IPPROTO_TCP,
        9999,
        &raw mut value,
        &raw mut len
    );
    assert_eq!((got, errno()), (-1, Some(libc::ENOPROTOOPT)));
    // None of that has harmed the connection.
    let mut buf = [0; 16];
    assert_eq!(plugin.read(fd, &mut buf), 5);
}

/// What packetdrill cannot be told of by a call ends the run, and with it packetdrill: so it is a
/// process of its own.
#[test]
fn what_cannot_be_done_ends_the_run() {
    for (number, (flags, command, said)) in [
        (&b"local=192.168.0.1"[..], "ip route replace 192.0.2.1/32 dev tun0 initcwnd 4", None),
        (b"local=192.168.0.1", "ip route del 192.0.2.1/32", None),
        (b"local=192.168.0.1", "ip link set tun0 up", None),
        (b"local=192.168.0.1", "ip route add 192.0.2.1/32 hoplimit 7", Some("`hoplimit` is not one of")),
        (b"local=192.168.0.1", "ip route add 192.0.2.1/32 dev", Some("a value is expected behind `dev`")),
        (b"local=\xff", "", Some("the flags are not UTF-8")),
    ]
    .into_iter()
    .enumerate()
    {
        let scratch = std::env::temp_dir().join(format!("packetdrill-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&scratch).unwrap();
        let run = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_run_of_its_own", "--ignored", "--nocapture"])
            .env("PD_TEST_DIR", &scratch)
            .env("RUN_FLAGS", OsStr::from_bytes(flags))
            .env("RUN_COMMAND", command)
            .output()
            .unwrap();
        std::fs::remove_dir_all(&scratch).unwrap();
        let told = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.success(), said.is_none(), "{command}: {told}");
        assert!(told.contains(said.unwrap_or_default()), "{command}: {told}");
    }
}

#[test]
#[ignore = "what_cannot_be_done_ends_the_run starts it"]
fn a_run_of_its_own() {
    let Some(scratch) = std::env::var_os("PD_TEST_DIR") else { return };
    let plugin = Loaded::new(std::env::var_os("RUN_FLAGS").unwrap().into_encoded_bytes());
    let command = std::env::var("RUN_COMMAND").unwrap();
    std::fs::write(std::path::Path::new(&scratch).join("commands"), command + "\n").unwrap();
    plugin.listening();
}

/// Scripts of one process follow each other in the same image.
#[test]
fn freed_it_can_be_used_again() {
    let mut numbers = Vec::new();
    for _ in 0..3 {
        let plugin = Loaded::new("local=192.168.0.1,seed=5");
        let listener = plugin.listening();
        let (fd, first) = plugin.connected(listener);
        numbers.push((listener, fd, first));
    }
    assert!(numbers.iter().all(|all| *all == numbers[0]), "it begins as it began: {numbers:?}");
}
