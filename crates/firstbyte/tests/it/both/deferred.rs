//! Streams that open when they are first used.
use super::Ends;
use crate::pair::{let_others_run, pattern};
use firstbyte::{Outcome, TcpListener, TcpStream};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Echoes each connection to its end.
fn echo(listener: TcpListener) {
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.into_split();
                tokio::io::copy(&mut read, &mut write).await?;
                write.shutdown().await
            });
        }
    });
}

pub(super) async fn a_deferred_stream_opens_with_its_first_flush(ends: Ends) {
    let (listener, address) = ends.listen().await;
    echo(listener);
    let mut stream = TcpStream::connect_deferred(&ends.client, address).await.unwrap();
    stream.flush().await.unwrap();
    stream.write_all(b"GET ").await.unwrap();
    stream.write_all(b"/").await.unwrap();
    assert_eq!(stream.outcome(), Outcome::Pending);
    assert_eq!(stream.local_addr().unwrap_err().kind(), ErrorKind::NotConnected);
    assert_eq!(stream.peer_addr().unwrap(), address);
    stream.flush().await.unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"GET /");
    stream.write_all(b"again").await.unwrap();
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"again");
    assert_ne!(stream.outcome(), Outcome::Pending);
}

pub(super) async fn a_deferred_stream_reads_from_a_server_that_speaks_first(ends: Ends) {
    let (listener, address) = ends.listen().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 ready").await.unwrap();
    });
    let mut stream = TcpStream::connect_deferred(&ends.client, address).await.unwrap();
    let mut banner = String::new();
    stream.read_to_string(&mut banner).await.unwrap();
    assert_eq!(banner, "220 ready");
}

pub(super) async fn a_deferred_stream_reports_why_it_cannot_open(ends: Ends) {
    let closed = ends.closed_port().await;
    let mut refused = TcpStream::connect_deferred(&ends.client, closed).await.unwrap();
    refused.write_all(b"x").await.unwrap();
    for _ in 0..2 {
        let error = refused.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}

pub(super) async fn a_deferred_stream_takes_more_than_a_packet(ends: Ends) {
    let (listener, address) = ends.listen().await;
    echo(listener);
    let mut stream = TcpStream::connect_deferred(&ends.client, address).await.unwrap();
    let data = pattern(20_000);
    stream.write_all(&data).await.unwrap();
    let mut answer = vec![0; data.len()];
    stream.read_exact(&mut answer).await.unwrap();
    assert!(answer == data);
}

pub(super) async fn a_shutdown_of_a_deferred_stream_sends_everything(ends: Ends) {
    let (listener, address) = ends.listen().await;
    echo(listener);
    let mut stream = TcpStream::connect_deferred(&ends.client, address).await.unwrap();
    stream.write_all(b"all").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "all");
    // And after the first flush, while the handshake may still be on its way.
    let mut stream = TcpStream::connect_deferred(&ends.client, address).await.unwrap();
    stream.write_all(b"all").await.unwrap();
    stream.flush().await.unwrap();
    stream.shutdown().await.unwrap();
    answer.clear();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "all");
}

pub(super) async fn dropped_halves_of_a_deferred_stream_send_nothing(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let stream = TcpStream::connect_deferred(&ends.client, address).await.unwrap();
    let (read, mut write) = stream.into_split();
    write.write_all(b"never").await.unwrap();
    drop(write);
    drop(read);
    let accepted = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(accepted.is_err(), "something was sent");
}

pub(super) async fn a_deferred_read_after_the_write_half_was_dropped_sends_data_and_end(ends: Ends) {
    let (listener, address) = ends.listen().await;
    echo(listener);
    let socket = ends.client.socket().read_grace(FOREVER);
    let (mut read, mut write) = socket.connect_deferred(address).await.unwrap().into_split();
    let reader = tokio::spawn(async move {
        let mut answer = String::new();
        read.read_to_string(&mut answer).await.map(|_| answer)
    });
    let_others_run().await;
    write.write_all(b"all").await.unwrap();
    drop(write);
    assert_eq!(reader.await.unwrap().unwrap(), "all");
}

pub(super) async fn every_reader_of_a_deferred_stream_is_woken(ends: Ends) {
    let (listener, address) = ends.listen().await;
    echo(listener);
    let socket = ends.client.socket().read_grace(FOREVER);
    let stream = std::sync::Arc::new(socket.connect_deferred(address).await.unwrap());
    let readers = [&stream, &stream].map(|stream| {
        let stream = std::sync::Arc::clone(stream);
        tokio::spawn(async move { stream.readable().await })
    });
    let_others_run().await;
    stream.try_write(b"x").unwrap();
    stream.push();
    for reader in readers {
        reader.await.unwrap().unwrap();
    }
}

/// Longer than any test lasts.
const FOREVER: Duration = Duration::from_secs(3600);
