//! How a script's events are judged: what packetdrill compares, and how it merges what was cut.

use script::{Script, Setup, check, run};

const OPENING: &str = "`sysctl -q net.ipv4.tcp_timestamps=0`
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,nop,nop,sackOK>
+0 > S. 0:0(0) ack 1 <...>
+.01 < . 1:1(0) ack 1 win 32792
+0 accept(3, ..., ...) = 4
";

fn outcome(source: &str) -> Result<(), String> {
    let script = Script::parse(source).map_err(|problem| problem.to_string())?;
    run(&script, Setup::default()).map_err(|failure| failure.in_source(source).to_string())
}

fn on_connection(events: &str) -> Result<(), String> {
    outcome(&format!("{OPENING}{events}\n"))
}

fn holds(events: &str) {
    on_connection(events).unwrap_or_else(|message| panic!("{events}\n{message}"));
}

fn fails(events: &str, with: &str) {
    let message = on_connection(events).expect_err(events);
    assert!(message.contains(with), "{events}\n{message}");
}

/// `run_system_call.c` compares the error's number where one is named; where none is, any will do.
#[test]
fn a_call_that_fails_may_do_so_without_a_name_of_its_error() {
    holds("+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n+0 read(4, ..., 10) = -1");
    holds("+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n+0 read(4, ..., 10) = -1 EWOULDBLOCK");
    fails("+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n+0 read(4, ..., 10) = -1 EINVAL", "-1 EAGAIN");
    fails("+0 read(4, ..., 10) = -1 ENONSENSE", "`ENONSENSE` is the name of no error");
}

/// `packet.c` takes the header of the last.
#[test]
fn segments_that_are_merged_have_the_push_of_the_last() {
    let two = "+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0\n+0 send(4, ..., 1000, 0) = 1000\n\
               +0 send(4, ..., 1000, MSG_MORE) = 1000\n";
    holds(&format!("{two}+0 > . 1:2001(2000) ack 1"));
    fails(&format!("{two}+0 > P. 1:2001(2000) ack 1"), "differs in flags");
}

/// All but the last are of one length (`verify_packet_fragments`).
#[test]
fn segments_of_different_lengths_are_not_of_one_burst() {
    let three = "+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0\n+0 write(4, ..., 300) = 300\n\
                 +0 write(4, ..., 100) = 100\n+0 write(4, ..., 100) = 100\n";
    fails(&format!("{three}+0 > P. 1:501(500) ack 1"), "the packet ends after 300 of 500 bytes");
    holds(&format!("{three}+0 > P. 1:401(400) ack 1\n+0 > P. 401:501(100) ack 1"));
}

/// As `verify_packet_fragments` compares headers; Linux cuts a burst at the device, in no time.
#[test]
fn segments_of_other_headers_or_times_are_not_of_one_burst() {
    let first = "+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0\n+0 write(4, ..., 1000) = 1000\n";
    let marked =
        format!("{first}+0 setsockopt(4, SOL_IP, IP_TOS, [4], 4) = 0\n+0 write(4, ..., 1000) = 1000\n");
    fails(
        &format!("{marked}+0 > [tos 0x4] P. 1:2001(2000) ack 1"),
        "the packet ends after 1000 of 2000 bytes",
    );
    holds(&format!("{marked}+0 > [tos 0x0] P. 1:1001(1000) ack 1\n+0 > [tos 0x4] P. 1001:2001(1000) ack 1"));
    let later = format!("{first}+.05 write(4, ..., 1000) = 1000\n");
    fails(&format!("{later}* > P. 1:2001(2000) ack 1"), "and the next at 0.06 s does not go on");
    holds(&format!("{later}* > P. 1:1001(1000) ack 1\n* > P. 1001:2001(1000) ack 1"));
}

/// A SYN is of the socket from whose port it comes.
#[test]
fn a_syn_repeated_by_another_socket_passes_unnoticed() {
    let source = "`sysctl -q net.ipv4.tcp_timestamps=0`
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
   +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
   +0 > S 0:0(0) <mss 1460,nop,nop,sackOK,nop,wscale 10>
 +1.5 socket(..., SOCK_STREAM, IPPROTO_TCP) = 4
   +0 setsockopt(4, SOL_TCP, TCP_MAXSEG, [1000], 4) = 0
   +0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0
   +0 connect(4, ..., ...) = -1 EINPROGRESS (Operation now in progress)
   +0 > S 0:0(0) <mss 1000,nop,nop,sackOK,nop,wscale 10>
";
    outcome(source).unwrap();
}

#[test]
fn a_family_alone_is_an_address() {
    let source = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
   +0 sendto(3, ..., 0, MSG_FASTOPEN, AF_UNSPEC, ...) = -1 EOPNOTSUPP (Operation not supported)
   +0 connect(3, AF_INET, ...) = -1 EINPROGRESS (Operation now in progress)
";
    outcome(source).unwrap();
    let message = outcome(&source.replace("AF_INET", "AF_INET6")).unwrap_err();
    assert!(message.contains("is not the family"), "{message}");
}

/// With nothing to copy there is nothing that could go to a bad place (Linux's `tcp_recvmsg_locked`).
#[test]
fn to_receive_into_nowhere_is_an_error_once_there_is_something() {
    holds(
        "+0 recv(4, NULL, 10, MSG_DONTWAIT) = -1 EAGAIN (Resource temporarily unavailable)
+0 < P. 1:11(10) ack 1 win 32792
+0 > . 1:1(0) ack 11
+0 read(4, NULL, 10) = -1 EFAULT (Bad address)
+0 readv(4, NULL, 1) = -1 EFAULT (Bad address)
+0 writev(4, NULL, 2) = -1 EFAULT (Bad address)
+0 read(4, ..., 100) = 10",
    );
}

#[test]
fn what_is_said_beside_a_call_is_compared_or_refused() {
    fails("+0 write(4, \"AAAA\", 4) = 4", "a buffer is `...` or NULL");
    fails("+0 writev(4, [{..., 4}], 2) = 4", "2 buffers are said, and 1 are there");
    fails("+0 poll([{fd=4, events=POLLIN, revents=0}], 2, 0) = 0", "2 descriptors are said, and 1 are there");
    fails("+0 fcntl(4, F_SETSIG, 1) = 0", "`F_SETSIG` is no name");
    fails("+0 fcntl(4, F_SETOWN, 1) = 0", "is not understood here");
    holds("+0 fcntl(4, F_GETFD) = 0\n+0 fcntl(4, F_SETFD, FD_CLOEXEC) = 0\n+0 fcntl(4, F_GETFD) = 1");
}

/// `syscall_recvmsg` compares flags and ancillary values, those with level and type; what is not said is 0, and no room.
#[test]
fn bad_arguments_are_refused_as_the_kernel_does() {
    holds("+0 epoll_create(0) = -1 EINVAL (Invalid argument)");
    holds(
        "+0 connect(4, NULL, ...) = -1 EFAULT (Bad address)\n+0 bind(4, NULL, ...) = -1 EFAULT (Bad address)",
    );
    holds("+0 connect(99, NULL, ...) = -1 EBADF (Bad file descriptor)");
    holds("+0 setsockopt(4, SOL_TCP, TCP_NODELAY, NULL, 4) = -1 EFAULT (Bad address)");
    fails("+0 read(4, ..., 1) = ... EINVAL", "`... EINVAL`: what fails returns -1");
    fails("+0 read(4, ..., 1) = 0 EINVAL", "`0 EINVAL`: what fails returns -1");
}

#[test]
fn events_that_were_not_found_are_zeros() {
    let watches =
        "+0 epoll_create(1) = 5\n+0 epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN|EPOLLOUT, fd=4}) = 0\n";
    let finds = |events: &str, found: u32| format!("{watches}+0 epoll_wait(5, {events}, 2, 0) = {found}");
    holds(&finds("{events=EPOLLOUT, fd=4}", 1));
    holds(&finds("[{events=EPOLLOUT, fd=4}, {events=0, ptr=0}]", 1));
    fails(&finds("[{events=EPOLLOUT, fd=4}, {events=EPOLLIN, fd=4}]", 1), "expected  events: 1 (0x1)");
    let edge = watches.replace("EPOLLIN|EPOLLOUT", "EPOLLIN");
    holds(&format!("{edge}+0 epoll_wait(5, {{events=0, ptr=0}}, 1, 0) = 0"));
    fails(
        &format!("{edge}+0 epoll_wait(5, {{events=EPOLLIN, fd=4}}, 1, 0) = 0"),
        "expected  events: 1 (0x1)",
    );
}

#[test]
fn an_address_is_of_the_family_that_is_said() {
    let binds = |address: &str| {
        outcome(&format!("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, {{{address}}}, ...) = 0"))
    };
    assert_eq!(binds("sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"192.168.0.1\")"), Ok(()));
    for (address, with) in [
        (
            "sa_family=AF_INET6, sin_port=htons(80), sin_addr=inet_addr(\"192.168.0.1\")",
            "`sin_port` is no field",
        ),
        (
            "sa_family=AF_INET, sin_port=htons(80), sin_addr=inet6_addr(\"192.168.0.1\")",
            "`inet_addr(\"…\")` is",
        ),
        ("sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"::1\")", "no address of the family"),
        (
            "sa_family=AF_INET, sin_port=htons(80), sin_addr=nonsense(\"192.168.0.1\")",
            "`inet_addr(\"…\")` is",
        ),
        ("sa_family=7, sin_port=htons(80), sin_addr=inet_addr(\"192.168.0.1\")", "7 is no family"),
    ] {
        let message = binds(address).unwrap_err();
        assert!(message.contains(with), "{message}");
    }
}

#[test]
fn all_of_a_message_is_compared_or_refused() {
    let came = "+0 setsockopt(4, SOL_TCP, TCP_INQ, [1], 4) = 0\n+0 < P. 1:101(100) ack 1 win 32792\n+0 > . 1:1(0) ack 101\n";
    let receives = |fields: &str| format!("{came}+0 recvmsg(4, {{msg_name(...)=..., {fields}}}, 0) = 40");
    let inq = "{cmsg_level=SOL_TCP, cmsg_type=TCP_CM_INQ, cmsg_data=60}";
    holds(&receives(&format!("msg_iov(1)=[{{..., 40}}], msg_flags=0, msg_control=[{inq}]")));
    holds(&receives("msg_iov(...)=[{..., 40}], msg_flags=..."));
    holds(&receives("msg_iov(1)=[{..., 40}], msg_flags=MSG_CTRUNC"));
    for (fields, with) in [
        ("msg_iov(1)=[{..., 40}]", "msg_flags: 0"),
        ("msg_iov(1)=[{..., 40}], msg_flags=MSG_EOR, msg_control=[]", "msg_flags: 128"),
        ("msg_iov(1)=[{..., 40}], msg_flags=0, msg_control=[]", "ancillary values: 0"),
        ("msg_iov(2)=[{..., 40}], msg_flags=0", "`msg_iov(2)`: as many buffers as there are"),
        ("msg_iov(1)=[{..., 40}], msg_flags(1)=0", "`msg_flags(1)`: only msg_flags is understood"),
        ("msg_iov(1)=[{..., 40}], msg_flag=0", "`msg_flag` is no field here: msg_name, msg_iov"),
        ("msg_iov(1)=[{..., 40}], msg_flags=0, msg_flags=0", "`msg_flags` is said twice"),
    ] {
        fails(&receives(fields), with);
    }
    for (value, with) in [
        (inq.replace("SOL_TCP", "SOL_IP"), "`SOL_IP` `TCP_CM_INQ` is no ancillary value"),
        (inq.replace("60", "61"), "TCP_CM_INQ: 61"),
        (
            "{cmsg_level=SOL_SOCKET, cmsg_type=SCM_TIMESTAMP, cmsg_data={scm_sec=0,scm_nsec=0}}".to_owned(),
            "SCM_TIMESTAMP where TCP_CM_INQ is",
        ),
        (
            "{cmsg_level=SOL_SOCKET, cmsg_type=SCM_TIMESTAMP, cmsg_data={scm_sec=9223372036854775807,scm_nsec=0}}".to_owned(),
            "is out of range",
        ),
        (
            "{cmsg_level=SOL_IP, cmsg_type=IP_RECVERR, cmsg_data={ee_bogus=-1}}".to_owned(),
            "`ee_bogus` is no field here",
        ),
    ] {
        fails(&receives(&format!("msg_iov(1)=[{{..., 40}}], msg_flags=0, msg_control=[{value}]")), with);
    }
}

#[test]
fn kinds_of_time_stamps_and_errors_are_told_apart() {
    let sent = "+0 setsockopt(4, SOL_SOCKET, SO_TIMESTAMPING, [SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_SOFTWARE], 4) = 0
+0 write(4, ..., 10) = 10\n+0 > P. 1:11(10) ack 1\n+.01 < . 1:1(0) ack 11 win 32792\n";
    let told = |stamp: &str, level: &str, error: &str| {
        format!(
            "{sent}+0 recvmsg(4, {{msg_name(...)=..., msg_iov(1)=[{{..., 100}}], msg_flags=MSG_ERRQUEUE, msg_control=[\
             {{cmsg_level=SOL_SOCKET, cmsg_type={stamp}, cmsg_data={{scm_sec=0,scm_nsec=20000000}}}}, \
             {{cmsg_level={level}, cmsg_type={error}, cmsg_data={{ee_errno=ENOMSG, ee_info=SCM_TSTAMP_ACK}}}}]}}, MSG_ERRQUEUE) = 10"
        )
    };
    holds(&told("SCM_TIMESTAMPING", "SOL_IP", "IP_RECVERR"));
    holds(&told("SCM_TIMESTAMPING", "CMSG_LEVEL_IP", "CMSG_TYPE_RECVERR"));
    fails(&told("SCM_TIMESTAMP", "SOL_IP", "IP_RECVERR"), "SCM_TIMESTAMP where SCM_TIMESTAMPING is");
    fails(&told("SCM_TIMESTAMPING", "SOL_IPV6", "IPV6_RECVERR"), "IPV6_RECVERR where IP_RECVERR is");
    fails(
        &told("SCM_TIMESTAMPING", "SOL_IPV6", "IP_RECVERR"),
        "`SOL_IPV6` `IP_RECVERR` is no ancillary value",
    );
}

#[test]
fn what_sendmsg_would_not_look_at_is_refused() {
    let sends = |fields: &str| {
        format!(
            "+0 sendmsg(4, {{msg_name(...)=..., msg_iov(1)=[{{..., 40}}], {fields}}}, 0) = 40\n+0 > P. 1:41(40) ack 1"
        )
    };
    holds(&sends("msg_flags=0, msg_control=[]"));
    fails(&sends("msg_flags=MSG_OOB"), "sendmsg does not look at msg_flags");
    let inq = "{cmsg_level=SOL_TCP, cmsg_type=TCP_CM_INQ, cmsg_data=60}";
    fails(&sends(&format!("msg_flags=0, msg_control=[{inq}]")), "sendmsg takes no ancillary values here");
}

#[test]
fn a_descriptor_and_its_copy_are_one_socket() {
    holds(
        "+0 fcntl(4, F_DUPFD, 9) = 9
+0 close(4) = 0
+0 write(9, ..., 10) = 10
+0 > P. 1:11(10) ack 1
+0 close(9) = 0
+0 > F. 11:11(0) ack 1",
    );
}

/// Only the script's own files are there, and /dev/zero.
#[test]
fn files_are_as_long_as_commands_made_them() {
    holds(
        "+0 open(\"file\", O_RDONLY) = -1 ENOENT (No such file or directory)
+0 `dd if=/dev/zero of=file bs=1k count=2 status=none`
+0 open(\"file\", O_RDONLY) = 5
+0 read(5, ..., 2000) = 2000
+0 read(5, ..., 2000) = 48
+0 sendfile(4, 5, [1048], 5000) = 1000
+0 > P. 1:1001(1000) ack 1
+0 close(5) = 0
+0 `rm file`
+0 open(\"file\", O_RDONLY) = -1 ENOENT (No such file or directory)
+0 open(\"/dev/zero\", O_RDONLY) = 5
+0 read(5, ..., 9) = 9",
    );
    fails("+0 `rm file`", "there is no `file` to remove");
}

#[test]
fn sendfile_reads_on_by_what_was_sent() {
    holds(
        "+0 `truncate -s 100000 file`
+0 open(\"file\", O_RDONLY) = 5
+0 sendfile(99, 5, NULL, 10) = -1 EBADF (Bad file descriptor)
+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 sendfile(4, 5, NULL, 40) = 40
+0 > P. 1:41(40) ack 1
+0 setsockopt(4, SOL_SOCKET, SO_SNDBUF, [10000], 4) = 0
+0 sendfile(4, 5, NULL, 99960) = 25000
+0 read(5, ..., 100000) = 74960",
    );
}

#[test]
fn flags_and_patterns_of_counters_are_understood_or_refused() {
    holds("+0 `nstat -as | grep -q TcpPassiveOpens`\n+0 `nstat > /dev/null`\n+0 `nstat -n`");
    holds("+0 `nstat -s | grep TcpPassiveOpens && nstat -s | grep -q TcpPassiveOpens`");
    for (command, with) in [
        ("nstat -z | grep TcpPassiveOpens", "`-z` of nstat is not understood"),
        ("nstat -an | grep TcpPassiveOpens", "`nstat -n` shows nothing to grep"),
        ("nstat -as | grep -v TcpPassiveOpens", "grep is understood as `grep [-q] NAME`"),
        ("nstat -as | grep 'TcpPassive.*'", "grep is understood as `grep [-q] NAME`"),
        ("nstat -as | grep -q TcpPassiveOpens IpInReceives", "grep is understood as `grep [-q] NAME`"),
        ("nstat -as | grep -q", "grep is understood as `grep [-q] NAME`"),
    ] {
        fails(&format!("+0 `{command}`"), with);
    }
}

#[test]
fn touch_leaves_a_file_as_it_is() {
    holds(
        "+0 `truncate -s 10 file; touch file; touch other`
+0 open(\"file\", O_RDONLY) = 5
+0 read(5, ..., 100) = 10
+0 open(\"other\", O_RDONLY) = 6",
    );
    fails("+0 `truncate -s +10 file`", "`+10` is no length");
}

#[test]
fn no_time_is_too_long_to_be_refused() {
    fails("+0 `sleep inf`", "`inf` is no time to sleep");
    fails("+0 `sleep -1`", "`-1` is no time to sleep");
    fails("+0 `sleep 1e300`", "the script's time goes beyond 1000000000 s");
    fails("+0 close(4) = 0\n+1000000000 close(3) = 0", "the script's time goes beyond 1000000000 s");
    let idle = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n1000000000 close(3) = 0\n";
    assert_eq!(outcome(idle), Ok(()));
    let message = outcome(&format!("{idle}+1000000000 close(3) = 0\n")).unwrap_err();
    assert!(message.contains("goes beyond"), "{message}");
}

#[test]
fn commands_are_joined_as_a_shell_joins_them() {
    holds("+0 `sysctl -q net.ipv4.tcp_fastopen_cookies=0 &> /dev/null || ip tcp_metrics flush all`");
    holds("+0 `ethtool -K tun0 tso off gso off`\n+0 `false && sysctl net.ipv4.tcp_sack=9 || true`");
    fails("+0 `sysctl -q net.ipv4.tcp_fastopen_cookies=0`", "no setting of the stack, nor of Linux");
    fails("+0 `sysctl -q net.ipv4.tcp_l3mdev_accept=1 || true`", "a setting of Linux's that is not here");
    fails("+0 `true && false`", "the command fails");
    fails("+0 `ethtool -K tun0 tx off`", "is not understood");
    fails("+0 `rm -rf / || true`", "is not understood");
}

/// A setting does something, or is one of those that Linux takes and does not look at, in Linux's range.
#[test]
fn echoes_come_and_are_expected() {
    holds(
        "+0 < icmp echo_request id 7\n+0 > icmp echo_reply id 7\n+.1 < icmp type_8 code_0 id 9\n+0 > icmp type_0 id 9",
    );
    holds("+0 < [tos 0x04] icmp echo_request\n+0 > [tos 0x4,ttl 64] icmp echo_reply");
    fails("+0 < icmp echo_request\n+0 > [tos 0x04] icmp echo_reply", "> [tos 0x0] icmp echo_reply");
    fails("+0 < icmp echo_request\n+0 > [ttl 3] icmp echo_reply", "> [ttl 64] icmp echo_reply");
    fails("+0 < icmp echo_request id 7\n+0 > icmp echo_reply id 8", "the ICMP message at 0.01 s differs");
    fails("+0 > icmp echo_reply", "no ICMP message left");
    let v6 = "--ip_version=ipv6\n0 socket(AF_INET6, SOCK_STREAM, IPPROTO_TCP) = 3\n";
    assert_eq!(outcome(&format!("{v6}+0 < icmp echo_request id 9\n+0 > icmp echo_reply id 9\n")), Ok(()));
}

#[test]
fn what_does_not_belong_to_a_kind_of_icmp_is_refused() {
    let v6 = "--ip_version=ipv6\n0 socket(AF_INET6, SOCK_STREAM, IPPROTO_TCP) = 3\n";
    for (message, with) in [
        ("unreachable frag_needed mtu 70000 [1:1(0)]", "`mtu 70000` is out of range"),
        ("unreachable host_unreachable mtu 1000 [1:1(0)]", "`mtu` belongs to `unreachable frag_needed` only"),
        ("unreachable port_unreachable id 9 [1:1(0)]", "`id` belongs to echoes only"),
        ("type_8 code_0 [1:1(0)]", "a segment in brackets belongs to errors only"),
        ("echo_request mtu 1000", "`mtu` belongs to `unreachable frag_needed` only"),
        ("time_exceeded port_unreachable [1:1(0)]", "only `unreachable` has codes by name"),
    ] {
        fails(&format!("+0 < icmp {message}"), with);
        fails(&format!("+0 > icmp {message}"), with);
        let script = Script::parse(&format!("{OPENING}+0 > icmp {message}\n")).unwrap();
        let checked = check(&script, Setup::default()).unwrap_err().to_string();
        assert!(checked.contains(with), "{checked}");
    }
    let message = outcome(&format!("{v6}+0 < icmp packet_too_big code_1 mtu 1300 [1:1(0)]")).unwrap_err();
    assert!(message.contains("`mtu` belongs to `packet_too_big` only"), "{message}");
}

/// Up to the failure, with times and directions.
#[test]
fn what_passed_is_given_with_the_outcome() {
    let source = format!("{OPENING}+.1 < R. 1:1(0) ack 1 win 0\n+0 > R 1:1(0)\n");
    let script = script::Script::parse(&source).unwrap();
    let (outcome, passed) = script::run_captured(&script, script::Setup::default());
    assert!(outcome.is_err());
    let seen: Vec<(i64, bool)> = passed
        .iter()
        .map(|passed| (passed.at / 1000, passed.direction == script::ast::Direction::In))
        .collect();
    assert_eq!(seen.first(), Some(&(0, true)));
    assert!(seen.len() >= 4 && seen.iter().any(|(_, came)| !came), "{seen:?}");
    assert!(passed.iter().all(|passed| passed.packet[0] >> 4 == 4));
    let (outcome, passed) =
        script::run_captured(&script::Script::parse("0 nonsense(3) = 1").unwrap(), script::Setup::default());
    assert!(outcome.is_err() && passed.is_empty());
}

/// With the kernel's refusals; what leads nowhere is told by connect, as `fib_props` has it.
#[test]
fn routes_are_set_and_removed() {
    holds("+0 `ip route add 192.0.2.1/32 dev tun0 initcwnd 4`\n+0 `ip route del 192.0.2.1`");
    holds("+0 `ip route replace 192.0.2.0/24 via 192.168.0.2 dev tun0 rto_min 40ms quickack 1`");
    holds("+0 `ip route del 192.0.2.1/32 || true`");
    fails("+0 `ip route del 192.0.2.1/32`", "no route to 192.0.2.1/32");
    // packetdrill has made one to the peer.
    holds("+0 `ip route change 192.0.2.1 initcwnd 2`");
    fails("+0 `ip route change 192.0.2.9/32 initcwnd 2`", "no route to 192.0.2.9/32");
    fails("+0 `ip route add 192.0.2.1/32 dev tun0\nip route add 192.0.2.1/32 dev tun0`", "already");
    fails("+0 `ip route flush cache`", "`ip route flush cache` is not understood");
    fails("+0 `ip route add 192.0.2.1 hoplimit 7`", "`hoplimit` is not one of: mtu");
    for (kind, errno) in [("blackhole", "EINVAL"), ("unreachable", "EHOSTUNREACH"), ("prohibit", "EACCES")] {
        holds(&format!(
            "+0 `ip route add {kind} 192.0.2.1/32`\n+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5\n\
             +0 connect(5, ..., ...) = -1 {errno} (no way)"
        ));
    }
}

#[test]
fn one_path_is_forgotten_or_all() {
    let connected =
        "+0 close(4) = 0\n+0 > F. 1:1(0) ack 1\n+.01 < F. 1:1(0) ack 2 win 32792\n+0 > . 2:2(0) ack 2\n";
    holds(&format!("{connected}+0 `ip tcp_metrics flush 192.0.2.1`"));
    fails(&format!("{connected}+0 `ip tcp_metrics flush 192.0.2.2`"), "nothing is remembered of 192.0.2.2");
    fails("+0 `ip tcp_metrics flush some`", "`some` is no address");
    fails("+0 `tc qdisc del`", "`tc qdisc del` is not understood");
}

#[test]
fn every_setting_is_taken_or_refused() {
    // Above what the highest port was.
    holds("+0 `sysctl -q net.ipv4.ip_local_port_range=\"61000 62000\"`");
    fails("+0 `sysctl -q net.ipv4.ip_local_port_range=\"3 2\"`", "ip_local_port_low (3) is more than");
    fails("+0 `sysctl -q net.ipv4.tcp_frto=77`", "net.ipv4.tcp_frto=77");
    fails("+0 `sysctl -q net.ipv4.tcp_fack=256`", "it is 0 to 255");
    holds("+0 `sysctl -q net.ipv4.tcp_fack=77`");
}

/// F-RTO (RFC 5682) as the engine does it: without it, what is lost is sent again in slow start.
#[test]
fn tcp_frto_takes_effect() {
    let after_timeout = |frto: u8, then: &str| {
        on_connection(&format!(
            "+0 `sysctl -q net.ipv4.tcp_frto={frto} net.ipv4.tcp_early_retrans=0 net.ipv4.tcp_recovery=0`
+0 write(4, ..., 12000) = 12000
+0 > P. 1:10001(10000) ack 1
+.2~+.22 > . 1:1001(1000) ack 1
+.01 < . 1:1(0) ack 1001 win 32792
{then}"
        ))
    };
    let anew = "+0 > P. 10001:12001(2000) ack 1";
    let again = "+0 > . 1001:3001(2000) ack 1";
    assert_eq!(after_timeout(2, anew), Ok(()));
    assert_eq!(after_timeout(0, again), Ok(()));
}

/// The first line is the measure of those below it.
#[test]
fn a_snippet_may_be_indented_as_a_whole() {
    let choice = |cwnd: u32, last: u32| {
        format!(
            "+0 %{{\n   if tcpi_snd_cwnd == {cwnd}:\n     assert 1\n   else:\n     assert 0\n   assert {last}\n}}%"
        )
    };
    holds(&choice(10, 1));
    fails(&choice(10, 0), "`0` does not hold");
    fails(&choice(1, 1), "`0` does not hold");
}

#[test]
fn snippets_are_worth_what_python_says() {
    holds("+0 %{ assert 7 // -2 == -4 and -7 % 2 == 1 and 7 % -2 == -1 and -7.5 // 2 == -4 }%");
    holds(
        "+0 %{ assert tcpi_snd_cwnd == 10 or nonsense; assert 1 if 1 else nonsense; assert 3 not in (1, 2) }%",
    );
    fails("+0 %{ assert (tcpi_snd_cwnd == 99, \"cwnd\") }%", "always holds: assert a condition");
    fails("+0 %{ assert print(0) }%", "`print ( 0 )` does not hold");
    fails("+0 %{ assert abs(1, 2) }%", "abs takes one value, and 2 are given");
}

/// What goes on behind a backslash may be nothing.
#[test]
fn a_snippet_may_end_in_a_backslash() {
    holds("+0 %{ assert tcpi_state == 1;\\\n}%");
}

#[test]
fn what_is_not_understood_is_said_without_a_run() {
    let said = |event: &str| {
        let script = Script::parse(&format!("{OPENING}{event}\n")).unwrap();
        check(&script, Setup::default()).map_err(|failure| failure.to_string())
    };
    for (event, with) in [
        ("+0 bogus(1) = 0", "10: bogus: no such system call"),
        ("+0 socket(..., SOCK_NOPE, 0) = 3", "`SOCK_NOPE` is no name"),
        ("+0 close(4) = -1 ENONSENSE", "`ENONSENSE` is the name of no error"),
        ("+0 close(4) = NOTHING", "`NOTHING` is no name"),
        ("+0 `rm -rf x`", "`rm -rf x` is not understood"),
        ("+0 `true`\n`rm -rf y`", "11: `rm -rf y` is not understood"),
        ("+0 `sysctl -q net.ipv4.tcp_sack=7 || true`", "net.ipv4.tcp_sack=7"),
        ("+0 %{ import os }%", "`import` is not understood"),
        ("+0 %{ x = }%", "a value is expected at the end"),
        ("+0 %{ if 0: assert open('x') }%", "`open` is no function"),
        ("+0 %{ if 0:\nassert 1 }%", "indented lines are expected"),
        ("+0 < icmp unreachable nowhere [1:1(0)]", "`nowhere` is no ICMP code"),
    ] {
        let message = said(event).expect_err(event);
        assert!(message.contains(with), "{event}: {message}");
    }
    assert_eq!(said("+0 `true`\n`/tmp/sysctl_restore_${PPID}.sh`"), Ok(()));
    let fine = "+9 > P. 1:2(1) ack 7\n+0 open(\"x\", O_RDONLY) = 5\n+0 sendfile(4, 5, [0], 9) = 9\n+0 `true`";
    assert_eq!(said(fine), Ok(()));
}

/// What `getsockopt` writes is as long as the script says (`syscall_getsockopt`).
#[test]
fn the_length_of_an_option_is_compared() {
    holds("+0 getsockopt(4, SOL_TCP, TCP_NODELAY, [0], [4]) = 0");
    fails("+0 getsockopt(4, SOL_TCP, TCP_NODELAY, [0], [8]) = 0", "[0] takes 4 bytes, and 8 are said");
    fails("+0 getsockopt(4, SOL_TCP, TCP_NODELAY, ..., [8]) = 0", "bytes: 8");
    fails("+0 getsockopt(4, SOL_TCP, TCP_CC_INFO, [0], [4]) = 0", "bytes: 4");
    fails("+0 getsockopt(4, SOL_TCP, TCP_CONGESTION, \"cubic\", [16]) = 0", "takes 5 bytes, and 16 are said");
    holds("+0 getsockopt(4, SOL_TCP, TCP_CONGESTION, \"cubic\", [5]) = 0");
    fails("+0 getsockopt(4, SOL_TCP, TCP_NODELAY, [0], 4) = 0", "one value in brackets");
}

#[test]
fn options_of_a_script_say_where_it_runs() {
    let under = |options: &str, events: &str| outcome(&format!("{options}\n{events}"));
    let mapped = OPENING.replace("socket(...,", "socket(AF_INET6,");
    assert_eq!(under("--ip_version=ipv4-mapped-ipv6", OPENING), Ok(()));
    assert_eq!(under("--ip_version=ipv4-mapped-ipv6", &mapped), Ok(()));
    let connects = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n+0 > S 0:0(0) <...>
+.01 < S. 0:0(0) ack 1 win 1000 <mss 1000>\n+0 > . 1:1(0) ack 1\n";
    for options in [
        "--ip_version=ipv4-mapped-ipv6",
        "--ip_version=ipv6",
        "--remote_ip=198.51.100.7/24 --is_anyip --send_omit_free --speed=100",
        "--tolerance_percent=10 --tolerance_usecs=100",
    ] {
        let timestamps_off = format!("`sysctl -q net.ipv4.tcp_timestamps=0`\n{connects}");
        assert_eq!(under(options, &timestamps_off), Ok(()), "{options}");
    }
    assert_eq!(under("--dry_run", "0 close(3) = 7\n"), Ok(()));
    for (options, with) in [
        ("--remote_ip=192.0.2.1/33", "--remote_ip=33 is not in 0..=32"),
        ("--tolerance_usecs=0", "--tolerance_usecs=0 is not in 1..="),
        ("--is_anyip=1", "--is_anyip takes no value"),
        ("--bind_port=0", "`0` is no value of --bind_port"),
        ("--mss=1000", "--mss is no option of a script that is known here"),
        ("--init_scripts=nowhere.sh", "nowhere.sh"),
    ] {
        let message = under(options, "0 close(3) = -1\n").expect_err(options);
        assert!(message.contains(with), "{message}");
    }
}

#[test]
fn a_packet_at_another_time_is_shown() {
    fails("+.02 write(4, ..., 10) = 10\n+.03 > P. 1:11(10) ack 1", "seen      > P. 1:11(10) ack 1 at 0.03 s");
}

#[test]
fn snippets_ask_for_the_congestion_control_too() {
    holds(
        "+0 setsockopt(4, SOL_TCP, TCP_CONGESTION, \"vegas\", 5) = 0\n+0 %{ assert tcpv_enabled == 1, tcpv_enabled }%",
    );
    fails("+0 %{ assert tcpv_enabled == 1 }%", "`tcpv_enabled` has no value");
}
