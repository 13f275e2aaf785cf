//! `firstbyte lab`: scenarios in virtual time. Parses arguments, runs a scenario of the `lab`
//! crate, prints its report.

mod all;
mod args;
mod parallel;
mod real;
mod shelf;
mod sweep;

pub(crate) use args::LabArgs;

use crate::failure::Failure;
use crate::output::{write_whole, write_with};
use crate::terminal::{page_style, print};
use ::lab::report::{
    Finding, Page, Report, document, traces, write_pcapng, write_pcapng_of_servers, write_series,
};
use ::lab::scenario::{self, CATALOGUE};
use args::{
    BigRequestArgs, CongestionArgs, FallbackArgs, FastOpenArgs, FlagsArgs, MiddleboxArgs, OutputArgs,
    PacketsArgs, QlenArgs, ReplayArgs, Scenario, TextbookArgs,
};
use firstbyte::CongestionControl;
use std::path::Path;
use std::process::ExitCode;

/// Runs the verb.
///
/// # Errors
/// An unknown scenario, or a file that cannot be written.
pub(crate) fn run(args: LabArgs) -> Result<ExitCode, Failure> {
    match args.scenario {
        None => print(&list()),
        Some(Scenario::All(args)) => all::run(&args),
        Some(Scenario::Find { words }) => print(&shelf::find(&words)?),
        Some(Scenario::Sweep(args)) => sweep::run(&args),
        Some(Scenario::Check { files, limit }) => shelf::check(&files, limit.unwrap_or_default()),
        Some(Scenario::Run { file, changes, output }) => shelf::run_file(&file, &changes, &output),
        Some(Scenario::Unknown(words)) => shelf::run_named(&words),
        Some(scenario) => {
            let name = scenario.name();
            let (report, output) = perform(scenario);
            draw(name, &*report, &output)?;
            show(&*report, &output)
        }
    }
}

fn perform(scenario: Scenario) -> (Box<dyn Report>, OutputArgs) {
    match scenario {
        Scenario::FastOpen(FastOpenArgs { rtt, count, request, reply, profile, ipv6, forget, output }) => {
            let (count, request_len, reply_len) = (size(count), size(request), size(reply));
            let (profile, seed) = (profile.into(), output.seed());
            let params = scenario::fast_open::Params {
                rtt,
                count,
                request_len,
                reply_len,
                profile,
                ipv6,
                forget,
                seed,
            };
            (Box::new(scenario::fast_open::run(&params)), output)
        }
        Scenario::Packets(PacketsArgs { rtt, request, reply, output }) => {
            let (request_len, reply_len) = (size(request), size(reply));
            let params = scenario::packets::Params { rtt, request_len, reply_len, seed: output.seed() };
            (Box::new(scenario::packets::run(&params)), output)
        }
        Scenario::Fallback(FallbackArgs { rtt, request, reply, output }) => {
            let (request_len, reply_len) = (size(request), size(reply));
            let params = scenario::fallback::Params { rtt, request_len, reply_len, seed: output.seed() };
            (Box::new(scenario::fallback::run(&params)), output)
        }
        Scenario::Middlebox(MiddleboxArgs { rtt, count, output }) => {
            let params = scenario::middlebox::Params { rtt, count: size(count), seed: output.seed() };
            (Box::new(scenario::middlebox::run(&params)), output)
        }
        Scenario::Qlen(QlenArgs { rtt, clients, qlen, output }) => {
            let params = scenario::qlen::Params { rtt, clients: size(clients), qlen, seed: output.seed() };
            (Box::new(scenario::qlen::run(&params)), output)
        }
        Scenario::BigRequest(BigRequestArgs { rtt, request, mtu, output }) => {
            let (request_len, mtu) = (size(request), size(mtu));
            let params = scenario::big_request::Params { rtt, request_len, mtu, seed: output.seed() };
            (Box::new(scenario::big_request::run(&params)), output)
        }
        Scenario::Flags(FlagsArgs { rtt, profile, output }) => {
            let params = scenario::flags::Params { rtt, profile: profile.into(), seed: output.seed() };
            (Box::new(scenario::flags::run(&params)), output)
        }
        Scenario::Replay(ReplayArgs { rtt, output }) => {
            let params = scenario::replay::Params { rtt, seed: output.seed() };
            (Box::new(scenario::replay::run(&params)), output)
        }
        Scenario::Congestion(CongestionArgs {
            rtt,
            algorithm,
            mbit,
            queue,
            qdisc,
            loss,
            size: kb,
            output,
        }) => {
            let params = scenario::congestion::Params {
                algorithms: algorithm.into_iter().map(CongestionControl::from).collect(),
                rtt,
                rate: u64::from(mbit) * 1_000_000,
                queue_percent: queue,
                qdisc,
                loss_percent: f64::from(loss) / 10.0,
                len: size(kb) * 1000,
                seed: output.seed(),
            };
            (Box::new(scenario::congestion::run(&params)), output)
        }
        Scenario::Textbook(TextbookArgs { rtt, algorithm, ssthresh, lose, rounds, output }) => {
            let params = scenario::textbook::Params {
                algorithm: algorithm.into(),
                rtt,
                ssthresh,
                losses: lose,
                rounds: size(rounds),
                seed: output.seed(),
            };
            (Box::new(scenario::textbook::run(&params)), output)
        }
        Scenario::All(_)
        | Scenario::Find { .. }
        | Scenario::Check { .. }
        | Scenario::Run { .. }
        | Scenario::Sweep(_)
        | Scenario::Unknown(_) => unreachable!("`run` handles these verbs"),
    }
}

fn draw(name: &str, report: &dyn Report, output: &OutputArgs) -> Result<(), Failure> {
    let question = CATALOGUE.iter().find(|entry| entry.name == name).map_or("", |entry| entry.question);
    draw_document(|| document(name, question, report), output.html.as_deref(), output.svg.as_deref())
}

/// Writes the requested pictures.
fn draw_document(
    document: impl Fn() -> picture::Document,
    html: Option<&Path>,
    svg: Option<&Path>,
) -> Result<(), Failure> {
    html.map_or(Ok(()), |path| write_whole(path, document().to_html()))?;
    svg.map_or(Ok(()), |path| write_whole(path, document().to_svg()))
}

fn show(report: &dyn Report, output: &OutputArgs) -> Result<ExitCode, Failure> {
    if let Some(path) = &output.pcap {
        write_with(path, |out| write_pcapng(out, &report.recordings()))?;
    }
    if let Some(path) = &output.pcap_server {
        write_with(path, |out| write_pcapng_of_servers(out, &report.recordings()))?;
    }
    if let Some(path) = &output.csv {
        write_with(path, |out| write_series(out, &report.recordings()))?;
    }
    let findings = report.findings();
    let holds = findings.iter().all(|finding| finding.holds);
    let ending = if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if output.json {
        let mut values = report.json();
        values["findings"] = findings.iter().map(Finding::json).collect();
        if output.trace {
            values["trace"] = traces(&report.recordings()).into_iter().collect();
        }
        print(&format!("{values:#}\n"))?;
        return Ok(ending);
    }
    let mut page = Page::new(page_style());
    report.render_with_findings(&mut page);
    if let Some(path) = &output.pcap {
        page.gap();
        page.line(&format!(
            "Packets are in {}; notes on them are packet comments (frame.comment).",
            path.display()
        ));
    }
    if let Some(path) = &output.pcap_server {
        page.gap();
        page.line(&format!("Packets as seen by the server are in {}.", path.display()));
    }
    if let Some(path) = &output.csv {
        page.gap();
        page.line(&format!("Windows and round trips are in {}, one row per change.", path.display()));
    }
    for path in [&output.html, &output.svg].into_iter().flatten() {
        page.gap();
        page.line(&format!("Pictures are in {}.", path.display()));
    }
    if output.trace {
        let traces = traces(&report.recordings());
        for (name, lines) in &traces {
            let of_run = if traces.len() == 1 { String::new() } else { format!(" of {name}") };
            page.heading(&format!("Trace{of_run}: ms, end, connection, what"));
            lines.iter().for_each(|line| page.line(line));
        }
    }
    print(&page.into_text())?;
    Ok(ending)
}

fn list() -> String {
    let mut text = shelf::list(&[]);
    text.push_str("\nStart with: firstbyte lab fast-open --rtt 170ms --count 10\n");
    text.push_str("Run all of them: firstbyte lab all --html DIR     Search: firstbyte lab find WORD\n");
    text.push_str("Options of a scenario: firstbyte lab SCENARIO --help\n");
    text
}

fn size(number: u32) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use super::args::tests::parse;
    use super::*;

    #[test]
    fn values_hold_the_trace_where_it_is_asked_for() {
        let (report, output) = perform(parse("packets --json --trace").unwrap().scenario.unwrap());
        assert!(output.trace && output.json);
        assert!(!traces(&report.recordings()).is_empty());
        assert!(report.json().is_object(), "the trace is put in");
    }

    #[test]
    fn an_unknown_scenario_is_answered_with_the_nearest_name() {
        let failure = run(parse("fast-opne").unwrap()).unwrap_err();
        assert!(failure.message().contains("did you mean `fast-open`?"), "{failure:?}");
    }

    #[test]
    fn a_scenario_in_the_place_of_a_file_is_recognised() {
        for (line, told) in [
            ("run bufferbloat", "`firstbyte lab bufferbloat`"),
            ("check bufferbloat", "`firstbyte lab bufferbloat`"),
            ("sweep fast-open", "cannot sweep `fast-open`"),
        ] {
            let failure = run(parse(line).unwrap()).unwrap_err();
            assert!(failure.message().contains(told), "{failure:?}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = std::io::Error::from_raw_os_error(2);
        let path = Path::new("/nonexistent/x");
        for option in ["--pcap", "--pcap-server", "--csv"] {
            assert_eq!(
                run(parse(&format!("qlen {option} /nonexistent/x")).unwrap()),
                Err(Failure::file("write", path, &error))
            );
        }
    }
}
