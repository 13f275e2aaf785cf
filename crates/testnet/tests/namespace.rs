//! A namespace is one's own, and the caller's stays.
use std::net::{TcpListener, TcpStream};

#[test]
fn what_happens_inside_stays_inside() {
    let outside = testnet::read_sysctl("net.ipv4.tcp_syn_retries");
    let inside = testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.tcp_syn_retries", "3");
        let listener = TcpListener::bind("127.0.0.1:7").unwrap();
        let before = testnet::counters();
        TcpStream::connect("127.0.0.1:7").unwrap();
        assert!(listener.accept().is_ok());
        assert_eq!(testnet::counters().since(&before).get("TcpPassiveOpens"), Some(&1));
        testnet::read_sysctl("net.ipv4.tcp_syn_retries")
    });
    assert!(inside.is_none_or(|value| value == "3"));
    assert_eq!(testnet::read_sysctl("net.ipv4.tcp_syn_retries"), outside);
}

#[test]
fn every_machine_has_the_same_congestion_control_inside() {
    let inside = testnet::in_namespace(|| testnet::read_sysctl("net.ipv4.tcp_congestion_control"));
    assert!(inside.is_none_or(|value| value == "reno"));
}

#[test]
fn commands_live_in_the_namespace() {
    testnet::in_namespace(|| {
        let own = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let output = testnet::command("readlink").arg("/proc/self/ns/net").output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), own.to_str().unwrap());
        assert_ne!(own, std::fs::read_link("/proc/self/ns/net").unwrap(), "the process stays where it was");
    });
}

#[test]
fn a_panic_inside_fails_the_test_outside() {
    if testnet::can().is_err() {
        return;
    }
    let outcome = std::panic::catch_unwind(|| testnet::in_namespace(|| panic!("on purpose")));
    assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"on purpose"));
}
