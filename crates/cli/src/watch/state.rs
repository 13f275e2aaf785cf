//! The state of the display, and the keys that change it.
use doctor::sample::{Address, Socket, state};
use doctor::show::limits::{self, By, Looks};
use doctor::show::sockets::state_name;
use doctor::{Finding, Report, Sample, Severity, Slowed, Window};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// Next step of the program after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Continue.
    Stay,
    /// Take the next sample now.
    Step,
    /// Quit.
    End,
}

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Connections,
    Detail,
    Findings,
    Counters,
}

/// Column that sorts the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Rate,
    SendQueue,
    ReceiveQueue,
    RoundTrip,
    Retransmitted,
    Peer,
}

impl Sort {
    const ALL: [Sort; 6] =
        [Sort::Rate, Sort::SendQueue, Sort::ReceiveQueue, Sort::RoundTrip, Sort::Retransmitted, Sort::Peer];
}

type Key = (Address, u16, Address, u16);

/// A sample of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) cwnd: u32,
    pub(super) rtt: u32,
    pub(super) rate: f64,
    pub(super) by: Option<By>,
}

/// A connection in the list.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) key: Key,
    pub(super) state: &'static str,
    pub(super) queues: (u32, u32),
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    /// Bytes per second, both directions.
    pub(super) rate: f64,
    pub(super) rtt: u32,
    pub(super) cwnd: u32,
    pub(super) retransmitted: u32,
    pub(super) by: Option<By>,
}

/// The state of the display.
pub(super) struct State {
    before: Option<Sample>,
    pub(super) now: Sample,
    looks: Looks,
    pub(super) report: Report,
    /// Cleared findings, and the number of windows for which they stay listed.
    pub(super) gone: Vec<(Finding, u8)>,
    /// The window in which each finding appeared.
    pub(super) new: Vec<(String, u64)>,
    pub(super) rows: Vec<Row>,
    history: HashMap<Key, VecDeque<Moment>>,
    pub(super) page: Page,
    pub(super) sort: Sort,
    reversed: bool,
    pub(super) filter: String,
    pub(super) is_typing: bool,
    pub(super) selected: usize,
    paused: bool,
    pub(super) replayed: bool,
    pub(super) windows: u64,
    /// Time of the first sample, seconds since boot.
    began: f64,
    /// True at the end of a series.
    over: bool,
}

/// Samples kept per connection: a minute or two.
const HISTORY: usize = 120;
/// Most connections with kept samples.
const HISTORY_OF: usize = 2000;
/// Samples that decide on a connection's limit.
const LOOKS: u16 = 8;
/// Windows for which a cleared finding stays listed.
const GONE_FOR: u8 = 5;

impl State {
    pub(super) fn new(first: Sample, replayed: bool) -> State {
        let mut state = State {
            before: None,
            looks: Looks::of_the_last(LOOKS),
            report: Report::of(&Window::since_boot(&first)),
            began: first.uptime,
            over: false,
            now: first,
            gone: Vec::new(),
            new: Vec::new(),
            rows: Vec::new(),
            history: HashMap::new(),
            page: Page::Connections,
            sort: Sort::Rate,
            reversed: false,
            filter: String::new(),
            is_typing: false,
            selected: 0,
            paused: false,
            replayed,
            windows: 0,
        };
        state.looks.take(&state.now);
        // Findings since boot are not a window of this watch.
        state.report.findings.clear();
        state.arrange();
        state
    }

    pub(super) fn window(&self) -> Window<'_> {
        self.before
            .as_ref()
            .map_or_else(|| Window::since_boot(&self.now), |before| Window::between(before, &self.now))
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Marks the end of the series.
    pub(super) fn end(&mut self) {
        (self.paused, self.over) = (true, true);
    }

    /// Describes the position in the series.
    pub(super) fn stands(&self) -> String {
        let at = format!("at {:.1} s", (self.now.uptime - self.began).max(0.0));
        match () {
            () if self.over => format!("{at}, the end"),
            () if self.paused => format!("{at}, stopped"),
            () if self.replayed => format!("{at}, replayed"),
            () => at,
        }
    }

    /// Adds the next sample.
    pub(super) fn take(&mut self, sample: Sample, slowed: Option<Slowed>) {
        self.before = Some(std::mem::replace(&mut self.now, sample));
        self.looks.take(&self.now);
        self.windows += 1;
        let mut report = Report::of(&self.window());
        report.slowed = slowed;
        let same = |one: &Finding, other: &Finding| one.id == other.id && one.scope == other.scope;
        let is_there = |finding: &Finding| report.findings.iter().any(|now| same(now, finding));
        self.gone.retain_mut(|(finding, left)| {
            *left -= 1;
            *left > 0 && !is_there(finding)
        });
        let ended = self.report.findings.iter().filter(|finding| !is_there(finding));
        let ended: Vec<_> = ended.map(|finding| (finding.clone(), GONE_FOR)).collect();
        self.gone.extend(ended);
        let name = |finding: &Finding| format!("{} {}", finding.id, finding.scope);
        let windows = self.windows;
        let since =
            |known: &str| self.new.iter().find(|(name, _)| name == known).map_or(windows, |(_, at)| *at);
        self.new = report.findings.iter().map(name).map(|name| (name.clone(), since(&name))).collect();
        self.report = report;
        self.arrange();
        self.remember();
    }

    /// Returns the age of a finding in windows.
    pub(super) fn age(&self, finding: &Finding) -> u64 {
        let name = format!("{} {}", finding.id, finding.scope);
        self.new.iter().find(|(known, _)| *known == name).map_or(0, |(_, at)| self.windows - at)
    }

    /// Filters and sorts the rows.
    fn arrange(&mut self) {
        let chosen = self.rows.get(self.selected).map(|row| row.key);
        let window = self.window();
        let filter = self.filter.to_ascii_lowercase();
        let mut rows: Vec<Row> = self
            .now
            .sockets
            .iter()
            .filter(|socket| socket.state != state::LISTEN)
            .map(|socket| row(socket, &window, &self.looks))
            .filter(|row| filter.is_empty() || row.words().contains(&filter))
            .collect();
        rows.sort_by(|one, other| {
            let down = |a: f64, b: f64| b.total_cmp(&a);
            match self.sort {
                Sort::Rate => down(one.rate, other.rate),
                Sort::SendQueue => other.queues.1.cmp(&one.queues.1),
                Sort::ReceiveQueue => other.queues.0.cmp(&one.queues.0),
                Sort::RoundTrip => other.rtt.cmp(&one.rtt),
                Sort::Retransmitted => other.retransmitted.cmp(&one.retransmitted),
                Sort::Peer => one.peer.cmp(&other.peer),
            }
            .then_with(|| (one.peer, one.local).cmp(&(other.peer, other.local)))
        });
        if self.reversed {
            rows.reverse();
        }
        // Keeps the same connection selected.
        let place = chosen.and_then(|chosen| rows.iter().position(|row| row.key == chosen));
        self.selected = place.unwrap_or(self.selected).min(rows.len().saturating_sub(1));
        self.rows = rows;
    }

    fn remember(&mut self) {
        let there: HashMap<Key, Moment> = self
            .rows
            .iter()
            .take(HISTORY_OF)
            .map(|row| (row.key, Moment { cwnd: row.cwnd, rtt: row.rtt, rate: row.rate, by: row.by }))
            .collect();
        self.history.retain(|key, _| there.contains_key(key));
        for (key, moment) in there {
            let moments = self.history.entry(key).or_default();
            moments.push_back(moment);
            if moments.len() > HISTORY {
                moments.pop_front();
            }
        }
    }

    /// Returns the selected connection, and its samples.
    pub(super) fn chosen(&self) -> Option<(&Row, &Socket, Vec<Moment>)> {
        let row = self.rows.get(self.selected)?;
        let socket = self.now.sockets.iter().find(|socket| socket.key() == row.key)?;
        let moments = self.history.get(&row.key).map(|moments| moments.iter().copied().collect());
        Some((row, socket, moments.unwrap_or_default()))
    }

    /// Returns the number of findings of a severity.
    pub(super) fn count(&self, severity: Severity) -> usize {
        self.report.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Next {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Next::End;
        }
        if self.is_typing {
            self.type_key(key.code);
            return Next::Stay;
        }
        let last = self.rows.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') => return Next::End,
            KeyCode::Right | KeyCode::Char('n') if self.replayed || self.paused => return Next::Step,
            KeyCode::Esc => self.page = Page::Connections,
            KeyCode::Enter if !self.rows.is_empty() => self.page = Page::Detail,
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('f') => self.toggle(Page::Findings),
            KeyCode::Char('c') => self.toggle(Page::Counters),
            KeyCode::Char('/') => (self.is_typing, self.page) = (true, Page::Connections),
            KeyCode::Char('s') => {
                let place = Sort::ALL.iter().position(|sort| *sort == self.sort).unwrap_or(0);
                self.sort = Sort::ALL[(place + 1) % Sort::ALL.len()];
                self.arrange();
            }
            KeyCode::Char('r') => {
                self.reversed = !self.reversed;
                self.arrange();
            }
            _ => {}
        }
        Next::Stay
    }

    fn toggle(&mut self, page: Page) {
        self.page = if self.page == page { Page::Connections } else { page };
    }

    fn type_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(character) => self.filter.push(character),
            _ => {}
        }
        self.arrange();
    }
}

impl Row {
    /// Returns the text that filters search.
    fn words(&self) -> String {
        let by = self.by.map_or(String::new(), |by| by.to_string());
        format!("{} {} {} {by}", self.state, self.local, self.peer).to_ascii_lowercase()
    }
}

fn row(socket: &Socket, window: &Window<'_>, looks: &Looks) -> Row {
    let info = socket.info.unwrap_or_default();
    let before = window.earlier(socket).and_then(|before| before.info);
    let moved = before.map_or(0, |before| {
        info.bytes_acked.saturating_sub(before.bytes_acked)
            + info.bytes_received.saturating_sub(before.bytes_received)
    });
    Row {
        key: socket.key(),
        state: state_name(socket.state),
        queues: (socket.recv_queue, socket.send_queue),
        local: SocketAddr::new(socket.local.0, socket.local_port),
        peer: SocketAddr::new(socket.peer.0, socket.peer_port),
        rate: moved as f64 / window.seconds(),
        rtt: info.rtt,
        cwnd: info.snd_cwnd,
        retransmitted: info.total_retrans,
        by: limits::of(socket, window, looks).map(|limits| limits.by),
    }
}
