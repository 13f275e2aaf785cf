//! Shutdown of `firstbyte serve`.
use crate::Server;
use crate::hostile::{LargeFile, ask, connect};
use std::io::Read;
use std::time::{Duration, Instant};

/// Neither a client without a request, nor one that has its reply and does not close.
#[test]
fn it_does_not_wait_for_clients_to_whom_nothing_is_owed() {
    testnet::in_namespace(|| {
        let server = Server::start(&[]);
        let silent = connect();
        let mut half = connect();
        ask(&mut half, "GET / HT");
        let mut answered = connect();
        ask(&mut answered, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        answered.read_to_end(&mut Vec::new()).unwrap();
        let begun = Instant::now();
        assert_eq!(server.stop().0, Some(0));
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        drop((silent, half));
    });
}

/// A client in the middle of a download stops reading.
#[test]
fn it_says_what_it_waits_for_and_a_second_signal_ends_it_at_once() {
    testnet::in_namespace(|| {
        let file = LargeFile::new("ending");
        let mut server = Server::start(&["--root", file.root()]);
        let mut reader = connect();
        ask(&mut reader, "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        reader.read_exact(&mut [0; 100]).unwrap();
        server.interrupt();
        let line = server.next_line();
        assert_eq!((&line["event"], &line["connections"]), (&"stopping".into(), &1.into()), "{line}");
        let begun = Instant::now();
        server.interrupt();
        assert_eq!(server.wait(), Some(0));
        let took = begun.elapsed().as_secs_f64();
        assert!(took < line["at_most_seconds"].as_f64().unwrap() - 1.0, "{took} s");
    });
}
