//! Ends of connections, listeners and stacks.
use crate::pair::{Pair, SERVER, SlowToClose, WIRE, bounded, pattern, until};
use firstbyte::device::memory;
use firstbyte::{Net, TcpListener, TcpStream};
use std::io::ErrorKind;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn nobody_listening_is_connection_refused() {
    bounded(async {
        let pair = Pair::new();
        let error = TcpStream::connect(&pair.client, SERVER).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(pair.client.stack().unwrap().table_sizes().connections, 0);
    })
    .await;
}

#[tokio::test]
async fn dropping_both_ends_frees_everything() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connected().await;
        assert_eq!(pair.client.stack().unwrap().table_sizes().connections, 1);
        drop(client);
        drop(server);
        pair.until_empty().await;
        assert_eq!(
            (pair.client.stack().unwrap().waiting_count(), pair.server.stack().unwrap().waiting_count()),
            (0, 0)
        );
    })
    .await;
}

#[tokio::test]
async fn dropping_with_unread_data_resets() {
    bounded(async {
        let pair = Pair::new();
        let (mut client, server) = pair.connected().await;
        client.write_all(b"never read").await.unwrap();
        server.readable().await.unwrap();
        drop(server);
        let error = client.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(client.write(b"x").await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        client.shutdown().await.unwrap();
        drop(client);
        pair.until_empty().await;
    })
    .await;
}

#[tokio::test]
async fn a_reset_wakes_reader_and_writer() {
    bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connected().await;
        let (mut read, mut write) = client.into_split();
        let reader = tokio::spawn(async move { read.read(&mut [0; 8]).await });
        let writer = tokio::spawn(async move { write.write_all(&vec![0; 64 << 20]).await });
        server.readable().await.unwrap();
        drop(server);
        assert_eq!(reader.await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(writer.await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionReset);
        pair.until_empty().await;
    })
    .await;
}

#[tokio::test]
async fn a_dropped_connect_leaves_nothing() {
    bounded(async {
        let pair = Pair::new();
        // 10.0.0.9 is in the network of the wire, but does not exist.
        for first_bytes in ["", "first bytes"] {
            let connect = TcpStream::connect_with(&pair.client, "10.0.0.9:80", first_bytes);
            assert!(tokio::time::timeout(Duration::from_millis(20), connect).await.is_err());
            assert_eq!(pair.client.stack().unwrap().table_sizes().connections, 0);
        }
        assert_eq!(pair.client.stack().unwrap().waiting_count(), 0);
    })
    .await;
}

#[tokio::test]
async fn port_0_is_a_port_that_is_free() {
    bounded(async {
        let pair = Pair::new();
        for (name, value) in
            [("firstbyte.ip_local_port_low", "40000"), ("firstbyte.ip_local_port_high", "40001")]
        {
            pair.server.stack().unwrap().set(name, value).unwrap();
        }
        let any = TcpListener::bind(&pair.server, "0.0.0.0:0").await.unwrap();
        let own = TcpListener::bind(&pair.server, "10.0.0.1:0").await.unwrap();
        let mut ports = [any.local_addr().unwrap().port(), own.local_addr().unwrap().port()];
        ports.sort_unstable();
        assert_eq!(ports, [40000, 40001]);
        let (client, accepted) =
            tokio::join!(TcpStream::connect(&pair.client, own.local_addr().unwrap()), own.accept());
        assert_eq!(client.unwrap().local_addr().unwrap(), accepted.unwrap().1);
        let none = TcpListener::bind(&pair.server, "10.0.0.1:0").await.unwrap_err();
        assert_eq!(none.kind(), ErrorKind::AddrInUse);
        drop(any);
        let foreign = TcpListener::bind(&pair.server, "192.0.2.1:0").await.unwrap_err();
        assert_eq!(foreign.kind(), ErrorKind::AddrNotAvailable);
    })
    .await;
}

#[tokio::test]
async fn dropping_a_listener_resets_what_nobody_accepted() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        let mut client = TcpStream::connect(&pair.client, SERVER).await.unwrap();
        until(|| listener.info().unwrap().accept_queue == 1).await;
        drop(listener);
        assert_eq!(client.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    })
    .await;
}

#[tokio::test]
async fn shutdown_delivers_and_then_everything_fails() {
    bounded(async {
        let pair = Pair::new();
        let listener = TcpListener::bind(&pair.client, "10.0.0.2:80").await.unwrap();
        let (mut client, mut server) = pair.connected().await;
        let data = pattern(40_000);
        client.write_all(&data).await.unwrap();
        let reader = tokio::spawn(async move {
            let mut received = Vec::new();
            server.read_to_end(&mut received).await.map(|_| received)
        });
        pair.client.shutdown().await.unwrap();
        assert!(reader.await.unwrap().unwrap() == data);
        let kind = ErrorKind::ConnectionAborted;
        assert_eq!(client.read(&mut [0]).await.unwrap_err().kind(), kind);
        assert_eq!(client.write(&[0]).await.unwrap_err().kind(), kind);
        assert_eq!(listener.accept().await.unwrap_err().kind(), kind);
        assert_eq!(TcpStream::connect(&pair.client, SERVER).await.unwrap_err().kind(), kind);
        pair.client.closed().await.unwrap();
        pair.client.shutdown().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn shutdown_wakes_those_who_wait() {
    bounded(async {
        let pair = Pair::new();
        let listener = TcpListener::bind(&pair.client, "10.0.0.2:80").await.unwrap();
        let (mut client, _server) = pair.connected().await;
        let acceptor = tokio::spawn(async move { listener.accept().await.map(|_| ()) });
        let reader = tokio::spawn(async move { client.read(&mut [0]).await.map(|_| ()) });
        until(|| pair.client.stack().unwrap().waiting_count() == 2).await;
        let _ = pair.client.shutdown_timeout(Duration::from_millis(10)).await;
        for waiting in [acceptor, reader] {
            assert_eq!(waiting.await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionAborted);
        }
    })
    .await;
}

#[tokio::test]
async fn shutdown_gives_up_on_a_peer_that_does_not_take_the_data() {
    bounded(async {
        let pair = Pair::new();
        let (client, _server) = pair.connected().await;
        while tokio::time::timeout(Duration::from_millis(100), client.writable()).await.is_ok() {
            let _ = client.try_write(&[0; 65_536]);
        }
        let error = pair.client.shutdown_timeout(Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let last = pair.take_log().into_iter().rfind(|segment| segment.from_client).unwrap();
        assert!(last.flags.contains('R'), "{last:?}");
    })
    .await;
}

/// Like a second Ctrl-C: the first call still waits, and both end.
#[tokio::test]
async fn a_second_shutdown_may_have_less_patience() {
    bounded(async {
        let pair = Pair::new();
        let (client, _server) = pair.connected().await;
        while tokio::time::timeout(Duration::from_millis(100), client.writable()).await.is_ok() {
            let _ = client.try_write(&[0; 65_536]);
        }
        let net = pair.client.clone();
        let patient = tokio::spawn(async move { net.shutdown_timeout(Duration::MAX).await });
        until(|| client.try_write(&[0]).is_err_and(|error| error.kind() == ErrorKind::ConnectionAborted))
            .await;
        for error in [pair.client.shutdown_timeout(Duration::ZERO).await, patient.await.unwrap()] {
            assert_eq!(error.unwrap_err().kind(), ErrorKind::TimedOut);
        }
    })
    .await;
}

#[tokio::test]
async fn the_last_handle_takes_the_stack_with_it() {
    bounded(async {
        let pair = Pair::new();
        let (client, mut server) = pair.connected().await;
        let Pair { client: net, server: server_net, .. } = pair;
        drop(net);
        assert!(tokio::time::timeout(Duration::from_millis(20), server.readable()).await.is_err());
        drop(client);
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
        drop(server);
        // Its end of the wire is gone, which ends the other stack too.
        assert_eq!(server_net.closed().await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    })
    .await;
}

#[test]
fn the_end_of_the_runtime_is_the_end_of_the_stack() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let (net, mut client, _server) = first.block_on(bounded(async {
        let pair = Pair::new();
        let (client, server) = pair.connected().await;
        (pair.client.clone(), client, server)
    }));
    drop(first);
    runtime().block_on(bounded(async {
        assert_eq!(client.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionAborted);
        assert_eq!(net.closed().await.unwrap_err().kind(), ErrorKind::ConnectionAborted);
    }));
}

#[tokio::test]
async fn a_description_without_an_address_is_refused() {
    let capabilities = crate::pair::WIRE;
    let builder = || Net::builder().device(firstbyte::device::memory::pair(capabilities).0);
    assert_eq!(builder().start().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(builder().address("10.0.0.300/8").start().unwrap_err().kind(), ErrorKind::InvalidInput);
}

/// A server that logs errors of `accept` and retries must not keep the runtime, which has to end
/// the stack, from other tasks.
#[test]
fn a_loop_that_accepts_on_after_the_end_lets_others_run() {
    let (ended, waiting) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let pair = Pair::new();
            let listener = TcpListener::bind(&pair.server, SERVER).await.unwrap();
            tokio::spawn(async move {
                loop {
                    let Err(error) = listener.accept().await else { continue };
                    assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
                }
            });
            pair.server.shutdown().await.unwrap();
        });
        ended.send(())
    });
    waiting.recv_timeout(Duration::from_secs(20)).expect("the server ends");
}

/// Otherwise an interface that is opened again is busy. Two threads: on one the driver is gone
/// before other tasks run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_returns_when_the_device_is_closed() {
    bounded(async {
        let (device, _other) = memory::pair(WIRE);
        let is_closed = Arc::new(AtomicBool::new(false));
        let device = SlowToClose { device, is_closed: Arc::clone(&is_closed) };
        let net = Net::builder().device(device).address("10.0.0.1/24").start().unwrap();
        net.shutdown().await.unwrap();
        assert!(is_closed.load(Ordering::SeqCst));
    })
    .await;
}

#[tokio::test]
async fn a_panic_while_looking_into_the_stack_is_of_no_concern_to_others() {
    let pair = Pair::new();
    let net = &pair.client;
    let looks: [fn(&Net); 2] = [
        |net| net.stack().unwrap().inspect(|_| panic!("of the test")),
        |net| net.stack().unwrap().inspect_at(|_, _| panic!("of the test")),
    ];
    for look in looks {
        std::panic::catch_unwind(AssertUnwindSafe(|| look(net))).unwrap_err();
    }
    assert_eq!(net.stack().unwrap().table_sizes().connections, 0);
}

/// Counts how often a call fails within 450 ms.
async fn failures<T>(mut call: impl AsyncFnMut() -> std::io::Result<T>) -> u32 {
    let mut failures = 0;
    let endless = async {
        loop {
            let failed = call().await;
            assert_eq!(failed.err().map(|error| error.kind()), Some(ErrorKind::ConnectionAborted));
            failures += 1;
        }
    };
    let ended: Result<(), _> = tokio::time::timeout(Duration::from_millis(450), endless).await;
    assert!(ended.is_err());
    failures
}

/// A loop that logs the error and retries must not use the whole processor, or keep the runtime
/// from other tasks.
#[tokio::test]
async fn a_loop_on_a_stack_that_has_ended_does_not_spin() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        pair.server.shutdown().await.unwrap();
        let counts = [
            failures(|| listener.accept()).await,
            failures(|| TcpStream::connect(&pair.server, "10.0.0.1:80")).await,
            failures(|| TcpStream::connect_with(&pair.server, "10.0.0.1:80", "hello")).await,
            failures(|| TcpListener::bind(&pair.server, SERVER)).await,
        ];
        assert!(counts.iter().all(|count| (1..=5).contains(count)), "{counts:?}");
    })
    .await;
}

/// The stack was not shut down: its device has failed, because the other end of the pair is gone.
#[tokio::test]
async fn an_end_by_the_device_is_told_by_every_call() {
    bounded(async {
        let pair = Pair::new();
        let (mut stream, _server) = pair.connected().await;
        let listener = TcpListener::bind(&pair.client, "10.0.0.2:81").await.unwrap();
        pair.server.shutdown_timeout(Duration::ZERO).await.ok();
        assert!(pair.client.closed().await.is_err());
        let told = [
            TcpStream::connect(&pair.client, SERVER).await.err(),
            listener.accept().await.err(),
            listener.info().err(),
            stream.write_all(b"x").await.err(),
        ];
        for error in told.into_iter().flatten() {
            let words = error.to_string();
            assert!(
                words.contains("its device failed: the other end of the in-memory pair was dropped"),
                "{words}"
            );
        }
        // Its own shutdown is reported as before.
        let error = TcpStream::connect(&pair.server, SERVER).await.unwrap_err();
        assert_eq!(error.to_string(), "the stack has been shut down");
    })
    .await;
}
