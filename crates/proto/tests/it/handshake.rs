//! Plain opening and closing.

use crate::pair::*;
use proto::*;

#[test]
fn open_exchange_close() {
    let mut pair = Pair::ours();
    let listener = pair.listen(0);
    let start = pair.now;
    let id = pair.connect(ConnectOptions {
        first_bytes: b"GET / please, with 27 bytes".as_slice().into(),
        ..Default::default()
    });
    while pair.stacks[SERVER].listener_info(listener).unwrap().accept_queue == 0 {
        assert!(pair.step());
    }
    let child = pair.accept(listener).unwrap();
    assert_eq!(pair.ms_since(start), 60);
    assert_eq!(pair.read(SERVER, child).unwrap(), b"GET / please, with 27 bytes");
    pair.write(SERVER, child, b"hello");
    let now = pair.now;
    pair.stacks[SERVER].close(now, child);
    while pair.read(CLIENT, id) == Err(ReadError::Blocked) {
        assert!(pair.step());
    }
    assert_eq!(pair.ms_since(start), 80);
    assert_eq!(pair.read(CLIENT, id), Ok(vec![]), "already read");
    let now = pair.now;
    pair.stacks[CLIENT].close(now, id);
    pair.run(1000);
    assert_eq!(pair.ladder(), ["> S", "< SA", "> PA(27)", "< FPA(5)", "> FA", "< A"]);
    assert_eq!(pair.stacks[CLIENT].table_sizes(), TableSizes { connections: 0, requests: 0, time_wait: 0 });
    assert_eq!(pair.stacks[SERVER].table_sizes(), TableSizes { connections: 0, requests: 0, time_wait: 1 });
}
