//! Settings with bad values: each is found, its own fix repairs it, and its undo command reverts
//! the fix.
use crate::shown::Show;
use crate::{assert_healthy, findings, of, shell};
use doctor::Evidence;
use std::net::TcpListener;

const CASES: &[(&str, &str, &str)] = &[
    ("ACC-11", "net.ipv4.tcp_max_syn_backlog", "65536"),
    ("ACC-06", "net.ipv4.tcp_abort_on_overflow", "1"),
    ("ACC-09", "net.ipv4.tcp_syncookies", "0"),
    ("ACC-10", "net.ipv4.tcp_syncookies", "2"),
    ("CC-02", "net.ipv4.tcp_no_ssthresh_metrics_save", "0"),
    ("CC-08", "net.ipv4.tcp_early_retrans", "0"),
    ("CC-08", "net.ipv4.tcp_recovery", "0"),
    ("ST-10", "net.ipv4.tcp_fin_timeout", "30"),
    ("TFO-01", "net.ipv4.tcp_fastopen", "0"),
    ("TFO-10", "net.ipv4.tcp_fastopen", "515"),
    ("TFO-11", "net.ipv4.tcp_fastopen", "259"),
    ("TFO-12", "net.ipv4.tcp_fastopen", "1027"),
    ("WIN-01", "net.ipv4.tcp_window_scaling", "0"),
    ("WIN-08", "net.ipv4.tcp_moderate_rcvbuf", "0"),
    ("WIN-12", "net.ipv4.tcp_sack", "0"),
    ("WIN-12", "net.ipv4.tcp_timestamps", "0"),
    ("WIN-13", "net.ipv4.tcp_adv_win_scale", "2"),
    ("WIN-13", "net.ipv4.tcp_fack", "1"),
    ("TX-06", "net.ipv4.tcp_limit_output_bytes", "4096"),
];

pub(crate) fn each_wrong_setting_is_found_and_gone_after_its_fix(show: &Show) {
    testnet::in_namespace(|| {
        let _listener = TcpListener::bind("0.0.0.0:0").unwrap();
        for (id, setting, value) in CASES {
            let usual = testnet::read_sysctl(setting);
            let found = findings(|| {});
            assert_healthy(&found);
            show.silent(&[id], &found);
            testnet::sysctl(setting, value);
            let found = findings(|| {});
            show.fires(&[id], &found);
            let finding = of(&found, id)[0];
            let said = |evidence: &Evidence| evidence.name == *setting && evidence.value == *value;
            assert!(finding.evidence.iter().any(said), "{finding:#?}");
            show.run(&[id]);
            show.gone(&[id], &findings(|| {}));
            for step in &finding.fix.steps {
                shell(step.undo.as_deref().unwrap());
            }
            assert_eq!(testnet::read_sysctl(setting), *value, "{id}");
            testnet::sysctl(setting, &usual);
        }
    });
}
