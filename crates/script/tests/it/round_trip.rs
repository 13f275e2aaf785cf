//! What is printed is read back as the same.

use proptest::prelude::*;
use script::Script;
use script::ast::{Action, Body, Direction, Event, Icmp, Ip, Line, Packet, Segment, TcpOption, Tos, When};
use script::options;
use wire::{Ecn, Flags};

fn again(source: &str) -> String {
    let script = Script::parse(source).unwrap_or_else(|problem| panic!("{problem}\nin\n{source}"));
    let printed = script.to_string();
    assert_eq!(Script::parse(&printed).as_ref(), Ok(&script), "{printed}");
    printed
}

#[test]
fn a_script_of_everything() {
    let source = r#"
// A comment.
--tolerance_usecs=10000
--define=FD=4
`sysctl -q net.ipv4.tcp_timestamps=0
 true`
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+.1~+.25 > [ect0] S. 0:0(0) ack 1 win 65535 <mss 1460,nop,nop,sackOK,nop,wscale 8>
* < 80 > 81 FP. 1:11(10) ack 1 win 257 urg 5 <nop,nop,TS val 1 ecr 2>
0.3~0.4 > . 1:1(0) ack 1 <...>
+0...0.2 read(FD, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)
+0 < [noecn,ttl 3] SEW 0:0(0) win 1 <FO 0123456789abcdef,nop,nop,FOEXP>
+0 > S.5 0:0(0) ack 1
+0 > SEWA 0:0(0) <ECN e1b 1 ceb 0 e0b 16777215,nop>
+0 < [ce] .7 1:1(0) ack 1 win 1 <nop,nop,nop,ECN e0b 5>
+0 < . 1:1(0) ack 1 win 1 <ECN e1b 1 ceb 2>
+0 > - 1:1(0) <sack 1:11 21:31,nop,nop>
+0 < icmp unreachable frag_needed mtu 1000 [1:1001(1000)]
+0 poll([{fd=3, events=POLLIN|POLLOUT, revents=POLLIN}], 1, -1) = 1
+0 recvmsg(4, {msg_name(...)=..., msg_iov(1)=[{..., 10}], msg_flags=0}, 0) = 10
+0 connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("1.2.3.4")}, ...) = 0
+0 %{ assert tcpi_snd_cwnd == 10, 'cwnd' }%
+0 %{

   if 1:
     assert 1
   assert 1 }%
`true`
"#;
    let expected = r#"--tolerance_usecs=10000
--define=FD=4
`sysctl -q net.ipv4.tcp_timestamps=0
 true`
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0.1~+0.25 > [ect0] S. 0:0(0) ack 1 win 65535 <mss 1460,nop,nop,sackOK,nop,wscale 8>
* < 80 > 81 FP. 1:11(10) ack 1 win 257 urg 5 <nop,nop,TS val 1 ecr 2>
0.3~0.4 > . 1:1(0) ack 1 <...>
+0...0.2 read(4, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)
+0 < [noecn,ttl 3] SEW 0:0(0) win 1 <FO 0123456789abcdef,nop,nop,FOEXP>
+0 > S.5 0:0(0) ack 1
+0 > SEWA 0:0(0) <ECN e1b 1 ceb 0 e0b 16777215,nop>
+0 < [ce] .7 1:1(0) ack 1 win 1 <nop,nop,nop,ECN e0b 5>
+0 < . 1:1(0) ack 1 win 1 <ECN e1b 1 ceb 2>
+0 > - 1:1(0) <sack 1:11 21:31,nop,nop>
+0 < icmp unreachable frag_needed mtu 1000 [1:1001(1000)]
+0 poll([{fd=3, events=POLLIN|POLLOUT, revents=POLLIN}], 1, -1) = 1
+0 recvmsg(4, {msg_name(...)=..., msg_iov(1)=[{..., 10}], msg_flags=0}, 0) = 10
+0 connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("1.2.3.4")}, ...) = 0
+0 %{ assert tcpi_snd_cwnd == 10, 'cwnd' }%
+0 %{
   if 1:
     assert 1
   assert 1
}%
`true`
"#;
    assert_eq!(again(source), expected);
}

#[test]
fn names_that_are_given_from_outside() {
    let source = "+0 < S 0:0(0) win 1 <FOEXP COOKIE>";
    assert!(Script::parse(source).is_err());
    let given = [("COOKIE".to_owned(), "01020304".to_owned())];
    let script = Script::parse_with(source, &given).unwrap();
    assert_eq!(script.to_string(), "+0 < S 0:0(0) win 1 <FOEXP 01020304>\n");
}

fn option() -> impl Strategy<Value = TcpOption> {
    let cookie = || (0usize..9).prop_flat_map(|half| prop::collection::vec(any::<u8>(), half * 2));
    prop_oneof![
        Just(TcpOption::Nop),
        Just(TcpOption::End),
        any::<u16>().prop_map(TcpOption::Mss),
        any::<u8>().prop_map(TcpOption::WindowScale),
        Just(TcpOption::SackPermitted),
        prop::collection::vec(any::<(u32, u32)>(), 1..4).prop_map(TcpOption::Sack),
        any::<(u32, u32)>().prop_map(|(val, ecr)| TcpOption::Timestamps { val, ecr }),
        any::<[u8; 16]>().prop_map(|digest| TcpOption::Md5(digest.to_vec())),
        cookie().prop_map(TcpOption::FastOpen),
        cookie().prop_map(TcpOption::FastOpenExperimental),
    ]
}

/// Options that fit, filled up.
fn options() -> impl Strategy<Value = Vec<TcpOption>> {
    prop::collection::vec(option(), 0..5).prop_map(|mut options| {
        let len = |options: &[TcpOption]| options.iter().map(TcpOption::wire_len).sum::<usize>();
        while len(&options) > 40 {
            options.pop();
        }
        while !len(&options).is_multiple_of(4) {
            options.push(TcpOption::Nop);
        }
        options
    })
}

fn segment() -> impl Strategy<Value = Segment> {
    let head =
        (prop::option::of(any::<(u16, u16)>()), 0u16..0x200, any::<bool>(), any::<u32>(), any::<u16>());
    let tail = (prop::option::of(any::<u32>()), any::<u16>(), prop::option::of(any::<u16>()));
    (head, tail, prop::option::of(options())).prop_map(|(head, tail, options)| {
        let (ports, flags, ace, seq, len) = head;
        let (ack, window, urgent) = tail;
        let flags = Flags::from_bits_truncate(flags);
        Segment { ports, flags, ace, seq, len, ack, window: Some(window), urgent, options }
    })
}

fn ip() -> impl Strategy<Value = Ip> {
    let tos = prop_oneof![
        Just(Tos::Ect01),
        any::<u8>().prop_map(Tos::Byte),
        any::<u8>().prop_map(|bits| Tos::Ecn(Ecn::from_bits(bits))),
    ];
    (prop::option::of(tos), prop::option::of(0u32..0x10_0000), prop::option::of(any::<u8>()))
        .prop_map(|(tos, flow_label, ttl)| Ip { tos, flow_label, ttl })
}

fn body() -> impl Strategy<Value = Body> {
    let icmp = (
        prop::option::of("[a-z_]{1,9}"),
        prop::option::of(any::<u32>()),
        prop::option::of(any::<u16>()),
        prop::option::of(any::<(u32, u16)>()),
    );
    let icmp = icmp.prop_map(|(code, mtu, id, quote)| {
        let code = code.filter(|code| !["mtu", "id"].contains(&code.as_str()));
        Body::Icmp(Icmp { kind: "unreachable".into(), code, mtu, id, quote })
    });
    prop_oneof![4 => segment().prop_map(Body::Tcp), 1 => icmp]
}

fn when() -> impl Strategy<Value = When> {
    let time = 0i64..100_000_000;
    prop_oneof![
        time.clone().prop_map(When::Absolute),
        time.clone().prop_map(When::Relative),
        Just(When::Any),
        (time.clone(), time.clone()).prop_map(|(a, b)| When::AbsoluteRange(a, a + b)),
        (time.clone(), time).prop_map(|(a, b)| When::RelativeRange(a, a + b)),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    (when(), any::<bool>(), ip(), body()).prop_map(|(time, inbound, ip, mut body)| {
        if let Body::Tcp(segment) = &mut body
            && inbound
        {
            segment.ack = segment.ack.filter(|_| segment.flags.contains(Flags::ACK));
        }
        let direction = if inbound { Direction::In } else { Direction::Out };
        let value = Action::Packet(Packet { direction, ip, body });
        Event { time, action: Line { line: 0, value } }
    })
}

proptest! {
    #[test]
    fn packets_and_times(events in prop::collection::vec(event(), 1..8)) {
        let script = Script { events, ..Script::default() };
        let printed = script.to_string();
        let read = Script::parse(&printed).map_err(|problem| TestCaseError::fail(problem.to_string()))?;
        prop_assert_eq!(read, script, "{}", printed);
    }

    #[test]
    fn options_lie_in_a_header_as_they_are_given(options in options()) {
        let bytes = options::emit(&options);
        prop_assert_eq!(bytes.len(), options.iter().map(TcpOption::wire_len).sum::<usize>());
        prop_assert_eq!(options::read(&bytes), options);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[-+*~.<>(){}\\[\\]%`\"=:,|/a-zS0-9 \n\t]{0,80}") {
        if let Ok(script) = Script::parse(&text) {
            prop_assert_eq!(Script::parse(&script.to_string()), Ok(script));
        }
    }

    #[test]
    fn no_options_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..45)) {
        options::read(&bytes);
    }
}
