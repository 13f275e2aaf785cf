//! `docs/state-table.md`: every state and every event, by driving the engine.
//! `BLESS=1 cargo test -p firstbyte-proto-tests state_table` rewrites it; a difference is a change
//! of behavior to review.

use crate::peer::*;
use core::time::Duration;
use proto::*;
use std::fmt::Write as _;
use std::path::Path;

/// A stack in some state, and the numbers at which its conversation stands.
struct Scene {
    p: Peer,
    id: Option<ConnId>,
    listener: Option<ListenerId>,
    /// The peer's next number.
    peer_next: u32,
    /// SND.UNA and SND.NXT of the stack.
    una: u32,
    next: u32,
    /// The peer's FIN has come.
    fin: bool,
}

type Make = fn() -> Scene;

const STATES: [(&str, &str, Make); 14] = [
    ("CLOSED", "the port is unused", || Scene::new(Peer::ours())),
    ("LISTEN", "a listener without a client", listening),
    ("SYN-SENT", "the SYN is in flight", syn_sent),
    ("SYN-RECEIVED, a request", "passive open, a request in the SYN queue", requested),
    ("SYN-RECEIVED, Fast Open", "a child with 10 bytes from its SYN, without an answer", fast_opened),
    ("SYN-RECEIVED, simultaneous open", "the SYNs have crossed", crossed),
    ("ESTABLISHED", "nothing in flight", established),
    ("ESTABLISHED, data in flight", "100 bytes are unacknowledged", in_flight),
    ("FIN-WAIT-1", "this end has shut down its direction", fin_wait_1),
    ("FIN-WAIT-2", "this end's FIN is acknowledged", fin_wait_2),
    ("CLOSE-WAIT", "the peer has closed its direction", close_wait),
    ("CLOSING", "the FINs have crossed", closing),
    ("LAST-ACK", "the peer closed first, then this end", last_ack),
    ("TIME-WAIT", "both ends have closed, this end first", time_wait),
];

impl Scene {
    fn new(p: Peer) -> Scene {
        Scene { p, id: None, listener: None, peer_next: 1, una: 1, next: 1, fin: false }
    }

    /// What is queued and told so far belongs to the way here.
    fn ready(mut self) -> Scene {
        self.p.expect_at_most(1);
        self.p.events();
        self
    }

    fn id(&self) -> ConnId {
        self.id.expect("a connection")
    }

    /// Where the stack stands now, in the RFC's words.
    fn state(&self) -> String {
        if let Some(info) = self.id.and_then(|id| self.p.stack.info(id)) {
            let reason = self.p.stack.close_reason(self.id()).filter(|_| info.state == State::Closed);
            return reason.map_or(name(info.state).to_owned(), |reason| format!("CLOSED, {reason:?}"));
        }
        let (connections, requests, time_wait) = self.p.sizes();
        match (connections, requests, time_wait) {
            (0, 0, 0) if self.listener.is_some() => "LISTEN".to_owned(),
            (0, 0, 0) => "CLOSED".to_owned(),
            (0, 1, 0) => "SYN-RECEIVED".to_owned(),
            (0, 0, 1) => "TIME-WAIT".to_owned(),
            (1, 0, 0) if self.listener.is_some() => "ESTABLISHED, to be accepted".to_owned(),
            (1, 0, 0) => "goes on without the application".to_owned(),
            sizes => panic!("{sizes:?}"),
        }
    }
}

fn name(state: State) -> &'static str {
    match state {
        State::SynSent => "SYN-SENT",
        State::SynReceived => "SYN-RECEIVED",
        State::Established => "ESTABLISHED",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::CloseWait => "CLOSE-WAIT",
        State::Closing => "CLOSING",
        State::LastAck => "LAST-ACK",
        State::TimeWait => "TIME-WAIT",
        State::Closed => "CLOSED",
    }
}

fn listening() -> Scene {
    let mut scene = Scene::new(Peer::ours());
    scene.listener = Some(scene.p.listen());
    scene
}

fn syn_sent() -> Scene {
    let mut scene = Scene::new(Peer::ours());
    scene.id = Some(scene.p.connect(ConnectOptions::default()));
    (scene.peer_next, scene.una) = (0, 0);
    scene.ready()
}

fn requested() -> Scene {
    let mut scene = listening();
    scene.p.send("S 0 win 65535 <mss 1000>");
    scene.una = 0;
    scene.ready()
}

fn fast_opened() -> Scene {
    let mut scene = Scene::new(Peer::new(Config::default().synack_hold(Duration::ZERO)));
    let options = ListenOptions { fast_open: Some(1), fast_open_no_cookie: true, ..ListenOptions::default() };
    let listener = scene.p.listen_with(options);
    scene.p.send("S 0:10(10) win 65535 <mss 1000>");
    scene.id = Some(scene.p.accept(listener));
    (scene.peer_next, scene.una) = (11, 0);
    scene.ready()
}

fn crossed() -> Scene {
    let mut scene = syn_sent();
    scene.p.send("S 0 win 65535 <mss 1000>");
    scene.peer_next = 1;
    scene.ready()
}

fn established() -> Scene {
    let mut scene = Scene::new(Peer::ours());
    let listener = scene.p.listen();
    scene.id = Some(scene.p.establish(listener));
    scene.ready()
}

fn in_flight() -> Scene {
    let mut scene = established();
    let id = scene.id();
    scene.p.write(id, &pattern(1, 100));
    scene.next = 101;
    scene.ready()
}

fn fin_wait_1() -> Scene {
    let mut scene = established();
    scene.p.stack.shutdown(scene.p.now, scene.id()).unwrap();
    scene.next = 2;
    scene.ready()
}

fn fin_wait_2() -> Scene {
    let mut scene = fin_wait_1();
    scene.p.send("A 1 ack 2");
    scene.una = 2;
    scene.ready()
}

fn close_wait() -> Scene {
    let mut scene = established();
    scene.p.send("FA 1 ack 1");
    (scene.peer_next, scene.fin) = (2, true);
    scene.p.skip(100);
    scene.ready()
}

fn closing() -> Scene {
    let mut scene = fin_wait_1();
    scene.p.send("FA 1 ack 1");
    (scene.peer_next, scene.fin) = (2, true);
    scene.ready()
}

fn last_ack() -> Scene {
    let mut scene = close_wait();
    scene.p.stack.shutdown(scene.p.now, scene.id()).unwrap();
    scene.next = 2;
    scene.ready()
}

fn time_wait() -> Scene {
    let mut scene = fin_wait_2();
    scene.p.send("FA 1 ack 2");
    let id = scene.id();
    scene.p.close(id);
    (scene.id, scene.peer_next, scene.fin) = (None, 2, true);
    scene.ready()
}

/// What may happen. `None`: not in this state.
enum Event {
    /// A segment of the peer: `{n}` is its next number, `{u}` SND.UNA, `{m}` SND.NXT.
    Segment(&'static str),
    /// Time until something happens, for an hour at most.
    Time,
    /// Time until the end, without a word of the peer.
    Silence,
    Verb(fn(&mut Scene) -> Option<String>),
}

/// Only where a FIN has come.
const FIN_AGAIN: &str = "FA {n-1} ack {m}";

const EVENTS: [(&str, Event); 27] = [
    ("SYN", Event::Segment("S 0 win 65535 <mss 1000>")),
    ("SYN of another connection", Event::Segment("S {n+5000} win 65535 <mss 1000>")),
    ("SYN-ACK", Event::Segment("SA 0 ack {m} win 65535 <mss 1000>")),
    ("SYN-ACK of another number", Event::Segment("SA 0 ack {m+100} win 65535 <mss 1000>")),
    ("ACK of all sent data", Event::Segment("A {n} ack {m}")),
    ("ACK of no new data", Event::Segment("A {n} ack {u}")),
    ("ACK of unsent data", Event::Segment("A {n} ack {m+100}")),
    ("ACK of old data", Event::Segment("A {n} ack {u-100000}")),
    ("data in order", Event::Segment("A {n}:{n+100} ack {u}")),
    ("data behind a gap", Event::Segment("A {n+100}:{n+200} ack {u}")),
    ("data outside the window", Event::Segment("A {n+9999999}:{n+10000000} ack {u}")),
    ("data without ACK", Event::Segment("P {n}:{n+100}")),
    ("FIN", Event::Segment("FA {n} ack {u}")),
    ("FIN with ACK of all sent data", Event::Segment("FA {n} ack {m}")),
    ("retransmitted FIN", Event::Segment(FIN_AGAIN)),
    ("FIN without ACK", Event::Segment("F {n}")),
    ("RST at RCV.NXT", Event::Segment("R {n}")),
    ("RST elsewhere in the window", Event::Segment("R {n+100}")),
    ("RST outside the window", Event::Segment("R {n+9999999}")),
    ("RST with ACK of all sent data", Event::Segment("RA {n} ack {m}")),
    ("the next timeout", Event::Time),
    ("silence", Event::Silence),
    ("`read`", Event::Verb(read)),
    ("`write` of 100 bytes", Event::Verb(write)),
    ("`shutdown`", Event::Verb(shutdown)),
    ("`close`", Event::Verb(close)),
    ("`abort`", Event::Verb(abort)),
];

fn read(scene: &mut Scene) -> Option<String> {
    let id = scene.id?;
    Some(match scene.p.read(id) {
        Ok(data) if data.is_empty() => "end of stream".to_owned(),
        Ok(data) => format!("{} bytes", data.len()),
        Err(error) => format!("{error:?}"),
    })
}

fn write(scene: &mut Scene) -> Option<String> {
    let id = scene.id?;
    let data = pattern(scene.next, 100);
    Some(
        scene
            .p
            .stack
            .write(scene.p.now, id, &data)
            .map_or_else(|error| format!("{error:?}"), |taken| format!("{taken} bytes taken")),
    )
}

fn shutdown(scene: &mut Scene) -> Option<String> {
    let id = scene.id?;
    Some(
        scene.p.stack.shutdown(scene.p.now, id).map_or_else(|error| format!("{error:?}"), |()| String::new()),
    )
}

fn close(scene: &mut Scene) -> Option<String> {
    match (scene.id, scene.listener.take()) {
        (Some(id), _) => scene.p.close(id),
        (None, Some(listener)) => scene.p.stack.close_listener(scene.p.now, listener),
        (None, None) => return None,
    }
    Some(String::new())
}

fn abort(scene: &mut Scene) -> Option<String> {
    let id = scene.id?;
    scene.p.stack.abort(scene.p.now, id);
    Some(String::new())
}

/// One line of the table; `None` where the event cannot be.
fn line(make: Make, event: &Event) -> Option<[String; 3]> {
    let mut scene = make();
    let from = scene.p.now;
    let mut heard = String::new();
    let sent = match event {
        Event::Segment(text) => {
            let text = fill_in(text, &scene)?;
            scene.p.send(&text);
            scene.p.sent_now()
        }
        Event::Time => {
            let sent = next_sent(&mut scene)?;
            vec![format!("after {}: {sent}", span(scene.p.now.since(from)))]
        }
        Event::Silence => {
            let mut count = 0;
            while next_sent(&mut scene).is_some() {
                count += 1;
            }
            let end = run_out(&mut scene, from)?;
            vec![match count {
                0 => format!("nothing in {}", span(end)),
                1 => format!("1 segment in {}", span(end)),
                _ => format!("{count} segments in {}", span(end)),
            }]
        }
        Event::Verb(verb) => {
            heard = verb(&mut scene)?;
            scene.p.sent_now()
        }
    };
    let events = scene.id.map_or(Events::empty(), |id| scene.p.events_of(id));
    let told = events.iter_names().map(|(name, _)| name.to_owned());
    let heard: Vec<String> = Some(heard).filter(|heard| !heard.is_empty()).into_iter().chain(told).collect();
    let sent: Vec<String> = sent.iter().map(|text| shorten(text)).collect();
    Some([scene.state(), sent.join("; "), heard.join(", ")])
}

/// Runs to the next segment that is sent, for at most an hour.
fn next_sent(scene: &mut Scene) -> Option<String> {
    let until = scene.p.now + Duration::from_secs(3600);
    loop {
        if let Some(text) = scene.p.sent_now().into_iter().next() {
            return Some(text);
        }
        let next = scene.p.stack.poll_timeout().filter(|at| *at <= until)?;
        scene.p.now = scene.p.now.max(next);
        scene.p.stack.handle_timeout(scene.p.now);
    }
}

/// How long it took until nothing was due any more; `None` if nothing ever was.
fn run_out(scene: &mut Scene, from: Instant) -> Option<Duration> {
    let taken = scene.p.now.since(from);
    (!taken.is_zero()).then_some(taken)
}

/// Numbers for `{n}` and the like; `None` where the event cannot be.
fn fill_in(text: &str, scene: &Scene) -> Option<String> {
    if text == FIN_AGAIN && !scene.fin {
        return None;
    }
    let mut filled = String::new();
    for (index, part) in text.split(['{', '}']).enumerate() {
        if index % 2 == 0 {
            filled += part;
            continue;
        }
        let base = match &part[..1] {
            "n" => scene.peer_next,
            "u" => scene.una,
            _ => scene.next,
        };
        let offset: i64 = part[1..].parse().unwrap_or(0);
        let _ = write!(filled, "{}", (i64::from(base) + offset) as u32);
    }
    Some(filled)
}

/// Without window, options, and the range of an empty segment.
fn shorten(text: &str) -> String {
    let text = text.split(" win ").next().unwrap_or(text);
    let mut words = text.split(' ').map(|word| match word.split_once(':') {
        Some((from, rest)) if rest.ends_with("(0)") => from.to_owned(),
        _ => word.to_owned(),
    });
    let first = words.next().unwrap_or_default();
    std::iter::once(first).chain(words).collect::<Vec<_>>().join(" ")
}

fn span(time: Duration) -> String {
    if time.as_millis() < 1000 {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

const HEAD: &str = "\
# States and events

This page lists the engine's reaction to each event in each state, with default settings. A test
(`crates/proto/tests/it/state_table.rs`) drives the engine and fails if this page differs.
`BLESS=1 cargo test -p firstbyte-proto-tests state_table` rewrites the page.

Sequence numbers are relative to the initial ones. The peer offers 65535 bytes and an MSS of 1000.
The column *sent* has flags (S F R P A), first and last sequence number with the length of data, and
the acknowledgment. The last column has the result of the call and the events for the application.
\"The next timeout\" runs until something is sent, \"silence\" until nothing is due, without a packet
from the peer. Impossible events are omitted. `crates/proto/src/tcp/state.rs` has the table of
transitions alone.
";

fn table() -> String {
    let mut text = HEAD.to_owned();
    for (state, what, make) in STATES {
        let _ = write!(
            text,
            "\n## {state}\n\nState: {what}.\n\n| event | next state | sent | application |\n|---|---|---|---|\n"
        );
        for (event, act) in &EVENTS {
            if let Some([next, sent, heard]) = line(make, act) {
                let next = if next == state.split(", ").next().unwrap_or_default() { "–" } else { &next };
                let dash = |text: String| if text.is_empty() { "–".to_owned() } else { text };
                let _ = writeln!(text, "| {event} | {next} | {} | {} |", dash(sent), dash(heard));
            }
        }
    }
    text
}

#[test]
fn the_page_is_what_the_engine_does() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/state-table.md");
    let text = table();
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &text).unwrap();
    }
    let page = std::fs::read_to_string(&file).unwrap_or_default();
    for (line, (is, was)) in text.lines().zip(page.lines()).enumerate() {
        assert_eq!(is, was, "docs/state-table.md:{}: left is what the engine does", line + 1);
    }
    assert_eq!(text.lines().count(), page.lines().count(), "docs/state-table.md has lost or gained lines");
}
