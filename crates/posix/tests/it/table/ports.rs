//! Ports that are chosen, and listeners that share one: the kernel's in a namespace of its own, and ours.

use super::cases::{name, to, with_port};
use super::{Calls, Kernel, Ours};
use core::ptr::null_mut;
use libc::c_int;
use std::collections::BTreeSet;
use testnet::{in_namespace, sysctl};

const WAITLESS: c_int = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;

/// Makes a case of both, with a way to change their settings: what each tells must be equal, and is given.
fn of_both<T: PartialEq + std::fmt::Debug + Send>(
    case: impl Fn(&dyn Calls, &dyn Fn(&str, &str)) -> T + Sync,
) -> T {
    let ours = Ours::new();
    let set = |setting: &str, value: &str| {
        ours.0.call(|sockets, now| {
            let values = value.split_once(' ').filter(|_| setting.ends_with("port_range"));
            let changes = match values {
                None => vec![(setting, value)],
                Some((low, high)) => {
                    vec![("firstbyte.ip_local_port_low", low), ("firstbyte.ip_local_port_high", high)]
                }
            };
            for (setting, value) in changes {
                sockets.stack_mut().set(now, setting, value).unwrap();
            }
        });
    };
    let own = case(&ours, &set);
    let theirs = in_namespace(|| {
        super::leave_descriptors();
        case(&Kernel, &|setting, value| sysctl(setting, value))
    });
    if let Some(theirs) = theirs {
        assert_eq!(theirs, own, "the kernel's, and ours");
    }
    own
}

fn fresh(calls: &dyn Calls) -> c_int {
    calls.socket(libc::AF_INET, WAITLESS, 0).unwrap() as c_int
}

fn port(calls: &dyn Calls, fd: c_int) -> u16 {
    let (mut name, mut len) = ([0_u8; 16], 16);
    calls.getsockname(fd, name.as_mut_ptr().cast(), &raw mut len).unwrap();
    u16::from_be_bytes([name[2], name[3]])
}

fn at(port: u16) -> Vec<u8> {
    with_port(name("127.0.0.1:0"), port.to_be_bytes())
}

fn set(calls: &dyn Calls, fd: c_int, option: c_int, value: c_int) {
    calls.setsockopt(fd, (libc::SOL_SOCKET, option), (&raw const value).cast(), 4).unwrap();
}

fn end_by_reset(calls: &dyn Calls, fd: c_int) {
    let linger = [1_i32, 0];
    calls.setsockopt(fd, (libc::SOL_SOCKET, libc::SO_LINGER), linger.as_ptr().cast(), 8).unwrap();
}

/// The ports that `open` gives until it fails, and how it fails.
fn until_none(calls: &dyn Calls, open: impl Fn(c_int) -> super::Given) -> (BTreeSet<u16>, i32) {
    let mut found = BTreeSet::new();
    let mut fds = Vec::new();
    let errno = loop {
        let fd = fresh(calls);
        end_by_reset(calls, fd);
        fds.push(fd);
        match open(fd) {
            Ok(_) | Err(libc::EINPROGRESS) => assert!(found.insert(port(calls, fd))),
            Err(errno) => break errno,
        }
    };
    fds.into_iter().for_each(|fd| assert_eq!(calls.close(fd), Ok(0)));
    (found, errno)
}

/// `ip_local_reserved_ports`: neither `bind` nor `connect` chooses one, also where the socket has a range of its own; who names one gets it.
#[test]
fn reserved_ports_are_left_to_who_names_them() {
    let found = of_both(|calls, sysctl| {
        sysctl("net.ipv4.ip_local_port_range", "40000 40009");
        sysctl("net.ipv4.ip_local_reserved_ports", "40007-40009,40000-40003,40005");
        let any = name("127.0.0.1:0");
        let mut found = vec![until_none(calls, |fd| calls.bind(fd, to(&any), 16))];
        let narrow = |fd: c_int| {
            let range = 40_007_u32 << 16 | 40_002;
            calls.setsockopt(fd, (libc::IPPROTO_IP, 51), (&raw const range).cast(), 4).unwrap();
        };
        found.push(until_none(calls, |fd| {
            narrow(fd);
            calls.bind(fd, to(&any), 16)
        }));
        let listener = fresh(calls);
        calls.bind(listener, to(&at(80)), 16).unwrap();
        calls.listen(listener, 64).unwrap();
        found.push(until_none(calls, |fd| calls.connect(fd, to(&at(80)), 16)));
        let named = fresh(calls);
        calls.bind(named, to(&at(40_001)), 16).unwrap();
        found.push(([port(calls, named)].into(), 0));
        sysctl("net.ipv4.ip_local_reserved_ports", "\n");
        found.push(until_none(calls, |fd| calls.bind(fd, to(&any), 16)));
        found
    });
    let all_but_one = (40_000..=40_009).filter(|port| *port != 40_001).collect();
    let expected = [
        ([40_004, 40_006].into(), libc::EADDRINUSE),
        ([40_004, 40_006].into(), libc::EADDRINUSE),
        ([40_004, 40_006].into(), libc::EADDRNOTAVAIL),
        ([40_001].into(), 0),
        (all_but_one, libc::EADDRINUSE),
    ];
    assert_eq!(found, expected);
}

/// `connect` begins with every second port, `bind` with those between.
#[test]
fn bind_and_connect_choose_from_two_halves() {
    let found = of_both(|calls, sysctl| {
        sysctl("net.ipv4.ip_local_port_range", "40000 40004");
        let any = name("127.0.0.1:0");
        let listener = fresh(calls);
        calls.bind(listener, to(&at(80)), 16).unwrap();
        calls.listen(listener, 64).unwrap();
        let two = |connects: bool| {
            let fds = [fresh(calls), fresh(calls)];
            fds.map(|fd| {
                end_by_reset(calls, fd);
                let begun = match connects {
                    true => calls.connect(fd, to(&at(80)), 16),
                    false => calls.bind(fd, to(&any), 16),
                };
                assert!(matches!(begun, Ok(_) | Err(libc::EINPROGRESS)));
                (fd, port(calls, fd) % 2)
            })
            .map(|(fd, odd)| {
                calls.close(fd).unwrap();
                odd
            })
        };
        [two(true), two(false)]
    });
    assert_eq!(found, [[0, 0], [1, 1]]);
}

/// With `SO_REUSEADDR` `bind` leaves the upper half of the range over while the lower one has a port.
#[test]
fn bind_that_may_share_begins_with_the_lower_half() {
    let found = of_both(|calls, sysctl| {
        let any = name("127.0.0.1:0");
        let choose = |fd| {
            set(calls, fd, libc::SO_REUSEADDR, 1);
            calls.bind(fd, to(&any), 16)
        };
        sysctl("net.ipv4.ip_local_port_range", "40000 40011");
        let fds: Vec<_> = (0..6).map(|_| fresh(calls)).collect();
        let first: BTreeSet<u16> =
            fds.iter().map(|fd| choose(*fd).map(|_| port(calls, *fd)).unwrap()).collect();
        fds.into_iter().for_each(|fd| assert_eq!(calls.close(fd), Ok(0)));
        (first, until_none(calls, choose))
    });
    let all = (40_000..=40_011).collect();
    assert_eq!(found, ((40_000..=40_005).collect(), (all, libc::EADDRINUSE)));
}

/// Listeners that share a port, and its name.
fn sharing(calls: &dyn Calls, count: usize) -> (Vec<c_int>, Vec<u8>) {
    let mut addr = name("127.0.0.1:0");
    let open = |_| {
        let fd = fresh(calls);
        set(calls, fd, libc::SO_REUSEPORT, 1);
        calls.bind(fd, to(&addr), 16).unwrap();
        addr = at(port(calls, fd));
        calls.listen(fd, 1000).unwrap();
        fd
    };
    let listeners = (0..count).map(open).collect();
    (listeners, addr)
}

/// Connects from a port (0: any).
fn connected(calls: &dyn Calls, own: u16, addr: &[u8]) -> c_int {
    let fd = fresh(calls);
    set(calls, fd, libc::SO_REUSEADDR, 1);
    end_by_reset(calls, fd);
    if own != 0 {
        calls.bind(fd, to(&at(own)), 16).unwrap();
    }
    assert_eq!(calls.connect(fd, to(addr), 16), Err(libc::EINPROGRESS));
    calls.deliver_at_once();
    fd
}

/// Ports of the clients that a listener has.
fn accepted(calls: &dyn Calls, listener: c_int) -> Vec<u16> {
    let mut ports = Vec::new();
    let (mut name, mut len) = ([0_u8; 16], 16);
    while let Ok(fd) = calls.accept4(listener, name.as_mut_ptr().cast(), &raw mut len, 0) {
        ports.push(u16::from_be_bytes([name[2], name[3]]));
        calls.close(fd as c_int).unwrap();
    }
    ports
}

/// Each client comes to one listener, as many to each as chance gives, and the same four-tuple to the same one while they are the same.
#[test]
fn clients_of_a_shared_port_are_spread_by_their_four_tuple() {
    let (spread, stays) = of_both(|calls, _| {
        let (listeners, addr) = sharing(calls, 4);
        let first = 20_000;
        let visit = || {
            let clients: Vec<c_int> =
                (0..400).map(|number| connected(calls, first + number, &addr)).collect();
            calls.deliver();
            let seen: Vec<Vec<u16>> = listeners.iter().map(|fd| accepted(calls, *fd)).collect();
            clients.into_iter().for_each(|fd| assert_eq!(calls.close(fd), Ok(0)));
            calls.deliver();
            seen
        };
        let seen = visit();
        let all: BTreeSet<u16> = seen.iter().flatten().copied().collect();
        let each_once = seen.iter().map(Vec::len).sum::<usize>() == 400 && all.len() == 400;
        // 100 are expected, with a deviation of 8.7: five of them.
        let spread = each_once && seen.iter().all(|own| (56..=144).contains(&own.len()));
        (spread, visit() == seen)
    });
    assert!(spread && stays, "{spread} {stays}");
}

/// What a listener that closes has not accepted: reset, or with `tcp_migrate_req` another one's.
#[test]
fn who_closes_loses_its_clients_or_leaves_them_to_the_others() {
    let told = of_both(|calls, sysctl| {
        ["0", "1"].map(|migrates| {
            sysctl("net.ipv4.tcp_migrate_req", migrates);
            let (listeners, addr) = sharing(calls, 2);
            let clients: Vec<c_int> = (0..40).map(|_| connected(calls, 0, &addr)).collect();
            calls.deliver();
            // Closed by `close`, and by `shutdown`.
            let closed =
                if migrates == "0" { calls.close(listeners[0]) } else { calls.shutdown(listeners[0], 0) };
            assert_eq!(closed, Ok(0));
            calls.deliver();
            let kept = accepted(calls, listeners[1]).len();
            let reset = |fd: &&c_int| {
                let (mut error, mut len) = (0_i32, 4);
                let place = (&raw mut error).cast();
                calls.getsockopt(**fd, (libc::SOL_SOCKET, libc::SO_ERROR), place, &raw mut len).unwrap();
                error == libc::ECONNRESET
            };
            let lost = clients.iter().filter(reset).count();
            let none = calls.accept4(listeners[1], null_mut(), null_mut(), 0);
            let told = (kept == 40, lost == 0, kept + lost == 40, none);
            clients.into_iter().for_each(|fd| assert_eq!(calls.close(fd), Ok(0)));
            told
        })
    });
    let none = Err(libc::EAGAIN);
    assert_eq!(told, [(false, false, true, none), (true, true, true, none)]);
}
