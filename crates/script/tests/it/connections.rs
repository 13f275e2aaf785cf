//! Several connections of one listener at a time, which packetdrill itself does not follow.

use script::{Script, Setup, run};

/// They are known by their ports (RFC 9293 §3.3.1), and accepted in the order in which their handshakes were complete.
const TWO: &str = r#"
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 5) = 0

   +0 < 50001 > 8080 S 0:0(0) win 32792 <mss 1000,nop,nop,sackOK>
   +0 > 8080 > 50001 S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK>
   +0 < 50002 > 8080 S 0:0(0) win 32792 <mss 1000,nop,nop,sackOK>
   +0 > 8080 > 50002 S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK>
 +.01 < 50002 > 8080 . 1:1(0) ack 1 win 32792
 +.01 < 50001 > 8080 . 1:1(0) ack 1 win 32792
   +0 accept(3, ..., ...) = 4
   +0 accept(3, ..., ...) = 5

   +0 write(4, ..., 100) = 100
   +0 > 8080 > 50002 P. 1:101(100) ack 1
   +0 write(5, ..., 200) = 200
   +0 > 8080 > 50001 P. 1:201(200) ack 1
 +.01 < 50002 > 8080 P. 1:31(30) ack 101 win 32792
   +0 read(4, ..., 100) = 30
   +0 recv(5, ..., 100, MSG_DONTWAIT) = -1 EAGAIN (Resource temporarily unavailable)
"#;

#[test]
fn packets_of_two_connections_do_not_mix() {
    let script = Script::parse(TWO).unwrap();
    run(&script, Setup::default()).unwrap_or_else(|failure| panic!("{}", failure.in_source(TWO)));
}

#[test]
fn a_packet_of_the_other_connection_is_a_failure() {
    let mixed = TWO.replacen("> 8080 > 50002 P. 1:101", "> 8080 > 50001 P. 1:101", 1);
    assert_ne!(mixed, TWO);
    let failure =
        run(&Script::parse(&mixed).unwrap(), Setup::default()).expect_err("it was sent to the other port");
    let said = failure.in_source(&mixed).to_string();
    assert!(
        said.contains("expected  > 8080 > 50001 P. 1:101(100)") && said.contains("seen      nothing"),
        "{said}"
    );
}
