//! An HTML page in one file that loads nothing: findings with their evidence as curves, and the
//! path of a packet through the host.
//!
//! - `page/path.rs`: the places on that path, with their numbers and findings;
//! - `page/curve.rs`: evidence over the samples.
mod curve;
mod path;

use super::{Report, counted};
use crate::finding::{Finding, Severity};
use crate::sample::Sample;
use std::fmt::Write;

/// Returns the page of a report, with the samples it was made from, earliest first.
pub(super) fn page(report: &Report, samples: &[Sample]) -> String {
    let mut body = head(report);
    if let (Some(first), Some(last)) = (samples.first(), samples.last()) {
        body += &path::drawing(report, first, last);
    }
    body += "<h2>Findings</h2>\n";
    if report.findings.is_empty() {
        body += "<p>No findings.</p>\n";
    }
    report.findings.iter().enumerate().for_each(|(at, finding)| body += &one(at, finding, samples));
    body += &unread(report);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>TCP of this host</title>\n<style>\n{STYLE}</style></head>\n<body><main>\n{body}</main></body></html>\n"
    )
}

const STYLE: &str = include_str!("page/style.css");

fn head(report: &Report) -> String {
    let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let verdict = match report.findings.first().filter(|worst| worst.severity > Severity::Info) {
        Some(worst) => format!("{}: {}", worst.severity, worst.symptom),
        None => "no warning".to_owned(),
    };
    let worst = report.worst().unwrap_or(Severity::Info);
    format!(
        "<h1 class=\"{worst}\">{}</h1>\n<p>Linux {}, window: {}. {} critical, {}, {} info; {} rules judged.</p>\n",
        text(&verdict),
        text(&report.kernel),
        text(&report.window),
        count(Severity::Critical),
        counted(count(Severity::Warning), "warning"),
        count(Severity::Info),
        report.judged
    )
}

fn one(at: usize, finding: &Finding, samples: &[Sample]) -> String {
    let Finding { id, severity, scope, symptom, evidence, formula, why, fix, confidence, kernels } = finding;
    let mut out = format!(
        "<section class=\"finding {severity}\" id=\"f{at}\">\n<h3><span>{severity} {id}</span> {} <small>{}</small></h3>\n<p>{}</p>\n",
        text(symptom),
        text(&scope.to_string()),
        text(why)
    );
    out += "<table>\n";
    for evidence in evidence {
        let curve = curve::of(finding, evidence, samples).unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{curve}</td></tr>",
            text(&evidence.name),
            text(&evidence.value),
            text(&evidence.window)
        );
    }
    let _ = write!(
        out,
        "</table>\n<p><code>{}</code></p>\n<p><b>Fix.</b> {}</p>\n",
        text(formula),
        text(&fix.advice)
    );
    for step in &fix.steps {
        let _ = writeln!(out, "<pre>{}</pre>", text(&step.command));
        let more = [
            ("takes effect", &step.effect),
            ("lasting", &step.persist),
            ("undo", &step.undo),
            ("not possible here", &step.obstacle),
        ];
        for (word, what) in more {
            if let Some(what) = what {
                let _ = writeln!(out, "<p class=\"more\">{word}: {}</p>", text(what));
            }
        }
    }
    let _ = write!(
        out,
        "<p class=\"more\">confidence: {confidence}; kernels: {}</p>\n</section>\n",
        text(kernels)
    );
    out
}

fn unread(report: &Report) -> String {
    let mut lines: Vec<String> =
        report.unread.iter().map(|unread| format!("not read: {}", unread.reason)).collect();
    lines.extend(
        report.silenced.iter().map(|silenced| format!("silenced: {}: {}", silenced.id, silenced.reason)),
    );
    let reasons = report.reasons();
    lines.extend(reasons.iter().map(|(reason, ids)| format!("not judged: {}: {reason}", ids.join(", "))));
    lines.iter().map(|line| format!("<p class=\"more\">{}</p>\n", text(line))).collect()
}

/// Escapes text for HTML.
fn text(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use crate::policy::Policy;
    use crate::report::Report;
    use crate::sample::{Sample, Socket, state};
    use crate::window::Window;

    fn sample(uptime: f64, overflows: u64) -> Sample {
        let listener = Socket {
            state: state::LISTEN,
            local_port: 80,
            recv_queue: 6,
            send_queue: 5,
            ..Socket::default()
        };
        Sample {
            kernel: "6.18.0 <b>".to_owned(),
            uptime,
            counters: [
                ("TcpExtListenOverflows".to_owned(), overflows),
                ("TcpExtListenDrops".to_owned(), overflows),
            ]
            .into(),
            sockets: vec![listener],
            ..Sample::default()
        }
    }

    #[test]
    fn a_page_has_findings_curves_and_the_path_and_fetches_nothing() {
        let samples: Vec<Sample> =
            (0..6).map(|at| sample(f64::from(at), u64::try_from(at * at).unwrap())).collect();
        let window = Window::between(&samples[0], &samples[5]);
        let report = Report::by(&window, &Policy::default());
        assert!(report.findings.iter().any(|finding| finding.id == "ACC-01"), "{:?}", report.findings);
        let page = report.page(&samples);
        assert!(page.contains("critical ACC-01") && page.contains("6.18.0 &lt;b&gt;"), "{page}");
        // Six samples give five windows.
        assert!(page.contains("<polyline") && page.contains("from 1 to 9 a second"), "{page}");
        assert!(page.contains("ListenOverflows +25"), "the listeners of the path: {page}");
        assert!(page.contains("href=\"#f"), "a place names its findings");
        assert!(!page.contains("http") && !page.contains("<script"), "it stands alone");
    }
}
