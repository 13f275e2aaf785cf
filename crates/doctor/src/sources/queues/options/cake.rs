//! Formats cake's options (TCA_CAKE_*) in the order of tc.
use super::{Words, bits, size, time};
use crate::sources::generic::Attributes;

/// TCA_CAKE_*.
const BASE_RATE64: u16 = 2;
const DIFFSERV_MODE: u16 = 3;
const ATM: u16 = 4;
const FLOW_MODE: u16 = 5;
const OVERHEAD: u16 = 6;
const RTT: u16 = 7;
const AUTORATE: u16 = 9;
const MEMORY: u16 = 10;
const NAT: u16 = 11;
const RAW: u16 = 12;
const WASH: u16 = 13;
const MPU: u16 = 14;
const INGRESS: u16 = 15;
const ACK_FILTER: u16 = 16;
const SPLIT_GSO: u16 = 17;
const FWMARK: u16 = 18;

/// Names of CAKE_DIFFSERV_*, CAKE_FLOW_*, CAKE_ACK_* and CAKE_ATM_*, each from 0.
const TINS: [&str; 5] = ["diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"];
const ISOLATION: [&str; 8] =
    ["flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"];
const ACK_FILTERS: [&str; 3] = ["no-ack-filter", "ack-filter", "ack-filter-aggressive"];
const CODINGS: [&str; 3] = ["noatm", "atm", "ptm"];

pub(super) fn words(options: &Attributes) -> Words {
    let mut words = Vec::new();
    let is_raw = options.bytes(RAW).is_some();
    let mut flag = |name: Option<&&'static str>| words.extend(name.map(|name| (*name, String::new())));
    let of = |names: &'static [&'static str], kind| {
        options.number(kind).and_then(|number| names.get(usize::try_from(number).ok()?))
    };
    let yes_no = |kind, yes: &'static &'static str, no: &'static &'static str| {
        options.number(kind).map(|number| if number > 0 { yes } else { no })
    };
    flag(options.number(AUTORATE).filter(|number| *number > 0).map(|_| &"autorate-ingress"));
    flag(of(&TINS, DIFFSERV_MODE));
    flag(of(&ISOLATION, FLOW_MODE));
    flag(yes_no(NAT, &"nat", &"nonat"));
    flag(yes_no(WASH, &"wash", &"nowash"));
    flag(options.number(INGRESS).filter(|number| *number > 0).map(|_| &"ingress"));
    flag(of(&ACK_FILTERS, ACK_FILTER));
    flag(yes_no(SPLIT_GSO, &"split-gso", &"no-split-gso"));
    let rate = options.number(BASE_RATE64).map(|rate| match rate {
        0 => "unlimited".to_owned(),
        rate => bits(rate.saturating_mul(8)),
    });
    words.splice(0..0, rate.map(|rate| ("bandwidth", rate)));
    words.extend(options.number(RTT).map(|micros| ("rtt", time(micros as f64))));
    words.extend(is_raw.then(|| ("raw", String::new())));
    let coding = of(&CODINGS, ATM).filter(|coding| !(is_raw && **coding == "noatm"));
    words.extend(coding.map(|coding| (*coding, String::new())));
    // The overhead may be negative.
    words.extend(options.number(OVERHEAD).map(|bytes| ("overhead", (bytes as u32 as i32).to_string())));
    let positive = |kind| options.number(kind).filter(|number| *number > 0);
    words.extend(positive(MPU).map(|bytes| ("mpu", bytes.to_string())));
    words.extend(positive(MEMORY).map(|bytes| ("memlimit", size(bytes))));
    words.extend(positive(FWMARK).map(|mask| ("fwmark", format!("{mask:#x}"))));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes attributes like the kernel.
    fn options(list: &[(u16, &[u8])]) -> Attributes {
        let mut bytes = Vec::new();
        for (kind, value) in list {
            bytes.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
            bytes.extend_from_slice(&kind.to_ne_bytes());
            bytes.extend_from_slice(value);
        }
        Attributes::within(&bytes)
    }

    fn text(list: &[(u16, &[u8])]) -> String {
        let word = |(name, value): (&str, String)| format!("{name} {value}").trim_end().to_owned();
        words(&options(list)).into_iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn they_are_told_in_the_order_of_tc() {
        let number = |value: u32| value.to_ne_bytes();
        let minus_four = (-4i32).to_ne_bytes();
        let told = text(&[
            (BASE_RATE64, &2_500_000u64.to_ne_bytes()),
            (FLOW_MODE, &number(7)),
            (RTT, &number(100_000)),
            (MEMORY, &number(4 << 20)),
            (AUTORATE, &number(0)),
            (INGRESS, &number(1)),
            (ACK_FILTER, &number(2)),
            (NAT, &number(0)),
            (DIFFSERV_MODE, &number(3)),
            (WASH, &number(1)),
            (OVERHEAD, &minus_four),
            (ATM, &number(2)),
            (MPU, &number(64)),
            (SPLIT_GSO, &number(1)),
            (FWMARK, &number(0)),
        ]);
        let expected = "bandwidth 20Mbit besteffort triple-isolate nonat wash ingress ack-filter-aggressive split-gso rtt 100ms ptm overhead -4 mpu 64 memlimit 4Mb";
        assert_eq!(told, expected);
    }

    #[test]
    fn raw_and_unlimited_are_said() {
        let zero = 0u32.to_ne_bytes();
        let told = text(&[(BASE_RATE64, &[0; 8]), (OVERHEAD, &zero), (RAW, &zero), (ATM, &zero)]);
        assert_eq!(told, "bandwidth unlimited raw overhead 0");
    }
}
