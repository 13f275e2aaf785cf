//! Settings from a tree of files, counters into the form of /proc/net.

use posix::Sockets;
use posix::sysctl::{SysctlTree, counter_files};
use proto::{Capabilities, Config, Instant, Stack};
use std::fs;

#[test]
fn what_changes_in_the_tree_changes_in_the_stack() {
    let root = std::env::temp_dir().join(format!("firstbyte-posix-{}", std::process::id()));
    fs::create_dir_all(root.join("ipv4")).unwrap();
    let ethernet = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
    let mut sockets = Sockets::new(Stack::new(Config::linux(), ethernet, [1; 32]), 3);
    let mut tree = SysctlTree::new(&root, sockets.stack());
    let now = Instant::ZERO;
    fs::write(root.join("ipv4/tcp_fastopen"), "0x70403\n").unwrap();
    fs::write(root.join("ipv4/tcp_rmem"), "4096\t540000\t15728640\n").unwrap();
    fs::write(root.join("ipv4/ip_local_port_range"), "1000\t2000\n").unwrap();
    fs::write(root.join("ipv4/tcp_fastopen_key"), "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4\n").unwrap();
    tree.refresh(now, &mut sockets);
    let stack = sockets.stack();
    assert_eq!(stack.config().tcp_fastopen, 0x70403);
    assert_eq!(stack.config().tcp_rmem, [4096, 540_000, 15_728_640]);
    assert_eq!((stack.config().port_low, stack.config().port_high), (1000, 2000));
    assert_eq!(stack.fast_open_key().to_string(), "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4");
    fs::write(root.join("ipv4/tcp_fastopen"), "1\n").unwrap();
    fs::write(root.join("ipv4/tcp_rmem"), "nonsense\n").unwrap();
    tree.refresh(now, &mut sockets);
    let stack = sockets.stack();
    assert_eq!(stack.config().tcp_fastopen, 1);
    assert_eq!(stack.config().tcp_rmem, [4096, 540_000, 15_728_640], "refused");
    fs::remove_dir_all(&root).unwrap();
}

/// `conf/all`, and `conf/NAME` of the one device there is.
#[test]
fn the_devices_own_files_are_read_under_its_name() {
    let root = std::env::temp_dir().join(format!("firstbyte-posix-conf-{}", std::process::id()));
    for folder in ["all", "tun7", "tun8"] {
        fs::create_dir_all(root.join("ipv4/conf").join(folder)).unwrap();
    }
    let ethernet = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
    let mut stack = Stack::new(Config::linux(), ethernet, [1; 32]);
    stack.set_device_name("tun7");
    let mut tree = SysctlTree::new(&root, &stack);
    let mut sockets = Sockets::new(stack, 3);
    let mut after = |file: &str, text: &str| {
        fs::write(root.join("ipv4/conf").join(file), text).unwrap();
        tree.refresh(Instant::ZERO, &mut sockets);
        let config = sockets.stack().config();
        (config.rp_filter_all, config.rp_filter, config.log_martians_all, config.log_martians)
    };
    assert_eq!(after("all/rp_filter", "2\n"), (2, 0, false, false));
    assert_eq!(after("tun7/rp_filter", "1\n"), (2, 1, false, false));
    assert_eq!(after("tun8/rp_filter", "2\n"), (2, 1, false, false), "no device of ours");
    assert_eq!(after("tun7/log_martians", "1\n"), (2, 1, false, true));
    assert_eq!(after("all/rp_filter", "3\n"), (2, 1, false, true), "refused");
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn counters_are_two_lines_a_group() {
    let ethernet = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
    let (netstat, snmp) = counter_files(&Stack::new(Config::linux(), ethernet, [1; 32]));
    for (text, group, name) in [(netstat, "TcpExt:", "TCPTimeouts"), (snmp, "Tcp:", "ActiveOpens")] {
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        let [names, values] = lines.as_slice() else { panic!("{text}") };
        assert_eq!((names[0], values[0], names.len()), (group, group, values.len()));
        let at = names.iter().position(|found| *found == name).unwrap();
        assert_eq!(values[at], "0");
    }
}

/// What can be set can be asked for.
#[test]
fn every_setting_can_be_read() {
    let ethernet = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
    let mut stack = Stack::new(Config::linux(), ethernet, [1; 32]);
    stack.set_device_name("tun7");
    let mut sockets = Sockets::new(stack, 3);
    let cases = [
        ("net.ipv4.tcp_fastopen", "0x403", "1027"),
        ("net.ipv4.tcp_fastopen_key", KEY, KEY),
        ("net.ipv4.ip_local_port_range", "1000\t2000", "1000 2000"),
        ("net.ipv4.conf.all.rp_filter", "2", "2"),
        ("net.ipv4.conf.tun7.rp_filter", "1", "1"),
        ("net.ipv4.tcp_adv_win_scale", "-2", "1"),
        ("net.core.rmem_default", "1", "212992"),
        ("net.core.wmem_default", "1", "212992"),
    ];
    for (name, value, shown) in cases {
        sockets.set(Instant::ZERO, name, value).unwrap();
        assert_eq!(sockets.setting(name).as_deref(), Some(shown), "{name}");
    }
    for unknown in ["net.ipv4.no_such", "net.ipv4.conf.tun8.rp_filter"] {
        assert_eq!(sockets.setting(unknown), None);
    }
}

const KEY: &str = "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4";
