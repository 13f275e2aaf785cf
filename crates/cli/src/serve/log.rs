//! The server's output: its address, a line per request, and counters at the end. As text, or one
//! JSON object per line. [`Outlet`] writes it, so that a slow reader cannot delay the server.
use super::ServeArgs;
use super::access::{self, AccessLog, Format};
use super::crowd::TurnedAway;
use super::outlet::{Outlet, To};
use super::request::Request;
use crate::control::ControlSocket;
use crate::escape;
use crate::failure::warning;
use crate::stack::Running;
use chrono::{DateTime, SecondsFormat, Utc};
use firstbyte::{ConnectionInfo, Counters, StackHandle};
use serde_json::{Value, json};
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Writes to standard output, and warnings to standard error. The server continues if the output is
/// closed.
pub(crate) struct Log {
    outlet: Outlet,
    json: bool,
    quiet: bool,
    access: Access,
    requests: AtomicU64,
    echoes: AtomicU64,
    turned_away: AtomicU64,
}

/// The place of the access log.
pub(crate) enum Access {
    /// There is none.
    None,
    /// In place of the lines about requests.
    Output(Format),
    File(AccessLog),
}

impl Log {
    pub(crate) fn start(json: bool, quiet: bool, access: Access) -> io::Result<Log> {
        let notice = if json { dropped_object } else { dropped_words };
        let outlet = Outlet::start(notice)?;
        Ok(Log {
            outlet,
            json,
            quiet,
            access,
            requests: AtomicU64::new(0),
            echoes: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
        })
    }

    /// Warns on standard error about a problem that does not stop the server.
    pub(crate) fn warn(&self, message: &str) {
        self.outlet.put(To::Error, warning(message));
    }

    /// Waits a limited time until the last lines are written.
    pub(crate) fn finish(&self) {
        if let Access::File(access) = &self.access {
            access.finish();
        }
        self.outlet.finish(LAST_LINES);
    }

    /// Prints the address of the server, and commands to try.
    pub(crate) fn banner(&self, args: &ServeArgs, running: &Running, places: &[String]) {
        let control = running.own.as_ref().and_then(|own| own.control.as_ref()).map(ControlSocket::path);
        if self.json {
            let echo = args.echo;
            let backend = if running.own.is_some() { "stack" } else { "kernel" };
            return self.print_json(&json!({
                "event": "listening", "backend": backend, "tun": running.tun(), "urls": places, "echo_port": echo,
                "fast_open_qlen": args.fast_open, "control": control,
            }));
        }
        let what = args
            .root
            .as_ref()
            .map_or("a greeting".to_owned(), |root| format!("the files of {}", root.display()));
        self.print(format!("Serving {what} at {} through {}.", places.join(" and "), running.way()));
        if let Some(port) = args.echo {
            self.print(format!("Echo is on port {port}."));
        }
        if let Some(place) = places.first() {
            self.print(match running.own {
                Some(_) => format!("Try twice: curl --tcp-fastopen -H 'Connection: close' {place}"),
                None => format!("Try twice: firstbyte get {place}"),
            });
        }
        if let Some(control) = control {
            self.print(format!("List connections: firstbyte ss -a --control {}", control.display()));
        }
        self.print("Press Ctrl-C to stop.".to_owned());
    }

    /// Logs a request; `info` is set if its connection has ended.
    pub(crate) fn request(&self, peer: SocketAddr, request: &Request, info: Option<&ConnectionInfo>) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        match &self.access {
            Access::None => {}
            Access::Output(format) => return self.print(access::line(*format, peer, request)),
            Access::File(access) => access.put(peer, request),
        }
        if self.quiet {
            return;
        }
        match self.json {
            true => self.print_event(request_object(peer, request, info)),
            false => self.print_words(&request_words(peer, request, info)),
        }
    }

    /// Logs an echo connection that ended normally.
    pub(crate) fn echo(&self, peer: SocketAddr, bytes: u64, early_len: usize, info: Option<&ConnectionInfo>) {
        self.echoes.fetch_add(1, Ordering::Relaxed);
        if self.quiet {
            return;
        }
        if self.json {
            let mut line = json!({
                "event": "echo", "peer": peer.to_string(), "bytes": bytes, "early": early_len > 0,
            });
            add_fast_open(&mut line, info);
            return self.print_event(line);
        }
        self.print_words(&format!("{peer} echo {bytes} bytes{}", fast_open_words(early_len > 0, info)));
    }

    /// Logs a connection that ended with an error.
    pub(crate) fn broken(&self, peer: SocketAddr, why: &dyn Error) {
        if self.quiet {
            return;
        }
        let why = with_causes(why);
        match self.json {
            true => self.print_event(json!({ "event": "broken", "peer": peer.to_string(), "why": why })),
            false => self.print_words(&format!("{peer} failed: {}", escape::line(&why))),
        }
    }

    /// Logs an invalid request, which has been answered with an error.
    pub(crate) fn refused(&self, peer: SocketAddr, why: &dyn Error) {
        if self.quiet {
            return;
        }
        let why = with_causes(why);
        match self.json {
            true => self.print_event(json!({ "event": "refused", "peer": peer.to_string(), "why": why })),
            false => self.print_words(&format!("{peer} was rejected: {}", escape::line(&why))),
        }
    }

    /// Logs a connection above the limit of its address. One line stands for all until the address
    /// has no more connections.
    pub(crate) fn turned_away(&self, peer: SocketAddr, turned_away: &TurnedAway) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
        if self.quiet || !turned_away.is_first {
            return;
        }
        let from = turned_away.from.to_string();
        match self.json {
            true => self.print_event(json!({ "event": "crowded", "peer": peer.to_string(), "from": from })),
            false => {
                self.print_words(&format!("{from} has reached --max-per-address; more connections are reset"))
            }
        }
    }

    /// Prints that connections get time to finish.
    pub(crate) fn stopping(&self, connections: Option<usize>, at_most: Duration) {
        let seconds = at_most.as_secs();
        if self.json {
            return self.print_json(
                &json!({ "event": "stopping", "connections": connections, "at_most_seconds": seconds }),
            );
        }
        let what = match connections {
            None => "connections".to_owned(),
            Some(1) => "1 connection".to_owned(),
            Some(count) => format!("{count} connections"),
        };
        self.print(format!(
            "\nWaiting for {what} to finish, at most {seconds} s; press Ctrl-C again to stop now."
        ));
    }

    /// Prints the counters at the end: the server's, and those of its own stack.
    pub(crate) fn summary(&self, stack: Option<&StackHandle>) {
        let counters = stack.map(StackHandle::counters);
        let (requests, echoes) = (self.requests.load(Ordering::Relaxed), self.echoes.load(Ordering::Relaxed));
        if self.json {
            let counters: Option<Value> = counters.map(|counters| {
                counters.all().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
            });
            return self.print_json(
                &json!({
                    "event": "summary", "requests": requests, "echoes": echoes, "lines_dropped": self.outlet.dropped(),
                    "turned_away": self.turned_away.load(Ordering::Relaxed),
                    "counters": counters,
                }),
            );
        }
        let on = counters.as_ref().map(|counters| format!(" on {} connections", counters.passive_opens));
        self.print(format!("\n{requests} requests, {echoes} echoes{}.", on.unwrap_or_default()));
        let own = [
            ("connections beyond --max-per-address", self.turned_away.load(Ordering::Relaxed)),
            ("lines dropped because standard output was too slow", self.outlet.dropped()),
            ("lines dropped because the access log was too slow", self.access.dropped()),
        ];
        let (always, others) = counters.as_ref().map(stack_rows).unwrap_or_default();
        let others = others.into_iter().chain(own).filter(|row| row.1 > 0);
        for (what, count) in always.into_iter().chain(others) {
            self.print(format!("{count:>8}  {what}"));
        }
    }

    /// Prints a line about a client, with the time.
    fn print_event(&self, mut line: Value) {
        line["at"] = now().into();
        self.print_json(&line);
    }

    fn print_words(&self, words: &str) {
        self.print(format!("{} {words}", now()));
    }

    fn print_json(&self, line: &Value) {
        self.print(escape::json(line, false));
    }

    fn print(&self, line: String) {
        self.outlet.put(To::Output, line);
    }
}

impl Access {
    fn dropped(&self) -> u64 {
        match self {
            Access::File(access) => access.dropped(),
            Access::None | Access::Output(_) => 0,
        }
    }
}

type Row = (&'static str, u64);

/// Returns the rows about a stack: those that are always shown, and those above zero.
fn stack_rows(counters: &Counters) -> (Vec<Row>, Vec<Row>) {
    let always = vec![
        ("Fast Open accepted", counters.tcp_fastopen_passive),
        ("replies or FINs on a SYN-ACK", counters.synack_data),
        ("cookie requests", counters.tcp_fastopen_cookie_reqd),
    ];
    let others = vec![
        ("cookies of the backup key", counters.tcp_fastopen_passive_alt_key),
        ("cookies refused", counters.tcp_fastopen_passive_fail),
        ("Fast Open queue full", counters.tcp_fastopen_listen_overflow),
        ("SYNs rejected by the replay guard", counters.replay_guard_hits + counters.replay_guard_full),
        ("segments retransmitted", counters.retrans_segs),
    ];
    (always, others)
}

/// Most time to write the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

fn dropped_words(lines: u64) -> String {
    format!("{} {lines} lines were dropped: standard output was not read in time", now())
}

fn dropped_object(lines: u64) -> String {
    json!({ "event": "dropped", "lines": lines, "at": now() }).to_string()
}

/// Formats an error with all its causes.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}

fn request_object(peer: SocketAddr, request: &Request, info: Option<&ConnectionInfo>) -> Value {
    let Request { method, path, status, bytes, early, .. } = request;
    let mut line = json!({
        "event": "request", "peer": peer.to_string(), "method": method, "path": path, "status": status,
        "bytes": bytes, "early": early, "version": format!("{:?}", request.version), "tls": request.tls,
    });
    add_fast_open(&mut line, info);
    line
}

fn request_words(peer: SocketAddr, request: &Request, info: Option<&ConnectionInfo>) -> String {
    let Request { method, path, status, bytes, .. } = request;
    let (method, path) = (escape::line(method), escape::line(path));
    let how = match (request.tls, request.early) {
        (true, true) => "; early data".to_owned(),
        (true, false) => String::new(),
        (false, early) => fast_open_words(early, info),
    };
    format!("{peer} {method} {path} {status} {bytes} bytes{how}")
}

fn add_fast_open(line: &mut Value, info: Option<&ConnectionInfo>) {
    if let Some(info) = info {
        line["syn_data_bytes"] = info.early_data.len.into();
        line["synack_data_bytes"] = info.synack_data_len.into();
    }
}

fn fast_open_words(early: bool, info: Option<&ConnectionInfo>) -> String {
    let syn = info.map_or(0, |info| info.early_data.len);
    let synack = info.map_or(0, |info| info.synack_data_len);
    match (early, syn, synack) {
        (false, _, _) => String::new(),
        (true, 0, _) => "; on the SYN".to_owned(),
        (true, syn, 0) => format!("; on the SYN ({syn} bytes)"),
        (true, syn, synack) => {
            format!("; on the SYN ({syn} bytes), reply on the SYN-ACK ({synack} bytes)")
        }
    }
}

/// Returns the time in RFC 3339 format, in UTC.
fn now() -> String {
    DateTime::<Utc>::from(SystemTime::now()).to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Display;

    #[test]
    fn an_error_tells_its_causes_once() {
        let inner = std::io::Error::other("the peer did not answer in time");
        let error = std::io::Error::other(Outer(inner));
        assert_eq!(with_causes(&error), "writing a body: the peer did not answer in time");
    }

    #[derive(Debug)]
    struct Outer(std::io::Error);

    impl Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("writing a body")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_path_does_not_steer_the_terminal() {
        let path = "/\u{9b}2J\u{7f}\u{202e}".to_owned();
        let asked = hyper::Request::get("/").body(()).unwrap();
        let request = Request { path, status: 200, bytes: 7, ..Request::of(&asked, false, false) };
        let words = request_words("10.0.0.1:5000".parse().unwrap(), &request, None);
        assert_eq!(words, r"10.0.0.1:5000 GET /\u{9b}2J\u{7f}\u{202e} 200 7 bytes");
    }
}
