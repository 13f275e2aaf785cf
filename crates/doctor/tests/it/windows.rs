//! A reader that does not read.
use crate::{assert_healthy, findings, has, ids};
use doctor::sources;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

#[test]
fn a_reader_that_sleeps_is_found_at_both_ends() {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.set_nonblocking(true).unwrap();
        assert_healthy(&findings(|| {}));
        let mut written = 0;
        let found = findings(|| {
            // Until the window is closed and the writer probes it: the kernel's own time.
            let begun = Instant::now();
            while !sources::here().sockets.iter().any(|socket| socket.probing) {
                assert!(begun.elapsed() < Duration::from_secs(20), "no probe of a closed window");
                match client.write(&[0; 65536]) {
                    Ok(taken) => written += taken,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            }
        });
        assert!(has(&found, "WIN-09"), "{:?}", ids(&found));
        assert!(has(&findings(|| {}), "WIN-10"), "the persist timer runs in both samples");
        let mut buffer = vec![0; 1 << 20];
        while written > 0 {
            written -= server.read(&mut buffer).unwrap();
        }
        assert_healthy(&findings(|| {}));
    });
}
