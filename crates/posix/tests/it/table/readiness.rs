//! `poll`, `select`, `epoll`, and what `recvmsg` tells beside the bytes.

use super::cases::{Told, WRONG, message, vector};
use core::ptr::null_mut;
use libc::{epoll_event, timeval};

pub(super) fn readiness(t: &mut Told<'_>) {
    let k = t.calls;
    let (client, server) = t.connected();
    t.ready("the client", client);
    t.ready("a wrong one", WRONG);
    t.ready("none", -1);
    t.say("poll of null", k.poll(null_mut(), 1, 0));
    t.say("poll of nothing", k.poll(null_mut(), 0, 0));
    t.say("epoll_create of no size", k.epoll_create(0));
    t.say("epoll_create1 with wrong flags", k.epoll_create1(1));
    let epoll = t.fd("epoll_create1", k.epoll_create1(libc::EPOLL_CLOEXEC));
    let mut event = epoll_event { events: (libc::EPOLLIN | libc::EPOLLOUT) as u32, u64: 7 };
    let (add, modify, delete) = (libc::EPOLL_CTL_ADD, libc::EPOLL_CTL_MOD, libc::EPOLL_CTL_DEL);
    let mut ctl = |t: &mut Told<'_>, what: &str, epoll, operation, fd| {
        t.say(what, k.epoll_ctl(epoll, operation, fd, &raw mut event));
    };
    ctl(t, "add to no instance", client, add, server);
    ctl(t, "add to a wrong one", WRONG, add, server);
    ctl(t, "add a wrong one", epoll, add, WRONG);
    ctl(t, "add itself", epoll, add, epoll);
    ctl(t, "no such operation", epoll, 9, server);
    ctl(t, "modify what is not there", epoll, modify, server);
    ctl(t, "delete what is not there", epoll, delete, server);
    ctl(t, "add", epoll, add, server);
    ctl(t, "add twice", epoll, add, server);
    ctl(t, "modify", epoll, modify, server);
    t.say("add with null", k.epoll_ctl(epoll, add, client, null_mut()));
    t.say("modify with null", k.epoll_ctl(epoll, modify, server, null_mut()));
    let exclusive = |flags: u32| epoll_event { events: libc::EPOLLIN as u32 | 1 << 28 | flags, u64: 1 };
    let mut one_shot = exclusive(libc::EPOLLONESHOT as u32);
    t.say("exclusive, one-shot", k.epoll_ctl(epoll, add, client, &raw mut one_shot));
    let mut alone = exclusive(0);
    t.say("exclusive", k.epoll_ctl(epoll, add, client, &raw mut alone));
    t.say("modify exclusive", k.epoll_ctl(epoll, modify, client, &raw mut alone));
    let other = t.fd("epoll_create1", k.epoll_create1(0));
    t.say("an exclusive instance", k.epoll_ctl(epoll, add, other, &raw mut alone));
    let mut nested = epoll_event { events: libc::EPOLLIN as u32, u64: 2 };
    t.say("add an instance", k.epoll_ctl(epoll, add, other, &raw mut nested));
    t.say("and the other way round", k.epoll_ctl(other, add, epoll, &raw mut nested));
    let mut found = [epoll_event { events: 0, u64: 0 }; 4];
    for (what, fd, most) in [
        ("of none", epoll, 0),
        ("of fewer", epoll, -1),
        ("of a socket", server, 1),
        ("of a wrong one", WRONG, 1),
    ] {
        t.say(&format!("epoll_wait {what}"), k.epoll_wait(fd, found.as_mut_ptr(), most, 0));
    }
    t.say("epoll_wait", k.epoll_wait(epoll, found.as_mut_ptr(), 4, 0));
    t.lines.push(format!("{:#x} {}", { found[0].events }, { found[0].u64 }));
    let twice = t.fd("dup", k.dup(server));
    t.say("close the number that is watched", k.close(server));
    t.say("its file is not closed", k.epoll_wait(epoll, found.as_mut_ptr(), 4, 0));
    t.say("close the last number", k.close(twice));
    k.deliver();
    t.say("now it is", k.epoll_wait(epoll, found.as_mut_ptr(), 4, 0));
    let mut sets = [[0; 16]; 3];
    let fd = client as usize;
    for set in &mut sets {
        set[fd / 64] = 1 << (fd % 64);
    }
    let mut timeout = timeval { tv_sec: 0, tv_usec: 0 };
    k.deliver();
    let pointers = [sets[0].as_mut_ptr(), sets[1].as_mut_ptr(), sets[2].as_mut_ptr()];
    t.say("select", k.select(client + 1, pointers, &raw mut timeout));
    t.lines.push(format!("{:?}", sets.map(|set| set[fd / 64] != 0)));
    t.say("select of fewer than none", k.select(-1, pointers, &raw mut timeout));
    let mut wrong: [u64; 16] = [u64::MAX; 16];
    t.say(
        "select of a wrong one",
        k.select(1000, [wrong.as_mut_ptr(), null_mut(), null_mut()], &raw mut timeout),
    );
    timeout.tv_usec = -1;
    t.say("select for less than no time", k.select(0, [null_mut(); 3], &raw mut timeout));
}

/// Less than `SO_RCVLOWAT` wakes nobody, not even one that is told of something else then.
pub(super) fn low_water(t: &mut Told<'_>) {
    let k = t.calls;
    let (client, server) = t.connected();
    t.set(server, libc::SOL_SOCKET, libc::SO_RCVLOWAT, 5);
    let epoll = t.fd("epoll_create1", k.epoll_create1(0));
    let edge = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET) as u32;
    let mut event = epoll_event { events: edge, u64: 7 };
    t.say("add", k.epoll_ctl(epoll, libc::EPOLL_CTL_ADD, server, &raw mut event));
    let wait = |t: &mut Told<'_>, what: &str| {
        let mut found = epoll_event { events: 0, u64: 0 };
        t.say(what, k.epoll_wait(epoll, &raw mut found, 1, 0));
        t.lines.push(format!("{:#x}", { found.events }));
    };
    wait(t, "at first");
    for (what, len) in [("two bytes", 2), ("two more", 2), ("the fifth", 1), ("the sixth", 1)] {
        t.send(what, client, len, 0);
        k.deliver();
        wait(t, what);
    }
    t.say("shutdown", k.shutdown(client, libc::SHUT_WR));
    k.deliver();
    wait(t, "the end");
}

pub(super) fn ancillary(t: &mut Told<'_>) {
    let k = t.calls;
    let (client, server) = t.connected();
    t.set(server, libc::IPPROTO_TCP, 36, 1);
    t.send("send", client, 8, 0);
    k.deliver();
    let mut bytes = [0_u8; 64];
    for room in [64, 20, 16, 8, 0] {
        let mut iov = vector(&[(bytes.as_ptr(), 1)]);
        let mut got = message(&mut iov, 1);
        let mut control = [0xee_u8; 64];
        (got.msg_control, got.msg_controllen) = (control.as_mut_ptr().cast(), room);
        let given = k.recvmsg(server, &raw mut got, 0);
        let (len, flags) = (got.msg_controllen, got.msg_flags);
        t.say(&format!("recvmsg, room for {room}: {:?} {flags:#x}", &control[..len]), given);
    }
    // Sends without a copy end with a notification, which on loopback says that the data was copied.
    t.set(client, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1);
    for _ in 0..2 {
        t.send("send without a copy", client, 8, libc::MSG_ZEROCOPY);
        k.deliver();
        let mut drain = [0_u8; 64];
        t.say("it came", k.recv(server, drain.as_mut_ptr().cast(), 64, 0).map(|_| 0));
        k.deliver();
    }
    t.ready("with a notification", client);
    let mut iov = vector(&[(bytes.as_mut_ptr(), 0)]);
    let mut got = message(&mut iov, 1);
    let mut control = [0_u8; 128];
    (got.msg_control, got.msg_controllen) = (control.as_mut_ptr().cast(), 128);
    let given = k.recvmsg(client, &raw mut got, libc::MSG_ERRQUEUE);
    let (len, flags) = (got.msg_controllen, got.msg_flags);
    t.say(&format!("the notification {:?} {flags:#x}", &control[..len]), given);
    t.ready("without", client);
    t.recv("another", client, 0, libc::MSG_ERRQUEUE);
}
