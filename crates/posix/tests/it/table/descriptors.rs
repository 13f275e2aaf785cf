//! Descriptors, whatever they stand for, and `splice` between them.

use super::cases::{BYTES, Told, WRONG};
use core::ptr::null_mut;

/// Who would be told of what happens by which signal.
pub(super) fn owner(t: &mut Told<'_>) {
    let k = t.calls;
    let mut pipe = [0; 2];
    t.say("pipe", k.pipe2(pipe.as_mut_ptr(), 0));
    let epoll = t.fd("epoll", k.epoll_create1(0));
    let (client, _) = t.connected();
    // SAFETY: they take nothing, or a number.
    let (own, group) = unsafe { (libc::getpid(), libc::getpgid(0)) };
    for (what, fd) in [("a socket", client), ("a pipe", pipe[0]), ("epoll", epoll), ("nothing", WRONG)] {
        for (who, number) in [
            ("nobody", 0),
            ("no process", i32::MAX),
            ("no group", -i32::MAX),
            ("nonsense", i32::MIN),
            ("this", own),
        ]
        .into_iter()
        .chain([("no process", i32::MAX), ("the group", -group), ("nobody", 0)])
        {
            t.say(&format!("F_SETOWN of {what} to {who}"), k.fcntl(fd, libc::F_SETOWN, number));
            let read = k.fcntl(fd, libc::F_GETOWN, 0);
            t.say(&format!("F_GETOWN of {what}, {}", read == Ok(number.into())), read.map(|_| 0));
        }
        for [kind, id] in
            [[0, own], [1, own], [2, group], [2, -group], [3, own], [-1, 0], [1, 0], [1, i32::MAX]]
        {
            t.say(
                &format!("F_SETOWN_EX of {what} to {kind}, {}", id == own),
                k.owner_ex(fd, 15, &mut [kind, id]),
            );
            let mut told = [-7; 2];
            let read = k.owner_ex(fd, 16, &raw mut told);
            let whose = [own, group, 0].iter().position(|known| *known == told[1]);
            t.say(&format!("F_GETOWN_EX of {what}: {} {whose:?}", told[0]), read);
        }
        t.say("F_SETOWN_EX from null", k.owner_ex(fd, 15, null_mut()));
        t.say("F_GETOWN_EX to null", k.owner_ex(fd, 16, null_mut()));
        for request in [0x8901, 0x8902] {
            let mut number = own;
            t.say(&format!("{request:#x} of {what}"), k.ioctl(fd, request, &raw mut number));
            t.say("of null", k.ioctl(fd, request, null_mut()));
            number = -7;
            let given = k.ioctl(fd, request + 2, &raw mut number);
            t.say(&format!("{:#x} of {what}, {}", request + 2, number == own), given);
            t.say("into null", k.ioctl(fd, request + 2, null_mut()));
        }
        for signal in [10, 64, 65, -1, i32::MIN, 0] {
            t.say(&format!("F_SETSIG of {what} to {signal}"), k.fcntl(fd, 10, signal));
            t.say(&format!("F_GETSIG of {what}"), k.fcntl(fd, 11, 0));
        }
        t.say(&format!("F_GETLEASE of {what}"), k.fcntl(fd, libc::F_GETLEASE, 0));
    }
    t.say("set a signal", k.fcntl(client, 10, 12));
    let more = t.fd("dup", k.dup(client));
    t.say("a duplicate has it", k.fcntl(more, 11, 0));
}

/// `splice`: what is refused, in which order, and bytes through pipes.
pub(super) fn splice(t: &mut Told<'_>) {
    let k = t.calls;
    let (client, server) = t.connected();
    let mut ends = [0; 4];
    t.say("pipe", k.pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK));
    t.say("another", k.pipe2(ends[2..].as_mut_ptr(), libc::O_NONBLOCK));
    let [out, into, other_out, other_into] = ends;
    let epoll = t.fd("epoll", k.epoll_create1(0));
    let all = [
        ("the server", server),
        ("a pipe's reader", out),
        ("its writer", into),
        ("another's reader", other_out),
        ("another's writer", other_into),
        ("epoll", epoll),
        ("nothing", WRONG),
    ];
    // Twice: with empty pipes, and with something in one.
    for filled in [false, true] {
        if filled {
            t.send("send", client, 8, 0);
            k.deliver();
            t.say("splice it", k.splice((server, null_mut()), (into, null_mut()), 5, 0));
        }
        for (from, one) in all {
            for (to, other) in all {
                let mut offset = 0;
                let place = &raw mut offset;
                // Where both can be done, no bytes, so that the others find what they did.
                for (len, flags, offsets) in [
                    (0, 0, [null_mut(), null_mut()]),
                    (0, 99, [place, null_mut()]),
                    (1, 16, [null_mut(), null_mut()]),
                    (1, 0, [place, null_mut()]),
                    (1, 0, [null_mut(), place]),
                    (usize::MAX, 0, [place, place]),
                ] {
                    let given = k.splice((one, offsets[0]), (other, offsets[1]), len, flags);
                    let which = offsets.map(|offset| !offset.is_null());
                    t.say(
                        &format!("splice {len} from {from} to {to}, flags {flags}, offsets {which:?}"),
                        given,
                    );
                }
                if (one, other) != (server, into) || !filled {
                    let given = k.splice((one, null_mut()), (other, null_mut()), 1, 2);
                    t.say(&format!("splice one byte from {from} to {to}"), given);
                }
            }
        }
    }
    k.deliver();
    t.recv("what came back", client, 64, 0);
    t.say("set O_APPEND", k.fcntl(server, libc::F_SETFL, libc::O_APPEND | libc::O_NONBLOCK));
    t.say("splice to it", k.splice((out, null_mut()), (server, null_mut()), 1, 0));
    t.say("between pipes", k.splice((out, null_mut()), (other_into, null_mut()), 64, 0));
    t.say("the rest of the socket", k.splice((server, null_mut()), (other_into, null_mut()), 64, 0));
    t.say("nothing more", k.splice((server, null_mut()), (other_into, null_mut()), 64, 0));
    t.say("shut", k.shutdown(client, libc::SHUT_WR));
    k.deliver();
    t.say("the end", k.splice((server, null_mut()), (other_into, null_mut()), 64, 0));
    t.say("close a writer", k.close(into));
    t.say("nobody writes", k.splice((out, null_mut()), (other_into, null_mut()), 64, 0));
    t.say("nobody writes, to the socket", k.splice((out, null_mut()), (client, null_mut()), 64, 0));
    let lonely = t.fresh(libc::AF_INET);
    t.say("of no connection", k.splice((lonely, null_mut()), (other_into, null_mut()), 64, 0));
}

/// `splice` of a socket that waits, though not for ever.
pub(super) fn splice_waits(t: &mut Told<'_>) {
    let k = t.calls;
    let (_client, server) = t.connected();
    let mut ends = [0; 2];
    t.say("pipe", k.pipe2(ends.as_mut_ptr(), 0));
    let time: [i64; 2] = [0, 20_000];
    let option = (libc::SOL_SOCKET, libc::SO_RCVTIMEO);
    t.say("SO_RCVTIMEO", k.setsockopt(server, option, time.as_ptr().cast(), 16));
    t.say("wait", k.fcntl(server, libc::F_SETFL, 0));
    t.say("nothing comes", k.splice((server, null_mut()), (ends[1], null_mut()), 64, 0));
}

/// `FIONREAD` tells of either end what waits in a pipe.
pub(super) fn bytes_in_a_pipe(t: &mut Told<'_>) {
    let k = t.calls;
    let (client, server) = t.connected();
    let mut ends = [0; 2];
    t.say("pipe", k.pipe2(ends.as_mut_ptr(), 0));
    for (what, request) in
        [("FIONREAD", libc::FIONREAD), ("TIOCOUTQ", libc::TIOCOUTQ), ("SIOCATMARK", 0x8905)]
    {
        for filled in [false, true] {
            if filled && request == libc::FIONREAD {
                t.send("send", client, 8, 0);
                k.deliver();
                t.say("splice", k.splice((server, null_mut()), (ends[1], null_mut()), 5, 0));
            }
            for end in ends {
                let mut number = -7;
                let given = k.ioctl(end, request, &raw mut number);
                t.say(&format!("{what} of a pipe, filled {filled}: {number}"), given);
            }
        }
    }
}

pub(super) fn descriptors(t: &mut Told<'_>) {
    let k = t.calls;
    let (client, server) = t.connected();
    t.say("F_GETFL", k.fcntl(client, libc::F_GETFL, 0));
    t.say("F_GETFD", k.fcntl(client, libc::F_GETFD, 0));
    t.say("F_SETFD", k.fcntl(client, libc::F_SETFD, libc::FD_CLOEXEC));
    t.say("F_GETFD", k.fcntl(client, libc::F_GETFD, 0));
    t.say("F_DUPFD of a wrong one", k.fcntl(WRONG, libc::F_DUPFD, 0));
    t.say("F_DUPFD from below zero", k.fcntl(client, libc::F_DUPFD, -1));
    t.say("no such command", k.fcntl(client, 9999, 0));
    t.say("no such command of a wrong one", k.fcntl(WRONG, 9999, 0));
    let more = t.fd("dup", k.dup(client));
    t.say("F_GETFD of a duplicate", k.fcntl(more, libc::F_GETFD, 0));
    let closing = t.fd("F_DUPFD_CLOEXEC", k.fcntl(client, libc::F_DUPFD_CLOEXEC, 0));
    t.say("F_GETFD of it", k.fcntl(closing, libc::F_GETFD, 0));
    t.say("dup of a wrong one", k.dup(WRONG));
    t.say("dup2 of a wrong one", k.dup2(WRONG, client));
    t.say("dup2 to itself", k.dup2(client, client).map(|_| 0));
    t.say("dup2 of a wrong one to itself", k.dup2(WRONG, WRONG));
    t.say("dup3 to itself", k.dup3(client, client, 0));
    t.say("dup3 with wrong flags", k.dup3(client, closing, 1));
    t.say("dup2 to below zero", k.dup2(client, -1));
    t.say("dup2 over another", k.dup2(client, closing).map(|_| 0));
    t.say("close", k.close(client));
    t.say("send by the closed number", k.send(client, BYTES.as_ptr().cast(), 1, 0));
    t.send("send by a duplicate", more, 3, 0);
    k.deliver();
    t.recv("it came", server, 8, 0);
    t.say("set a duplicate waiting", k.fcntl(more, libc::F_SETFL, 0));
    t.say("the other waits, too", k.fcntl(closing, libc::F_GETFL, 0));
    let mut on = 1;
    t.say("FIONBIO", k.ioctl(more, posix::ioctl::FIONBIO, &raw mut on));
    t.say("F_GETFL", k.fcntl(closing, libc::F_GETFL, 0));
    t.say("FIONBIO of null", k.ioctl(more, posix::ioctl::FIONBIO, null_mut()));
    t.say("FIONREAD of null", k.ioctl(more, posix::ioctl::SIOCINQ, null_mut()));
    t.say("no such request", k.ioctl(more, 0x1234, &raw mut on));
    t.say("a request of a wrong one", k.ioctl(WRONG, posix::ioctl::SIOCINQ, &raw mut on));
    t.say("close a duplicate", k.close(more));
    k.deliver();
    t.recv("still open", server, 8, 0);
    t.say("close the last", k.close(closing));
    k.deliver();
    t.recv("the end", server, 8, 0);
    let (listener, _) = t.listener();
    t.say("FIONREAD of a listener", k.ioctl(listener, posix::ioctl::SIOCINQ, &raw mut on));
    t.say("pipe to null", k.pipe2(null_mut(), 0));
    t.say("pipe with wrong flags", k.pipe2([0; 2].as_mut_ptr(), 1));
}
