//! Options of sockets and listeners.
use crate::pair::{Pair, SERVER, bounded, let_others_run, patient, pattern};
use firstbyte::{CongestionControl, SocketOptions, TcpListener, TcpStream};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn nodelay_is_remembered_and_inherited() {
    bounded(async {
        let pair = Pair::new();
        let options =
            SocketOptions { nodelay: true, linger: Some(Duration::from_secs(1)), ..SocketOptions::default() };
        let listener = TcpListener::builder(&pair.server).socket_options(options).bind(SERVER).await.unwrap();
        let (client, accepted) =
            tokio::join!(pair.client.socket().nodelay(true).connect(SERVER), listener.accept());
        let (client, server) = (client.unwrap(), accepted.unwrap().0);
        assert!(client.nodelay().unwrap() && server.nodelay().unwrap());
        assert_eq!(server.linger().unwrap(), Some(Duration::from_secs(1)));
        client.set_nodelay(false).unwrap();
        assert!(!client.nodelay().unwrap());
    })
    .await;
}

#[tokio::test]
async fn options_change_on_open_and_on_deferred_streams() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        let (open, _accepted) = tokio::join!(pair.client.socket().connect(SERVER), listener.accept());
        let deferred = pair.client.socket().connect_deferred(SERVER).await.unwrap();
        for stream in [open.unwrap(), deferred] {
            stream.set_cork(true).unwrap();
            stream.set_quickack(true).unwrap();
            stream.set_keepalive(Some(Duration::from_secs(5))).unwrap();
            stream.set_user_timeout(Some(Duration::from_secs(7))).unwrap();
            stream.set_notsent_lowat(Some(1000)).unwrap();
            let options = stream.options().unwrap();
            assert!(options.cork && options.keepalive);
            assert_eq!(options.keepalive_time, Some(Duration::from_secs(5)));
            assert_eq!(options.user_timeout, Some(Duration::from_secs(7)));
            assert_eq!(options.notsent_lowat, Some(1000));
            let refused = stream.set_keepalive(Some(Duration::ZERO)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput);
            stream.set_keepalive(None).unwrap();
            assert!(!stream.options().unwrap().keepalive);
        }
    })
    .await;
}

#[tokio::test]
async fn congestion_control_and_the_highest_rate_are_chosen() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        let socket = pair.client.socket().congestion(CongestionControl::Bbr).max_pacing_rate(1_000_000);
        let (client, accepted) = tokio::join!(socket.connect(SERVER), listener.accept());
        let (mut client, (mut server, _)) = (client.unwrap(), accepted.unwrap());
        assert_eq!(client.connection_info().unwrap().congestion, CongestionControl::Bbr);
        assert_eq!(server.connection_info().unwrap().congestion, CongestionControl::Cubic);
        let data = pattern(200_000);
        let began = std::time::Instant::now();
        let writing = async {
            client.write_all(&data).await.unwrap();
            client.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let (_, read) = tokio::join!(writing, server.read_to_end(&mut received));
        read.unwrap();
        assert!(received == data);
        // Everything except the initial window is paced.
        assert!(began.elapsed() >= Duration::from_millis(150), "{:?}", began.elapsed());
        assert!(client.connection_info().unwrap().pacing_rate.is_some_and(|rate| rate <= 1_000_000));
    })
    .await;
}

#[tokio::test]
async fn a_cork_joins_what_was_written_apart() {
    bounded(async {
        let pair = Pair::with(patient(), patient());
        let listener = pair.listen().await;
        let (client, accepted) =
            tokio::join!(pair.client.socket().nodelay(true).connect(SERVER), listener.accept());
        let (mut client, mut server) = (client.unwrap(), accepted.unwrap().0);
        pair.take_log();
        client.set_cork(true).unwrap();
        client.write_all(b"head ").await.unwrap();
        let_others_run().await;
        client.write_all(b"body").await.unwrap();
        client.set_cork(false).unwrap();
        let mut received = [0; 9];
        server.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"head body");
        let texts = pair.take_log().iter().filter(|segment| segment.payload_len > 0).count();
        assert_eq!(texts, 1);
    })
    .await;
}

#[tokio::test]
async fn a_local_port_can_be_chosen() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        let local = "10.0.0.2:5555".parse().unwrap();
        let first = pair.client.socket().bind(local).connect(SERVER).await.unwrap();
        let (_, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, local);
        let again = pair.client.socket().bind(local).connect(SERVER).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AddrInUse);
        let foreign =
            pair.client.socket().bind("192.0.2.1:0".parse().unwrap()).connect(SERVER).await.unwrap_err();
        assert_eq!(foreign.kind(), ErrorKind::AddrNotAvailable);
        drop(first);
    })
    .await;
}

#[tokio::test]
async fn a_smaller_mss_makes_smaller_segments() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        let (client, accepted) =
            tokio::join!(pair.client.socket().max_segment(600).connect(SERVER), listener.accept());
        let (mut client, mut server) = (client.unwrap(), accepted.unwrap().0);
        pair.take_log();
        let data = pattern(6000);
        client.write_all(&data).await.unwrap();
        client.shutdown().await.unwrap();
        let mut received = Vec::new();
        server.read_to_end(&mut received).await.unwrap();
        assert!(received == data);
        let largest = pair.take_log().iter().map(|segment| segment.payload_len).max().unwrap();
        assert!((500..=600).contains(&largest), "{largest}");
    })
    .await;
}

#[tokio::test]
async fn a_smaller_send_buffer_takes_less() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        let socket = pair.client.socket().send_buffer_size(20_000).recv_buffer_size(20_000);
        let (client, _server) = tokio::join!(socket.connect(SERVER), listener.accept());
        let written = client.unwrap().try_write(&[0; 1 << 20]).unwrap();
        assert_eq!(written, 20_000);
    })
    .await;
}

/// The server reads nothing: the client's bytes stop at the window.
#[tokio::test]
async fn a_smaller_receive_buffer_or_clamp_takes_less() {
    bounded(async {
        for clamp in [false, true] {
            let pair = Pair::new();
            let listener = pair.listen().await;
            let socket = pair.client.socket();
            let socket = if clamp { socket.window_clamp(30_000) } else { socket.recv_buffer_size(30_000) };
            let (client, accepted) = tokio::join!(socket.connect(SERVER), listener.accept());
            let (client, server) = (client.unwrap(), accepted.unwrap().0);
            pair.take_log();
            server.try_write(&[0; 100_000]).unwrap();
            let mut sent = 0;
            // Full segments first; the rest when the window does not open.
            while sent < 28_000 {
                tokio::task::yield_now().await;
                sent += pair.take_log().iter().map(|segment| segment.payload_len).sum::<usize>();
            }
            assert!(sent <= 30_000, "{sent}, clamp: {clamp}");
            drop(client);
        }
    })
    .await;
}

#[tokio::test]
async fn an_address_nobody_could_mean_is_refused_at_once() {
    bounded(async {
        let pair = Pair::new();
        for (addr, kind) in [
            ("10.0.0.1:0", ErrorKind::InvalidInput),
            ("224.0.0.1:80", ErrorKind::InvalidInput),
            ("[fd00::1]:80", ErrorKind::NetworkUnreachable),
        ] {
            assert_eq!(TcpStream::connect(&pair.client, addr).await.unwrap_err().kind(), kind, "{addr}");
        }
    })
    .await;
}
