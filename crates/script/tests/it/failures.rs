//! What is said of a script that does not hold.

use script::{Script, Setup, run};

fn said(events: &str) -> String {
    let source = format!(
        "`sysctl -q net.ipv4.tcp_timestamps=0`\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n\
         +0 listen(3, 1) = 0\n+0 < S 0:0(0) win 1000 <mss 1000>\n{events}\n"
    );
    let script = Script::parse(&source).unwrap();
    run(&script, Setup::default()).expect_err(events).in_source(&source).to_string()
}

#[test]
fn packets_stand_one_below_the_other() {
    assert_eq!(
        said("+0 > S. 0:0(0) ack 2 <mss 1400>"),
        "6: the packet at 0 s differs in acknowledgment, options\n  script    +0 > S. 0:0(0) ack 2 <mss 1400>\n  \
         expected  > S. 0:0(0) ack 2 <mss 1400>\n  seen      > S. 0:0(0) ack 1 <mss 1460>\n  \
         \u{20}                         ^      ^^^^^"
    );
}

#[test]
fn times_calls_assertions_and_commands() {
    let cases = [
        ("+.5 > S. 0:0(0) ack 1 <...>", "the packet is right, but not its time"),
        ("+0 > S. 0:0(0) ack 1 <...>\n+.1 accept(3, ..., ...) = 4", "accept waits, and nothing ends it"),
        ("+0...0.1 accept(3, ..., ...) = 4", "accept has not returned"),
        ("+0 listen(9, 1) = 0", "listen returned something else"),
        ("+0 listen(3, 1) = -1 EINVAL", "listen returned something else"),
        ("+0 listen(3) = 0", "listen: no such system call with so many arguments"),
        ("+0 fork() = 0", "fork: no such system call"),
        ("+0 %{ assert tcpi_state == 1 }%", "`tcpi_state` has no value: there is no socket under test"),
        (
            "+0 %{ assert TcpExtListenDrops == 1 }%",
            "`TcpExtListenDrops == 1` does not hold: TcpExtListenDrops = 0",
        ),
        ("+0 `sysctl -q net.ipv4.tcp_colour=1`", "net.ipv4.tcp_colour is no setting"),
        ("+0 `rm -rf /`", "`rm -rf /` is not understood"),
        ("+0 `nstat | grep TcpExtListenDrops`", "no counter like `TcpExtListenDrops` has moved"),
    ];
    for (events, beginning) in cases {
        let said = said(events);
        let message = said.split_once(": ").map_or("", |(_, message)| message);
        assert!(message.starts_with(beginning), "{events}\n{said}");
    }
}
