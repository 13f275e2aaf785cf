//! The HTML page: the verdict in words, and each visit as a ladder diagram of this end.
use super::Target;
use super::report::{Report, answer, first_byte, hop};
use picture::{Block, Document, Kind, Ladder, Run, Rung, Table, Way};
use probe::{Answer, Visit};

/// Returns the document for all tested addresses.
pub(super) fn document(target: &Target, reports: &[Report]) -> Document {
    let Target { host, port, .. } = target;
    let mut document = Document::new(
        format!("Fast Open to {host}, port {port}"),
        "Does TCP Fast Open work between this host and the server, and if not, what breaks it?",
    );
    for report in reports {
        document.answer.extend(words(report));
        document.runs.extend(report.visits.iter().map(|visit| run(report, visit)));
    }
    document
}

fn words(report: &Report) -> Vec<Block> {
    let Report { server, by, verdict, .. } = report;
    let mut words = vec![
        Block::Heading(format!("{server}, by {by}")),
        Block::Answer(report.works(), verdict.sentence.clone()),
    ];
    if !verdict.fix.is_empty() {
        words.push(Block::Text(verdict.fix.clone()));
    }
    words.push(Block::Table(table(&report.visits)));
    let hops: Vec<String> =
        report.hops.iter().map(|(limit, answer)| format!("{limit}: {}", hop(answer))).collect();
    for (heading, lines) in [
        ("Evidence", &verdict.evidence),
        ("SYNs with data, by their hop limit", &hops),
        ("Advice", &verdict.deduced),
    ] {
        if !lines.is_empty() {
            words.push(Block::Heading(heading.to_owned()));
            words.extend(lines.iter().cloned().map(Block::Text));
        }
    }
    if let Some(packets) = report.packets {
        words.push(Block::Text(format!("{packets} packets were sent.")));
    }
    words
}

fn table(visits: &[Visit]) -> Table {
    let columns = [
        ("probe", false),
        ("SYNs", true),
        ("answer", false),
        ("after", true),
        ("data taken", true),
        ("cookie", false),
        ("first byte", true),
    ];
    let millis = |time: Option<f64>| time.map_or(String::new(), |time| format!("{time:.1} ms"));
    let row = |visit: &Visit| {
        let taken = match visit.sent {
            0 => String::new(),
            sent => format!("{} of {sent}", visit.acknowledged),
        };
        vec![
            visit.probe.to_string(),
            visit.syns.to_string(),
            answer(visit).to_owned(),
            millis(visit.answered_ms),
            taken,
            visit.cookie.clone().unwrap_or_default(),
            first_byte(visit).trim_matches('-').to_owned(),
        ]
    };
    Table {
        columns: columns.map(|(name, numbers)| (name.to_owned(), numbers)).to_vec(),
        rows: visits.iter().map(row).collect(),
    }
}

/// Draws a visit. The times of packets are those of this end; of the SYNs, only the first has a
/// time.
fn run(report: &Report, visit: &Visit) -> Run {
    let name = format!("{}: {}", report.server.ip(), visit.probe);
    let mut rungs: Vec<Rung> = (1..=visit.syns).map(|number| syn(visit, number)).collect();
    rungs.extend(came_back(visit));
    if visit.reply > 0 {
        rungs.push(Rung {
            numbers: format!("{} bytes", visit.reply),
            ..rung(Way::Left, Kind::Data, visit.first_byte_ms, "the reply begins")
        });
    }
    if visit.reset {
        rungs.push(rung(Way::Left, Kind::Reset, None, "reset"));
    }
    let ladder = Ladder {
        title: visit.probe.words().to_owned(),
        left: "here".to_owned(),
        right: report.server.to_string(),
        rungs,
        left_out: 0,
    };
    Run { ladder: Some(ladder), ..Run::new(name) }
}

fn syn(visit: &Visit, number: usize) -> Rung {
    let is_last = number == visit.syns;
    let is_plain = visit.paused || is_last && visit.fell_back;
    let option = match () {
        () if is_plain => "plain SYN",
        () if visit.probe.needs_cookie() => "SYN with the cookie",
        () if visit.probe == probe::Probe::Request => "SYN, requests a cookie",
        () => "SYN",
    };
    let kind = match () {
        () if number > 1 => Kind::Again,
        () if is_plain || option == "SYN" => Kind::Control,
        () => Kind::Cookie,
    };
    let is_lost = !is_last || visit.answer == Answer::Nothing;
    Rung {
        numbers: if is_plain || visit.sent == 0 {
            String::new()
        } else {
            format!("{} bytes of data", visit.sent)
        },
        lost_by: is_lost.then(|| "no answer".to_owned()),
        ..rung(Way::Right, kind, (number == 1).then_some(0.0), option)
    }
}

fn came_back(visit: &Visit) -> Option<Rung> {
    let (kind, label) = match visit.answer {
        Answer::SynAck if visit.cookie.is_some() => (Kind::Cookie, "SYN-ACK with a cookie".to_owned()),
        Answer::SynAck => (Kind::Control, "SYN-ACK".to_owned()),
        Answer::Reset => (Kind::Reset, "reset".to_owned()),
        Answer::Unreachable(router) => (Kind::Reset, format!("{router}: unreachable")),
        Answer::TooBig(router, mtu) => (Kind::Reset, format!("{router}: at most {mtu} bytes")),
        Answer::Expired(router) => (Kind::Reset, format!("{router}: hop limit exceeded")),
        Answer::Nothing => return None,
    };
    let numbers = match visit.sent {
        0 => String::new(),
        sent => format!("accepts {} of {sent} bytes", visit.acknowledged),
    };
    Some(Rung { numbers, ..rung(Way::Left, kind, visit.answered_ms, &label) })
}

fn rung(way: Way, kind: Kind, left_ms: Option<f64>, label: &str) -> Rung {
    Rung {
        way,
        kind,
        left_ms,
        right_ms: None,
        label: label.to_owned(),
        numbers: String::new(),
        said: String::new(),
        detail: label.to_owned(),
        lost_by: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::Probe;

    #[test]
    fn a_kernel_that_pauses_sends_a_plain_syn() {
        let visit =
            |paused| Visit { syns: 1, answer: Answer::SynAck, paused, ..Visit::new(Probe::Cookie, 0) };
        assert_eq!(
            [false, true].map(|paused| syn(&visit(paused), 1).label),
            ["SYN with the cookie", "plain SYN"]
        );
    }
}
