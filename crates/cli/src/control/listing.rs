//! Formats sockets as lines of ss(8), or as JSON.
use control::{Listing, Which};
use firstbyte::{ConnectionInfo, Instant, ListenerInfo, SocketInfo, Stack, StackHandle, State};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;

/// Most sockets in one answer: the stack is locked while they are read.
const SOCKETS_MAX: usize = 65_536;
/// Size of a page of `tcp_mem`, bytes.
const PAGE: u64 = 4096;

/// One line of the list.
struct Row {
    state: &'static str,
    queues: (usize, usize),
    local: SocketAddr,
    peer: Option<SocketAddr>,
    info: Option<String>,
}

/// Lists the sockets of a stack.
pub(crate) fn list(listing: &Listing, net: &StackHandle) -> String {
    if listing.which == Which::Summary {
        return net.inspect(|stack| summary(stack, listing.json));
    }
    let (rows, more) = net.inspect_at(|stack, now| rows(listing, stack, now));
    if listing.json { as_json(&rows, more) } else { as_columns(&rows, more) }
}

fn rows(listing: &Listing, stack: &Stack, now: Instant) -> (Vec<Row>, usize) {
    let mut wanted = stack.sockets().filter_map(|socket| row(listing, &socket, now));
    let rows: Vec<Row> = wanted.by_ref().take(SOCKETS_MAX).collect();
    (rows, wanted.count())
}

fn row(listing: &Listing, socket: &SocketInfo, now: Instant) -> Option<Row> {
    let row = match socket {
        SocketInfo::Listener(listener) => of_listener(listener, listing.info),
        SocketInfo::Connection(connection) => of_connection(connection, listing, now),
        SocketInfo::Numbers { state, local, peer, timer } => {
            let info = timer.filter(|_| listing.timers).map(|timer| timer.ss(now).to_string());
            Row { state: state.ss(), queues: (0, 0), local: *local, peer: Some(*peer), info }
        }
    };
    let listens = row.peer.is_none();
    let wanted = match listing.which {
        Which::Listening => listens,
        Which::Connected => !listens && !["SYN-RECV", "TIME-WAIT"].contains(&row.state),
        Which::All | Which::Summary => true,
    };
    let wanted = match listing.state {
        Some(state) => row.state == state.ss(),
        None => wanted,
    };
    let ports = [Some(row.local.port()), row.peer.map(|peer| peer.port())];
    let wanted = wanted && listing.port.is_none_or(|port| ports.contains(&Some(port)));
    let family = if row.local.is_ipv4() { 4 } else { 6 };
    (wanted && listing.family.is_none_or(|only| only == family)).then_some(row)
}

fn of_listener(listener: &ListenerInfo, with_info: bool) -> Row {
    let info = || {
        let ListenerInfo { syn_queue, fast_open_pending, fast_open_max, drops, .. } = listener;
        let mut text = format!(
            "syn_recv:{syn_queue} fo_pending:{fast_open_pending} fo_qlen:{fast_open_max} drops:{}",
            drops.dropped
        );
        // Shows the reasons if there were any drops.
        for (reason, count) in [
            ("accept_queue_full", drops.accept_queue_full),
            ("syn_queue_full", drops.syn_queue_full),
            ("closed_before_accept", drops.closed_before_accept),
            ("reset", drops.reset),
        ] {
            if count > 0 {
                text += &format!(" {reason}:{count}");
            }
        }
        text
    };
    Row {
        state: "LISTEN",
        queues: (listener.accept_queue, listener.backlog as usize),
        local: listener.local,
        peer: None,
        info: with_info.then(info),
    }
}

fn of_connection(connection: &ConnectionInfo, listing: &Listing, now: Instant) -> Row {
    // The words are those of skmem in ss(8). `memory` is the memory of both buffers.
    let memory = listing.memory.then(|| {
        let ConnectionInfo { recv_buffer, send_buffer, send_buffer_used, memory, .. } = connection;
        format!("skmem:(rb{recv_buffer},tb{send_buffer},w{send_buffer_used}) memory:{memory}")
    });
    let timer = connection.timer.filter(|_| listing.timers).map(|timer| timer.ss(now).to_string());
    let info = listing.info.then(|| connection.ss(now).to_string());
    let words: Vec<String> = timer.into_iter().chain(memory).chain(info).collect();
    Row {
        state: connection.state.ss(),
        queues: (connection.recv_queue, connection.send_queue),
        local: connection.local,
        peer: Some(connection.peer),
        info: (!words.is_empty()).then(|| words.join(" ")),
    }
}

fn as_columns(rows: &[Row], more: usize) -> String {
    let head = ["State", "Recv-Q", "Send-Q", "Local Address:Port", "Peer Address:Port"].map(str::to_owned);
    let cells = |row: &Row| {
        let peer = row.peer.map_or_else(
            || if row.local.is_ipv4() { "0.0.0.0:*".to_owned() } else { "[::]:*".to_owned() },
            |peer| peer.to_string(),
        );
        [
            row.state.to_owned(),
            row.queues.0.to_string(),
            row.queues.1.to_string(),
            row.local.to_string(),
            peer,
        ]
    };
    let lines: Vec<[String; 5]> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    let widths: Vec<usize> =
        (0..5).map(|at| lines.iter().map(|line| line[at].len()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (at, [state, received, sent, local, peer]) in lines.iter().enumerate() {
        let line = format!(
            "{state:<0$} {received:>1$} {sent:>2$} {local:>3$} {peer:>4$}",
            widths[0], widths[1], widths[2], widths[3], widths[4]
        );
        text += line.trim_end();
        text.push('\n');
        if let Some(info) = at.checked_sub(1).and_then(|row| rows[row].info.as_ref()) {
            text += &format!("\t {info}\n");
        }
    }
    if more > 0 {
        text += &format!("… and {more} more\n");
    }
    text
}

fn as_json(rows: &[Row], more: usize) -> String {
    let sockets: Vec<Value> = rows
        .iter()
        .map(|row| {
            let mut socket = json!({
                "state": row.state, "recv_q": row.queues.0, "send_q": row.queues.1, "local": row.local.to_string(),
            });
            if let Some(peer) = row.peer {
                socket["peer"] = peer.to_string().into();
            }
            if let Some(info) = &row.info {
                socket["info"] = fields(info).into();
            }
            socket
        })
        .collect();
    format!("{}\n", json!({ "sockets": sockets, "more": more }))
}

/// Splits an info line into JSON fields: `name:value`, `name N` for a rate, and single words.
fn fields(info: &str) -> Map<String, Value> {
    let mut words = info.split(' ').peekable();
    let mut fields = Map::new();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once(':') {
            Some((name, value)) => (name, value.strip_suffix("ms").unwrap_or(value)),
            None => match words.next_if(|next| next.ends_with("bps")) {
                Some(rate) => (word, rate.trim_end_matches("bps")),
                None => {
                    fields.insert(word.to_owned(), true.into());
                    continue;
                }
            },
        };
        let number = value.parse::<u64>().map(Value::from).or_else(|_| value.parse::<f64>().map(Value::from));
        fields.insert(name.to_owned(), number.unwrap_or_else(|_| value.into()));
    }
    fields
}

fn summary(stack: &Stack, as_json: bool) -> String {
    let states = stack.states();
    let count = |state: State| states.of(state);
    let (established, time_wait) =
        (count(State::Established) + count(State::CloseWait), count(State::TimeWait));
    let total = states.total() + states.listening;
    let (held, levels) = (stack.memory(), stack.memory_levels());
    let pressure = match () {
        () if held > levels[2] => "exhausted",
        () if stack.is_under_memory_pressure() => "pressure",
        () => "none",
    };
    let counters = stack.counters();
    let by_state: Vec<(&str, usize)> = std::iter::once(("LISTEN", states.listening))
        .chain(State::ALL.iter().map(|state| (state.ss(), count(*state))))
        .filter(|(_, count)| *count > 0)
        .collect();
    if as_json {
        let states: Map<String, Value> =
            by_state.iter().map(|(name, count)| ((*name).to_owned(), (*count).into())).collect();
        let summary = json!({
            "total": total, "estab": established, "synrecv": count(State::SynReceived), "orphaned": stack.orphans(),
            "timewait": time_wait, "states": states,
            "memory": {
                "bytes": held, "levels": levels, "pressure": pressure, "pressures": counters.memory_pressures,
                "refused": counters.refused_on_memory, "aborted": counters.abort_on_memory,
            },
        });
        return format!("{summary}\n");
    }
    let mut text = format!(
        "Total: {total}\nTCP:   {total} (estab {established}, synrecv {}, orphaned {}, timewait {time_wait})\n\n",
        count(State::SynReceived),
        stack.orphans(),
    );
    for (name, count) in by_state {
        text += &format!("{name:<10} {count}\n");
    }
    text + &format!(
        "\nMemory: {} pages of {} {} {} (tcp_mem), pressure: {pressure}\n        {} times under \
        pressure, {} SYNs refused, {} connections ended for lack of memory\n",
        held.div_ceil(PAGE),
        levels[0] / PAGE,
        levels[1] / PAGE,
        levels[2] / PAGE,
        counters.memory_pressures,
        counters.refused_on_memory,
        counters.abort_on_memory,
    )
}
