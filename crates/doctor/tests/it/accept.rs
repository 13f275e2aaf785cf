//! Listeners under load.
use crate::bed::once_gone;
use crate::shown::Show;
use crate::{assert_healthy, findings, ids};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Returns a listener at this address that does not accept.
pub(crate) fn listener_at(address: SocketAddr, backlog: i32) -> OwnedFd {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
    bind(&socket, &address).unwrap();
    listen(&socket, backlog).unwrap();
    socket
}

/// Returns a listener that does not accept.
fn listener(backlog: i32) -> (OwnedFd, SocketAddr) {
    let socket = listener_at(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0).into(), backlog);
    let address = getsockname(&socket).unwrap().try_into().unwrap();
    (socket, address)
}

fn connect(address: SocketAddr, times: usize) -> Vec<TcpStream> {
    let attempt = |_| TcpStream::connect_timeout(&address, Duration::from_millis(50)).ok();
    (0..times).filter_map(attempt).collect()
}

pub(crate) fn a_full_accept_queue_is_named_with_its_port_first(show: &Show) {
    testnet::in_namespace(|| {
        const RULES: &[&str] = &["ACC-01", "ACC-05"];
        let (small, address) = listener(4);
        let mut clients = Vec::new();
        let found = findings(|| clients = connect(address, 3));
        show.silent(RULES, &found);
        assert_healthy(&found);
        let found = findings(|| clients.extend(connect(address, 5)));
        assert_eq!(found[0].id, "ACC-01", "{found:#?}");
        assert_eq!(found[0].scope, doctor::Scope::Port(address.port()));
        show.fires(RULES, &found);
        assert_eq!(clients.len(), 5, "backlog + 1");
        drop((small, clients));
        let (_larger, address) = listener(64);
        show.by_hand(RULES);
        let mut clients = Vec::new();
        let found = once_gone(RULES, || findings(|| clients = connect(address, 8)));
        show.gone(RULES, &found);
        assert_healthy(&found);
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

pub(crate) fn an_accept_queue_that_fills_is_seen_before_it_overflows(show: &Show) {
    testnet::in_namespace(|| {
        let (queue, address) = listener(10);
        let mut clients = connect(address, 7);
        show.silent(&["ACC-03"], &findings(|| {}));
        clients.extend(connect(address, 1));
        let found = findings(|| {});
        assert_eq!(ids(&found), ["ACC-03"]);
        // The short queue is full, and stays full.
        let (short, address) = listener(2);
        let two = connect(address, 2);
        assert_eq!(ids(&findings(|| {})), ["ACC-03", "ACC-03"]);
        drop((short, two));
        show.fires(&["ACC-03"], &found);
        // The accept loop works again.
        std::iter::repeat_with(|| rustix::net::accept(&queue).unwrap()).take(8).for_each(drop);
        show.by_hand(&["ACC-03"]);
        show.gone(&["ACC-03"], &findings(|| {}));
    });
}

pub(crate) fn a_backlog_cut_by_somaxconn_is_told_until_the_service_listens_again(show: &Show) {
    testnet::in_namespace(|| {
        let (large, _) = listener(5000);
        show.silent(&["ACC-04"], &findings(|| {}));
        drop(large);
        testnet::sysctl("net.core.somaxconn", "7");
        let (small, _) = listener(5000);
        let found = findings(|| {});
        assert_eq!(ids(&found), ["ACC-04"]);
        show.fires(&["ACC-04"], &found);
        show.run(&["ACC-04"]);
        drop(small);
        let _large = listener(5000);
        show.gone(&["ACC-04"], &once_gone(&["ACC-04"], || findings(|| {})));
    });
}
