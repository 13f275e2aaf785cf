//! Many timers that end by one jump of the clock: a call handles some of them, the earliest first, and says that there are more.

use crate::pair::ethernet;
use core::time::Duration;
use proto::*;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wire::{Flags, IpHeader, TcpHeader};

/// Whose timers end.
const MANY: u32 = 100_000;
/// Between the beginnings of two of them.
const APART: Duration = Duration::from_micros(7);

fn host(number: u32) -> IpAddr {
    Ipv4Addr::from(0x0b00_0000 + number).into()
}

fn stack(config: Config) -> Stack {
    let mut stack = Stack::new(config, ethernet(), [7; 32]);
    stack.add_address("10.0.0.2".parse().unwrap(), 24);
    stack
}

/// To whom the packets go that leave now, in their order.
fn sent(stack: &mut Stack, now: Instant) -> Vec<IpAddr> {
    let mut peers = Vec::new();
    while let Some(packet) = stack.poll_transmit(now) {
        peers.push(IpHeader::parse(packet.header()).unwrap().0.dst.to_ip());
    }
    peers
}

/// All that is due is handled in as few calls as the bound allows, and each sends a packet to the next `Stack::EXPIRED_AT_ONCE` peers.
fn expect_each_in_its_turn(stack: &mut Stack, now: Instant) {
    let mut next = 0;
    while stack.poll_timeout().is_some_and(|at| at <= now) {
        stack.handle_timeout(now);
        let peers = sent(stack, now);
        assert_eq!(peers.len(), Stack::EXPIRED_AT_ONCE.min((MANY - next) as usize));
        for peer in peers {
            assert_eq!(peer, host(next));
            next += 1;
        }
    }
    assert_eq!(next, MANY);
    assert!(stack.poll_timeout().is_some_and(|at| at > now), "they go on");
}

#[test]
fn a_hundred_thousand_connections_time_out_a_few_at_a_time_in_the_order_of_their_deadlines() {
    let mut stack = stack(Config::default());
    let mut now = Instant::ZERO + Duration::from_secs(1000);
    for number in 0..MANY {
        stack.connect(now, SocketAddr::new(host(number), 80), ConnectOptions::default()).unwrap();
        assert_eq!(sent(&mut stack, now), [host(number)]);
        now = now + APART;
    }
    expect_each_in_its_turn(&mut stack, now + Duration::from_secs(3600));
}

/// In whatever order they came to be set.
#[test]
fn timers_that_end_at_the_same_moment_do_so_in_the_order_of_the_connections() {
    let mut stack = stack(Config::default());
    let begun = Instant::ZERO + Duration::from_secs(1000);
    let three = [0, 1, 2].map(host);
    for host in three {
        stack.connect(begun, SocketAddr::new(host, 80), ConnectOptions::default()).unwrap();
    }
    assert_eq!(sent(&mut stack, begun), three);
    let again = begun + Duration::from_secs(1);
    stack.handle_timeout(again);
    assert_eq!(sent(&mut stack, again), three);
}

#[test]
fn a_hundred_thousand_requests_time_out_a_few_at_a_time_in_the_order_of_their_deadlines() {
    let mut stack =
        stack(Config::default().tcp_syncookies(0).tcp_max_syn_backlog(2 * MANY).somaxconn(2 * MANY));
    let mut now = Instant::ZERO + Duration::from_secs(1000);
    let options = ListenOptions { backlog: 2 * MANY, ..ListenOptions::default() };
    stack.listen(now, "10.0.0.2:80".parse().unwrap(), options).unwrap();
    for number in 0..MANY {
        let syn = TcpHeader { flags: Flags::SYN, window: 1000, ..TcpHeader::new(40_000, 80) };
        let ip = IpHeader::new(host(number).into(), Ipv4Addr::new(10, 0, 0, 2).into(), wire::protocol::TCP);
        let packet = wire::build_tcp_packet(&ip, &syn, &[]);
        assert!(stack.handle_packet(now, RxPacket::new(packet)).is_none());
        now = now + APART;
        stack.handle_timeout(now);
        assert_eq!(sent(&mut stack, now).len(), 1);
    }
    assert_eq!(stack.table_sizes().requests, MANY as usize);
    expect_each_in_its_turn(&mut stack, now + Duration::from_millis(1200));
}
