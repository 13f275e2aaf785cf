//! Applies the commands of fixes to a sample, as a host would.
use doctor::Sample;
use doctor::sample::{Pool, Queue, RouteMetrics, state};

/// Applies a command to the sample.
///
/// # Panics
/// On an unknown command: add each new command of a rule here.
#[track_caller]
pub(crate) fn apply(command: &str, sample: &mut Sample) {
    let words = words(command);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["sysctl", "-w", set] => {
            let (name, value) = set.split_once('=').unwrap();
            sample.settings.insert(name.to_owned(), value.to_owned());
            if let Some(table) = sample.conntrack.as_mut().filter(|_| name.ends_with("nf_conntrack_max")) {
                table.max = value.parse().unwrap();
            }
        }
        ["sed", "-i", script, file] => edit(script, file, sample),
        ["test", "-e", there, "||", "cp", "-p", file, to] if there == to => {
            let lines = sample.configured.iter_mut().filter(|line| line.file == file);
            lines.for_each(|line| to.clone_into(&mut line.file));
        }
        ["ip", "route", "change", ..] => route(&words[3..].join(" "), sample),
        ["ip", "tcp_metrics", "flush", "all"] => sample.paths.clear(),
        ["ip", "tcp_metrics", "delete", "address", peer] => {
            sample.paths.retain(|path| path.peer.to_string() != peer);
        }
        ["tc", "qdisc", "replace", "dev", device, "root", kind] => {
            sample.queues.retain(|queue| queue.device != device);
            sample.queues.push(queue(device, kind, true, (0, 0)));
        }
        ["tc", "qdisc", "replace", "dev", device, "parent", class, kind] => {
            let (major, minor) = class.split_once(':').unwrap();
            let number = |text| u16::from_str_radix(text, 16).unwrap();
            let parent = (number(major), number(minor));
            sample.queues.retain(|queue| queue.device != device || queue.parent != parent);
            sample.queues.iter_mut().for_each(|queue| queue.backlog = 0);
            sample.queues.push(queue(device, kind, false, parent));
        }
        ["ethtool", "-G", device, ring, size] => {
            let rings = changed(sample, device).rings.as_mut().unwrap();
            let pool = if ring == "rx" { &mut rings.rx } else { &mut rings.tx };
            pool.now = size.parse().unwrap();
        }
        ["ethtool", "-L", device, "combined", count] => {
            let device = changed(sample, device);
            let max = device.channels.unwrap().max;
            device.channels = Some(Pool { now: count.parse().unwrap(), max });
            for (cpu, interrupt) in (0..).zip(&mut device.interrupts) {
                interrupt.cpus = i32::to_string(&cpu);
            }
            let mut more = device.interrupts[0].clone();
            (more.name, more.cpus) = ("eth0-rx-1".to_owned(), "1".to_owned());
            device.interrupts.push(more);
        }
        ["ethtool", "-K", device, ref features @ ..] => {
            for feature in features.chunks_exact(2) {
                changed(sample, device).features.insert(feature[0].to_owned(), feature[1] == "on");
            }
        }
        ["echo", value, ">", file] => {
            let parts: Vec<&str> = file.split('/').collect();
            let device = changed(sample, parts[4]);
            match parts.last() {
                Some(&"limit_max") => device.byte_limits[0].limit_max = value.parse().unwrap(),
                Some(&"rps_cpus") => device.rps = value != "0",
                _ => panic!("unknown file {file}"),
            }
        }
        ["ss", "-K", "state", "fin-wait-1", "dst", peer] => {
            sample
                .sockets
                .retain(|socket| socket.state != state::FIN_WAIT_1 || socket.peer.to_string() != peer);
        }
        _ => panic!("unknown command `{command}`"),
    }
}

/// Splits a command into words, like a shell.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut quote, mut word) = (Vec::new(), None, String::new());
    for c in command.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            (' ', None) => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words
}

/// Applies a sed script that disables or replaces a line, if the line names the setting.
#[track_caller]
fn edit(script: &str, file: &str, sample: &mut Sample) {
    let (number, rest) = script.split_once('{').unwrap();
    let (guard, edit) = rest.strip_prefix('/').unwrap().split_once('/').unwrap();
    let edit = edit.strip_suffix('}').unwrap();
    let number: u32 = number.parse().unwrap();
    let at = sample.configured.iter().position(|line| line.file == file && line.line == number);
    // Two findings may disable the same line.
    let Some(at) = at.filter(|at| sample.configured[*at].name.contains(guard)) else { return };
    if edit == "s/^[^#]/# &/" {
        sample.configured.remove(at);
    } else {
        let text = edit.strip_prefix("s/.*/").and_then(|edit| edit.strip_suffix('/')).unwrap();
        let (name, value) = text.split_once(" = ").unwrap();
        assert_eq!(name, sample.configured[at].name);
        value.clone_into(&mut sample.configured[at].value);
    }
}

#[track_caller]
fn route(words: &str, sample: &mut Sample) {
    let route = sample.routes.iter_mut().find(|route| words.starts_with(&route.route)).unwrap();
    let mut metrics = RouteMetrics::default();
    let mut rest = words[route.route.len()..].split_whitespace();
    while let Some(name) = rest.next() {
        let mut value = rest.next().unwrap();
        let is_locked = value == "lock";
        if is_locked {
            value = rest.next().unwrap();
        }
        let field = match name {
            "mtu" => &mut metrics.mtu,
            "advmss" => &mut metrics.advmss,
            "ssthresh" => &mut metrics.ssthresh,
            "initcwnd" => &mut metrics.initcwnd,
            "initrwnd" => &mut metrics.initrwnd,
            "cwnd" => {
                metrics.cwnd_locked = is_locked;
                &mut metrics.cwnd
            }
            _ => panic!("unknown metric {name}"),
        };
        *field = value.parse().unwrap();
    }
    route.metrics = metrics;
}

fn queue(device: &str, kind: &str, root: bool, parent: (u16, u16)) -> Queue {
    Queue {
        device: device.to_owned(),
        kind: kind.to_owned(),
        root,
        parent,
        handle: (0x8001, 0),
        ..Queue::default()
    }
}

#[track_caller]
fn changed<'a>(sample: &'a mut Sample, name: &str) -> &'a mut doctor::sample::Device {
    sample.devices.iter_mut().find(|device| device.name == name).unwrap()
}
