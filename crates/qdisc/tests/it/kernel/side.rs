//! Both sides of a comparison: the kernel in a namespace of its own, and our device in virtual time.
use qdisc::{Dequeue, Device, Dropped, Packet, Qdisc, Skb};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

#[derive(Clone, Debug)]
struct Frame {
    number: u32,
    priority: u32,
}

impl Packet for Frame {
    fn priority(&self) -> u32 {
        self.priority
    }
}

fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// Can the kernel's side be played here?
fn programs() -> bool {
    let missing: Vec<&str> =
        ["ip", "tc", "python3"].into_iter().filter(|name| !testnet::has_program(name)).collect();
    if !missing.is_empty() {
        skipped(&format!("needs {}", missing.join(", ")));
    }
    missing.is_empty()
}

fn run(words: &[&str]) -> String {
    let output =
        testnet::command(words[0]).args(&words[1..]).output().expect("a program that has_program found");
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    stdout + &stderr
}

/// Plays a recorded conversation with tc once more.
pub(crate) fn replay(transcript: &str) {
    if !programs() {
        return;
    }
    testnet::in_namespace(|| {
        run(&["ip", "tuntap", "add", "dev", "t0", "mode", "tun"]);
        run(&["ip", "link", "set", "t0", "up"]);
        for kind in ["pfifo_head_drop", "tbf rate 1mbit burst 9k limit 9k", "htb"] {
            let words = format!("tc qdisc replace dev t0 root {kind}");
            let answer = run(&words.split(' ').collect::<Vec<_>>());
            if answer.contains("kind is unknown") {
                return skipped(&format!("this kernel has no {kind}"));
            }
        }
        run(&["tc", "qdisc", "del", "dev", "t0", "root"]);
        let mut names = HashMap::new();
        let mut played = String::new();
        for line in transcript.lines() {
            let Some(command) = line.strip_prefix("$ ") else { continue };
            let words: Vec<&str> = command.split_whitespace().collect();
            let _ = writeln!(played, "$ {command}");
            for line in run(&words).lines().take_while(|line| !line.starts_with("Usage")) {
                let _ = writeln!(played, "{}", renamed(line, &mut names).trim_end());
            }
        }
        assert_eq!(played, transcript);
    });
}

/// The kernel counts the handles that it gives away for all namespaces; here the first is 8001.
fn renamed(line: &str, names: &mut HashMap<String, String>) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    for word in &mut words {
        let Some((major, minor)) = word.split_once(':') else { continue };
        if major.len() == 4 && major.starts_with('8') && u16::from_str_radix(major, 16).is_ok() {
            let next = 0x8001 + names.len();
            let name = names.entry(major.to_owned()).or_insert_with(|| format!("{next:x}"));
            *word = format!("{name}:{minor}");
        }
    }
    words.join(" ")
}

/// Plays a script on both sides and compares all that each printed.
pub(crate) fn compare(script: &str) {
    if !programs() {
        return;
    }
    let Some(kernel) = testnet::in_namespace(|| kernel(script)) else { return };
    if kernel.contains("qdisc kind is unknown") {
        return skipped("this kernel lacks the discipline");
    }
    let ours = ours(script);
    let (kernel_text, kernel_times) = split(&kernel);
    let (our_text, our_times) = split(&ours);
    assert_eq!(our_text, kernel_text, "ours, then the kernel's\n{script}");
    for (ours, kernel) in our_times.iter().zip(&kernel_times) {
        // A busy machine wakes late, never early; its clock starts when Python does.
        assert!(
            kernel + 60 >= *ours && *kernel <= ours + 400,
            "{ours} ms, the kernel {kernel} ms:\n{our_times:?}\n{kernel_times:?}"
        );
    }
}

fn split(text: &str) -> (String, Vec<i64>) {
    let (text, times) = text.split_once("times").expect("a last line with times");
    // How many tokens there are depends on when tc is asked.
    let lines: Vec<&str> =
        text.lines().map(str::trim_end).filter(|line| !line.starts_with(" tokens:")).collect();
    (lines.join("\n"), times.split_whitespace().map(|word| word.parse().expect("milliseconds")).collect())
}

fn kernel(script: &str) -> String {
    testnet::sysctl("net.ipv6.conf.default.disable_ipv6", "1");
    // With several queues the kernel dequeues by eights, and asks once more than one queue does.
    let add = "ip link add v0 numtxqueues 1 numrxqueues 1 type veth peer name v1";
    run(&add.split(' ').collect::<Vec<_>>());
    run(&["ip", "link", "set", "v1", "up"]);
    run(&["ip", "link", "set", "v0", "up"]);
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/kernel/traffic.py");
    let mut python = testnet::command("python3")
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    python.stdin.take().expect("piped").write_all(script.as_bytes()).expect("it reads");
    let output = python.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{script}");
    String::from_utf8(output.stdout).expect("text")
}

/// Does our side stand still for 800 ms whenever tc is asked? Only then does it not matter when the kernel is asked.
pub(crate) fn stands_still(script: &str) -> bool {
    play(script).1
}

fn ours(script: &str) -> String {
    play(script).0
}

/// Plays a script in virtual time. As in the kernel each enqueue is followed by dequeues until nothing comes, and a wait by more.
fn play(script: &str) -> (String, bool) {
    let mut stands_still = true;
    let mut side = Ours {
        device: Device::with_queue_len("v0", 1000, 1514),
        now: 0,
        wakes_at: None,
        arrived: Vec::new(),
        dropped: Vec::new(),
    };
    let mut printed = String::new();
    for line in script.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &str| match word.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).expect("a number"),
            None => word.parse().expect("a number"),
        };
        match words[0] {
            "send" => {
                let frame = Frame { number: number(words[3]), priority: number(words[2]) };
                // Roughly what a system call takes.
                side.advance(side.now + 20_000);
                let skb = Skb::new(frame, number(words[1]) as usize);
                side.device.enqueue(side.now, skb, &mut side.dropped);
                side.pull();
            }
            "pause" => {
                let nanos = words[1].parse::<f64>().expect("seconds") * 1e9;
                side.advance(side.now + nanos as u64);
            }
            _ => {
                stands_still &= side.wakes_at.is_none_or(|at| at > side.now + 800_000_000);
                let answer = side.device.tc(side.now, line, &mut side.dropped);
                printed += &answer.unwrap_or_else(|error| format!("{error}\n"));
            }
        }
    }
    let order: String = side.arrived.iter().map(|(number, _)| format!(" {number}")).collect();
    let times: String = side.arrived.iter().map(|(_, at)| format!(" {}", at / 1_000_000)).collect();
    (format!("{printed}order{order}\ntimes{times}\n"), stands_still)
}

struct Ours {
    device: Device<Frame>,
    now: u64,
    wakes_at: Option<u64>,
    arrived: Vec<(u32, u64)>,
    dropped: Vec<Dropped<Frame>>,
}

impl Ours {
    fn pull(&mut self) {
        loop {
            match self.device.dequeue(self.now, &mut self.dropped) {
                Dequeue::Packet(skb) => self.arrived.push((skb.packet.number, self.now)),
                Dequeue::Throttled(at) => return self.wakes_at = Some(at),
                Dequeue::Empty => return self.wakes_at = None,
            }
        }
    }

    fn advance(&mut self, until: u64) {
        while let Some(at) = self.wakes_at.filter(|at| *at <= until) {
            self.now = at;
            self.pull();
        }
        self.now = until;
    }
}
