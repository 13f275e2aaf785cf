//! Commands and packets played on this machine's kernel and on ours: texts, order, drops and counters agree.
//!
//! Needs root, iproute2 and Python; elsewhere each test prints a line that begins with `SKIPPED`. The kernel's disciplines are
//! pfifo, bfifo, pfifo_head_drop, pfifo_fast, tbf and htb; where one is missing in the kernel at hand the test is skipped too.
mod side;

use side::{compare, replay, stands_still};

#[test]
fn adding_replacing_and_deleting_a_root() {
    replay(include_str!("../../src/tc/transcripts/root.txt"));
}

#[test]
fn classes_and_what_stands_in_them() {
    replay(include_str!("../../src/tc/transcripts/classes.txt"));
}

#[test]
fn options_that_are_wrong() {
    replay(include_str!("../../src/tc/transcripts/mistakes.txt"));
}

/// A bucket so slow that it stands still beside the test: 2000 bytes leave, the rest waits until the rate is raised.
const STILL: &str = "tc qdisc add dev v0 root handle 1: tbf rate 800bit burst 2000 limit 100k\n";
const RELEASE: &str = "tc -s qdisc show dev v0
tc qdisc change dev v0 root handle 1: tbf rate 1gbit burst 200k limit 100k
send 1500 0 999
pause 0.2
tc -s qdisc show dev v0\n";

#[test]
fn pfifo_refuses_what_does_not_fit() {
    let frames: String = (1..=14).map(|number| format!("send 500 0 {number}\n")).collect();
    compare(&format!("{STILL}tc qdisc add dev v0 parent 1:1 handle 10: pfifo limit 6\n{frames}{RELEASE}"));
}

#[test]
fn pfifo_head_drop_gives_up_the_oldest() {
    let frames: String = (1..=14).map(|number| format!("send 500 0 {number}\n")).collect();
    compare(&format!(
        "{STILL}tc qdisc add dev v0 parent 1:1 handle 10: pfifo_head_drop limit 6\n{frames}{RELEASE}"
    ));
}

#[test]
fn bfifo_counts_bytes() {
    let lengths = [1500, 400, 900, 900, 1300, 60, 700, 1514, 64, 200, 1000, 60];
    let frames: String = lengths.iter().zip(1..).map(|(len, n)| format!("send {len} 0 {n}\n")).collect();
    compare(&format!("{STILL}tc qdisc add dev v0 parent 1:1 handle 10: bfifo limit 3k\n{frames}{RELEASE}"));
}

#[test]
fn tbf_refuses_what_is_longer_than_its_bucket() {
    let lengths = [900, 400, 1001, 64, 1000, 60, 1514, 300, 990];
    let frames: String = lengths.iter().zip(1..).map(|(len, n)| format!("send {len} 0 {n}\n")).collect();
    let tbf = "tc qdisc add dev v0 root handle 1: tbf rate 8kbit burst 1000 limit 2000\n";
    compare(&format!("{tbf}{frames}{RELEASE}"));
}

#[test]
fn tbf_with_a_peak_rate_and_a_size_table() {
    let tbf = "tc qdisc add dev v0 root handle 1: stab linklayer atm overhead 10 tbf rate 8kbit burst 4000 limit 100k peakrate 16kbit mtu 1600\n";
    let frames: String = (1..=8).map(|n| format!("send {} 0 {n}\n", 100 * n)).collect();
    compare(&format!("{tbf}{frames}{RELEASE}"));
}

#[test]
fn pfifo_fast_serves_its_bands_in_order() {
    let frames: String = (0..32).map(|n| format!("send 500 {} {n}\n", (n * 7) % 16)).collect();
    compare(&format!(
        "{STILL}tc qdisc add dev v0 parent 1:1 handle 10: pfifo_fast\nsend 500 0 90\nsend 500 0 91\nsend 500 0 92\nsend 500 0 93\n{frames}{RELEASE}"
    ));
}

const HTB: &str = "tc qdisc add dev v0 root handle 1: htb default 30 direct_qlen 3
tc class add dev v0 parent 1: classid 1:1 htb rate 80kbit burst 2000 cburst 2000
tc class add dev v0 parent 1:1 classid 1:10 htb rate 24kbit ceil 80kbit burst 1200 cburst 1200 quantum 1000
tc class add dev v0 parent 1:1 classid 1:20 htb rate 40kbit ceil 80kbit burst 1300 cburst 1300 quantum 2000
tc class add dev v0 parent 1:1 classid 1:30 htb rate 8kbit ceil 16kbit burst 1200 cburst 1200 quantum 1000 prio 1\n";

#[test]
fn htb_default_class_direct_packets_and_full_leaves() {
    let frames: String = (1..=20)
        .map(|n| format!("send 600 {} {n}\n", [0x1_0010, 0x1_0000, 7, 0x1_0099, 0x1_0020][n % 5]))
        .collect();
    compare(&format!(
        "{HTB}tc qdisc add dev v0 parent 1:10 handle 10: pfifo limit 2\n{frames}tc -s qdisc show dev v0\npause 6\ntc -s qdisc show dev v0\n"
    ));
}

#[test]
fn htb_leaves_borrow_in_turns() {
    let frames: String =
        (1..=30).map(|n| format!("send 500 {} {n}\n", [0x1_0010, 0x1_0020, 0x1_0030][n % 3])).collect();
    compare(&format!("{HTB}{frames}pause 9\ntc -s qdisc show dev v0\ntc -s class show dev v0\n"));
}

/// Frames of random lengths and priorities from a seed.
fn random_frames(seed: u64, count: u32) -> String {
    let mut rng = qdisc::Rng::new(seed);
    (1..=count).map(|n| format!("send {} {} {n}\n", 60 + rng.below(1454), rng.below(16))).collect()
}

/// Plays the first scripts, by seed, of which each can be compared at any speed of the machine.
fn compare_random(count: usize, script: fn(u64) -> String) {
    for (seed, script) in
        (1..1000).map(|seed| (seed, script(seed))).filter(|(_, s)| stands_still(s)).take(count)
    {
        eprintln!("seed {seed}");
        compare(&script);
    }
}

#[test]
fn random_frames_through_random_trees() {
    compare_random(6, |seed| {
        let mut rng = qdisc::Rng::new(seed);
        let child = match rng.below(4) {
            0 => format!("pfifo limit {}", 1 + rng.below(30)),
            1 => format!("bfifo limit {}", 1000 + rng.below(20_000)),
            2 => format!("pfifo_head_drop limit {}", 1 + rng.below(30)),
            _ => "pfifo_fast".to_owned(),
        };
        let stab =
            ["", "stab linklayer atm overhead 20 ", "stab mpu 200 overhead -14 "][rng.below(3) as usize];
        let burst = 2000 + rng.below(6000);
        format!(
            "tc qdisc add dev v0 root handle 1: {stab}tbf rate 800bit burst {burst} limit 100k
tc qdisc add dev v0 parent 1:1 handle 10: {child}
{}tc -s qdisc show dev v0
tc qdisc change dev v0 root handle 1: {stab}tbf rate 1gbit burst 200k limit 100k
send 1500 0 999
pause 0.2
tc -s qdisc show dev v0
",
            random_frames(seed, 40)
        )
    });
}

#[test]
fn random_frames_through_random_hierarchies() {
    compare_random(6, |seed| {
        let mut rng = qdisc::Rng::new(seed);
        // Buckets that stand still beside the test, and classes that lend all the same.
        let mut script = String::from("tc qdisc add dev v0 root handle 1: htb default 30 direct_qlen 1000\n");
        for (parent, id) in [("1:", "1:1"), ("1:1", "1:2"), ("1:2", "1:10"), ("1:2", "1:20"), ("1:1", "1:30")]
        {
            let (burst, cburst) = (1000 + rng.below(8000), 1000 + rng.below(8000));
            let (prio, quantum) = (rng.below(3), 1000 + rng.below(3000));
            script += &format!(
                "tc class add dev v0 parent {parent} classid {id} htb rate 800bit ceil 1600bit burst {burst} cburst {cburst} prio {prio} quantum {quantum}\n"
            );
        }
        for number in 1..=60 {
            let priority = [0x1_0010, 0x1_0020, 0x1_0030, 0, 0x1_0002][rng.below(5) as usize];
            script += &format!("send {} {priority} {number}\n", 60 + rng.below(1000));
        }
        script + "tc -s qdisc show dev v0\ntc -s class show dev v0\n"
    });
}
