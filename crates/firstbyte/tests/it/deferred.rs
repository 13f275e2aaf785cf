//! Streams whose first flush is their SYN.
use crate::pair::{Pair, SERVER, Segment, bounded};
use firstbyte::{Outcome, TcpListener, TcpStream};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Echoes each connection until its end.
fn echo(listener: TcpListener) {
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
}

/// A pair whose client has a cookie of its server.
async fn with_cookie() -> Pair {
    let pair = Pair::new();
    echo(pair.listen().await);
    let mut first = TcpStream::connect_with(&pair.client, SERVER, "x").await.unwrap();
    first.shutdown().await.unwrap();
    first.read_to_end(&mut Vec::new()).await.unwrap();
    assert_eq!(first.outcome(), Outcome::CookieRequested { granted: true });
    drop(first);
    pair.until_empty().await;
    pair.take_log();
    pair
}

fn syn(log: &[Segment]) -> Segment {
    log.first().cloned().expect("nothing was sent")
}

#[tokio::test]
async fn what_is_written_before_the_first_flush_rides_on_the_syn() {
    bounded(async {
        let pair = with_cookie().await;
        let mut stream = TcpStream::connect_deferred(&pair.client, SERVER).await.unwrap();
        stream.flush().await.unwrap();
        stream.write_all(b"GET ").await.unwrap();
        stream.write_all(b"/").await.unwrap();
        assert_eq!(pair.client.table_sizes().connections, 0);
        assert_eq!(stream.outcome(), Outcome::Pending);
        assert_eq!(stream.local_addr().unwrap_err().kind(), ErrorKind::NotConnected);
        stream.flush().await.unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"GET /");
        assert_eq!(stream.outcome(), Outcome::Accepted);
        assert_eq!(syn(&pair.take_log()).payload_len, 5);
    })
    .await;
}

#[tokio::test]
async fn a_read_after_an_unflushed_write_sends_it() {
    bounded(async {
        let pair = with_cookie().await;
        let mut stream = TcpStream::connect_deferred(&pair.client, SERVER).await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(syn(&pair.take_log()).payload_len, 5);
    })
    .await;
}

#[tokio::test]
async fn a_shutdown_sends_everything() {
    bounded(async {
        let pair = with_cookie().await;
        let mut stream = TcpStream::connect_deferred(&pair.client, SERVER).await.unwrap();
        stream.write_all(b"all").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "all");
        assert_eq!(syn(&pair.take_log()).payload_len, 3);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_speaks_first_is_not_waited_for_in_vain() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"220 ready").await.unwrap();
        });
        let mut stream = TcpStream::connect_deferred(&pair.client, SERVER).await.unwrap();
        let mut banner = String::new();
        stream.read_to_string(&mut banner).await.unwrap();
        assert_eq!(banner, "220 ready");
    })
    .await;
}

#[tokio::test]
async fn a_reader_waiting_first_leaves_the_writer_its_chance() {
    bounded(async {
        let pair = with_cookie().await;
        let socket = pair.client.socket().read_grace(Duration::from_secs(5));
        let stream = socket.connect_deferred(SERVER).await.unwrap();
        let (mut read, mut write) = stream.into_split();
        let reader = tokio::spawn(async move {
            let mut answer = [0; 7];
            read.read_exact(&mut answer).await.unwrap();
            answer
        });
        tokio::task::yield_now().await;
        write.write_all(b"request").await.unwrap();
        write.flush().await.unwrap();
        assert_eq!(&reader.await.unwrap(), b"request");
        assert_eq!(syn(&pair.take_log()).payload_len, 7);
    })
    .await;
}

#[tokio::test]
async fn more_than_a_packet_is_not_held_back() {
    bounded(async {
        let pair = with_cookie().await;
        let mut stream = TcpStream::connect_deferred(&pair.client, SERVER).await.unwrap();
        let data = crate::pair::pattern(20_000);
        stream.write_all(&data).await.unwrap();
        let mut answer = vec![0; data.len()];
        stream.read_exact(&mut answer).await.unwrap();
        assert!(answer == data);
        assert!(syn(&pair.take_log()).payload_len > 1000);
    })
    .await;
}

#[tokio::test]
async fn what_never_was_sent_is_dropped() {
    bounded(async {
        let pair = with_cookie().await;
        let mut stream = TcpStream::connect_deferred(&pair.client, SERVER).await.unwrap();
        stream.write_all(b"never").await.unwrap();
        drop(stream);
        assert_eq!(pair.take_log(), []);
        assert_eq!(pair.client.table_sizes().connections, 0);
    })
    .await;
}

#[tokio::test]
async fn the_first_use_tells_why_it_cannot_open() {
    bounded(async {
        let pair = Pair::new();
        let mut stream = TcpStream::connect_deferred(&pair.client, "[fd00::1]:80").await.unwrap();
        stream.write_all(b"x").await.unwrap();
        assert_eq!(stream.flush().await.unwrap_err().kind(), ErrorKind::NetworkUnreachable);
        assert_eq!(stream.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::NetworkUnreachable);
        let mut refused = TcpStream::connect_deferred(&pair.client, SERVER).await.unwrap();
        refused.write_all(b"x").await.unwrap();
        assert_eq!(refused.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    })
    .await;
}
