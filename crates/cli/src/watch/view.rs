//! Draws the state: designed for 80 columns and 24 lines, and scales to more.
use super::state::{Moment, Page, Row, Sort, State};
use crate::values::counted;
use doctor::show::limits::By;
use doctor::show::{counters, rate, sockets};
use doctor::{Finding, Severity};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline, Wrap};

/// Lines for findings on the page of connections.
const FINDINGS: u16 = 4;
/// Lines for changing counters.
const COUNTERS: u16 = 5;

/// Draws the page; without `has_unicode` only in ASCII.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, has_unicode: bool) {
    let [head, body, keys] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(title(state), head);
    match state.page {
        Page::Connections => connections(frame, body, state),
        Page::Detail => detail(frame, body, state),
        Page::Findings => all_findings(frame, body, state),
        Page::Counters => all_counters(frame, body, state),
    }
    frame.render_widget(help(state), keys);
    if !has_unicode {
        for cell in frame.buffer_mut().content.iter_mut().filter(|cell| !cell.symbol().is_ascii()) {
            cell.set_symbol(in_ascii(cell.symbol()));
        }
    }
}

/// Returns the ASCII character for one that the terminal's locale lacks.
fn in_ascii(symbol: &str) -> &'static str {
    match symbol {
        "↑" => "^",
        "↓" => "v",
        "→" => ">",
        "×" => "x",
        "…" => "~",
        "▁" | "▂" => "_",
        "▃" | "▄" | "▅" => "=",
        "▆" | "▇" | "█" => "#",
        _ => "?",
    }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn colour(severity: Severity) -> Style {
    match severity {
        Severity::Critical => Style::new().fg(Color::Red),
        Severity::Warning => Style::new().fg(Color::Yellow),
        Severity::Info => Style::new(),
    }
}

fn title(state: &State) -> Paragraph<'static> {
    let count = |severity| state.count(severity);
    // 6.18.44 of 6.18.44-generic.
    let version = state.now.kernel.split('-').next().unwrap_or_default();
    let warnings = count(Severity::Warning);
    let line = Line::from(vec![
        Span::styled(format!("Linux {}", short(version, 10)), bold()),
        Span::raw(format!("  {}  ", counted(state.rows.len() as u64, "connection", "connections"))),
        Span::styled(format!("{} critical", count(Severity::Critical)), colour(Severity::Critical)),
        Span::raw("  "),
        Span::styled(counted(warnings as u64, "warning", "warnings"), colour(Severity::Warning)),
        Span::raw(format!("  {}", state.stands())),
    ]);
    Paragraph::new(line)
}

fn help(state: &State) -> Paragraph<'static> {
    let text = match state.page {
        _ if state.is_typing => format!("/{}_   Enter keeps, Esc clears", state.filter),
        Page::Connections if !state.filter.is_empty() => {
            format!("filter: {}  /  Enter detail  s sort  f findings  c counters  q quit", state.filter)
        }
        Page::Connections if state.replayed => {
            "→ next  Space pause  ↑↓ Enter detail  s sort  / filter  f findings  c counters  q quit"
                .to_owned()
        }
        Page::Connections => {
            "↑↓ Enter detail  s sort  r reverse  / filter  f findings  c counters  q quit".to_owned()
        }
        _ => "Esc back  Space pause  q quit".to_owned(),
    };
    Paragraph::new(text).style(Style::new().add_modifier(Modifier::DIM))
}

fn connections(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let [findings, table, moving] =
        Layout::vertical([Constraint::Length(FINDINGS), Constraint::Min(3), Constraint::Length(COUNTERS)])
            .areas(area);
    let lines: Vec<Line<'_>> = finding_lines(state).take(usize::from(FINDINGS)).collect();
    frame.render_widget(Paragraph::new(lines), findings);
    frame.render_widget(Paragraph::new(table_lines(state, usize::from(table.height))), table);
    let lines: Vec<Line<'_>> = moving_lines(state).take(usize::from(COUNTERS)).collect();
    frame.render_widget(Paragraph::new(lines), moving);
}

/// Formats the findings, one per line: new ones marked, cleared ones last.
fn finding_lines(state: &State) -> impl Iterator<Item = Line<'static>> {
    let line = |sign: &str, finding: &Finding, style: Style| {
        let Finding { id, symptom, scope, .. } = finding;
        Line::styled(format!("{sign} {id:<6} {symptom}  [{scope}]"), style)
    };
    let there = state.report.findings.iter().filter(|finding| finding.severity > Severity::Info);
    let there: Vec<Line<'static>> = there
        .map(|finding| {
            line(if state.age(finding) == 0 { "+" } else { " " }, finding, colour(finding.severity))
        })
        .collect();
    let gone: Vec<Line<'static>> = state
        .gone
        .iter()
        .filter(|(finding, _)| finding.severity > Severity::Info)
        .map(|(finding, _)| line("-", finding, Style::new().add_modifier(Modifier::DIM)))
        .collect();
    let slowed = state
        .report
        .slowed
        .map(|slowed| Line::styled(slowed.to_string(), Style::new().add_modifier(Modifier::DIM)));
    let none = (there.is_empty() && gone.is_empty()).then(|| Line::from("  no findings"));
    slowed.into_iter().chain(there).chain(gone).chain(none)
}

fn table_lines(state: &State, height: usize) -> Vec<Line<'static>> {
    let mark = |sort: Sort, text: String| {
        if state.sort == sort {
            Span::styled(text, bold().add_modifier(Modifier::UNDERLINED))
        } else {
            Span::styled(text, bold())
        }
    };
    let mut lines = vec![Line::from(vec![
        Span::styled(format!("{:<10}", "State"), bold()),
        mark(Sort::ReceiveQueue, format!("{:>8}", "Recv-Q")),
        mark(Sort::SendQueue, format!("{:>8}", "Send-Q")),
        mark(Sort::Rate, format!("{:>14}", "Rate")),
        mark(Sort::RoundTrip, format!("{:>8}", "rtt ms")),
        mark(Sort::Retransmitted, format!("{:>5}", "retr")),
        Span::styled(format!(" {:<5}", "limit"), bold()),
        mark(Sort::Peer, format!(" {}", "Peer")),
    ])];
    let room = height.saturating_sub(1);
    let from = state.selected.saturating_sub(room.saturating_sub(1));
    for (at, row) in state.rows.iter().enumerate().skip(from).take(room) {
        let style =
            if at == state.selected { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        lines.push(Line::styled(cells(row), style));
    }
    if state.rows.is_empty() {
        lines.push(Line::from(if state.filter.is_empty() {
            "no connections"
        } else {
            "no connection matches"
        }));
    }
    lines
}

fn cells(row: &Row) -> String {
    let rtt = if row.rtt == 0 { "-".to_owned() } else { format!("{:.1}", f64::from(row.rtt) / 1000.0) };
    format!(
        "{:<10}{:>8}{:>8}{:>14}{rtt:>8}{:>5} {:<5} {}",
        row.state,
        quantity(row.queues.0),
        quantity(row.queues.1),
        rate(row.rate),
        quantity(row.retransmitted),
        row.by.map_or("-", letters),
        row.peer
    )
}

/// Formats a number in at most six characters.
fn quantity(number: u32) -> String {
    match number {
        0..100_000 => number.to_string(),
        100_000..100_000_000 => format!("{}K", number / 1000),
        _ => format!("{}M", number / 1_000_000),
    }
}

fn letters(by: By) -> &'static str {
    match by {
        By::Application => "app",
        By::ReceiveWindow => "rwnd",
        By::SendBuffer => "sbuf",
        By::Cwnd => "cwnd",
        By::Loss => "loss",
        By::Pacing => "pace",
    }
}

/// Lists the counters that changed most, and queues with a backlog.
fn moving_lines(state: &State) -> impl Iterator<Item = Line<'static>> {
    let queues = state.now.queues.iter().filter(|queue| queue.length > 0).map(|queue| {
        Line::from(format!(
            "{} of {}: backlog {} bytes, {} packets",
            queue.kind, queue.device, queue.backlog, queue.length
        ))
    });
    let queues: Vec<Line<'static>> = queues.collect();
    let window = state.window();
    // The first sample has no window: everything since boot would count.
    let mut moved: Vec<(String, u64)> = match state.windows {
        0 => Vec::new(),
        _ => state
            .now
            .counters
            .keys()
            .map(|name| (name.clone(), window.grown(name)))
            .filter(|(_, grown)| *grown > 0)
            .collect(),
    };
    // TcpCurrEstab is a gauge, not a counter.
    moved.retain(|(name, _)| name.starts_with("Tcp") && name != "TcpCurrEstab");
    moved.sort_by_key(|(_, grown)| std::cmp::Reverse(*grown));
    let seconds = window.seconds();
    let counters: Vec<Line<'static>> = moved
        .chunks(2)
        .map(|pair| {
            let cell = |(name, grown): &(String, u64)| {
                format!(
                    "{:<26}{:>10.1}/s",
                    short(name.trim_start_matches("TcpExt"), 26),
                    *grown as f64 / seconds
                )
            };
            Line::from(pair.iter().map(cell).collect::<Vec<_>>().join("  "))
        })
        .collect();
    queues.into_iter().chain(counters)
}

fn short(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

fn detail(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let Some((row, socket, moments)) = state.chosen() else {
        frame.render_widget(Paragraph::new("the connection is closed"), area);
        return;
    };
    let [words, cwnd, rtt, rates, limits] = Layout::vertical([
        Constraint::Min(9),
        Constraint::Length(3),
        Constraint::Length(3),
        Constraint::Length(3),
        Constraint::Length(2),
    ])
    .areas(area);
    let figures: Vec<String> = sockets::words(socket).iter().map(ToString::to_string).collect();
    let text = vec![
        Line::styled(format!("{} {} -> {}", row.state, row.local, row.peer), bold()),
        Line::from(row.by.map_or("not sending".to_owned(), |by| format!("limited by: {by}"))),
        Line::from(figures.join(" ")),
    ];
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), words);
    chart(frame, cwnd, &format!("cwnd, segments: {}", row.cwnd), &moments, |moment| moment.cwnd.into());
    chart(frame, rtt, &format!("rtt, ms: {:.1}", f64::from(row.rtt) / 1000.0), &moments, |moment| {
        moment.rtt.into()
    });
    chart(frame, rates, &format!("rate: {}", rate(row.rate)), &moments, |moment| moment.rate as u64);
    let line: String =
        tail(&moments, limits.width).iter().map(|moment| moment.by.map_or('-', initial)).collect();
    let text = vec![
        Line::from("limit: a application, r receive window, s send buffer, c cwnd, l loss, p pacing"),
        Line::from(line),
    ];
    frame.render_widget(Paragraph::new(text), limits);
}

fn initial(by: By) -> char {
    letters(by).chars().next().unwrap_or('-')
}

fn tail(moments: &[Moment], width: u16) -> &[Moment] {
    &moments[moments.len().saturating_sub(usize::from(width))..]
}

/// Draws a title, and a curve of the last samples below it.
fn chart(frame: &mut Frame<'_>, area: Rect, title: &str, moments: &[Moment], value: impl Fn(&Moment) -> u64) {
    let [head, curve] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let values: Vec<u64> = tail(moments, curve.width).iter().map(value).collect();
    let most = values.iter().max().copied().unwrap_or(0);
    frame.render_widget(Paragraph::new(title.to_owned()), head);
    frame.render_widget(Sparkline::default().data(values).max(most.max(1)), curve);
}

fn all_findings(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let mut lines = Vec::new();
    for finding in &state.report.findings {
        let Finding { id, severity, symptom, scope, formula, why, fix, .. } = finding;
        lines.push(Line::styled(format!("{severity} {id}  {symptom}  [{scope}]"), colour(*severity)));
        lines.push(Line::from(format!("  {formula}")));
        lines.push(Line::from(format!("  {why}")));
        lines.push(Line::from(format!("  {}", fix.advice)));
        lines.extend(fix.steps.iter().map(|step| Line::from(format!("    # {}", step.command))));
    }
    if lines.is_empty() {
        lines.push(Line::from("no findings"));
    }
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}

fn all_counters(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let text = counters::text(&counters::View::default(), &state.window());
    let (head, list) = (format!("{:<32}{:<21}a second", "Counter", "added"), Paragraph::new(text));
    let [first, rest] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    frame.render_widget(Paragraph::new(Line::styled(head, bold())), first);
    frame.render_widget(list, rest);
}

#[cfg(test)]
mod tests;
