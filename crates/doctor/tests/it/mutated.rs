//! Records that were changed on the way: nothing panics, and unreadable records give an error.
//!
//! FIRSTBYTE_MUTATIONS sets their number. A hundred thousand take some minutes.
use crate::record::host;
use doctor::sample::{
    ByteLimit, Conntrack, Device, Info, Memory, PathMetrics, Pool, Queue, Rings, Route, RouteMetrics, Socket,
    Softnet,
};
use doctor::show::{counters, nics, paths, queues, routes, settings, sockets};
use doctor::{Record, Report, Sample, sources};
use serde_json::{Map, Value, json};
use std::net::{TcpListener, TcpStream};

/// Mutations in an ordinary run.
const MUTATIONS: usize = 2000;

#[test]
fn a_mutated_record_is_judged_or_refused_with_a_reason() {
    let wanted = std::env::var("FIRSTBYTE_MUTATIONS").ok().and_then(|number| number.parse().ok());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut judged, mut refused) = (0, 0);
    let originals = originals();
    for number in 0..wanted.unwrap_or(MUTATIONS) {
        let original = &originals[number % originals.len()];
        let text = if random.below(8) == 0 {
            bytes_changed(&original.to_string(), &mut random)
        } else {
            let mut changed = original.clone();
            for _ in 0..=random.below(6) {
                change(&mut changed, &mut random);
            }
            changed.to_string()
        };
        match Record::parse(&text) {
            Ok(record) => {
                judge(record, number % 16 == 0);
                judged += 1;
            }
            Err(why) => {
                assert!(
                    why.starts_with("not a record of `doctor --record`: ")
                        || why.starts_with("cannot read the record: it has layout "),
                    "{why}"
                );
                refused += 1;
            }
        }
    }
    println!("{judged} judged, {refused} refused");
    assert!(
        judged > refused / 10 && refused > judged / 10,
        "{judged} judged, {refused} refused: neither is rare"
    );
}

/// A record of a host whose numbers are the maximum of their fields, or 0: no sum, product or
/// difference overflows.
#[test]
fn numbers_at_the_edges_of_their_types_are_judged() {
    const SETTINGS: [&str; 3] =
        ["9223372036854775807", "-9223372036854775808 9223372036854775807 9223372036854775807", "0 0 0"];
    for (before, now) in [(false, true), (true, false), (true, true), (false, false)] {
        for settings in SETTINGS {
            let sample = |large: bool| -> Sample {
                let mut sample = whole();
                sample.settings.values_mut().for_each(|value| settings.clone_into(value));
                let mut value = serde_json::to_value(sample).unwrap();
                if !large {
                    zeros(&mut value, "");
                }
                serde_json::from_value(value).unwrap()
            };
            judge(Record::new(Some(sample(before)), sample(now)), true);
        }
    }
}

/// Sets numbers to 0. Numbers that identify a socket, device or state stay.
fn zeros(value: &mut Value, name: &str) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| zeros(value, name)),
        Value::Array(values) => values.iter_mut().for_each(|value| zeros(value, name)),
        Value::Number(_) if !["state", "index", "local_port", "uptime"].contains(&name) => *value = json!(0),
        _ => {}
    }
}

/// Returns a host with everything that rules use, each number at the maximum of its field.
fn whole() -> Sample {
    let info = Info {
        options: 1,
        rto: u32::MAX,
        ato: u32::MAX,
        snd_mss: u32::MAX,
        rcv_mss: u32::MAX,
        unacked: u32::MAX,
        sacked: u32::MAX,
        lost: u32::MAX,
        retrans: u32::MAX,
        snd_cwnd: u32::MAX,
        snd_ssthresh: u32::MAX,
        snd_wnd: u32::MAX,
        rtt: u32::MAX,
        min_rtt: u32::MAX,
        rcv_ssthresh: u32::MAX,
        rcv_space: u32::MAX,
        last_data_sent: u32::MAX,
        last_data_recv: u32::MAX,
        last_ack_recv: u32::MAX,
        backoff: u8::MAX,
        bytes_sent: u64::MAX,
        bytes_retrans: u64::MAX,
        bytes_acked: u64::MAX,
        bytes_received: u64::MAX,
        notsent_bytes: u32::MAX,
        total_retrans: u32::MAX,
        busy_time: u64::MAX,
        rwnd_limited: u64::MAX,
        sndbuf_limited: u64::MAX,
        delivery_rate: u64::MAX,
        pacing_rate: u64::MAX,
        ..Info::default()
    };
    let memory = Memory {
        rcvbuf: u32::MAX,
        sndbuf: u32::MAX,
        rmem_alloc: u32::MAX,
        wmem_queued: u32::MAX,
        wmem_alloc: u32::MAX,
        fwd_alloc: u32::MAX,
        optmem: u32::MAX,
        backlog: u32::MAX,
        drops: u32::MAX,
    };
    let socket = |number: u8| Socket {
        state: number % 14,
        local_port: 1000 + u16::from(number),
        recv_queue: u32::MAX,
        send_queue: u32::MAX,
        inode: u32::MAX,
        probing: number.is_multiple_of(3),
        retransmits: u8::MAX,
        expires: u32::MAX,
        memory: Some(memory),
        info: Some(info),
        ..Socket::default()
    };
    let pool = Pool { now: u32::MAX, max: u32::MAX };
    let device = |index: u32| Device {
        name: format!("eth{index}"),
        index,
        up: true,
        parent: Some("0000:00:03.0".to_owned()),
        mtu: u32::MAX,
        tx_queue_len: u32::MAX,
        addresses: 1,
        rx_packets: u64::MAX,
        rx_dropped: u64::MAX,
        rx_missed_errors: u64::MAX,
        rx_fifo_errors: u64::MAX,
        rx_over_errors: u64::MAX,
        rx_nohandler: u64::MAX,
        tx_dropped: u64::MAX,
        speed: Some(u32::MAX),
        rings: Some(Rings { rx: pool, tx: pool }),
        channels: Some(pool),
        byte_limits: vec![ByteLimit {
            queue: "tx-0".to_owned(),
            limit: u64::MAX,
            limit_max: u64::MAX,
            stall_cnt: u64::MAX,
        }],
        ..Device::default()
    };
    let queue = |device: &str| Queue {
        device: device.to_owned(),
        root: true,
        kind: "tbf".to_owned(),
        rate: Some(u64::MAX),
        backlog: u32::MAX,
        length: u32::MAX,
        requeues: u32::MAX,
        overlimits: u32::MAX,
        drops: u32::MAX,
        bytes: u64::MAX,
        packets: u32::MAX,
        ..Queue::default()
    };
    let softnet =
        Softnet { processed: u64::MAX, dropped: u64::MAX, squeezed: u64::MAX, flow_limited: u64::MAX };
    let path = PathMetrics {
        age: u64::MAX,
        ssthresh: 9,
        cwnd: u32::MAX,
        rtt: u32::MAX,
        fo_syn_drops: u32::MAX,
        fo_syn_drop_age: u64::MAX,
        ..PathMetrics::default()
    };
    let metrics = RouteMetrics {
        mtu: u32::MAX,
        cwnd: u32::MAX,
        cwnd_locked: true,
        ssthresh: u32::MAX,
        initcwnd: u32::MAX,
        initrwnd: u32::MAX,
        ..RouteMetrics::default()
    };
    let mut sample = sources::procfs();
    sample.uptime = 1.0;
    sample.counters.values_mut().for_each(|value| *value = u64::MAX);
    sample.sockstat.values_mut().for_each(|value| *value = u64::MAX);
    sample.sockets = (0..42).map(socket).collect();
    sample.devices = (1..3).map(device).collect();
    sample.queues = vec![queue("eth1"), queue("eth2")];
    sample.softnet = vec![softnet; 2];
    sample.net_rx = vec![u64::MAX; 2];
    let conntrack = Conntrack {
        count: u64::MAX,
        max: u64::MAX,
        drop: u64::MAX,
        early_drop: u64::MAX,
        ..Conntrack::default()
    };
    sample.conntrack = Some(conntrack);
    sample.paths = vec![path; 2];
    sample.routes = vec![Route {
        route: "default".to_owned(),
        device: "eth1".to_owned(),
        default: true,
        metrics,
        ..Route::default()
    }];
    sample
}

/// Returns a sample with everything that rules use, one of this kernel, and one as if of a
/// Firstbyte stack.
fn originals() -> Vec<Value> {
    let (before, now) = host();
    let pair = testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let before = sources::here();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _server = listener.accept().unwrap();
        (before, sources::here())
    });
    let mut records = vec![Record::new(Some(before), now), Record::new(Some(whole()), whole())];
    if let Some((before, here)) = pair {
        let of_stack = |sample: &Sample| Sample { of_stack: true, ..sample.clone() };
        records.push(Record::new(Some(of_stack(&before)), of_stack(&here)));
        records.push(Record::new(Some(before), here));
    }
    records.iter().map(|record| serde_json::from_str(&record.text()).unwrap()).collect()
}

/// Creates every output of a record. The page takes longest, so it is optional.
fn judge(mut record: Record, draws: bool) {
    record.mask();
    let window = record.window();
    let report = Report::of(&window);
    let _ = (report.text(), report.prometheus(), report.script(), serde_json::to_string(&report).unwrap());
    let samples: Vec<Sample> = record.before.iter().chain([&record.now, &record.now]).cloned().collect();
    if draws {
        let _ = report.page(&samples);
    }
    let view = sockets::View {
        which: sockets::Which::All,
        family: None,
        port: None,
        info: true,
        memory: true,
        timers: true,
        extended: true,
        limits: Some(doctor::show::limits::Looks::default()),
        holders: None,
    };
    let _ =
        (sockets::text(&view, &window), sockets::json(&view, &window), sockets::summary(&record.now, false));
    let view = counters::View { patterns: Vec::new(), zeros: true };
    let _ = (counters::text(&view, &window), counters::json(&view, &window));
    let _ =
        (settings::text(&[], &record.now), settings::explained(&["tcp_rmem".to_owned()], &record.now, &[]));
    let _ = (queues::text(None, &record.now), queues::json(None, &record.now));
    let _ = (nics::text(None, &record.now), nics::json(None, &record.now));
    let _ = (routes::text(&record.now.routes, None, 4), paths::text(&record.now.paths));
}

/// Changes one value to another of the same or another type, or removes or duplicates a field.
fn change(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(fields) if !fields.is_empty() && random.below(200) > 0 => {
            let name = fields.keys().nth(random.below(fields.len())).cloned().unwrap();
            match random.below(300) {
                0 => drop(fields.remove(&name)),
                1 => renamed(fields, &name),
                _ => change(fields.get_mut(&name).unwrap(), random),
            }
        }
        Value::Array(values) if !values.is_empty() && random.below(200) > 0 => {
            let at = random.below(values.len());
            match random.below(300) {
                0 => drop(values.remove(at)),
                1 => values.push(values[at].clone()),
                _ => change(&mut values[at], random),
            }
        }
        Value::Object(fields) if fields.is_empty() && random.below(60) > 0 => {}
        Value::Array(values) if values.is_empty() && random.below(60) > 0 => {}
        Value::Bool(holds) if random.below(60) > 0 => *holds = !*holds,
        Value::Number(_) if random.below(60) > 0 => *value = number(random),
        Value::String(text) if random.below(60) > 0 => *text = word(text, random),
        _ => {
            *value = [json!(null), json!(0), json!(""), json!([]), json!({}), json!("::"), number(random)]
                [random.below(7)]
            .clone()
        }
    }
}

fn renamed(fields: &mut Map<String, Value>, name: &str) {
    if let Some(value) = fields.remove(name) {
        fields.insert(format!("{name}x"), value);
    }
}

/// Returns a number, often at the edge of a type.
fn number(random: &mut Random) -> Value {
    // Most fields have 32 bits.
    let least = if random.below(8) == 0 { 0 } else { 32 };
    let gone = least + random.below(65 - least);
    let edge = u64::MAX.checked_shr(u32::try_from(gone).unwrap()).unwrap_or(0);
    match random.below(40) {
        0 => json!(-1),
        1 => json!(1e300),
        2..10 => json!(random.below(100)),
        10..20 => json!(edge / 2 + 1),
        _ => json!(edge),
    }
}

fn word(text: &str, random: &mut Random) -> String {
    const WORDS: [&str; 7] =
        ["", "0", "-1", "9223372036854775807 1 18446744073709551615", "4096\t0\t1", "fe80::1/200", "é"];
    match random.below(3) {
        0 => bytes_changed(text, random),
        1 => format!("{text} {text}"),
        _ => WORDS[random.below(WORDS.len())].to_owned(),
    }
}

fn bytes_changed(text: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte = u8::try_from(random.below(128)).unwrap();
        }
    }
    if random.below(8) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// xorshift64 (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        for (shift, left) in [(13, true), (7, false), (17, true)] {
            self.0 ^= if left { self.0 << shift } else { self.0 >> shift };
        }
        usize::try_from(self.0 % end.max(1) as u64).unwrap()
    }
}
