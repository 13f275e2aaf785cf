//! Bytes both ways, their ends, and waiting.
use crate::pair::{Pair, SERVER, WIRE, bounded, let_others_run, pattern, server_addr, until};
use firstbyte::{TcpListener, TcpStream};
use std::io::ErrorKind;
use std::time::Duration;
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

#[tokio::test]
async fn addresses_are_those_of_both_ends() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        assert_eq!(listener.local_addr().unwrap(), server_addr());
        let (client, accepted) = tokio::join!(TcpStream::connect(&pair.client, SERVER), listener.accept());
        let (client, (server, peer)) = (client.unwrap(), accepted.unwrap());
        assert_eq!(client.peer_addr().unwrap(), server_addr());
        assert_eq!(server.local_addr().unwrap(), server_addr());
        assert_eq!(server.peer_addr().unwrap(), peer);
        assert_eq!(client.local_addr().unwrap(), peer);
        assert_eq!(peer.ip().to_string(), "10.0.0.2");
        let shown = format!("TcpStream {{ local: {peer}, peer: {SERVER}, state: Established }}");
        assert_eq!(format!("{client:?}"), shown);
    })
    .await;
}

#[tokio::test]
async fn a_half_closed_stream_can_still_be_read() {
    bounded(async {
        let pair = Pair::new();
        let (mut client, mut server) = pair.connected().await;
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(client.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        let mut question = String::new();
        server.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "question");
        server.write_all(b"answer").await.unwrap();
        server.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "answer");
        client.shutdown().await.unwrap();
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_does_not_read_stops_the_writer() {
    bounded(async {
        let pair = Pair::new();
        let (client, mut server) = pair.connected().await;
        let chunk = pattern(65_536);
        let mut written = 0;
        // Both buffers fill up; then nothing is taken any more.
        loop {
            match tokio::time::timeout(Duration::from_millis(200), client.writable()).await {
                Ok(ready) => ready.unwrap(),
                Err(_) => break,
            }
            match client.try_write(&chunk[written % chunk.len()..]) {
                Ok(len) => written += len,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            assert!(written < 64 << 20, "nothing limits the writer");
        }
        assert!(written > 0);
        let mut received = vec![0; written];
        server.read_exact(&mut received).await.unwrap();
        assert!(received.iter().eq(chunk.iter().cycle().take(written)));
        client.writable().await.unwrap();
        assert!(client.try_write(b"again").unwrap() > 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn megabytes_cross_in_both_directions_at_once() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connected().await;
        let data = pattern(3_000_001);
        let send_and_check = |stream: TcpStream, data: Vec<u8>| async move {
            let (mut read, mut write) = stream.into_split();
            let sent = data.clone();
            let sender = tokio::spawn(async move {
                write.write_all(&sent).await.unwrap();
                write.shutdown().await.unwrap();
            });
            let mut received = Vec::new();
            read.read_to_end(&mut received).await.unwrap();
            sender.await.unwrap();
            assert!(received == data, "bytes differ");
        };
        tokio::join!(send_and_check(client, data.clone()), send_and_check(server, data));
        pair.until_empty().await;
    })
    .await;
}

#[tokio::test]
async fn a_dropped_read_loses_nothing() {
    bounded(async {
        let pair = Pair::new();
        let (mut client, mut server) = pair.connected().await;
        let mut buf = [0; 4];
        tokio::select! {
            biased;
            _ = server.read(&mut buf) => panic!("nothing was written yet"),
            () = tokio::task::yield_now() => {}
        }
        client.write_all(b"data").await.unwrap();
        server.readable().await.unwrap();
        server.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"data");
    })
    .await;
}

#[tokio::test]
async fn a_dropped_accept_loses_no_connection() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        tokio::select! {
            biased;
            _ = listener.accept() => panic!("nobody connects yet"),
            () = tokio::task::yield_now() => {}
        }
        let client = TcpStream::connect(&pair.client, SERVER).await.unwrap();
        let (_, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
    })
    .await;
}

#[tokio::test]
async fn try_read_and_peek_tell_what_is_there() {
    bounded(async {
        let pair = Pair::new();
        let (mut client, server) = pair.connected().await;
        let mut buf = [0; 8];
        assert_eq!(server.try_read(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
        client.write_all(b"abc").await.unwrap();
        assert_eq!(server.peek(&mut buf[..2]).await.unwrap(), 2);
        assert_eq!(server.peek(&mut buf).await.unwrap(), 3);
        assert_eq!(server.try_read(&mut buf).unwrap(), 3);
        assert_eq!(&buf[..3], b"abc");
        client.shutdown().await.unwrap();
        server.readable().await.unwrap();
        assert_eq!(server.peek(&mut buf).await.unwrap(), 0);
        assert_eq!(server.try_read(&mut buf).unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn chunks_go_in_and_out_without_a_copy_of_ours() {
    bounded(async {
        let pair = Pair::new();
        let (mut client, mut server) = pair.connected().await;
        let data = pattern(100_000);
        let sent = data.clone();
        let writer = tokio::spawn(async move {
            client.write_bytes(sent.into()).await.unwrap();
            client
        });
        let mut received = Vec::new();
        while received.len() < data.len() {
            received.extend_from_slice(&server.read_chunk(10_000).await.unwrap().unwrap());
        }
        assert!(received == data);
        drop(writer.await.unwrap());
        assert_eq!(server.read_chunk(1).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn vectored_writes_keep_their_order() {
    bounded(async {
        let pair = Pair::new();
        let (mut client, mut server) = pair.connected().await;
        let slices = [&b"one "[..], b"", b"two ", b"three"].map(std::io::IoSlice::new);
        assert_eq!(client.write_vectored(&slices).await.unwrap(), 13);
        client.shutdown().await.unwrap();
        let mut text = String::new();
        server.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "one two three");
    })
    .await;
}

#[tokio::test]
async fn delivered_means_acknowledged() {
    bounded(async {
        let pair = Pair::new();
        let (mut client, server) = pair.connected().await;
        client.write_all(&pattern(50_000)).await.unwrap();
        client.delivered().await.unwrap();
        assert_eq!(client.info().unwrap().send_queue, 0);
        assert_eq!(server.info().unwrap().recv_queue, 50_000);
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
        until(|| stream.info().is_ok_and(|info| info.send_queue == 0)).await;
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
            client.info().unwrap().total_retrans
        });
        let mut received = vec![0; data.len()];
        server.read_exact(&mut received).await.unwrap();
        assert!(received == data);
        assert_eq!(writer.await.unwrap(), 0);
    })
    .await;
}

/// Every round of the runtime polls a driver that asks to be woken; one that waits is left alone.
#[tokio::test]
async fn an_idle_stack_does_not_look_for_packets() {
    bounded(async {
        let pair = Pair::new();
        let (mut client, mut server) = pair.connected().await;
        client.write_all(b"!").await.unwrap();
        server.read_exact(&mut [0]).await.unwrap();
        // The last packet of all is the delayed acknowledgement of that.
        client.delivered().await.unwrap();
        let_others_run().await;
        let before = pair.read_count();
        let_others_run().await;
        assert_eq!(pair.read_count() - before, 0);
        drop((client, server));
    })
    .await;
}
