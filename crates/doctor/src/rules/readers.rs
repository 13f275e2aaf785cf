//! WIN: programs that do not read, on this host and on the peer.
use super::windows::{Judged, connections};
use super::{Found, Kernels, Rule, Words, holder};
use crate::finding::{Confidence, Scope, Severity};
use crate::limit::Limit;
use crate::sample::Source::{Counters, Sockets};
use crate::sample::state::{CLOSE_WAIT, ESTABLISHED, FIN_WAIT_1, FIN_WAIT_2};
use crate::sample::{Address, Owner, Socket};
use crate::window::Window;
use hashbrown::HashSet;
use std::cmp::Reverse;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "WIN-09",
        symptom: "a program here reads too slowly",
        condition: "TcpExtTCPToZeroWindowAdv or TcpExtTCPWantZeroWindowAdv grows, and a connection that a program still reads from has a receive buffer at least half full of unread data in a sample",
        why: "This host advertised a zero window. The program is the bottleneck, not the network.",
        advice: "Make the program read faster: more threads, less work between two reads. Larger buffers only postpone the problem.",
        settings: &[],
        needs: &[Counters, Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: slow,
    },
    Rule {
        id: "WIN-10",
        symptom: "a peer keeps its window closed",
        condition: "a connection probes a zero window, and its peer is not a program of this host that has stopped reading",
        why: "The program on the peer does not read, or has no memory left. The kernel probes at growing intervals.",
        advice: "Run the doctor on the peer: it names the program. TCP_USER_TIMEOUT limits the wait.",
        settings: &[],
        needs: &[Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            // If the reader is on this host, another rule names its process.
            let here: HashSet<Ends> = unread(window).map(|(socket, _)| socket.key()).collect();
            connections(window, |window, socket| match here.contains(&peer_ends(socket)) {
                true => None,
                false => closed_window(window, socket),
            })
        },
    },
    Rule {
        id: "WIN-17",
        symptom: "a program here has stopped reading",
        condition: "unread data fills at least half of a connection's receive buffer, and nothing was read for at least 1 s",
        why: "The receive window is closed or about to close. The peer waits for this program.",
        advice: "Find out what the process does: a blocked thread, a lock, a full queue behind it (its stack, strace). Larger buffers do not help.",
        settings: &[],
        needs: &[Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[AGE],
        judge: stopped,
    },
];

/// Returns the connections that a process holds and can read from.
fn readable<'a>(window: &Window<'a>) -> impl Iterator<Item = &'a Socket> {
    let states = [ESTABLISHED, FIN_WAIT_1, FIN_WAIT_2, CLOSE_WAIT];
    states.into_iter().flat_map(|state| window.in_state(state)).filter(|socket| socket.inode != 0)
}

fn slow(window: &Window<'_>) -> Vec<Found> {
    let (closed, wanted) = ("TcpExtTCPToZeroWindowAdv", "TcpExtTCPWantZeroWindowAdv");
    let grown = window.grown(closed).saturating_add(window.grown(wanted));
    let fills = |socket: &&Socket| {
        let was_full = || window.earlier(socket).is_some_and(Socket::is_half_full);
        socket.recv_queue > 0 && (socket.is_half_full() || was_full())
    };
    let full = readable(window).filter(fills).filter(|socket| unread_for(window, socket).is_none());
    let Some(socket) = full.max_by_key(|socket| socket.recv_queue).filter(|_| grown > 0) else {
        return Vec::new();
    };
    let mut evidence =
        vec![window.counted(closed), window.counted(wanted), window.shown("Recv-Q", socket.recv_queue)];
    evidence.extend(holder(window, socket));
    vec![Found {
        severity: Severity::Warning,
        scope: Scope::Socket(socket.ends()),
        evidence,
        formula: format!("zero windows +{grown} > 0, and this connection has the most unread data"),
        ..Found::default()
    }]
}

const AGE: Limit = Limit { rule: "WIN-17", name: "age", value: 1.0, unit: "s" };

fn stopped(window: &Window<'_>) -> Vec<Found> {
    let limit = window.limit(&AGE);
    let mut stopped: Vec<(&Socket, f64)> = unread(window).collect();
    stopped.sort_by_key(|(socket, _)| Reverse(socket.recv_queue));
    let found = stopped.into_iter().take(SHOWN).map(|(socket, seconds)| {
        let memory = socket.memory.unwrap_or_default();
        let mut evidence = vec![
            window.shown("Recv-Q", format!("{} bytes", socket.recv_queue)),
            window.shown("rmem_alloc", format!("{} bytes", memory.rmem_alloc)),
            window.shown("rcvbuf", format!("{} bytes", memory.rcvbuf)),
        ];
        evidence.extend(holder(window, socket));
        let named = window.now.owners.get(&socket.inode);
        let symptom = named.map(|Owner { pid, name }| format!("{name} (process {pid}) has stopped reading"));
        Found {
            severity: Severity::Warning,
            scope: Scope::Socket(socket.ends()),
            evidence,
            words: Words { symptom, ..Words::default() },
            formula: format!("{} bytes unread for {seconds:.1} s >= {limit} s", socket.recv_queue),
            ..Found::default()
        }
    });
    found.collect()
}

/// Returns the connections from which nothing was read for too long, with the seconds.
fn unread<'a>(window: &Window<'a>) -> impl Iterator<Item = (&'a Socket, f64)> {
    let limit = window.limit(&AGE);
    let unread = readable(window).filter_map(|socket| Some((socket, unread_for(window, socket)?)));
    unread.filter(move |(_, seconds)| *seconds >= limit)
}

type Ends = (Address, u16, Address, u16);

/// Returns the connection's addresses and ports from the peer's point of view.
fn peer_ends(socket: &Socket) -> Ends {
    (socket.peer, socket.peer_port, socket.local, socket.local_port)
}

/// Most connections named by a finding.
const SHOWN: usize = 10;

/// Returns the seconds without a read, if the receive buffer is at least half full and nothing was
/// read in the window.
fn unread_for(window: &Window<'_>, socket: &Socket) -> Option<f64> {
    let info = socket.info.filter(|_| socket.is_half_full())?;
    // Unless some data was read, the last data has waited since it arrived.
    let since_last = f64::from(info.last_data_recv) / 1000.0;
    if window.before().is_none() {
        return Some(since_last);
    }
    let (queued, received) = match window.earlier(socket) {
        Some(then) => (then.recv_queue, then.info?.bytes_received),
        None => (0, 0),
    };
    let came = info.bytes_received.saturating_sub(received);
    let read = came.saturating_add(queued.into()) > u64::from(socket.recv_queue);
    let is_older = window.earlier(socket).is_some_and(Socket::is_half_full);
    let watched = if is_older { window.seconds() } else { 0.0 };
    (!read).then_some(since_last.max(watched))
}

fn closed_window(window: &Window<'_>, socket: &Socket) -> Judged {
    window.holds_in_each(socket, |socket| socket.probing).then(|| {
        let evidence = vec![
            ("timer".to_owned(), "persist".to_owned()),
            ("Send-Q".to_owned(), socket.send_queue.to_string()),
        ];
        (Severity::Warning, evidence, "the persist timer ran in each sample".to_owned())
    })
}
