use super::super::state::{Next, State};
use super::draw;
use doctor::sample::{Address, Info, Memory, Socket};
use doctor::{Sample, Slowed};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

fn socket(peer: u8, acked: u64) -> Socket {
    Socket {
        state: 1,
        local: Address([10, 0, 0, 1].into()),
        local_port: 443,
        peer: Address([10, 0, 0, peer].into()),
        peer_port: 50_000,
        send_queue: u32::from(peer) * 1000,
        info: Some(Info {
            snd_mss: 1448,
            snd_cwnd: 10 * u32::from(peer),
            rtt: 20_500,
            bytes_acked: acked,
            notsent_bytes: 5000,
            unacked: 10 * u32::from(peer),
            snd_wnd: 1 << 20,
            ..Info::default()
        }),
        memory: Some(Memory { sndbuf: 1 << 20, ..Memory::default() }),
        ..Socket::default()
    }
}

fn sample(uptime: f64, sack: &str, acked: u64) -> Sample {
    Sample {
        kernel: "6.18.0".to_owned(),
        uptime,
        sockets: vec![socket(2, acked), socket(3, 2 * acked)],
        settings: [
            ("net.ipv4.tcp_sack".to_owned(), sack.to_owned()),
            ("net.ipv4.tcp_timestamps".to_owned(), "1".to_owned()),
        ]
        .into(),
        counters: [("TcpExtTCPDelivered".to_owned(), acked)].into(),
        ..Sample::default()
    }
}

fn screen(state: &State) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(frame, state, true)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y: u16| (0..80).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..24).map(line).collect()
}

fn press(state: &mut State, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            'v' => KeyCode::Down,
            key => KeyCode::Char(key),
        };
        assert_eq!(state.key(KeyEvent::new(code, KeyModifiers::NONE)), Next::Stay);
    }
}

fn watched() -> State {
    let mut state = State::new(sample(10.0, "1", 0), false);
    state.take(sample(12.0, "0", 100_000), None);
    state
}

#[test]
fn one_connection_is_singular() {
    for (peers, title) in [(0, "0 connections"), (1, "1 connection"), (2, "2 connections")] {
        let mut last = sample(12.0, "0", 100_000);
        last.sockets.truncate(peers);
        let mut state = State::new(sample(10.0, "1", 0), false);
        state.take(last, None);
        assert_eq!(screen(&state)[0], format!("Linux 6.18.0  {title}  0 critical  1 warning  at 2.0 s"));
    }
}

#[test]
fn connections_findings_and_counters_fit_80_by_24() {
    let state = watched();
    let lines = screen(&state);
    assert_eq!(lines[0], "Linux 6.18.0  2 connections  0 critical  1 warning  at 2.0 s");
    assert_eq!(lines[1], "+ WIN-12 SACK or timestamps off  [namespace]");
    assert_eq!(lines[5], "State       Recv-Q  Send-Q          Rate  rtt ms retr limit Peer");
    // The faster one first.
    assert_eq!(lines[6], "ESTAB            0    3000 800.00 kbit/s    20.5    0 cwnd  10.0.0.3:50000");
    assert_eq!(lines[7], "ESTAB            0    2000 400.00 kbit/s    20.5    0 cwnd  10.0.0.2:50000");
    assert_eq!(lines[18], "TCPDelivered                 50000.0/s");
    assert!(lines[23].ends_with("q quit"), "{}", lines[23]);
    assert!(lines.iter().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_finding_that_is_gone_is_named_a_while() {
    let mut state = watched();
    state.take(sample(14.0, "0", 100_000), None);
    assert_eq!(screen(&state)[1], "  WIN-12 SACK or timestamps off  [namespace]", "it is not new any more");
    state.take(sample(16.0, "1", 100_000), None);
    assert_eq!(screen(&state)[1], "- WIN-12 SACK or timestamps off  [namespace]");
    for at in 0..5 {
        state.take(sample(18.0 + f64::from(at), "1", 100_000), None);
    }
    assert_eq!(screen(&state)[1], "  no findings");
}

#[test]
fn a_pace_held_back_by_the_budget_is_named() {
    let mut state = watched();
    let slowed = Slowed { seconds: 8.0, asked_seconds: 2.0, look_seconds: 0.4, budget_percent: 5.0 };
    state.take(sample(20.0, "1", 100_000), Some(slowed));
    let lines = screen(&state);
    assert_eq!(lines[1], "every 8.0 s, not 2.0 s: one sample takes 0.40 s of a core, and --budget is 5 %");
}

#[test]
fn keys_sort_filter_and_choose() {
    let mut state = watched();
    press(&mut state, "r");
    assert!(screen(&state)[6].ends_with("10.0.0.2:50000"), "the other way round");
    press(&mut state, "r/0.0.2:\n");
    let lines = screen(&state);
    assert!(lines[6].ends_with("10.0.0.2:50000") && lines[7].is_empty(), "{lines:?}");
    assert!(lines[23].starts_with("filter: 0.0.2:"), "{}", lines[23]);
    press(&mut state, "/\x1b");
    assert!(screen(&state)[7].ends_with("10.0.0.2:50000"), "the filter is gone");
    // The selected one stays selected when the order changes.
    press(&mut state, "v");
    let chosen = state.chosen().unwrap().0.peer;
    press(&mut state, "sr");
    assert_eq!(state.chosen().unwrap().0.peer, chosen);
    assert_eq!(state.key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE)), Next::End);
}

#[test]
fn a_connection_is_shown_over_time() {
    let mut state = watched();
    state.take(sample(14.0, "1", 300_000), None);
    press(&mut state, "\n");
    let lines = screen(&state);
    assert_eq!(lines[1], "ESTAB 10.0.0.1:443 -> 10.0.0.2:50000", "the one that was chosen at the beginning");
    assert_eq!(lines[2], "limited by: congestion window");
    assert!(lines[3].contains("mss:1448") && lines[3].contains("cwnd:20"), "{}", lines[3]);
    assert!(
        lines.contains(&"rtt, ms: 20.5".to_owned()) && lines.contains(&"rate: 800.00 kbit/s".to_owned()),
        "{lines:?}"
    );
    assert_eq!(lines[22], "cc", "limited by cwnd in both windows");
    press(&mut state, "\x1bf");
    assert!(
        screen(&state)[1].starts_with("no findings") || screen(&state)[1].contains("WIN"),
        "{:?}",
        screen(&state)
    );
}
