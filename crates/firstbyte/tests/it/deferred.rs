//! Streams whose first flush is their SYN.
use crate::pair::{Pair, SERVER, Segment, bounded, let_others_run, until};
use firstbyte::{Outcome, TcpListener, TcpStream};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

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

/// Returns a pair whose client has a cookie of its server.
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
        assert_eq!(pair.client.stack().unwrap().table_sizes().connections, 0);
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
        assert_eq!(pair.client.stack().unwrap().table_sizes().connections, 0);
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

/// The last waiting task is not the only one to be woken.
#[tokio::test]
async fn every_reader_is_woken_when_the_stream_opens() {
    bounded(async {
        let pair = with_cookie().await;
        let socket = pair.client.socket().read_grace(FOREVER);
        let stream = Arc::new(socket.connect_deferred(SERVER).await.unwrap());
        let readers = [&stream, &stream].map(|stream| peeker(Arc::clone(stream)));
        let_others_run().await;
        stream.try_write(b"x").unwrap();
        stream.push();
        for reader in readers {
            assert_eq!(reader.await.unwrap().unwrap(), b'x');
        }
    })
    .await;
}

#[tokio::test]
async fn the_grace_ends_although_the_reader_that_asked_last_is_gone() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"220").await.unwrap();
        });
        let socket = pair.client.socket().read_grace(Duration::from_millis(50));
        let stream = Arc::new(socket.connect_deferred(SERVER).await.unwrap());
        let first = peeker(Arc::clone(&stream));
        tokio::task::yield_now().await;
        {
            let mut last = std::pin::pin!(stream.readable());
            let is_pending = std::future::poll_fn(|cx| Poll::Ready(last.as_mut().poll(cx).is_pending()));
            assert!(is_pending.await);
        }
        assert_eq!(first.await.unwrap().unwrap(), b'2');
    })
    .await;
}

#[tokio::test]
async fn a_shutdown_ends_the_wait_for_a_first_write() {
    bounded(async {
        let pair = Pair::new();
        let socket = pair.client.socket().read_grace(FOREVER);
        let reader = peeker(Arc::new(socket.connect_deferred(SERVER).await.unwrap()));
        let_others_run().await;
        pair.client.shutdown().await.unwrap();
        assert_eq!(reader.await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionAborted);
        let socket = pair.client.socket().read_grace(FOREVER);
        let late = peeker(Arc::new(socket.connect_deferred(SERVER).await.unwrap()));
        assert_eq!(late.await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionAborted);
    })
    .await;
}

#[tokio::test]
async fn what_is_awaited_to_be_delivered_is_sent() {
    bounded(async {
        let pair = with_cookie().await;
        let mut stream = TcpStream::connect_deferred(&pair.client, SERVER).await.unwrap();
        stream.delivered().await.unwrap();
        assert_eq!(pair.client.stack().unwrap().table_sizes().connections, 0);
        stream.write_all(b"all").await.unwrap();
        // In its own task, which is not polled again when the test's time limit expires.
        let delivered = tokio::spawn(async move { stream.delivered().await.map(|()| stream) });
        let stream = delivered.await.unwrap().unwrap();
        assert_eq!(syn(&pair.take_log()).payload_len, 3);
        assert_eq!(stream.connection_info().unwrap().bytes_acked, 3);
    })
    .await;
}

#[tokio::test]
async fn a_read_that_does_not_wait_sends_what_was_written() {
    bounded(async {
        let pair = with_cookie().await;
        let mut stream = TcpStream::connect_deferred(&pair.client, SERVER).await.unwrap();
        let mut answer = [0; 5];
        assert_eq!(stream.try_read(&mut answer).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(pair.client.stack().unwrap().table_sizes().connections, 0);
        stream.write_all(b"hello").await.unwrap();
        until(|| stream.try_read(&mut answer).is_ok_and(|len| len == 5)).await;
        assert_eq!(&answer, b"hello");
    })
    .await;
}

#[tokio::test]
async fn halves_that_are_dropped_send_no_more_than_the_stream() {
    bounded(async {
        let pair = with_cookie().await;
        let stream = TcpStream::connect_deferred(&pair.client, SERVER).await.unwrap();
        let (read, mut write) = stream.into_split();
        write.write_all(b"never").await.unwrap();
        drop(write);
        drop(read);
        let_others_run().await;
        assert_eq!(pair.take_log(), []);
    })
    .await;
}

/// Longer than any test lasts.
const FOREVER: Duration = Duration::from_secs(3600);

/// A task that waits for the first byte.
fn peeker(stream: Arc<TcpStream>) -> JoinHandle<io::Result<u8>> {
    tokio::spawn(async move {
        let mut byte = [0];
        stream.peek(&mut byte).await.map(|_| byte[0])
    })
}
