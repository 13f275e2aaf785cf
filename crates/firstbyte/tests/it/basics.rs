//! Bytes both ways, their ends, and waiting.
use crate::pair::{Pair, WIRE, bounded, let_others_run, pattern, until};
use firstbyte::{TcpListener, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn echo_once() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.connected().await;
    client.write_all(b"hello").await.unwrap();
    let mut buf = [0; 5];
    server.read_exact(&mut buf).await.unwrap();
    server.write_all(&buf).await.unwrap();
    client.read_exact(&mut buf).await.unwrap();
    assert_eq!(&buf, b"hello");
}

#[tokio::test]
async fn echo_on_one_thread() {
    bounded(echo_once()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn echo_on_many_threads() {
    bounded(echo_once()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn megabytes_cross_on_two_threads() {
    bounded(crate::both::megabytes_cross_in_both_directions_at_once(crate::both::Ends::stack())).await;
}

#[tokio::test]
async fn delivered_means_acknowledged() {
    bounded(async {
        let pair = Pair::new();
        let (mut client, server) = pair.connected().await;
        client.write_all(&pattern(50_000)).await.unwrap();
        client.delivered().await.unwrap();
        assert_eq!(client.connection_info().unwrap().send_queue, 0);
        assert_eq!(server.connection_info().unwrap().recv_queue, 50_000);
        client.shutdown().await.unwrap();
        client.delivered().await.unwrap();
        assert_eq!(client.info().unwrap().state, firstbyte::State::FinWait2, "the FIN is acknowledged too");
    })
    .await;
}

#[tokio::test]
async fn ipv6_works_alike() {
    bounded(async {
        let (left, right) = firstbyte::device::memory::pair(WIRE);
        let server = firstbyte::Net::builder().device(left).address("fd00::1/64").start().unwrap();
        let client = firstbyte::Net::builder().device(right).address("fd00::2/64").start().unwrap();
        let listener = TcpListener::bind(&server, "[::]:80").await.unwrap();
        let (mut stream, accepted) =
            tokio::try_join!(TcpStream::connect(&client, "[fd00::1]:80"), listener.accept()).unwrap();
        stream.write_all(b"six").await.unwrap();
        let mut buf = [0; 3];
        let (mut served, _) = accepted;
        served.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"six");
        until(|| stream.connection_info().is_ok_and(|info| info.send_queue == 0)).await;
    })
    .await;
}

#[tokio::test]
async fn a_wire_that_pushes_back_loses_nothing() {
    bounded(async {
        let pair = Pair::with_queue(2);
        let (mut client, mut server) = pair.connected().await;
        let data = pattern(500_000);
        let sent = data.clone();
        let writer = tokio::spawn(async move {
            client.write_all(&sent).await.unwrap();
            client.delivered().await.unwrap();
            client.connection_info().unwrap().total_retrans
        });
        let mut received = vec![0; data.len()];
        server.read_exact(&mut received).await.unwrap();
        assert!(received == data);
        assert_eq!(writer.await.unwrap(), 0);
    })
    .await;
}

/// Every round of the runtime polls a driver that asks to be woken, but not one that waits.
#[tokio::test]
async fn an_idle_stack_does_not_look_for_packets() {
    bounded(async {
        let pair = Pair::new();
        let (mut client, mut server) = pair.connected().await;
        client.write_all(b"!").await.unwrap();
        server.read_exact(&mut [0]).await.unwrap();
        // The last packet of all is its delayed ACK.
        client.delivered().await.unwrap();
        let_others_run().await;
        let before = pair.read_count();
        let_others_run().await;
        assert_eq!(pair.read_count() - before, 0);
        drop((client, server));
    })
    .await;
}
