//! Formats options of queueing disciplines like tc(8), from include/uapi/linux/pkt_sched.h.
mod cake;

use crate::sources::generic::Attributes;

/// Returns the options of a discipline, or none for an unknown kind.
pub(super) fn words(kind: &str, bytes: &[u8]) -> Vec<(String, String)> {
    let words = match kind {
        "pfifo_fast" | "prio" => priorities(bytes),
        "pfifo" => number(bytes, 0).map(|limit| vec![("limit", format!("{limit}p"))]),
        "bfifo" => number(bytes, 0).map(|limit| vec![("limit", size(limit.into()))]),
        "tbf" => token_bucket(&Attributes::within(bytes)),
        "htb" => classes(&Attributes::within(bytes)),
        "fq_codel" => Some(fq_codel(&Attributes::within(bytes))),
        "cake" => Some(cake::words(&Attributes::within(bytes))),
        _ => None,
    };
    words.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)).collect()
}

type Words = Vec<(&'static str, String)>;

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

/// struct tc_prio_qopt.
fn priorities(bytes: &[u8]) -> Option<Words> {
    let map = bytes.get(4..20)?.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
    Some(vec![("bands", number(bytes, 0)?.to_string()), ("priomap", map)])
}

/// Parses TCA_TBF_PARMS (struct tc_tbf_qopt: two rates of twelve bytes, limit, buffer and mtu) and
/// TCA_TBF_RATE64.
fn token_bucket(options: &Attributes) -> Option<Words> {
    let parameters = options.bytes(1)?;
    let rate = options.number(4).unwrap_or(number(parameters, 8)?.into());
    let (limit, buffer) = (number(parameters, 24)?, number(parameters, 28)?);
    // A tick is 64 ns (PSCHED_SHIFT).
    let filled = f64::from(buffer) * 64e-9;
    let per_second = rate.max(1) as f64;
    let latency = f64::from(limit) / per_second - filled;
    Some(vec![
        ("rate", bits(rate * 8)),
        ("burst", size((filled * per_second).round() as u64)),
        ("lat", time(latency * 1e6)),
    ])
}

/// Parses TCA_HTB_INIT (struct tc_htb_glob) and TCA_HTB_DIRECT_QLEN.
fn classes(options: &Attributes) -> Option<Words> {
    let global = options.bytes(2)?;
    let mut words = vec![
        ("r2q", number(global, 4)?.to_string()),
        ("default", format!("{:#x}", number(global, 8)?)),
        ("direct_packets_stat", number(global, 16)?.to_string()),
    ];
    words.extend(options.number(5).map(|packets| ("direct_qlen", packets.to_string())));
    Some(words)
}

/// Parses TCA_FQ_CODEL_*.
fn fq_codel(options: &Attributes) -> Words {
    let mut words = Vec::new();
    let mut add = |name, kind, show: fn(u64) -> String| {
        words.extend(options.number(kind).map(|value| (name, show(value))));
    };
    add("limit", 2, |packets| format!("{packets}p"));
    add("flows", 5, |flows| flows.to_string());
    add("quantum", 6, |bytes| bytes.to_string());
    add("target", 1, |micros| time(micros as f64));
    add("ce_threshold", 7, |micros| time(micros as f64));
    add("interval", 3, |micros| time(micros as f64));
    add("memory_limit", 9, size);
    if options.number(4) == Some(1) {
        words.push(("ecn", String::new()));
    }
    words.extend(
        options.number(8).filter(|packets| *packets > 0).map(|packets| ("drop_batch", packets.to_string())),
    );
    words
}

/// Formats a size like tc's print_size.
fn size(bytes: u64) -> String {
    let rounded = |unit: u64, slack: u64| {
        let whole = (bytes + unit / 2) / unit;
        (bytes >= unit && (whole * unit).abs_diff(bytes) < slack).then_some(whole)
    };
    match (rounded(1 << 20, 1024), rounded(1 << 10, 16)) {
        (Some(whole), _) => format!("{whole}Mb"),
        (_, Some(whole)) => format!("{whole}Kb"),
        _ => format!("{bytes}b"),
    }
}

/// Formats a rate like tc's print_rate.
fn bits(rate: u64) -> String {
    let mut rate = rate;
    let mut units = ["", "K", "M", "G", "T"].into_iter().peekable();
    let mut unit = units.next().unwrap_or_default();
    while rate >= 1000 && (rate.is_multiple_of(1000) || rate >= 1_000_000) && units.peek().is_some() {
        rate /= 1000;
        unit = units.next().unwrap_or_default();
    }
    format!("{rate}{unit}bit")
}

/// Formats microseconds with three digits, like tc's print_time.
fn time(micros: f64) -> String {
    let digits = |value: f64| {
        let places = if value >= 100.0 {
            0
        } else if value >= 10.0 {
            1
        } else {
            2
        };
        let text = format!("{value:.places$}");
        if places > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    match micros {
        _ if micros >= 1e6 => format!("{}s", digits(micros / 1e6)),
        _ if micros >= 1e3 => format!("{}ms", digits(micros / 1e3)),
        _ => format!("{:.0}us", micros.max(0.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_tc() {
        assert_eq!(
            (bits(5_000_000), bits(1_500_000), bits(999)),
            ("5Mbit".into(), "1500Kbit".into(), "999bit".into())
        );
        assert_eq!((size(4096), size(1600), size(33_554_432)), ("4Kb".into(), "1600b".into(), "32Mb".into()));
        assert_eq!(
            (time(4999.0), time(50_000.0), time(999.0)),
            ("5ms".into(), "50ms".into(), "999us".into())
        );
    }

    #[test]
    fn short_options_are_no_options() {
        for kind in ["pfifo_fast", "pfifo", "bfifo", "tbf", "htb", "fq_codel", "cake", "other"] {
            for length in 0..20 {
                assert!(words(kind, &[1; 19][..length.min(3)]).is_empty(), "{kind}");
            }
        }
    }
}
