//! Listeners under load.
use crate::{assert_healthy, findings, has, ids};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A listener that does not accept, at this address.
pub(crate) fn listener_at(address: SocketAddr, backlog: i32) -> OwnedFd {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
    bind(&socket, &address).unwrap();
    listen(&socket, backlog).unwrap();
    socket
}

/// A listener that does not accept.
fn listener(backlog: i32) -> (OwnedFd, SocketAddr) {
    let socket = listener_at(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0).into(), backlog);
    let address = getsockname(&socket).unwrap().try_into().unwrap();
    (socket, address)
}

fn connect(address: SocketAddr, times: usize) -> Vec<TcpStream> {
    let attempt = |_| TcpStream::connect_timeout(&address, Duration::from_millis(50)).ok();
    (0..times).filter_map(attempt).collect()
}

#[test]
fn a_full_accept_queue_is_named_with_its_port_first() {
    testnet::in_namespace(|| {
        let (small, address) = listener(4);
        let mut clients = Vec::new();
        let found = findings(|| clients = connect(address, 8));
        assert_eq!(found[0].id, "ACC-01", "{found:#?}");
        assert_eq!(found[0].scope, doctor::Scope::Port(address.port()));
        assert!(has(&found, "ACC-02") && has(&found, "ACC-05"), "{:?}", ids(&found));
        assert_eq!(clients.len(), 5, "backlog + 1");
        drop((small, clients));
        let (_larger, address) = listener(64);
        let mut clients = Vec::new();
        assert_healthy(&findings(|| clients = connect(address, 8)));
    });
}

#[test]
fn a_backlog_that_is_large_enough_is_silent() {
    testnet::in_namespace(|| {
        let (_listener, address) = listener(4096);
        let mut clients = Vec::new();
        assert_healthy(&findings(|| clients = connect(address, 8)));
    });
}

#[test]
fn an_accept_queue_that_fills_is_seen_before_it_overflows() {
    testnet::in_namespace(|| {
        let (queue, address) = listener(10);
        let _clients = connect(address, 8);
        assert_eq!(ids(&findings(|| {})), ["ACC-03"]);
        // An accept loop that works again.
        std::iter::repeat_with(|| rustix::net::accept(&queue).unwrap()).take(8).for_each(drop);
        assert!(findings(|| {}).is_empty());
    });
}

#[test]
fn a_backlog_cut_by_somaxconn_is_told_until_the_service_listens_again() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.core.somaxconn", "7");
        let (small, _) = listener(5000);
        assert_eq!(ids(&findings(|| {})), ["ACC-04"]);
        testnet::sysctl("net.core.somaxconn", "4096");
        drop(small);
        let _large = listener(5000);
        assert!(findings(|| {}).is_empty());
    });
}
