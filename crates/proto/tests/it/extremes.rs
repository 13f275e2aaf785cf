//! Each setting at either end of its range, and in between: whatever is accepted works, over a path that loses at first.

use crate::pair::{CLIENT, Pair, SERVER};
use crate::peer::pattern;
use proto::*;

const BYTES: usize = 20_000;
/// Numbers, switches and times: each row takes those of its kind and range. The ends of most ranges are among them.
const VALUES: [&str; 24] = [
    "0",
    "1",
    "2",
    "3",
    "5",
    "31",
    "48",
    "68",
    "127",
    "255",
    "300",
    "1000",
    "1152",
    "2304",
    "4608",
    "65535",
    "86400",
    "120000",
    "2147483647",
    "4294967295",
    "1us",
    "1ms",
    "500ms",
    "1s",
];
const SIZES: [&str; 4] = ["0 0 0", "1 2304 2304", "1 4608 4608", "4294967295 4294967295 4294967295"];

/// Two streams, one each way; what is left of it if it does not end.
fn exchange(config: &Config, seed: u64) -> Result<(), String> {
    let mut pair = Pair::new(config.clone(), config.clone(), 20);
    pair.trouble(seed, [10, 5, 2]);
    let listener = pair.listen(0);
    let id = pair.connect(ConnectOptions::default());
    let data = pattern(1, BYTES);
    let (mut child, mut written, mut heard, begun) = (None, [0; 2], [0; 2], pair.now);
    for round in 0_u64.. {
        let now = pair.now;
        child = child.or_else(|| pair.stacks[SERVER].accept(now, listener).ok().map(|(id, _)| id));
        for (side, id) in [(CLIENT, Some(id)), (SERVER, child)] {
            let Some(id) = id else { continue };
            let stack = &mut pair.stacks[side];
            if stack.info(id).is_none_or(|info| info.state == State::Closed) {
                return Err(format!("gave up: {heard:?} after {:?}", pair.now.since(begun)));
            }
            written[side] += stack.write(now, id, &data[written[side]..]).unwrap_or(0);
            let mut buf = [0; 4096];
            while let Ok(len @ 1..) = stack.read(now, id, &mut buf) {
                assert!(buf[..len] == data[heard[side]..heard[side] + len], "other bytes");
                heard[side] += len;
            }
        }
        if heard == [BYTES; 2] {
            return Ok(());
        }
        if pair.ms_since(begun) > 5000 {
            pair.trouble(seed, [0, 0, 0]);
        }
        pair.flush();
        if round > 100_000 || !pair.step() || pair.ms_since(begun) > 86_400_000 {
            return Err(format!("{heard:?} after {:?}", pair.now.since(begun)));
        }
    }
    Ok(())
}

#[test]
fn whatever_is_accepted_works() {
    let (mut failures, mut tried) = (Vec::new(), 0);
    for (profile, config) in [("ours", Config::default()), ("linux", Config::linux())] {
        for (name, _) in config.all() {
            for value in VALUES.iter().chain(&SIZES) {
                let mut config = config.clone();
                if config.set(name, value).is_err() {
                    continue;
                }
                for seed in 1..4 {
                    tried += 1;
                    if let Err(how) = exchange(&config, seed) {
                        failures.push(format!("{profile}: {name} = {value}, seed {seed}: {how}"));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(tried > 5000, "only {tried}");
}

/// A first window of one segment, whatever the segment and however the buffer is counted, does not stay one: the application reads all that
/// comes, and a megabyte takes some seconds.
#[test]
fn a_first_window_of_one_segment_opens() {
    let mut slow = Vec::new();
    for (profile, config) in [("ours", Config::default()), ("linux", Config::linux())] {
        for accounting in ["payload", "packets"] {
            for (name, value) in [
                ("net.ipv4.tcp_app_win", "31"),
                ("net.ipv4.tcp_app_win", "0"),
                ("net.ipv4.tcp_app_win", "1"),
                ("net.ipv4.tcp_timestamps", "0"),
                ("net.ipv4.tcp_window_scaling", "0"),
                ("net.ipv4.tcp_sack", "0"),
                ("net.ipv4.tcp_moderate_rcvbuf", "0"),
                ("firstbyte.window_slow_start", "1"),
                ("firstbyte.window_slow_start", "0"),
                ("net.ipv4.tcp_rmem", "2304 2304 6291456"),
                ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
                ("net.ipv4.tcp_rmem", "4294967295 4294967295 4294967295"),
            ] {
                for mtu in [576, 1500, 9000, 65_535] {
                    for first in ["initrwnd 1", "initrwnd 1 advmss 88", "initrwnd 1 advmss 536", "initrwnd 2"]
                    {
                        let mut config = config.clone();
                        config.set("firstbyte.receive_accounting", accounting).unwrap();
                        config.set(name, value).unwrap();
                        let device = Capabilities { mtu, gso_max_size: 0, tx_checksum: false };
                        let how = format!("{profile}, {accounting}, {name} {value}, mtu {mtu}, {first}");
                        let (seconds, window) = seconds_of_a_megabyte(config, device, first);
                        if seconds > 60 {
                            slow.push(format!("{how}: {seconds} s, the last window {window}"));
                        }
                    }
                }
            }
        }
    }
    assert!(slow.is_empty(), "{} {slow:#?}", slow.len());
}

fn seconds_of_a_megabyte(config: Config, device: Capabilities, first: &str) -> (u64, u32) {
    let mut pair = Pair::with(config.clone(), config, 5, device);
    let network = fast_open::Network::new(std::net::IpAddr::from([10, 0, 0, 0]).into(), 24);
    pair.stacks[SERVER].set_route(pair.now, network, first.parse().unwrap());
    let listener = pair.listen(0);
    let id = pair.connect(ConnectOptions::default());
    let (begun, total) = (pair.now, 1_000_000);
    let (mut child, mut left, mut read) = (None, total, 0);
    let mut buffer = vec![7; 65_536];
    while read < total && pair.ms_since(begun) < 61_000 {
        let now = pair.now;
        child = child.or_else(|| pair.stacks[SERVER].accept(now, listener).ok().map(|(id, _)| id));
        left -= pair.stacks[CLIENT].write(now, id, &buffer[..left.min(65_536)]).unwrap_or(0);
        while let Some(child) = child
            && let Ok(len @ 1..) = pair.stacks[SERVER].read(now, child, &mut buffer)
        {
            read += len;
        }
        pair.flush();
        if !pair.step() {
            break;
        }
    }
    let window = child.and_then(|child| pair.stacks[SERVER].info(child)).map_or(0, |info| info.rcv_wnd);
    if read < total { (61, window) } else { (pair.ms_since(begun) / 1000, window) }
}
