//! Packets over time between two ends, run beside run: time goes down, and arrows slope with delay.

use super::LONG_PATH;
use lab::ladder::{Ladder, Rung, Way};
use lab::scenario::packets;
use std::fmt::Write as _;

/// Panels and what stands above them, by the name of the picture.
type Panels = [(&'static str, &'static str); 2];

/// A plain exchange of two Linux ends, and an unmodified Linux client with a Firstbyte server.
const PANELS: Panels = [
    (packets::LINUX_PLAIN, "Plain TCP, Linux to Linux"),
    (packets::LINUX_TO_OURS, "Fast Open, Linux to Firstbyte"),
];

const WIDTH: f64 = 744.0;
const PANEL: f64 = 354.0;
/// Space between the edge of a panel and the lines of its ends.
const SIDE: f64 = 62.0;
const HEAD: f64 = 126.0;
/// Pixels of a millisecond.
const SCALE: f64 = 0.7;
/// Pixels between packets that leave at the same time.
const STEP: f64 = 17.0;

/// Draws both panels of the scenario `packets`.
pub(super) fn draw(scenario: &str, title: &str) -> Result<String, String> {
    if scenario != "packets" {
        return Err(format!("diagram of `{scenario}`: only `packets` can be drawn"));
    }
    let params =
        packets::Params { rtt: LONG_PATH, request_len: 200, reply_len: 500, ..packets::Params::default() };
    let results = packets::run(&params);
    let mut panels = Vec::new();
    for (at, (name, words)) in PANELS.iter().enumerate() {
        let case = results.cases.iter().find(|case| case.title == *name).ok_or("no such case")?;
        let ladder = Ladder::of(*words, &case.exchange);
        panels.push(Panel { left: 12.0 + at as f64 * (PANEL + 12.0), ladder });
    }
    let bottom = panels.iter().map(Panel::bottom).fold(0.0, f64::max);
    let mut body = String::new();
    panels.iter().try_for_each(|panel| panel.draw(&mut body, bottom))?;
    let height = bottom + 24.0;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#fff\"/>\n\
         <text class=\"title\" x=\"{}\" y=\"36\">{title}</text>\n{body}</svg>\n",
        WIDTH / 2.0
    ))
}

struct Panel {
    left: f64,
    ladder: Ladder,
}

impl Panel {
    /// Where its last packet arrives.
    fn bottom(&self) -> f64 {
        let rungs = &self.ladder.rungs;
        rungs.iter().zip(&rows(rungs)).map(|(rung, row)| arrival(rung) + row).fold(0.0, f64::max) + 14.0
    }

    fn draw(&self, svg: &mut String, bottom: f64) -> Result<(), String> {
        let rungs = &self.ladder.rungs;
        let first_byte = rungs
            .iter()
            .find(|rung| rung.way == Way::ToClient && rung.len > 0)
            .ok_or("no answer in the capture")?;
        let (client, server) = (self.left + SIDE, self.left + PANEL - SIDE);
        let rows = rows(rungs);
        let middle = f64::midpoint(client, server);
        let count = rungs.len();
        let time = first_byte.received_ms.unwrap_or_default();
        line(svg, "head", middle, 68.0, &self.ladder.title);
        line(svg, "sub", middle, 89.0, &format!("first byte after {time:.0} ms, {count} packets"));
        for (x, name) in [(client, "client"), (server, "server")] {
            let _ = writeln!(
                svg,
                "<line class=\"axis\" x1=\"{x}\" x2=\"{x}\" y1=\"{HEAD}\" y2=\"{bottom}\"/>\
                 <text class=\"end\" x=\"{x}\" y=\"{}\">{name}</text>",
                HEAD - 14.0
            );
        }
        for (rung, row) in rungs.iter().zip(&rows) {
            arrow(svg, rung, *row, client, server);
        }
        let at = rungs.iter().position(|rung| std::ptr::eq(rung, first_byte)).unwrap_or_default();
        let y = arrival(first_byte) + rows[at];
        let _ = writeln!(
            svg,
            "<circle class=\"first\" cx=\"{client}\" cy=\"{y:.1}\" r=\"5\"/>\
             <text class=\"first\" x=\"{}\" y=\"{:.1}\">{time:.0} ms</text>",
            client - 10.0,
            y + 4.0
        );
        Ok(())
    }
}

/// Offsets below the time of sending: packets that leave one end together are drawn apart.
fn rows(rungs: &[Rung]) -> Vec<f64> {
    let same = |one: &Rung, other: &Rung| one.way == other.way && one.sent_ms == other.sent_ms;
    let before = |at: usize| rungs[..at].iter().filter(|other| same(&rungs[at], other)).count();
    (0..rungs.len()).map(|at| before(at) as f64 * STEP).collect()
}

fn arrival(rung: &Rung) -> f64 {
    HEAD + rung.received_ms.or(rung.sent_ms).unwrap_or(0.0) * SCALE
}

fn arrow(svg: &mut String, rung: &Rung, row: f64, client: f64, server: f64) {
    let y = |at: Option<f64>| HEAD + at.unwrap_or(0.0) * SCALE + row;
    let (sent, received) = (y(rung.sent_ms), y(rung.received_ms));
    let (from, to) = if rung.way == Way::ToServer { (client, server) } else { (server, client) };
    let class = if rung.len > 0 { "data" } else { "control" };
    // The head is drawn along the line, its tip at the end.
    let (dx, dy) = (to - from, received - sent);
    let length = dx.hypot(dy);
    let (ux, uy) = (dx / length, dy / length);
    let back = |along: f64, aside: f64| (to - along * ux - aside * uy, received - along * uy + aside * ux);
    let ((ax, ay), (bx, by)) = (back(10.0, 4.5), back(10.0, -4.5));
    let slope = (dy / dx).atan().to_degrees();
    let (x, middle) = (f64::midpoint(from, to), f64::midpoint(sent, received));
    let _ = writeln!(
        svg,
        "<g class=\"{class}\"><line x1=\"{from}\" y1=\"{sent:.1}\" x2=\"{to}\" y2=\"{received:.1}\"/>\
         <path d=\"M{to} {received:.1}L{ax:.1} {ay:.1}L{bx:.1} {by:.1}Z\"/>\
         <text x=\"{x}\" y=\"{:.1}\" transform=\"rotate({slope:.2} {x} {middle:.1})\">{}</text></g>",
        middle - 4.0,
        label(rung)
    );
}

fn label(rung: &Rung) -> String {
    let has = |flag: &str| rung.flags.split(' ').any(|word| word == flag);
    let mut parts = Vec::new();
    match (has("SYN"), has("ACK")) {
        (true, true) => parts.push("SYN-ACK".to_owned()),
        (true, false) => parts.push("SYN".to_owned()),
        _ => {}
    }
    if rung.options.iter().any(|option| option.starts_with("cookie")) {
        parts.push("cookie".to_owned());
    }
    if rung.len > 0 {
        let what = if rung.way == Way::ToServer { "request" } else { "response" };
        parts.push(what.to_owned());
    }
    if has("FIN") {
        parts.push("FIN".to_owned());
    }
    if parts.is_empty() {
        parts.push("ACK".to_owned());
    }
    parts.join(" + ")
}

fn line(svg: &mut String, class: &str, x: f64, y: f64, words: &str) {
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{words}</text>");
}

const STYLE: &str = "text{fill:#1c2024;font:14px sans-serif;text-anchor:middle}\
    .title{font-size:17px;font-weight:bold}.head{font-size:15px;font-weight:bold}.sub{fill:#5c6670}\
    .end{font-weight:bold}.axis{stroke:#5c6670;stroke-width:2}\
    .data line{stroke:#1d5fc4;stroke-width:2.2}.data path{fill:#1d5fc4}.data text{fill:#1d5fc4;font-size:13px;font-weight:bold}\
    .control line{stroke:#8a939c;stroke-width:1.4}.control path{fill:#8a939c}.control text{fill:#5c6670;font-size:12.5px}\
    circle.first{fill:#13783a}text.first{fill:#13783a;font-weight:bold;text-anchor:end}";
