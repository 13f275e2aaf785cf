//! `sysctl`'s names: those of the stack, those of Linux that can do nothing, and those that have no counterpart here.

use posix::Sockets;
use proto::{Config, Instant, SettingError};

/// Settings of Linux's that change no packet and no call here, with the range Linux takes (`net/ipv4/sysctl_net_ipv4.c`) and why.
const WITHOUT_EFFECT: &[(&str, i64, i64, &str)] = &[
    ("net.ipv4.tcp_fack", 0, 255, "Linux reads it nowhere since 4.15"),
    ("net.ipv4.tcp_low_latency", INT_MIN, INT_MAX, "Linux reads it nowhere since 4.14"),
    (
        "net.ipv4.tcp_autocorking",
        0,
        1,
        "it waits for what is queued below TCP, and packets leave at once here",
    ),
    ("net.ipv4.tcp_backlog_ack_defer", 0, 1, "no packet comes while another is in the works here"),
    ("net.ipv4.tcp_early_demux", 0, 255, "how a socket is looked up is not seen"),
    ("net.ipv4.ip_early_demux", 0, 255, "how a socket is looked up is not seen"),
];
const INT_MIN: i64 = i32::MIN as i64;
const INT_MAX: i64 = i32::MAX as i64;

/// Settings of Linux's that would change something, and have no counterpart here. All other names that the stack does not know, Linux
/// does not know either: there `sysctl` fails.
const ABSENT: &[&str] = &[
    "net.ipv4.icmp_echo_ignore_all",
    "net.ipv4.icmp_msgs_burst",
    "net.ipv4.icmp_msgs_per_sec",
    "net.ipv4.icmp_ratelimit",
    "net.ipv4.icmp_ratemask",
    "net.ipv4.ip_autobind_reuse",
    "net.ipv4.ip_nonlocal_bind",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_comp_sack_slack_ns",
    "net.ipv4.tcp_fwmark_accept",
    "net.ipv4.tcp_l3mdev_accept",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_plb_cong_thresh",
    "net.ipv4.tcp_plb_enabled",
    "net.ipv4.tcp_plb_idle_rehash_rounds",
    "net.ipv4.tcp_plb_rehash_rounds",
    "net.ipv4.tcp_plb_suspend_rto_sec",
];

/// Carries out `net.ipv4.tcp_sack=1`, `net/ipv4/tcp_sack=1` or the same with /proc/sys/ in front. The outer error: it cannot be done here.
/// The inner: Linux does not do it either.
pub(super) fn assign(
    sockets: &mut Sockets,
    now: Instant,
    assignment: &str,
) -> Result<Result<(), String>, String> {
    let (name, value) = parts(assignment)?;
    judged(&name, value, sockets.set(now, &name, value).map(drop))
}

/// What [`assign`] would say. That Linux does not know a name is no error yet: a command may say what to do then.
pub(super) fn check(assignment: &str) -> Result<(), String> {
    let (name, value) = parts(assignment)?;
    let set = match name.as_str() {
        "net.ipv4.tcp_fastopen_key" => Ok(()),
        "net.ipv4.conf.tun0.rp_filter" | "net.ipv4.conf.tun0.log_martians" => Ok(()),
        _ => Config::linux().set(&name, value).map(drop),
    };
    match set {
        Err(SettingError::Invalid(_)) => judged(&name, value, set)?,
        _ => judged(&name, value, set).map(drop),
    }
}

fn parts(assignment: &str) -> Result<(String, &str), String> {
    let (name, value) = assignment.split_once('=').ok_or(format!("`{assignment}` is not name=value"))?;
    Ok((name.trim().trim_start_matches("/proc/sys/").replace('/', "."), value.trim()))
}

fn judged(name: &str, value: &str, set: Result<(), SettingError>) -> Result<Result<(), String>, String> {
    match set {
        Ok(()) => Ok(Ok(())),
        Err(SettingError::Unknown) => match WITHOUT_EFFECT.iter().find(|(known, ..)| *known == name) {
            Some((_, least, most, why)) => match value.parse::<i64>() {
                Ok(number) if (*least..=*most).contains(&number) => Ok(Ok(())),
                _ => Ok(Err(format!("{name}={value}: it is {least} to {most} (and does nothing: {why})"))),
            },
            None if ABSENT.contains(&name) => Err(format!("{name} is a setting of Linux's that is not here")),
            None => Ok(Err(format!("{name} is no setting of the stack, nor of Linux"))),
        },
        Err(why) => Ok(Err(format!("{name}={value}: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_nothing_still_has_its_range() {
        for known in
            ["net.ipv4.tcp_fack=77", "/proc/sys/net/ipv4/tcp_autocorking=1", "net.ipv4.tcp_low_latency=-1"]
        {
            let (name, value) = parts(known).unwrap();
            assert_eq!(judged(&name, value, Err(SettingError::Unknown)), Ok(Ok(())), "{known}");
        }
        for (wrong, said) in [
            ("net.ipv4.tcp_fack=256", "it is 0 to 255"),
            ("net.ipv4.tcp_autocorking=2", "it is 0 to 1"),
            ("net.ipv4.tcp_colour=1", "no setting of the stack, nor of Linux"),
        ] {
            let (name, value) = parts(wrong).unwrap();
            let failed = judged(&name, value, Err(SettingError::Unknown)).unwrap().unwrap_err();
            assert!(failed.contains(said), "{failed}");
        }
        assert!(judged("net.ipv4.tcp_l3mdev_accept", "1", Err(SettingError::Unknown)).is_err());
    }

    #[test]
    fn no_setting_is_in_two_lists() {
        let names = Config::linux().all().into_iter().map(|(name, _)| name);
        let all: Vec<&str> =
            names.chain(WITHOUT_EFFECT.iter().map(|row| row.0)).chain(ABSENT.iter().copied()).collect();
        for (at, name) in all.iter().enumerate() {
            assert!(!all[..at].contains(name), "{name}");
        }
    }
}
