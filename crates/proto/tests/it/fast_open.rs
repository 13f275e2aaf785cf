//! Fast Open between two stacks of ours.

use crate::pair::*;
use proto::*;

fn auto(data: &'static [u8]) -> ConnectOptions {
    ConnectOptions { fast_open: FastOpen::Auto, first_bytes: data.into(), ..ConnectOptions::default() }
}

#[test]
fn a_repeat_visit_takes_one_round_trip_and_four_packets() {
    let mut pair = Pair::ours();
    let listener = pair.listen(16);
    pair.obtain_cookie(listener);
    let start = pair.now;
    let id = pair.connect(auto(b"GET / please, with 27 bytes"));
    pair.step();
    let child = pair.accept(listener).expect("accepted before the handshake is complete");
    assert_eq!(pair.ms_since(start), 20);
    assert_eq!(pair.stacks[SERVER].info(child).unwrap().state, State::SynReceived);
    assert_eq!(pair.read(SERVER, child).unwrap().len(), 27);
    pair.write(SERVER, child, b"hello");
    let now = pair.now;
    pair.stacks[SERVER].close(now, child);
    pair.run(20);
    assert_eq!(pair.read(CLIENT, id).unwrap(), b"hello");
    assert_eq!(pair.ms_since(start), 40);
    assert_eq!(pair.stacks[CLIENT].outcome(id), Some(Outcome::Accepted));
    let now = pair.now;
    pair.stacks[CLIENT].close(now, id);
    pair.run(1000);
    assert_eq!(pair.ladder(), ["> S(27)", "< SFPA(5)", "> FA", "< A"]);
}
