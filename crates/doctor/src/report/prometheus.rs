//! OpenMetrics text, which Prometheus reads too: one gauge per finding, and the number of rules
//! judged.
use super::Report;
use std::fmt::Write;

pub(super) fn prometheus(report: &Report) -> String {
    let mut out = "# HELP firstbyte_doctor_finding A rule that fires: 1 info, 2 warning, 3 critical.\n\
                   # TYPE firstbyte_doctor_finding gauge\n"
        .to_owned();
    for finding in &report.findings {
        let (rule, scope, severity) = (&finding.id, label(&finding.scope.to_string()), finding.severity);
        let value = severity as u8 + 1;
        let _ = writeln!(
            out,
            "firstbyte_doctor_finding{{rule=\"{rule}\",scope=\"{scope}\",severity=\"{severity}\"}} {value}"
        );
    }
    let _ = write!(
        out,
        "# HELP firstbyte_doctor_rules Number of rules that were judged, and that could not be judged.\n# TYPE firstbyte_doctor_rules gauge\n\
         firstbyte_doctor_rules{{judged=\"yes\"}} {}\nfirstbyte_doctor_rules{{judged=\"no\"}} {}\n\
         # HELP firstbyte_doctor_slowed 1 if samples are further apart than requested, to stay within the budget.\n\
         # TYPE firstbyte_doctor_slowed gauge\nfirstbyte_doctor_slowed {}\n# EOF\n",
        report.judged,
        report.not_judged.len(),
        u8::from(report.slowed.is_some())
    );
    out
}

fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
