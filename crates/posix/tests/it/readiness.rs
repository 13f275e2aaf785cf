//! `poll` and `epoll` in every state (Linux's `tcp_poll`).

use crate::wire::{DELAY, Wire, recv, send};
use posix::{Control, EDGE, Errno, Interest, ONE_SHOT, PollFd, Ready, Sockets, Stop};
use proto::Instant;
use std::time::Duration;

const IN: Ready = Ready::IN.union(Ready::RDNORM);
const OUT: Ready = Ready::OUT.union(Ready::WRNORM);

#[test]
fn each_state_is_ready_for_what_would_not_wait() {
    let mut wire = Wire::new();
    let listener = wire.listen();
    assert_eq!(wire.server.readiness(listener), Ok(Ready::empty()));
    let client = wire.socket();
    assert_eq!(wire.client.readiness(client), Ok(OUT | Ready::HUP), "neither connected nor connecting");
    wire.connect(client).unwrap_err();
    assert_eq!(wire.client.readiness(client), Ok(Ready::empty()));
    wire.run(DELAY * 3);
    assert_eq!(wire.client.readiness(client), Ok(OUT));
    assert_eq!(wire.server.readiness(listener), Ok(IN));
    let (server, _) = wire.server.accept(wire.now, listener, 0).unwrap();
    assert_eq!(wire.server.readiness(server), Ok(OUT));
    send(&mut wire.client, wire.now, client, b"x").unwrap();
    wire.client.shutdown(wire.now, client, libc::SHUT_WR).unwrap();
    wire.run(DELAY);
    assert_eq!(wire.server.readiness(server), Ok(IN | OUT | Ready::RDHUP));
    wire.server.close(wire.now, server).unwrap();
    wire.run(DELAY);
    assert_eq!(wire.client.readiness(client), Ok(IN | OUT | Ready::RDHUP | Ready::HUP | Ready::ERR), "reset");
}

#[test]
fn poll_waits_until_its_time_and_names_what_is_not_open() {
    let mut wire = Wire::new();
    let (client, _) = wire.connected();
    let entry = |fd, events| PollFd { fd, events, found: Ready::empty() };
    let until = wire.now + Duration::from_millis(5);
    let mut fds = [entry(client, Ready::IN), entry(-1, Ready::IN)];
    assert_eq!(wire.client.poll(wire.now, &mut fds, Some(until)), Err(Stop::Wait(Some(until))));
    assert_eq!(wire.client.poll(until, &mut fds, Some(until)), Ok(0));
    let mut fds = [entry(client, Ready::OUT), entry(999, Ready::empty())];
    assert_eq!(wire.client.poll(wire.now, &mut fds, None), Ok(2));
    assert_eq!((fds[0].found, fds[1].found), (Ready::OUT, Ready::NVAL));
}

fn watch(sockets: &mut Sockets, epoll: i32, fd: i32, how: u32) {
    let events = (Ready::IN | Ready::OUT).bits() | how;
    sockets.epoll_ctl(epoll, fd, Control::Add(Interest { events, data: 7 })).unwrap();
}

/// What `epoll_wait` with a time-out of zero finds.
fn found(sockets: &mut Sockets, now: Instant, epoll: i32) -> Vec<Ready> {
    let found = sockets.epoll_wait(now, epoll, 8, Some(now)).unwrap();
    assert!(found.iter().all(|interest| interest.data == 7));
    found.iter().map(|interest| Ready::from_bits_truncate(interest.events)).collect()
}

#[test]
fn by_level_it_is_told_again_by_edge_once_and_one_shot_until_armed() {
    for (how, again) in [(0, true), (EDGE, false), (ONE_SHOT, false)] {
        let mut wire = Wire::new();
        let (client, server) = wire.connected();
        let epoll = wire.server.epoll_create(false).unwrap();
        watch(&mut wire.server, epoll, server, how);
        let now = wire.now;
        assert_eq!(found(&mut wire.server, now, epoll), [Ready::OUT]);
        assert_eq!(!found(&mut wire.server, now, epoll).is_empty(), again, "{how:x}");
        send(&mut wire.client, wire.now, client, b"x").unwrap();
        wire.run(DELAY);
        let now = wire.now;
        let expected: &[Ready] = if how == ONE_SHOT { &[] } else { &[Ready::IN.union(Ready::OUT)] };
        assert_eq!(found(&mut wire.server, now, epoll), expected);
        let events = Ready::IN.bits() | how;
        wire.server.epoll_ctl(epoll, server, Control::Modify(Interest { events, data: 7 })).unwrap();
        assert_eq!(found(&mut wire.server, now, epoll), [Ready::IN]);
        recv(&mut wire.server, now, server, 9, 0).unwrap();
        assert_eq!(found(&mut wire.server, now, epoll), [], "what was read is no news");
    }
}

/// Whoever reads no more wants to know only that (Linux's `tcp_fin`).
#[test]
fn who_watches_for_the_end_alone_is_woken_by_it() {
    for wanted in [Ready::RDHUP, Ready::RDNORM] {
        let mut wire = Wire::new();
        let (client, server) = wire.connected();
        let epoll = wire.server.epoll_create(false).unwrap();
        let add = Control::Add(Interest { events: wanted.bits(), data: 7 });
        wire.server.epoll_ctl(epoll, server, add).unwrap();
        let now = wire.now;
        assert_eq!(found(&mut wire.server, now, epoll), []);
        wire.client.shutdown(now, client, libc::SHUT_WR).unwrap();
        wire.run(DELAY);
        let now = wire.now;
        assert_eq!(found(&mut wire.server, now, epoll), [wanted]);
    }
}

/// Linux's `ep_insert`.
#[test]
fn who_watches_an_instance_is_told_of_what_is_added_to_it() {
    let mut wire = Wire::new();
    let (client, _) = wire.connected();
    let [outer, inner] = [(); 2].map(|()| wire.client.epoll_create(false).unwrap());
    watch(&mut wire.client, outer, inner, 0);
    let now = wire.now;
    assert_eq!(found(&mut wire.client, now, outer), []);
    watch(&mut wire.client, inner, client, 0);
    assert_eq!(found(&mut wire.client, now, outer), [Ready::IN]);
}

/// Who asks and finds no room to write is told when there is some, as one whose write failed (Linux's `tcp_poll`).
#[test]
fn who_polls_for_room_is_told_of_it() {
    for asks in [false, true] {
        let mut wire = Wire::new();
        let (client, _) = wire.connected();
        let epoll = wire.client.epoll_create(false).unwrap();
        watch(&mut wire.client, epoll, client, EDGE);
        let now = wire.now;
        assert_eq!(found(&mut wire.client, now, epoll), [Ready::OUT]);
        // Until more than two thirds of the buffer are taken, but not all of it.
        while wire.client.readiness(client) == Ok(OUT) {
            assert_eq!(send(&mut wire.client, now, client, &[0; 100]), Ok(100));
        }
        if asks {
            let mut fds = [PollFd { fd: client, events: Ready::OUT, found: Ready::empty() }];
            assert_eq!(wire.client.poll(now, &mut fds, Some(now)), Ok(0));
        }
        wire.run(DELAY * 3);
        let now = wire.now;
        assert_eq!(!found(&mut wire.client, now, epoll).is_empty(), asks);
    }
}

#[test]
fn epoll_refuses_what_makes_no_sense() {
    let mut wire = Wire::new();
    let fd = wire.socket();
    let epoll = wire.client.epoll_create(false).unwrap();
    let add = Control::Add(Interest { events: 1, data: 0 });
    assert_eq!(wire.client.epoll_ctl(epoll, 999, add), Err(Errno::EBADF));
    assert_eq!(wire.client.epoll_ctl(epoll, epoll, add), Err(Errno::EINVAL));
    assert_eq!(wire.client.epoll_ctl(fd, fd, add), Err(Errno::EINVAL));
    assert_eq!(wire.client.epoll_ctl(epoll, fd, Control::Delete), Err(Errno::ENOENT));
    assert_eq!(wire.client.epoll_ctl(epoll, fd, add), Ok(()));
    assert_eq!(wire.client.epoll_ctl(epoll, fd, add), Err(Errno::EEXIST));
    wire.client.close(wire.now, fd).unwrap();
    assert_eq!(
        wire.client.epoll_wait(wire.now, epoll, 1, Some(wire.now)),
        Ok(vec![]),
        "closing takes it out"
    );
    assert_eq!(wire.client.epoll_wait(wire.now, epoll, 0, Some(wire.now)), Err(Errno::EINVAL.into()));
}
