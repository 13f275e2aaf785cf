//! `TCP_REPAIR`: every call about it in every state, and connections that are put together and moved by it. The kernel's sockets need root.

use super::cases::{name, to, with_port};
use super::stage::{STATES, Stage, State};
use super::{Calls, Given, Kernel, Ours};
use core::ptr::{null, null_mut};
use libc::c_int;

const REPAIR: c_int = libc::TCP_REPAIR;
const QUEUE: c_int = libc::TCP_REPAIR_QUEUE;
const SEQ: c_int = libc::TCP_QUEUE_SEQ;
const OPTIONS: c_int = libc::TCP_REPAIR_OPTIONS;
const WINDOW: c_int = 29;
const RECEIVE: c_int = 1;
const SEND: c_int = 2;

fn told(given: Given) -> String {
    match given {
        Ok(value) => value.to_string(),
        Err(errno) => format!("{:?}", posix::Errno(errno)),
    }
}

fn set(calls: &dyn Calls, fd: c_int, option: c_int, words: &[i32]) -> Given {
    let len = size_of_val(words) as u32;
    calls.setsockopt(fd, (libc::IPPROTO_TCP, option), words.as_ptr().cast(), len)
}

/// What an option reads, and how.
fn get(calls: &dyn Calls, fd: c_int, option: c_int, room: usize) -> (Given, Vec<i32>) {
    let mut value = [0_i32; 8];
    let mut len = room as u32;
    let given = calls.getsockopt(fd, (libc::IPPROTO_TCP, option), value.as_mut_ptr().cast(), &raw mut len);
    (given, value[..len as usize / 4].to_vec())
}

fn number(calls: &dyn Calls, fd: c_int, option: c_int) -> i32 {
    let (given, value) = get(calls, fd, option, 4);
    assert_eq!(given, Ok(0), "{option}");
    value[0]
}

fn reuse(calls: &dyn Calls, fd: c_int) -> String {
    let (mut value, mut len) = (0_i32, 4);
    let option = (libc::SOL_SOCKET, libc::SO_REUSEADDR);
    format!("{} {value}", told(calls.getsockopt(fd, option, (&raw mut value).cast(), &raw mut len)))
}

fn error(calls: &dyn Calls, fd: c_int) -> String {
    let (mut value, mut len) = (0_i32, 4);
    let option = (libc::SOL_SOCKET, libc::SO_ERROR);
    let given = calls.getsockopt(fd, option, (&raw mut value).cast(), &raw mut len);
    format!("{} {:?}", told(given), posix::Errno(value))
}

fn recv(calls: &dyn Calls, fd: c_int, len: usize, flags: c_int) -> String {
    let mut buf = [0_u8; 64];
    let given = calls.recv(fd, buf.as_mut_ptr().cast(), len, flags);
    let got = given.map_or(0, |got| got.clamp(0, 64)) as usize;
    format!("{} {:?}", told(given), &buf[..got])
}

/// A call about a stage's socket, and how it is told.
type Call = (&'static str, fn(&dyn Calls, &Stage<'_>) -> String);

const CALLS: [Call; 33] = [
    ("off", |k, s| told(set(k, s.fd, REPAIR, &[0]))),
    ("off without a probe", |k, s| told(set(k, s.fd, REPAIR, &[-1]))),
    ("on again", |k, s| told(set(k, s.fd, REPAIR, &[1])) + &format!("{:?}", get(k, s.fd, QUEUE, 4))),
    ("something else", |k, s| told(set(k, s.fd, REPAIR, &[2]))),
    ("is it", |k, s| format!("{:?}", get(k, s.fd, REPAIR, 4))),
    ("the queue", |k, s| format!("{:?}", get(k, s.fd, QUEUE, 4))),
    ("another queue", |k, s| told(set(k, s.fd, QUEUE, &[3])) + &told(set(k, s.fd, QUEUE, &[-1]))),
    // Numbers are drawn: only whether they are told is told.
    ("the number", |k, s| told(get(k, s.fd, SEQ, 4).0)),
    ("another number", |k, s| {
        let given = told(set(k, s.fd, SEQ, &[77]));
        given + &format!("{:?}", get(k, s.fd, SEQ, 4).1 == [77])
    }),
    ("options", |k, s| told(set(k, s.fd, OPTIONS, &[2, 1000, 4, 0]))),
    ("no options", |k, s| told(set(k, s.fd, OPTIONS, &[2]))),
    ("too much", |k, s| told(set(k, s.fd, OPTIONS, &[3, 15]))),
    ("wrong", |k, s| told(set(k, s.fd, OPTIONS, &[8, 1]))),
    ("unknown", |k, s| told(set(k, s.fd, OPTIONS, &[99, 1]))),
    ("options from null", |k, s| told(k.setsockopt(s.fd, (libc::IPPROTO_TCP, OPTIONS), null(), 8))),
    ("the windows", |k, s| told(get(k, s.fd, WINDOW, 20).0)),
    ("the windows into less", |k, s| told(get(k, s.fd, WINDOW, 16).0)),
    ("the windows into more", |k, s| told(get(k, s.fd, WINDOW, 24).0)),
    ("windows as they are", |k, s| {
        let (_, windows) = get(k, s.fd, WINDOW, 20);
        told(set(k, s.fd, WINDOW, &windows))
    }),
    ("short windows", |k, s| told(set(k, s.fd, WINDOW, &[0; 4]))),
    ("long windows", |k, s| told(set(k, s.fd, WINDOW, &[0; 6]))),
    ("less than the window", |k, s| {
        let (_, mut windows) = get(k, s.fd, WINDOW, 20);
        if let [_, wnd, most, ..] = &mut windows[..] {
            (*wnd, *most) = (10, 9);
        }
        told(set(k, s.fd, WINDOW, &windows))
    }),
    ("a timestamp", |k, s| told(set(k, s.fd, libc::TCP_TIMESTAMP, &[1000]))),
    ("the MSS", |k, s| told(get(k, s.fd, libc::TCP_MAXSEG, 4).0)),
    ("is a name shared", |k, s| reuse(k, s.fd)),
    ("send", |k, s| told(k.send(s.fd, b"abc".as_ptr().cast(), 3, 0))),
    ("send nothing", |k, s| told(k.send(s.fd, b"abc".as_ptr().cast(), 0, 0))),
    ("read", |k, s| recv(k, s.fd, 8, 0)),
    ("peek", |k, s| recv(k, s.fd, 8, libc::MSG_PEEK)),
    ("peek into less", |k, s| recv(k, s.fd, 2, libc::MSG_PEEK)),
    ("accept", |k, s| told(k.accept4(s.fd, null_mut(), null_mut(), 0).map(|_| 0))),
    ("disconnect", |k, s| told(k.connect(s.fd, to(&[0; 16]), 16)) + &error(k, s.fd)),
    ("connect where nobody listens", |k, s| {
        let addr = name("127.0.0.1:1");
        told(k.connect(s.fd, to(&addr), 16))
    }),
];

/// Those that are made before each other one.
const MOVES: [&str; 6] =
    ["off", "another number", "options", "send", "disconnect", "connect where nobody listens"];

/// The windows of a connection that was, which the kernel has kept, fit the numbers of the next one by chance.
fn excused(state: State, script: &[Call]) -> bool {
    let (has_been, last) = (format!("{state:?}"), script.last().map_or("", |(what, _)| what));
    ["Disconnected", "Reset", "Refused"].contains(&&*has_been) && last == "windows as they are"
}

/// On a busy machine loopback delivers after the call, and later than a case waits: what differs is played again, so often.
const TRIES: usize = 5;

/// The first line in which the kernel's answers differ from ours each time.
fn difference(
    state: State,
    queue: Option<c_int>,
    script: &[Call],
) -> Option<(usize, Vec<String>, Vec<String>)> {
    let mut found = None;
    for _ in 0..TRIES {
        let own = play(&Ours::new(), state, queue, script);
        let theirs = play(&Kernel, state, queue, script);
        let at = (0..own.len()).find(|at| own[*at] != theirs[*at])?;
        found = Some((at, own, theirs));
        Kernel.deliver();
    }
    found
}

fn play(calls: &dyn Calls, state: State, queue: Option<c_int>, script: &[Call]) -> Vec<String> {
    let stage = Stage::set(calls, libc::AF_INET, state);
    let mut lines = vec![format!("on = {}", told(set(calls, stage.fd, REPAIR, &[1])))];
    if let Some(queue) = queue {
        lines.push(format!("queue {queue} = {}", told(set(calls, stage.fd, QUEUE, &[queue]))));
    }
    for (what, call) in script {
        lines.push(format!("{what} = {}", call(calls, &stage)));
    }
    // No reset ends it: what the peer does later finds nobody.
    lines
}

#[test]
fn every_call_in_repair_answers_as_the_kernels_do_in_every_state() {
    testnet::in_namespace(|| {
        super::leave_descriptors();
        testnet::sysctl("net.ipv4.tcp_fastopen", "1");
        let mut scripts: Vec<Vec<Call>> = CALLS.iter().map(|call| vec![*call]).collect();
        let moves: Vec<&Call> = CALLS.iter().filter(|(what, _)| MOVES.contains(what)).collect();
        assert_eq!(moves.len(), MOVES.len());
        scripts.extend(moves.iter().flat_map(|one| CALLS.iter().map(|other| vec![**one, *other])));
        let mut differing = Vec::new();
        // Of a SYN that waits for its data the kernel repairs what it would have said: nothing that a program could use.
        for state in STATES.into_iter().filter(|state| *state != State::Deferred) {
            for queue in [None, Some(RECEIVE), Some(SEND)] {
                for script in scripts.iter().filter(|script| !excused(state, script)) {
                    if let Some((at, own, theirs)) = difference(state, queue, script) {
                        let before = own[..at].join("; ");
                        differing.push(format!(
                            "{state:?} {queue:?}: {before}; the kernel: {}\n{state:?} {queue:?}: {before};       ours: {}",
                            theirs[at], own[at]
                        ));
                    }
                }
            }
        }
        if let Ok(file) = std::env::var("FIRSTBYTE_DIFFERENCES") {
            std::fs::write(file, differing.join("\n")).unwrap();
        }
        let some = differing[..differing.len().min(60)].join("\n");
        assert!(differing.is_empty(), "{} differ:\n{some}", differing.len());
    });
}

fn fresh(calls: &dyn Calls) -> c_int {
    calls.socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0).unwrap() as c_int
}

fn bound(calls: &dyn Calls, fd: c_int, of_peer: bool) -> Vec<u8> {
    let (mut name, mut len) = (vec![0_u8; 16], 16);
    let place = name.as_mut_ptr().cast();
    let given = if of_peer {
        calls.getpeername(fd, place, &raw mut len)
    } else {
        calls.getsockname(fd, place, &raw mut len)
    };
    assert_eq!(given, Ok(0));
    name
}

/// What one needs to know of a connection to go on with it elsewhere, as a checkpointing program reads it.
struct Dumped {
    names: [Vec<u8>; 2],
    seqs: [i32; 2],
    queues: [Vec<u8>; 2],
    windows: Vec<i32>,
    mss: i32,
    timestamp: i32,
    info: [u8; 8],
}

fn queued(calls: &dyn Calls, fd: c_int) -> Vec<u8> {
    let mut buf = vec![0_u8; 100_000];
    match calls.recv(fd, buf.as_mut_ptr().cast(), buf.len(), libc::MSG_PEEK | libc::MSG_DONTWAIT) {
        Ok(got) => buf.truncate(got as usize),
        Err(errno) => {
            assert_eq!(errno, libc::EAGAIN);
            buf.clear();
        }
    }
    buf
}

/// Reads a connection out of its socket, which is closed without a packet.
fn dump(calls: &dyn Calls, fd: c_int) -> Dumped {
    set(calls, fd, REPAIR, &[1]).unwrap();
    let of_queue = |queue| {
        set(calls, fd, QUEUE, &[queue]).unwrap();
        (number(calls, fd, SEQ), queued(calls, fd))
    };
    let ((rcv, unread), (snd, unacknowledged)) = (of_queue(RECEIVE), of_queue(SEND));
    let mut info = [0_u8; 8];
    let mut len = 8;
    let option = (libc::IPPROTO_TCP, libc::TCP_INFO);
    calls.getsockopt(fd, option, info.as_mut_ptr().cast(), &raw mut len).unwrap();
    let dumped = Dumped {
        names: [bound(calls, fd, false), bound(calls, fd, true)],
        seqs: [rcv, snd],
        queues: [unread, unacknowledged],
        windows: get(calls, fd, WINDOW, 20).1,
        mss: number(calls, fd, libc::TCP_MAXSEG),
        timestamp: number(calls, fd, libc::TCP_TIMESTAMP),
        info,
    };
    assert_eq!(calls.close(fd), Ok(0));
    dumped
}

/// Puts it into a new socket.
fn restore(calls: &dyn Calls, dumped: &Dumped) -> c_int {
    let fd = fresh(calls);
    set(calls, fd, REPAIR, &[1]).unwrap();
    assert_eq!(calls.bind(fd, to(&dumped.names[0]), 16), Ok(0));
    for (queue, at) in [(RECEIVE, 0), (SEND, 1)] {
        set(calls, fd, QUEUE, &[queue]).unwrap();
        set(calls, fd, SEQ, &[dumped.seqs[at].wrapping_sub(dumped.queues[at].len() as i32)]).unwrap();
    }
    assert_eq!(calls.connect(fd, to(&dumped.names[1]), 16), Ok(0));
    let (bits, shifts) = (dumped.info[5], i32::from(dumped.info[6]));
    let mut options = vec![2, dumped.mss];
    if bits & 4 != 0 {
        options.extend([3, shifts & 15 | (shifts >> 4) << 16]);
    }
    if bits & 2 != 0 {
        options.extend([4, 0]);
    }
    if bits & 1 != 0 {
        options.extend([8, 0]);
    }
    set(calls, fd, OPTIONS, &options).unwrap();
    set(calls, fd, libc::TCP_TIMESTAMP, &[dumped.timestamp]).unwrap();
    for (queue, at) in [(RECEIVE, 0), (SEND, 1)] {
        set(calls, fd, QUEUE, &[queue]).unwrap();
        let data = &dumped.queues[at];
        assert_eq!(calls.send(fd, data.as_ptr().cast(), data.len(), 0), Ok(data.len() as i64));
    }
    set(calls, fd, WINDOW, &dumped.windows).unwrap();
    set(calls, fd, REPAIR, &[0]).unwrap();
    calls.deliver();
    fd
}

/// Both ends of a connection, of which the first is the client's.
fn connected(calls: &dyn Calls) -> (c_int, c_int) {
    let listener = fresh(calls);
    assert_eq!(calls.bind(listener, to(&name("127.0.0.1:0")), 16), Ok(0));
    assert_eq!(calls.listen(listener, 1), Ok(0));
    let addr = bound(calls, listener, false);
    let client = fresh(calls);
    assert_eq!(calls.connect(client, to(&addr), 16), Err(libc::EINPROGRESS));
    let accepted = (0..TRIES).find_map(|_| {
        calls.deliver();
        calls.accept4(listener, null_mut(), null_mut(), libc::SOCK_NONBLOCK).ok()
    });
    let server = accepted.expect("a client has come") as c_int;
    assert_eq!(calls.close(listener), Ok(0));
    (client, server)
}

/// A connection is read out of its socket and put into another one, at either end, with something unread: the peer notices nothing.
fn moved(calls: &dyn Calls) -> Vec<String> {
    let mut lines = Vec::new();
    for of_server in [false, true] {
        let (client, server) = connected(calls);
        let (own, peer) = if of_server { (server, client) } else { (client, server) };
        let send = |fd: c_int, text: &str| calls.send(fd, text.as_ptr().cast(), text.len(), 0);
        lines.push(format!("{:?}", (send(peer, "unread"), send(own, "before"))));
        calls.deliver();
        let dumped = dump(calls, own);
        lines.push(format!("{:?} {} {:?}", dumped.queues, dumped.mss, &dumped.info[5..7]));
        let snd_wnd = dumped.windows[1];
        lines.push(format!("{}", dumped.windows[2] >= snd_wnd && dumped.windows[3] > 0));
        let own = restore(calls, &dumped);
        lines.push(format!("{:?}", [recv(calls, own, 64, 0), recv(calls, peer, 64, 0)]));
        lines.push(format!("{:?}", (send(own, "after"), send(peer, "too"))));
        calls.deliver();
        lines.push(format!("{:?}", [recv(calls, own, 64, 0), recv(calls, peer, 64, 0)]));
        lines.push(format!("{} {:?} {}", reuse(calls, own), get(calls, own, REPAIR, 4), error(calls, peer)));
        assert_eq!(calls.close(own), Ok(0));
        calls.deliver();
        lines.push(recv(calls, peer, 64, 0));
        assert_eq!(calls.close(peer), Ok(0));
        calls.deliver();
    }
    lines
}

/// Two sockets are put together to be each other's peers, with text that both believe to be on its way: nobody has sent a SYN.
fn made_by_hand(calls: &dyn Calls) -> Vec<String> {
    let ends: Vec<c_int> = [(40_001, 1000, 5000), (40_002, 5000, 1000)]
        .into_iter()
        .map(|(port, snd, rcv)| {
            let fd = fresh(calls);
            set(calls, fd, REPAIR, &[1]).unwrap();
            calls.bind(fd, to(&with_port(name("127.0.0.1:0"), u16::to_be_bytes(port))), 16).unwrap();
            for (queue, seq) in [(SEND, snd), (RECEIVE, rcv)] {
                set(calls, fd, QUEUE, &[queue]).unwrap();
                set(calls, fd, SEQ, &[seq]).unwrap();
            }
            fd
        })
        .collect();
    let mut lines = Vec::new();
    for (fd, peer) in [(ends[0], ends[1]), (ends[1], ends[0])] {
        lines.push(told(calls.connect(fd, to(&bound(calls, peer, false)), 16)));
        lines.push(format!("{:?}", get(calls, fd, WINDOW, 20).1[1..3].to_vec()));
        lines.push(format!("{:?}", number(calls, fd, libc::TCP_MAXSEG)));
        lines.push(told(set(calls, fd, OPTIONS, &[2, 1460, 3, 7 | 7 << 16, 4, 0, 8, 0])));
        lines.push(format!("{:?}", number(calls, fd, libc::TCP_MAXSEG)));
        let [rcv_nxt, _] = [RECEIVE, SEND].map(|queue| {
            set(calls, fd, QUEUE, &[queue]).unwrap();
            number(calls, fd, SEQ)
        });
        let windows = [rcv_nxt - 1, 50_000, 60_000, 40_000, rcv_nxt];
        lines.push(told(set(calls, fd, WINDOW, &windows)));
        lines.push(format!("{:?}", get(calls, fd, WINDOW, 20)));
        // Read by the other end's kernel, too, by now; unread by its application.
        for (queue, text) in [(SEND, "abc"), (RECEIVE, "abc")] {
            set(calls, fd, QUEUE, &[queue]).unwrap();
            lines.push(told(calls.send(fd, text.as_ptr().cast(), 3, 0)));
            lines.push(format!("{} {}", number(calls, fd, SEQ), recv(calls, fd, 64, libc::MSG_PEEK)));
        }
        lines.push(told(set(calls, fd, OPTIONS, &[2, 1000])));
    }
    for fd in &ends {
        lines.push(told(set(calls, *fd, REPAIR, &[0])));
    }
    calls.deliver();
    lines.extend(ends.iter().map(|fd| recv(calls, *fd, 64, 0)));
    lines.extend(ends.iter().map(|fd| told(calls.send(*fd, b"more".as_ptr().cast(), 4, 0))));
    calls.deliver();
    lines.extend(ends.iter().map(|fd| recv(calls, *fd, 64, 0)));
    ends.into_iter().for_each(|fd| assert_eq!(calls.close(fd), Ok(0)));
    lines
}

#[test]
fn connections_are_moved_as_the_kernels_are() {
    testnet::in_namespace(|| {
        super::leave_descriptors();
        // As it is on a machine of middling size, and ours.
        testnet::sysctl("net.ipv4.tcp_rmem", "4096 131072 33554432");
        for case in [moved, made_by_hand] {
            let own = case(&Ours::new());
            let theirs = (1..TRIES).map(|_| case(&Kernel)).find(|theirs| *theirs == own);
            assert_eq!(theirs.unwrap_or_else(|| case(&Kernel)), own, "the kernel's, and ours");
        }
    });
}
