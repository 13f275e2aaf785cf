//! The error that ended a connection, on both backends.
use crate::both::{Ends, on_both, on_kernel};
use crate::pair::bounded;
use firstbyte::TcpStream;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

on_both! {
    needs_fast_open = false:
        a_reset_is_taken_as_an_error, a_stream_without_an_error_has_none_to_take,
        a_deferred_stream_that_cannot_open_has_an_error;
}

async fn a_reset_is_taken_as_an_error(ends: Ends) {
    let (client, server) = ends.connected().await;
    server.set_linger(Some(Duration::ZERO)).unwrap();
    drop(server);
    // On our stack this already reports the error.
    let _ = client.readable().await;
    let error = client.take_error().unwrap().unwrap();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

async fn a_stream_without_an_error_has_none_to_take(ends: Ends) {
    let (mut client, mut server) = ends.connected().await;
    assert!(client.take_error().unwrap().is_none());
    server.shutdown().await.unwrap();
    client.shutdown().await.unwrap();
    client.read_to_end(&mut Vec::new()).await.unwrap();
    assert!(client.take_error().unwrap().is_none());
}

async fn a_deferred_stream_that_cannot_open_has_an_error(ends: Ends) {
    let closed = ends.closed_port().await;
    let mut stream = TcpStream::connect_deferred(&ends.client, closed).await.unwrap();
    assert!(stream.take_error().unwrap().is_none());
    stream.write_all(b"x").await.unwrap();
    stream.flush().await.unwrap();
    assert!(stream.readable().await.is_err());
    assert_eq!(stream.take_error().unwrap().unwrap().kind(), ErrorKind::ConnectionRefused);
}
