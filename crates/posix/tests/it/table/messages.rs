//! `sendmmsg` and `recvmmsg`: several messages, what ends them early, and an error after some.

use super::Given;
use super::cases::{Told, WRONG, message, name, to, vector};
use core::ptr::null_mut;
use libc::{c_int, mmsghdr, timespec};

/// What each message has of the buffer, from where on; `None`: a place that cannot be read or written.
type Parts<'a> = &'a [Option<(usize, usize)>];

const ROOM: usize = 4096;

/// Makes the call with these messages, and tells of their lengths.
fn each(
    t: &mut Told<'_>,
    what: &str,
    buf: &mut [u8],
    parts: Parts<'_>,
    call: impl FnOnce(*mut mmsghdr, u32) -> Given,
) {
    let mut vectors: Vec<_> = parts
        .iter()
        .map(|part| match part {
            Some((at, len)) => vector(&[(buf[*at..].as_ptr(), *len)]),
            None => vector(&[(core::ptr::null(), 4)]),
        })
        .collect();
    let mut all: Vec<mmsghdr> =
        vectors.iter_mut().map(|vector| mmsghdr { msg_hdr: message(vector, 1), msg_len: 77 }).collect();
    let given = call(all.as_mut_ptr(), all.len() as u32);
    let lengths: Vec<u32> = all.iter().map(|message| message.msg_len).collect();
    let flags: Vec<c_int> = all.iter().map(|message| message.msg_hdr.msg_flags).collect();
    t.say(&format!("{what}, lengths {lengths:?}, flags {flags:?}"), given);
}

fn send(t: &mut Told<'_>, what: &str, fd: c_int, parts: Parts<'_>, flags: c_int) {
    let mut buf: Vec<u8> = (0..ROOM).map(|at| b'a' + (at % 26) as u8).collect();
    let k = t.calls;
    each(t, what, &mut buf, parts, |messages, count| k.sendmmsg(fd, messages, count, flags));
    k.deliver();
}

fn receive(t: &mut Told<'_>, what: &str, fd: c_int, parts: Parts<'_>, flags: c_int, time: Option<[i64; 2]>) {
    let mut buf = vec![b'.'; 32];
    let k = t.calls;
    let mut left = time.map(|[tv_sec, tv_nsec]| timespec { tv_sec, tv_nsec });
    let place = left.as_mut().map_or(null_mut(), |left| &raw mut *left);
    let parts_told = parts.to_vec();
    each(t, what, &mut buf, &parts_told, |messages, count| k.recvmmsg(fd, messages, count, flags, place));
    t.lines.push(format!("{}", String::from_utf8_lossy(&buf)));
    if let (Some(left), Some([secs, _])) = (left, time) {
        // Of a longer time some has gone by in the kernel.
        let spent = secs > 0 && (left.tv_sec, left.tv_nsec) != (secs, 0);
        t.lines.push(format!("of {secs} s are left: {} s", if spent { secs } else { left.tv_sec }));
    }
}

const THREE: Parts<'_> = &[Some((0, 4)), Some((4, 8)), Some((12, 2))];

pub(super) fn several(t: &mut Told<'_>) {
    let k = t.calls;
    let (client, server) = t.connected();
    for (what, fd) in [("a wrong one", WRONG), ("a socket", client)] {
        t.say(&format!("sendmmsg of none by {what}"), k.sendmmsg(fd, null_mut(), 0, 0));
        t.say(&format!("recvmmsg of none by {what}"), k.recvmmsg(fd, null_mut(), 0, 0, null_mut()));
        t.say(&format!("sendmmsg from null by {what}"), k.sendmmsg(fd, null_mut(), 2, 0));
        t.say(&format!("recvmmsg to null by {what}"), k.recvmmsg(fd, null_mut(), 2, 0, null_mut()));
    }
    send(t, "send three", client, THREE, 0);
    receive(t, "receive three", server, THREE, 0, None);
    receive(t, "nothing", server, THREE, 0, None);
    send(t, "send three records", client, THREE, libc::MSG_EOR);
    receive(
        t,
        "wait for one",
        server,
        &[Some((0, 9)), Some((9, 9)), Some((18, 9))],
        libc::MSG_WAITFORONE,
        None,
    );
    for time in [[0, 0], [5, 0], [-1, 0], [0, 1_000_000_000], [0, -1]] {
        send(t, "send three", client, THREE, 0);
        receive(t, &format!("within {time:?}"), server, THREE, 0, Some(time));
        receive(t, "the rest", server, THREE, 0, None);
    }
    receive(t, "nothing within a time", server, THREE, 0, Some([5, 0]));
    send(t, "send, the second from nowhere", client, &[Some((0, 4)), None, Some((4, 4))], 0);
    receive(t, "receive, the second to nowhere", server, &[Some((0, 2)), None, Some((2, 2))], 0, None);
    receive(t, "that is told by the next call", server, THREE, 0, None);
    receive(t, "once", server, THREE, 0, None);
    send(t, "send urgent ones", client, &[Some((0, 2)), Some((2, 2))], libc::MSG_OOB);
    receive(t, "receive urgent ones", server, &[Some((0, 2)), Some((2, 2))], libc::MSG_OOB, None);
    receive(t, "receive about them", server, THREE, 0, None);
    receive(t, "and more", server, THREE, 0, None);
    receive(t, "of the error queue", server, THREE, libc::MSG_ERRQUEUE, None);
    t.say("shut", k.shutdown(client, libc::SHUT_WR));
    send(t, "send after that", client, THREE, 0);
    receive(t, "the end, three times", server, THREE, 0, None);
    full(t);
    let linger = [1, 0];
    let option = (libc::SOL_SOCKET, libc::SO_LINGER);
    t.say("linger for no time", k.setsockopt(server, option, linger.as_ptr().cast(), 8));
    t.say("close", k.close(server));
    k.deliver();
    receive(t, "of a reset one", client, THREE, 0, None);
    receive(t, "again", client, THREE, 0, None);
    let (listener, _) = t.listener();
    send(t, "by a listener", listener, THREE, 0);
    receive(t, "of a listener", listener, THREE, 0, None);
    let refused = t.fresh(libc::AF_INET);
    t.say("connect where nobody listens", k.connect(refused, to(&name("127.0.0.1:1")), 16).or(Ok(0)));
    k.deliver();
    receive(t, "of a refused one", refused, THREE, 0, None);
    receive(t, "again", refused, THREE, 0, None);
}

/// More messages than `UIO_MAXIOV`: so many are sent at once, and all received.
pub(super) fn many(t: &mut Told<'_>) {
    let k = t.calls;
    let (client, server) = t.connected();
    let mut buf = vec![b'a'; 1030];
    let count = |t: &mut Told<'_>, what: &str, buf: &mut [u8], receives: bool| {
        let mut vectors: Vec<_> = buf.iter().map(|byte| vector(&[(&raw const *byte, 1)])).collect();
        let mut all: Vec<mmsghdr> =
            vectors.iter_mut().map(|vector| mmsghdr { msg_hdr: message(vector, 1), msg_len: 0 }).collect();
        let (place, len) = (all.as_mut_ptr(), all.len() as u32);
        let given = if receives {
            k.recvmmsg(server, place, len, 0, null_mut())
        } else {
            k.sendmmsg(client, place, len, 0)
        };
        k.deliver();
        t.say(what, given);
    };
    count(t, "send", &mut buf, false);
    count(t, "send again", &mut buf, false);
    count(t, "receive", &mut buf, true);
}

/// The last message that was sent in part ends the call: how much of it is the buffers' affair.
fn full(t: &mut Told<'_>) {
    let k = t.calls;
    let (client, _server) = t.connected();
    let mut buf = vec![0_u8; 64 << 20];
    let mut vectors = [vector(&[(buf.as_ptr(), buf.len())]), vector(&[(buf.as_ptr(), 1)])];
    let mut all = vectors.each_mut().map(|vector| mmsghdr { msg_hdr: message(vector, 1), msg_len: 77 });
    let given = k.sendmmsg(client, all.as_mut_ptr(), 2, 0);
    let part = (1..buf.len()).contains(&(all[0].msg_len as usize));
    t.say(&format!("send more than there is room for, in part {part}, then {}", all[1].msg_len), given);
    buf.clear();
}
