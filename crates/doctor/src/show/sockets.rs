//! Prints sockets like ss(8).
use super::limits::{self, Looks};
use super::{Figure, Word, columns, glossary, line, object};
use crate::escape;
use crate::finding::Finding;
use crate::sample::{Info, Memory, Sample, Socket, state};
use crate::sources::Holder;
use crate::window::Window;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Selects sockets and details.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The states.
    pub which: Which,
    /// 4 or 6: only this version of IP.
    pub family: Option<u8>,
    /// Only sockets with this port at either end.
    pub port: Option<u16>,
    /// Includes the state of TCP.
    pub info: bool,
    /// Includes memory.
    pub memory: bool,
    /// Includes timers.
    pub timers: bool,
    /// Includes inode and user.
    pub extended: bool,
    /// Samples that show the limit of each connection. `None`: limits are not shown.
    pub limits: Option<Looks>,
    /// Processes of each socket, by its inode. `None`: not shown.
    pub holders: Option<BTreeMap<u32, Vec<Holder>>>,
}

/// The states to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// All except listeners, half-open connections and TIME-WAIT.
    #[default]
    Connected,
    /// Listeners.
    Listening,
    /// All states.
    All,
    /// One state, by its number.
    State(u8),
}

impl View {
    fn shows(&self, socket: &Socket) -> bool {
        let by_state = match self.which {
            Which::All => true,
            Which::Listening => socket.state == state::LISTEN,
            Which::State(only) => socket.state == only,
            Which::Connected => ![state::LISTEN, state::SYN_RECEIVED, NEW_SYN_RECEIVED, state::TIME_WAIT]
                .contains(&socket.state),
        };
        let family = if socket.local.0.is_ipv4() { 4 } else { 6 };
        by_state
            && self.family.is_none_or(|only| only == family)
            && self.port.is_none_or(|port| [socket.local_port, socket.peer_port].contains(&port))
    }
}

/// Returns sockets as ss(8) prints them: one line each, and requested details below it.
pub fn text(view: &View, window: &Window<'_>) -> String {
    let shown: Vec<&Socket> = window.now.sockets.iter().filter(|socket| view.shows(socket)).collect();
    let head = ["State", "Recv-Q", "Send-Q", "Local Address:Port", "Peer Address:Port"].map(str::to_owned);
    let rows: Vec<[String; 5]> =
        std::iter::once(head).chain(shown.iter().map(|socket| row(socket))).collect();
    let table = columns(&rows, [false, true, true, true, true]);
    let mut lines = table.lines();
    let mut text = lines.next().unwrap_or_default().to_owned() + "\n";
    for (line, socket) in lines.zip(shown) {
        text += line;
        text.push('\n');
        for more in below(view, socket, window) {
            text += &format!("\t {more}\n");
        }
    }
    text
}

fn row(socket: &Socket) -> [String; 5] {
    let peer = match socket.state {
        state::LISTEN => {
            if socket.peer.0.is_ipv4() && socket.local.0.is_ipv4() { "0.0.0.0:*" } else { "[::]:*" }
                .to_owned()
        }
        _ => SocketAddr::new(socket.peer.0, socket.peer_port).to_string(),
    };
    let local = SocketAddr::new(socket.local.0, socket.local_port).to_string();
    [
        state_name(socket.state).to_owned(),
        socket.recv_queue.to_string(),
        socket.send_queue.to_string(),
        local,
        peer,
    ]
}

fn below(view: &View, socket: &Socket, window: &Window<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut first = Vec::new();
    first.extend(users(view, socket));
    if view.timers {
        first.extend(timer(socket));
    }
    if view.extended {
        first.push(Word { name: "uid", figure: Figure::Count(socket.uid.into()) });
        first.push(Word { name: "ino", figure: Figure::Count(socket.inode.into()) });
    }
    if view.memory {
        first.extend(socket.memory.map(|memory| memory_word(&memory)));
    }
    if view.info {
        first.extend(words(socket));
    }
    if !first.is_empty() {
        lines.push(line(&first));
    }
    if let Some(looks) = &view.limits {
        lines.extend(limits::of(socket, window, looks).map(|limits| limits.to_string()));
    }
    lines
}

/// Returns the processes of a socket in the format of ss(8).
fn users(view: &View, socket: &Socket) -> Option<Word> {
    let holders = view.holders.as_ref()?.get(&socket.inode)?;
    // A process can choose any name.
    let each = holders.iter().map(|Holder { pid, name, descriptor }| {
        format!("(\"{}\",pid={pid},fd={descriptor})", escape::line(name))
    });
    let text = format!("({})", each.collect::<Vec<_>>().join(","));
    Some(Word { name: "users", figure: Figure::Text(text) })
}

/// Returns the names of the values that [`text`] shows, each once.
pub fn names(view: &View, sample: &Sample) -> Vec<&'static str> {
    let mut names = vec!["Recv-Q", "Send-Q"];
    let mut add = |name| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    for socket in sample.sockets.iter().filter(|socket| view.shows(socket)) {
        if view.timers && timer(socket).is_some() {
            add("timer");
        }
        if view.memory && socket.memory.is_some() {
            add("skmem");
        }
        if view.info {
            words(socket).iter().for_each(|word| add(word.name));
        }
    }
    names
}

/// Explains each value that is shown, and names its rules that fired.
pub fn explained(view: &View, sample: &Sample, findings: &[Finding]) -> String {
    glossary::explain(&glossary::SOCKETS, names(view, sample).into_iter(), findings)
}

/// Returns the sockets as JSON. Times are in milliseconds, rates in bits per second.
pub fn json(view: &View, window: &Window<'_>) -> Value {
    let shown = window.now.sockets.iter().filter(|socket| view.shows(socket));
    let sockets: Vec<Value> = shown.map(|socket| one(view, socket, window)).collect();
    json!({ "sockets": sockets })
}

fn one(view: &View, socket: &Socket, window: &Window<'_>) -> Value {
    let local = SocketAddr::new(socket.local.0, socket.local_port).to_string();
    let mut object_ = Map::from_iter([
        ("state".to_owned(), state_name(socket.state).into()),
        ("recv_q".to_owned(), socket.recv_queue.into()),
        ("send_q".to_owned(), socket.send_queue.into()),
        ("local".to_owned(), local.into()),
    ]);
    let mut add = |name: &str, value: Value| drop(object_.insert(name.to_owned(), value));
    if socket.state != state::LISTEN {
        add("peer", SocketAddr::new(socket.peer.0, socket.peer_port).to_string().into());
    }
    if view.timers && timer(socket).is_some() {
        let (name, expires) = (timer_name(socket), socket.expires);
        add("timer", json!({ "name": name, "expires_ms": expires, "retransmits": socket.retransmits }));
    }
    if view.extended {
        add("uid", socket.uid.into());
        add("inode", socket.inode.into());
    }
    if let Some(holders) = &view.holders {
        let each = holders.get(&socket.inode).into_iter().flatten();
        let each =
            each.map(|holder| json!({ "pid": holder.pid, "name": holder.name, "fd": holder.descriptor }));
        add("users", each.collect::<Vec<_>>().into());
    }
    if let Some(memory) = socket.memory.filter(|_| view.memory) {
        add("skmem", serde_json::to_value(memory).unwrap_or_default());
    }
    if view.info {
        add("info", object(&words(socket)).into());
    }
    if let Some(limits) = view.limits.as_ref().and_then(|looks| limits::of(socket, window, looks)) {
        add("limits", limits.json());
    }
    object_.into()
}

/// Returns the number of sockets in each state.
pub fn summary(sample: &Sample, as_json: bool) -> String {
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for socket in &sample.sockets {
        *states.entry(state_name(socket.state)).or_default() += 1;
    }
    let gauge = |name: &str| sample.sockstat.get(name).copied().unwrap_or(0);
    let (total, orphans, pages) = (sample.sockets.len(), gauge("TCP orphan"), gauge("TCP mem"));
    if as_json {
        let memory = json!({ "pages": pages, "tcp_mem": sample.setting("net.ipv4.tcp_mem") });
        return format!(
            "{}\n",
            json!({ "total": total, "states": states, "orphaned": orphans, "memory": memory })
        );
    }
    let count = |name: &str| states.get(name).copied().unwrap_or(0);
    let mut text = format!(
        "Total: {total}\nTCP:   {total} (estab {}, synrecv {}, orphaned {orphans}, timewait {})\n\n",
        count("ESTAB"),
        count("SYN-RECV"),
        count("TIME-WAIT"),
    );
    for (name, count) in &states {
        text += &format!("{name:<10} {count}\n");
    }
    let levels = sample
        .setting("net.ipv4.tcp_mem")
        .map_or("unknown here".to_owned(), |levels| levels.split_whitespace().collect::<Vec<_>>().join(" "));
    text + &format!("\nMemory: {pages} pages, of the whole host; tcp_mem: {levels}\n")
}

/// Returns the name that ss(8) uses for a state.
pub fn state_name(number: u8) -> &'static str {
    match number {
        1 => "ESTAB",
        2 => "SYN-SENT",
        3 | NEW_SYN_RECEIVED => "SYN-RECV",
        4 => "FIN-WAIT-1",
        5 => "FIN-WAIT-2",
        6 => "TIME-WAIT",
        7 => "UNCONN",
        8 => "CLOSE-WAIT",
        9 => "LAST-ACK",
        10 => "LISTEN",
        11 => "CLOSING",
        _ => "UNKNOWN",
    }
}

/// Returns the state with this name, ignoring case. Accepts `established` and `syn-recv` as ss(8)
/// does.
pub fn state_number(name: &str) -> Option<u8> {
    let wanted = match name.to_ascii_uppercase().as_str() {
        "ESTABLISHED" => "ESTAB".to_owned(),
        "LISTENING" => "LISTEN".to_owned(),
        "CLOSED" => "UNCONN".to_owned(),
        other => other.to_owned(),
    };
    (1..=11).find(|number| state_name(*number) == wanted)
}

/// Requests whose handshake is not finished (TCP_NEW_SYN_RECV).
const NEW_SYN_RECEIVED: u8 = 12;

fn timer_name(socket: &Socket) -> &'static str {
    match () {
        () if socket.state == state::TIME_WAIT => "timewait",
        () if socket.probing => "persist",
        () if socket.keepalive => "keepalive",
        () => "on",
    }
}

/// Formats the timer. ss(8) writes 1.536 s as "1.536ms"; the unit here is right.
fn timer(socket: &Socket) -> Option<Word> {
    let name = timer_name(socket);
    let left = match socket.expires {
        _ if socket.state == state::TIME_WAIT => {
            return socket.timed.then(|| text_word("timer", "(timewait)"));
        }
        left @ 60_000.. => format!("{}min{}sec", left / 60_000, left % 60_000 / 1000),
        left @ 1000.. => format!("{}sec", super::Millis(left.into())),
        left => format!("{left}ms"),
    };
    socket.timed.then(|| text_word("timer", format!("({name},{left},{})", socket.retransmits)))
}

fn text_word(name: &'static str, text: impl Into<String>) -> Word {
    Word { name, figure: Figure::Text(text.into()) }
}

fn memory_word(memory: &Memory) -> Word {
    let Memory { rmem_alloc, rcvbuf, wmem_alloc, sndbuf, fwd_alloc, wmem_queued, optmem, backlog, drops } =
        memory;
    let text = format!(
        "(r{rmem_alloc},rb{rcvbuf},t{wmem_alloc},tb{sndbuf},f{fwd_alloc},w{wmem_queued},o{optmem},bl{backlog},d{drops})"
    );
    text_word("skmem", text)
}

/// Returns the state of TCP of a socket, in the order of ss(8). Like ss(8) it leaves out values
/// that are zero or unknown.
pub fn words(socket: &Socket) -> Vec<Word> {
    let Some(info) = &socket.info else { return Vec::new() };
    let mut words = Words(Vec::new());
    words.agreed(info, socket);
    if socket.state == state::LISTEN {
        // For a listener the other fields have another meaning: its queues, which its line shows.
        words.count("cwnd", info.snd_cwnd);
        return words.0;
    }
    words.path(info);
    words.volumes(info);
    words.rates(info);
    words.repairs(info);
    words.receiver(info);
    words.0
}

struct Words(Vec<Word>);

impl Words {
    fn flag(&mut self, name: &'static str, holds: bool) {
        self.0.extend(holds.then_some(Word { name, figure: Figure::Flag }));
    }

    fn count(&mut self, name: &'static str, value: impl Into<u64>) {
        let value = value.into();
        self.0.extend((value > 0).then_some(Word { name, figure: Figure::Count(value) }));
    }

    fn micros(&mut self, name: &'static str, value: impl Into<u64>) {
        let value = value.into();
        self.0.extend((value > 0).then_some(Word { name, figure: Figure::Micros(value) }));
    }

    fn rate(&mut self, name: &'static str, bits: u64) {
        self.0.extend((bits > 0).then_some(Word { name, figure: Figure::Rate(bits) }));
    }

    fn agreed(&mut self, info: &Info, socket: &Socket) {
        for (bit, name) in [(1, "ts"), (2, "sack"), (8, "ecn"), (16, "ecnseen"), (32, "fastopen")] {
            self.flag(name, info.options & bit != 0);
        }
        if !socket.congestion.is_empty() {
            self.0.push(text_word("congestion", socket.congestion.to_string()));
        }
        if info.options & 4 != 0 {
            self.0.push(text_word("wscale", format!("{},{}", info.snd_wscale, info.rcv_wscale)));
        }
    }

    fn path(&mut self, info: &Info) {
        self.micros("rto", info.rto);
        self.count("backoff", info.backoff);
        if info.rtt > 0 {
            let text = format!("{}/{}", super::Millis(info.rtt.into()), super::Millis(info.rttvar.into()));
            self.0.push(text_word("rtt", text));
        }
        self.micros("ato", info.ato);
        for (name, value) in [
            ("mss", info.snd_mss),
            ("pmtu", info.pmtu),
            ("rcvmss", info.rcv_mss),
            ("advmss", info.advmss),
            ("cwnd", info.snd_cwnd),
        ] {
            self.count(name, value);
        }
        // TCP_INFINITE_SSTHRESH: not set yet.
        self.count("ssthresh", Some(info.snd_ssthresh).filter(|value| *value < 0xffff).unwrap_or(0));
    }

    fn volumes(&mut self, info: &Info) {
        for (name, value) in [
            ("bytes_sent", info.bytes_sent),
            ("bytes_retrans", info.bytes_retrans),
            ("bytes_acked", info.bytes_acked),
            ("bytes_received", info.bytes_received),
            ("segs_out", info.segs_out.into()),
            ("segs_in", info.segs_in.into()),
            ("data_segs_out", info.data_segs_out.into()),
            ("data_segs_in", info.data_segs_in.into()),
        ] {
            self.count(name, value);
        }
    }

    fn rates(&mut self, info: &Info) {
        if let Some(rate) = limits::by_window(info, f64::from(info.snd_cwnd) * f64::from(info.snd_mss)) {
            self.rate("send", (rate * 8.0).round() as u64);
        }
        self.count("lastsnd", info.last_data_sent);
        self.count("lastrcv", info.last_data_recv);
        self.count("lastack", info.last_ack_recv);
        let pacing = Some(info.pacing_rate).filter(|rate| *rate < u64::MAX).unwrap_or(0);
        self.rate("pacing_rate", pacing.saturating_mul(8));
        self.rate("delivery_rate", info.delivery_rate.saturating_mul(8));
        self.count("delivered", info.delivered);
        self.flag("app_limited", info.app_limited);
        let busy = info.busy_time;
        if busy > 0 {
            self.0.push(text_word("busy", format!("{}ms", busy / 1000)));
        }
        for (name, time) in [("rwnd_limited", info.rwnd_limited), ("sndbuf_limited", info.sndbuf_limited)] {
            if time > 0 {
                let share = time as f64 * 100.0 / busy.max(1) as f64;
                self.0.push(text_word(name, format!("{}ms({share:.1}%)", time / 1000)));
            }
        }
    }

    fn repairs(&mut self, info: &Info) {
        self.count("unacked", info.unacked);
        if info.retrans > 0 || info.total_retrans > 0 {
            self.0.push(text_word("retrans", format!("{}/{}", info.retrans, info.total_retrans)));
        }
        self.count("lost", info.lost);
        self.count("sacked", info.sacked);
        self.count("dsack_dups", info.dsack_dups);
        self.count("reordering", Some(info.reordering).filter(|value| *value != 3).unwrap_or(0));
        self.count("reord_seen", info.reord_seen);
        let fail = match info.fastopen_client_fail {
            0 => return,
            1 => "cookie",
            2 => "data",
            _ => "syn",
        };
        self.0.push(text_word("fo_fail", fail));
    }

    fn receiver(&mut self, info: &Info) {
        self.micros("rcv_rtt", info.rcv_rtt);
        self.count("rcv_space", info.rcv_space);
        self.count("rcv_ssthresh", info.rcv_ssthresh);
        self.count("notsent", info.notsent_bytes);
        self.micros("minrtt", Some(info.min_rtt).filter(|time| *time < u32::MAX).unwrap_or(0));
        self.count("rcv_ooopack", info.rcv_ooopack);
        self.count("snd_wnd", info.snd_wnd);
    }
}
