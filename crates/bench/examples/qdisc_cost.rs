//! What a packet costs in each discipline: `cargo run --profile dist -p firstbyte-bench --example
//! qdisc_cost [KIND…]`.
//!
//! Frames of 1000 bytes of 2 and of 1000 flows come in bursts of 64 and leave in between; a hundred
//! wait at a time. The times are of this machine at this moment; for a number that stands, count
//! instructions of one discipline: `valgrind --tool=callgrind --toggle-collect='*measure*'
//! target/dist/examples/qdisc_cost htb`.
use qdisc::{Dequeue, Device, Packet, Qdisc, Skb};
use std::time::Instant;

#[derive(Clone)]
struct Frame {
    flow: u32,
}

impl Packet for Frame {
    fn flow_hash(&self) -> u32 {
        self.flow
    }

    fn priority(&self) -> u32 {
        // Half to each of two leaves of an htb; anywhere else not of interest.
        0x1_0010 | (self.flow & 1) << 5
    }
}

const PACKETS: u32 = 400_000;
const BURST: u32 = 64;
/// Nanoseconds between bursts: 2 Gbit/s.
const GAP: u64 = 256_000;

const KINDS: &[(&str, &[&str])] = &[
    ("pfifo", &["qdisc add root handle 1: pfifo"]),
    ("bfifo", &["qdisc add root handle 1: bfifo limit 10mb"]),
    ("pfifo_fast", &["qdisc add root handle 1: pfifo_fast"]),
    ("prio", &["qdisc add root handle 1: prio"]),
    ("tbf", &["qdisc add root handle 1: tbf rate 3gbit burst 200k limit 10mb"]),
    (
        "htb",
        &[
            "qdisc add root handle 1: htb default 10",
            "class add parent 1: classid 1:1 htb rate 3gbit burst 200k",
            "class add parent 1:1 classid 1:10 htb rate 500mbit ceil 3gbit burst 100k cburst 100k",
            "class add parent 1:1 classid 1:30 htb rate 500mbit ceil 3gbit burst 100k cburst 100k",
        ],
    ),
    ("sfq", &["qdisc add root handle 1: sfq limit 1000"]),
    ("red", &["qdisc add root handle 1: red limit 600k min 300k max 500k avpkt 1000 burst 400"]),
    ("codel", &["qdisc add root handle 1: codel"]),
    ("fq_codel", &["qdisc add root handle 1: fq_codel"]),
    ("pie", &["qdisc add root handle 1: pie"]),
    ("fq", &["qdisc add root handle 1: fq"]),
    // These frames know of no hosts: a thousand flows of one would have quanta of a byte or two.
    ("cake", &["qdisc add root handle 1: cake bandwidth 3gbit flows"]),
    ("netem", &["qdisc add root handle 1: netem delay 400us 100us loss 0.1%"]),
];

/// Enqueues and dequeues; how many left.
#[inline(never)]
fn measure(device: &mut Device<Frame>, flows: u32) -> u32 {
    let mut dropped = Vec::new();
    let (mut now, mut left) = (0, 0);
    for burst in 0..PACKETS / BURST {
        for n in 0..BURST {
            let flow = (burst * BURST + n).wrapping_mul(0x9e37_79b9) % flows;
            device.enqueue(now, Skb::new(Frame { flow }, 1000), &mut dropped);
        }
        now += GAP;
        while device.stats().qlen > 100 {
            match device.dequeue(now, &mut dropped) {
                Dequeue::Packet(_) => left += 1,
                Dequeue::Throttled(_) | Dequeue::Empty => break,
            }
        }
        dropped.clear();
    }
    left
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let known = |kind: &String| KINDS.iter().any(|(name, _)| name == kind);
    if let Some(unknown) = wanted.iter().find(|kind| !known(kind)) {
        let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        eprintln!("no discipline is called {unknown}; there are: {}", names.join(", "));
        std::process::exit(2);
    }
    println!("{:<12}{:>16}{:>16}", "discipline", "2 flows", "1000 flows");
    for (kind, commands) in
        KINDS.iter().filter(|(kind, _)| wanted.is_empty() || wanted.iter().any(|w| w == kind))
    {
        print!("{kind:<12}");
        for flows in [2, 1000] {
            let mut device = Device::new("eth0");
            for command in *commands {
                if let Err(error) = device.tc(0, command, &mut Vec::new()) {
                    eprintln!("{command}: {error}");
                    std::process::exit(1);
                }
            }
            let begin = Instant::now();
            let left = measure(&mut device, flows);
            let nanos = begin.elapsed().as_nanos() / u128::from(left.max(1));
            print!("{:>13} ns", nanos);
        }
        println!();
    }
}
