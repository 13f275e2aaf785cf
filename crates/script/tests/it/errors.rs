//! What is refused, and what is said about it.

use script::Script;

#[test]
fn what_is_defined_from_outside_is_one_token() {
    let given = [("N".to_owned(), "1 2".to_owned())];
    let problem = Script::parse_with("+0 close(N) = 0", &given).unwrap_err();
    assert!(problem.to_string().starts_with("1:1: --define: `N` stands for one number"), "{problem}");
}

fn said(source: &str) -> String {
    Script::parse(source).expect_err(source).to_string()
}

#[test]
fn the_place_is_shown() {
    assert_eq!(
        said("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 < S 0:10(0) win 1\n"),
        "2:10: 0 and 0 bytes make 0, not 10\n  2 | +0 < S 0:10(0) win 1\n    |          ^"
    );
}

#[test]
fn the_sentence_says_what_to_write() {
    let cases = [
        ("", "1:1: a script needs at least one event"),
        ("+x read(3) = 0", "1:2: a time is expected"),
        ("+9223372036854.775807 close(3) = 0", "1:2: a time is expected: seconds, at most 1000000000"),
        ("0...1000000001 close(3) = 0", "1:5: a time is expected: seconds, at most 1000000000"),
        ("0.2~0.1 > . 1:1(0) ack 1", "1:5: a range of times ends before it begins"),
        ("+0 = 3", "1:4: after the time a packet"),
        ("+0 < S 0:0(0) <mss 1000>", "1:15: a packet that comes in needs its window"),
        ("+0 < X 0:0(0) win 1", "1:6: `X` is no TCP flag"),
        (
            "--mtu=100 --define=N=1|2",
            "1:11: --define: `N` stands for one number, name, text or command, and not for `1|2`",
        ),
        ("--define=N", "1:1: `--define=NAME=value` is expected"),
        ("--define\n+0 close(3) = 0", "1:1: `--define=NAME=value` is expected"),
        ("--define=N=", "1:1: --define: `N` stands for one number"),
        ("--define=2=3", "1:1: --define: `2` is no name"),
        ("+0 < P 1:2(1) ack 1 win 1", "1:15: a packet that comes in has `ack …` with the flag `.` only"),
        ("+0 > S 0:70000(70000)", "1:16: 70000 is out of range for the payload's length"),
        ("+0 > S 0:0(0) <mss 1000,nop>", "1:15: the options take 5 bytes: fill up to a multiple of 4"),
        ("+0 > S 0:0(0) <msss 1000>", "1:16: `msss` is none of the TCP options known here"),
        ("+0 > S 0:0(0) <FO abc>", "1:19: an even number of hexadecimal digits"),
        ("+0 > S 0:0(0) <ECN e1b 16777216>", "1:24: 16777216 does not fit into the 24 bits of the counter"),
        ("+0 > S 0:0(0) <ECN ceb 1>", "1:20: `e1b` is expected"),
        ("+0 > udp (1000)", "1:6: `udp`: only TCP and ICMP"),
        ("+0 > [ect3] . 1:1(0) ack 1", "1:7: `ect3` says nothing of an IP header"),
        ("+0 read(3, ..., 1.5) = 1", "1:17: `1.5` is no whole number"),
        ("+0 read(3, ... 1) = 1", "1:16: `,` or `)` is expected"),
        ("+0 read(3, ..., 1)", "1:19: `=` is expected"),
        ("+0 `true", "1:4: a command begins here and never ends"),
        ("+0 > . 1:1(0) ack 1\n`true` +0 > . 1:1(0)", "2:8: nothing may follow the command that cleans up"),
    ];
    for (source, beginning) in cases {
        let said = said(source);
        assert!(said.starts_with(beginning), "{source}\n{said}");
    }
}
