//! Prints a row per visit, the outcome of Fast Open, statistics like httping's, ladder diagrams, or
//! everything as JSON.
use super::request::How;
use super::visit::Visit;
use super::watched::{FastOpenUse, TlsUse};
use super::words;
use crate::escape;
use crate::recorder::Seen;
use crate::stack::Running;
use crate::terminal::page_style;
use ::lab::ladder::Ladder;
use ::lab::report::{Page, PageStyle};
use ::lab::segment::Segment;
use bytes::Bytes;
use firstbyte::tls::EarlyBytes;
use firstbyte::{ConnectionInfo, Instant, Outcome};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// The report of a run.
pub(crate) struct Report {
    json: bool,
    /// True if the page uses stdout.
    to_stderr: bool,
    is_series: bool,
    url: String,
    peer: SocketAddr,
    /// `None` on the kernel's sockets.
    tun: Option<String>,
    /// Words for the way of the packets.
    way: String,
    /// Reason why the request is never on a SYN.
    late: Option<String>,
    visits: Vec<(u32, Visit)>,
}

impl Report {
    pub(crate) fn new(
        json: bool,
        to_stderr: bool,
        is_series: bool,
        how: &How,
        peer: SocketAddr,
        running: &Running,
    ) -> Report {
        let (url, tun) = (how.target.url.clone(), running.tun().map(str::to_owned));
        let way = running.way().to_owned();
        let late = (how.is_late() && !how.is_secure()).then(|| {
            format!(
                "Fast Open, off: this {} might be executed twice, because the network may duplicate a \
                 SYN (RFC 7413 §6.1); --force-early uses it anyway.",
                how.method
            )
        });
        Report { json, to_stderr, is_series, url, peer, tun, way, late, visits: Vec::new() }
    }

    /// Prints the lines before the first visit.
    pub(crate) fn begin(&self) {
        if !self.json {
            self.print(&format!("{} at {} through {}\n", self.url, self.peer, self.way));
        }
    }

    /// Adds a visit and prints its row.
    pub(crate) fn add(&mut self, number: u32, visit: Visit) {
        if !self.json {
            if self.visits.is_empty() {
                self.print(&format!("{HEAD}\n"));
            }
            if self.visits.last().is_some_and(|(_, last)| last.url != visit.url) {
                self.print(&format!("     redirected to {} at {}\n", escape::line(&visit.url), visit.peer));
            }
            self.print(&row(number, &visit));
        }
        self.visits.push((number, visit));
    }

    /// Prints the summary.
    pub(crate) fn end(&self) {
        if self.json {
            return self.print(&format!("{}\n", escape::json(&self.json(), true)));
        }
        let mut page = Page::new(if self.to_stderr { PageStyle::default() } else { page_style() });
        self.render(&mut page);
        self.print(&page.into_text());
    }

    fn render(&self, page: &mut Page) {
        match &self.late {
            Some(late) => page.paragraph(late),
            None => self.render_outcomes(page),
        }
        if self.visits.iter().any(|(_, visit)| visit.is_retry) {
            page.paragraph(
                "The server answered 425 Too Early, so a second request was sent without \
                Fast Open (RFC 8470).",
            );
        }
        if let Some(limit) = self.answered().filter_map(|visit| visit.info.as_ref()).find_map(unscaled_limit)
        {
            page.paragraph(&limit);
        }
        if self.is_series {
            page.gap();
            page.line(&self.statistics());
        }
        for (ladder, ss) in self.ladders() {
            page.ladder(&ladder);
            if let Some(ss) = ss {
                page.paragraph(&format!("ss: {ss}"));
            }
        }
    }

    fn render_outcomes(&self, page: &mut Page) {
        let mut said = Vec::new();
        for used in self.outcomes() {
            let (word, sentence) = words::outcome(used);
            if !said.contains(&sentence) {
                said.push(sentence);
                page.paragraph(&format!("Fast Open, {word}: {sentence}."));
            }
        }
        let mut said = Vec::new();
        for sentence in self.answered().filter_map(|visit| visit.tls.as_ref()).map(words::tls) {
            if !said.contains(&sentence) {
                page.paragraph(&format!("{sentence}."));
                said.push(sentence);
            }
        }
        if !self.is_series && self.outcomes().any(|used| used.outcome == GRANTED) {
            page.paragraph("The stack ends here, and its cookie with it; -c 2 shows a repeat visit.");
        }
        if !self.is_series && self.outcomes().any(|used| used.outcome == Outcome::CookieAsked) {
            page.paragraph(
                "If the server granted a cookie, the kernel keeps it: the next SYN to this server can \
                carry data.",
            );
        }
    }

    /// Returns the visits with a reply.
    fn answered(&self) -> impl Iterator<Item = &Visit> {
        self.visits.iter().map(|(_, visit)| visit).filter(|visit| visit.result.is_ok())
    }

    /// Returns the use of Fast Open by visits with a reply.
    fn outcomes(&self) -> impl Iterator<Item = &FastOpenUse> {
        self.answered().filter_map(|visit| visit.fast_open.as_ref())
    }

    /// Returns the visits that count.
    fn counted(&self) -> impl Iterator<Item = &Visit> {
        self.visits.iter().map(|(_, visit)| visit).filter(|visit| !visit.is_superseded)
    }

    fn statistics(&self) -> String {
        let all = self.counted().count();
        let times: Vec<f64> =
            self.counted().filter(|visit| visit.result.is_ok()).map(|visit| ms(visit.total)).collect();
        let failed = 100.0 * (all - times.len()) as f64 / all.max(1) as f64;
        let accepted = self
            .counted()
            .filter_map(|visit| visit.fast_open.as_ref())
            .filter(|used| used.outcome == Outcome::Accepted);
        let mut text = format!("{all} connects, {} ok, {failed:.2}% failed\n", times.len());
        text += &format!("Fast Open accepted {} of {all}\n", accepted.count());
        if let Some(Spread { min, avg, max }) = Spread::of(&times) {
            text += &format!("round-trip min/avg/max = {}/{}/{} ms\n", figure(min), figure(avg), figure(max));
        }
        if let Some((first, repeats)) = times.split_first()
            && let Some(Spread { avg, .. }) = Spread::of(repeats)
        {
            let change = 100.0 * (avg - first) / first;
            text += &format!(
                "first visit {} ms, repeat visits {} ms on average ({change:+.0} %)\n",
                figure(*first),
                figure(avg)
            );
        }
        text
    }

    /// Draws the ladders of the first and the last visit, if packets were recorded, with the final
    /// state of their connections.
    fn ladders(&self) -> Vec<(Ladder, Option<&str>)> {
        let last = self.visits.len().saturating_sub(1);
        let shown = self.visits.iter().enumerate().filter(|(index, _)| *index == 0 || *index == last);
        shown
            .filter_map(|(_, (number, visit))| Some((self.ladder(*number, visit)?, visit.ss.as_deref())))
            .collect()
    }

    fn ladder(&self, number: u32, visit: &Visit) -> Option<Ladder> {
        let packets = own_packets(visit)?;
        let again = if visit.is_retry { ", repeated without Fast Open" } else { "" };
        let title = format!("Visit {number}{again}: {} packets", packets.len());
        Some(Ladder::at_client(title, self.peer, &packets))
    }

    fn json(&self) -> Value {
        let visits: Vec<Value> =
            self.visits.iter().map(|(number, visit)| self.visit_json(*number, visit)).collect();
        let times: Vec<f64> =
            self.counted().filter(|visit| visit.result.is_ok()).map(|visit| ms(visit.total)).collect();
        let spread = Spread::of(&times);
        let repeats = times.split_first().and_then(|(_, repeats)| Spread::of(repeats));
        json!({
            "url": self.url,
            "peer": self.peer.to_string(),
            "backend": if self.tun.is_some() { "stack" } else { "kernel" },
            "tun": self.tun,
            "visits": visits,
            "connects": self.counted().count(),
            "ok": times.len(),
            "min_ms": spread.as_ref().map(|spread| spread.min),
            "avg_ms": spread.as_ref().map(|spread| spread.avg),
            "max_ms": spread.as_ref().map(|spread| spread.max),
            "first_ms": times.first(),
            "repeat_avg_ms": repeats.map(|spread| spread.avg),
        })
    }

    fn visit_json(&self, number: u32, visit: &Visit) -> Value {
        let info = visit.info.as_ref();
        let fast_open = visit.fast_open.as_ref().map(|used| {
            let (word, sentence) = words::outcome(used);
            json!({
                "outcome": word,
                "meaning": sentence,
                "syn_data_bytes": info.map(|info| info.syn_data_len),
                "syn_data_acked_bytes": info.map(|info| info.syn_data_acked),
            })
        });
        json!({
            "number": number,
            "status": visit.result.as_ref().ok().map(|reply| reply.status.as_u16()),
            "bytes": visit.result.as_ref().ok().map(|reply| reply.len),
            "error": visit.result.as_ref().err(),
            "url": visit.url,
            "peer": visit.peer.to_string(),
            "retry": visit.is_retry,
            "redirect": visit.redirect().is_some(),
            "name_ms": visit.name.map(ms),
            "handshake_ms": visit.handshake.map(ms),
            "tls_ms": visit.tls_handshake.map(ms),
            "first_byte_ms": visit.first_byte.map(ms),
            "rest_ms": visit.rest().map(ms),
            "total_ms": ms(visit.total),
            "local": visit.stream.as_ref().map(|stream| stream.local.to_string()),
            "fast_open": fast_open,
            "tls": visit.tls.as_ref().map(tls_json),
            "window_scaling": info.map(|info| info.window_scaling),
            "ss": visit.ss,
            "retransmissions": visit.stream.as_ref().map(|stream| stream.total_retrans_segs),
            "ladder": self.ladder(number, visit),
        })
    }

    /// Prints a text. A closed pipe (`| head`) is not an error.
    fn print(&self, text: &str) {
        let _ = match self.to_stderr {
            true => io::stderr().write_all(text.as_bytes()),
            false => io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()),
        };
    }
}

/// Explains the limit of an unscaled window, if we offered scaling and the peer did not.
fn unscaled_limit(info: &ConnectionInfo) -> Option<String> {
    let srtt = info.srtt.filter(|_| !info.window_scaling)?;
    let rate = 65_535 * 8_000_000_000 / srtt.as_nanos().max(1);
    Some(format!(
        "No window scaling: {} did not answer the option, or a middlebox removed it. At most 65535 \
        bytes are in flight: {} at this round trip of {} ms.",
        info.peer,
        crate::values::show_rate(rate),
        figure(ms(srtt))
    ))
}

fn tls_json(tls: &TlsUse) -> Value {
    json!({
        "version": tls.version.map(|version| format!("{version:?}")),
        "cipher": tls.cipher.map(|cipher| format!("{cipher:?}")),
        "alpn": tls.alpn,
        "ticket": words::ticket(tls.outcome.ticket).0,
        "early_data": words::early_data(tls.outcome.early_data).0,
    })
}

const GRANTED: Outcome = Outcome::CookieRequested { granted: true };

const HEAD: &str =
    "   # status  name ms  connect ms   TLS ms  first byte ms   rest ms   total ms      bytes  Fast Open";

fn row(number: u32, visit: &Visit) -> String {
    let cell = |duration: Option<Duration>| duration.map_or("-".to_owned(), |duration| figure(ms(duration)));
    let fast_open = visit.fast_open.as_ref().map_or("-", |used| words::outcome(used).0);
    let early = match &visit.tls {
        Some(tls) if tls.outcome.early_data == EarlyBytes::Accepted => ", early data",
        _ => "",
    };
    match &visit.result {
        Ok(reply) => format!(
            "{number:>4} {:>6}  {:>7}  {:>10}  {:>7}  {:>13}  {:>8}  {:>9}  {:>9}  {fast_open}{early}\n",
            reply.status.as_u16(),
            cell(visit.name),
            cell(visit.handshake),
            cell(visit.tls_handshake),
            cell(visit.first_byte),
            cell(visit.rest()),
            cell(Some(visit.total)),
            reply.len
        ),
        Err(why) => format!("{number:>4} failed: {}\n", escape::line(why)),
    }
}

/// Returns the packets of this visit's connection, without late packets of an earlier one.
fn own_packets(visit: &Visit) -> Option<Vec<(Instant, Bytes)>> {
    let seen = visit.packets.as_ref()?;
    let local = visit.stream.as_ref().map(|stream| stream.local);
    let is_own = |packet: &&Seen| {
        let segment = Segment::parse(&packet.bytes);
        segment
            .is_some_and(|segment| local.is_none_or(|local| segment.src() == local || segment.dst() == local))
    };
    Some(seen.iter().filter(is_own).map(|packet| (packet.at, packet.bytes.clone())).collect())
}

struct Spread {
    min: f64,
    avg: f64,
    max: f64,
}

impl Spread {
    /// Returns `None` without values.
    fn of(values: &[f64]) -> Option<Spread> {
        let min = values.iter().copied().reduce(f64::min)?;
        let max = values.iter().copied().reduce(f64::max)?;
        Some(Spread { min, avg: values.iter().sum::<f64>() / values.len() as f64, max })
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// Formats milliseconds with the significant decimals.
fn figure(ms: f64) -> String {
    format!("{ms:.decimals$}", decimals = if ms < 10.0 { 3 } else { 1 })
}
