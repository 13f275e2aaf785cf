//! The conformance suite: each body runs over our stack and over the kernel's sockets.
//!
//! The kernel's run is in a network namespace of its own, with `net.ipv4.tcp_fastopen` at 3.
//! Without root it uses the loopback interface of this host, and the tests that need Fast Open on a
//! listener are skipped.
mod deferred;
pub(crate) mod http;
use crate::pair::{Pair, bounded, let_others_run, pattern, until};
use deferred::*;
use firstbyte::{
    Backend, FastOpen, Net, Outcome, Skipped, SocketOption, State, TcpListener, TcpStream, WriteFlags,
};
use http::*;
use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, Ready};

/// A network for each side, and the address to listen on.
pub(crate) struct Ends {
    pub(crate) server: Net,
    pub(crate) client: Net,
    address: SocketAddr,
}

impl Ends {
    pub(crate) fn stack() -> Ends {
        let pair = Pair::new();
        Ends { server: pair.server, client: pair.client, address: "10.0.0.1:0".parse().unwrap() }
    }

    fn kernel() -> Ends {
        let address = "127.0.0.1:0".parse().unwrap();
        Ends { server: Net::kernel(), client: Net::kernel(), address }
    }

    /// An address of the server with a port that the system chooses.
    pub(crate) fn any(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn backend(&self) -> Backend {
        self.client.backend()
    }

    pub(crate) async fn listen(&self) -> (TcpListener, SocketAddr) {
        let listener = TcpListener::builder(&self.server).fast_open(128).bind(self.address).await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// An address that nobody listens on.
    pub(crate) async fn closed_port(&self) -> SocketAddr {
        self.listen().await.1
    }

    /// Both ends of a connection made with a plain handshake.
    pub(crate) async fn connected(&self) -> (TcpStream, TcpStream) {
        let (listener, address) = self.listen().await;
        let (client, accepted) = tokio::join!(TcpStream::connect(&self.client, address), listener.accept());
        (client.unwrap(), accepted.unwrap().0)
    }
}

/// Runs a body over the kernel's sockets.
pub(crate) fn on_kernel<F: Future<Output = ()>>(needs_fast_open: bool, body: impl FnOnce(Ends) -> F + Send) {
    let run = |body: &dyn Fn()| body();
    let body = std::sync::Mutex::new(Some(body));
    let play = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let body = body.lock().unwrap().take().unwrap();
        runtime.block_on(bounded(body(Ends::kernel())));
    };
    if testnet::can().is_ok() {
        testnet::in_namespace(|| {
            testnet::sysctl("net.ipv4.tcp_fastopen", "3");
            play();
        });
    } else if needs_fast_open {
        eprintln!("SKIPPED: Fast Open of the kernel's listeners needs root for net.ipv4.tcp_fastopen");
    } else {
        run(&play);
    }
}

macro_rules! on_both {
    ($(needs_fast_open = $needs:literal: $($name:ident),+;)+) => {
        mod stack {
            $($( #[tokio::test] async fn $name() {
                super::bounded(super::$name(super::Ends::stack())).await;
            } )+)+
        }
        mod kernel {
            $($( #[test] fn $name() {
                super::on_kernel($needs, super::$name);
            } )+)+
        }
    };
}

pub(crate) use on_both;

on_both! {
    needs_fast_open = false:
        addresses_are_those_of_both_ends, a_half_closed_stream_can_still_be_read,
        a_reader_that_does_not_read_stops_the_writer, megabytes_cross_in_both_directions_at_once,
        a_dropped_read_loses_nothing, a_dropped_accept_loses_no_connection,
        try_read_and_peek_show_the_data_that_has_come, chunks_carry_the_stream,
        vectored_writes_keep_their_order, delivered_means_acknowledged, a_closed_port_refuses,
        the_next_address_is_tried_when_one_refuses, data_written_before_the_drop_is_delivered,
        dropping_with_unread_data_resets, linger_zero_resets, a_reset_wakes_reader_and_writer,
        dropping_a_write_half_ends_the_stream_for_the_peer, halves_are_reunited_only_with_their_own,
        an_address_is_listened_on_once, dropping_a_listener_resets_connections_in_its_queue,
        options_are_remembered_and_inherited, options_out_of_range_are_refused,
        flags_of_a_write_lose_nothing, a_local_address_can_be_chosen,
        a_deferred_stream_opens_with_its_first_flush, a_deferred_stream_reads_from_a_server_that_speaks_first,
        a_deferred_stream_reports_why_it_cannot_open, a_deferred_stream_takes_more_than_a_packet,
        a_shutdown_of_a_deferred_stream_sends_everything, dropped_halves_of_a_deferred_stream_send_nothing,
        a_deferred_read_after_the_write_half_was_dropped_sends_data_and_end,
        every_reader_of_a_deferred_stream_is_woken, info_has_the_same_fields,
        readiness_is_awaited_for_both_directions, buffers_and_slices_are_read_and_written_at_once,
        the_hop_limit_is_read_and_set, descriptors_come_and_go_where_there_are_some,
        requests_share_a_pooled_connection, a_server_that_refuses_fails_the_request;
    needs_fast_open = true:
        a_repeat_visit_has_its_data_on_the_syn, early_data_is_marked_until_confirmed,
        fast_open_that_is_off_is_skipped, a_deferred_repeat_visit_has_its_data_on_the_syn,
        first_bytes_larger_than_a_packet_arrive_once, a_repeatable_request_is_on_the_syn,
        a_request_that_is_not_repeatable_waits_for_the_handshake, a_request_that_waits_asks_for_a_cookie,
        the_policy_decides_what_is_early, a_request_that_is_written_in_parts_is_on_the_syn,
        slices_are_judged_together, the_start_of_a_request_is_sent_after_a_while,
        a_request_larger_than_what_is_judged_is_sent, a_reader_waits_for_the_writers_request,
        a_shutdown_sends_what_was_written;
}

async fn addresses_are_those_of_both_ends(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let (client, accepted) = tokio::join!(TcpStream::connect(&ends.client, address), listener.accept());
    let (client, (server, peer)) = (client.unwrap(), accepted.unwrap());
    assert_eq!(client.peer_addr().unwrap(), address);
    assert_eq!(server.local_addr().unwrap(), address);
    assert_eq!(server.peer_addr().unwrap(), peer);
    assert_eq!(client.local_addr().unwrap(), peer);
    let shown = format!("TcpStream {{ local: {peer}, peer: {address}, state: Established }}");
    assert_eq!(format!("{client:?}"), shown);
}

async fn a_half_closed_stream_can_still_be_read(ends: Ends) {
    let (mut client, mut server) = ends.connected().await;
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
}

async fn a_reader_that_does_not_read_stops_the_writer(ends: Ends) {
    let (client, mut server) = ends.connected().await;
    let chunk = pattern(65_536);
    let mut written = 0;
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
}

pub(crate) async fn megabytes_cross_in_both_directions_at_once(ends: Ends) {
    let (client, server) = ends.connected().await;
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
}

async fn a_dropped_read_loses_nothing(ends: Ends) {
    let (mut client, mut server) = ends.connected().await;
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
}

async fn a_dropped_accept_loses_no_connection(ends: Ends) {
    let (listener, address) = ends.listen().await;
    tokio::select! {
        biased;
        _ = listener.accept() => panic!("nobody connects yet"),
        () = tokio::task::yield_now() => {}
    }
    let client = TcpStream::connect(&ends.client, address).await.unwrap();
    let (_, peer) = listener.accept().await.unwrap();
    assert_eq!(peer, client.local_addr().unwrap());
}

async fn try_read_and_peek_show_the_data_that_has_come(ends: Ends) {
    let (mut client, server) = ends.connected().await;
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
}

async fn chunks_carry_the_stream(ends: Ends) {
    let (mut client, mut server) = ends.connected().await;
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
}

async fn vectored_writes_keep_their_order(ends: Ends) {
    let (mut client, mut server) = ends.connected().await;
    assert!(tokio::io::AsyncWrite::is_write_vectored(&client));
    let slices = [&b"one "[..], b"", b"two ", b"three"].map(std::io::IoSlice::new);
    assert_eq!(client.write_vectored(&slices).await.unwrap(), 13);
    client.shutdown().await.unwrap();
    let mut text = String::new();
    server.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "one two three");
}

async fn delivered_means_acknowledged(ends: Ends) {
    let (mut client, _server) = ends.connected().await;
    client.write_all(&pattern(50_000)).await.unwrap();
    client.delivered().await.unwrap();
    let info = client.info().unwrap();
    assert_eq!((info.unacked_segs, info.notsent_bytes), (0, 0));
    client.shutdown().await.unwrap();
    client.delivered().await.unwrap();
    assert_eq!(client.info().unwrap().state, State::FinWait2, "the FIN is acknowledged too");
}

async fn a_closed_port_refuses(ends: Ends) {
    let closed = ends.closed_port().await;
    let error = TcpStream::connect(&ends.client, closed).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let error = TcpStream::connect_with(&ends.client, closed, "hello").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

async fn the_next_address_is_tried_when_one_refuses(ends: Ends) {
    let closed = ends.closed_port().await;
    let (_listener, address) = ends.listen().await;
    let stream = TcpStream::connect(&ends.client, &[closed, address][..]).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), address);
}

async fn data_written_before_the_drop_is_delivered(ends: Ends) {
    let (mut client, mut server) = ends.connected().await;
    let data = pattern(60_000);
    client.write_all(&data).await.unwrap();
    drop(client);
    let mut received = Vec::new();
    server.read_to_end(&mut received).await.unwrap();
    assert!(received == data);
}

async fn dropping_with_unread_data_resets(ends: Ends) {
    let (mut client, server) = ends.connected().await;
    client.write_all(b"never read").await.unwrap();
    server.readable().await.unwrap();
    drop(server);
    let error = client.read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    client.shutdown().await.unwrap();
}

async fn linger_zero_resets(ends: Ends) {
    let (client, mut server) = ends.connected().await;
    client.set_linger(Some(Duration::ZERO)).unwrap();
    assert_eq!(client.linger().unwrap(), Some(Duration::ZERO));
    drop(client);
    assert_eq!(server.read(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

async fn a_reset_wakes_reader_and_writer(ends: Ends) {
    let (client, server) = ends.connected().await;
    let (mut read, mut write) = client.into_split();
    let reader = tokio::spawn(async move { read.read(&mut [0; 8]).await });
    let writer = tokio::spawn(async move { write.write_all(&vec![0; 64 << 20]).await });
    server.readable().await.unwrap();
    drop(server);
    // A kernel gives the reset to one of them, and the end of the stream to the other.
    let (read, written) = (reader.await.unwrap(), writer.await.unwrap().unwrap_err().kind());
    let kinds = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(kinds.contains(&written), "{written:?}");
    assert!(matches!(read, Ok(0)) || read.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
}

async fn dropping_a_write_half_ends_the_stream_for_the_peer(ends: Ends) {
    let (client, mut server) = ends.connected().await;
    let (mut read, mut write) = client.into_split();
    let writer = tokio::spawn(async move { write.write_all(b"bye").await });
    writer.await.unwrap().unwrap();
    let mut text = String::new();
    server.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "bye");
    server.write_all(b"and you").await.unwrap();
    drop(server);
    text.clear();
    read.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "and you");
}

async fn halves_are_reunited_only_with_their_own(ends: Ends) {
    let (client, server) = ends.connected().await;
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    let error = client_read.reunite(server_write).unwrap_err();
    let mut client = error.0.reunite(client_write).unwrap();
    let mut server = server_read.reunite(error.1).unwrap();
    client.write_all(b"whole").await.unwrap();
    client.shutdown().await.unwrap();
    let mut text = String::new();
    server.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "whole");
}

async fn an_address_is_listened_on_once(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let again = TcpListener::bind(&ends.server, address).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AddrInUse);
    let foreign = TcpListener::bind(&ends.server, "192.0.2.1:80").await.unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::AddrNotAvailable);
    drop(listener);
    TcpListener::bind(&ends.server, address).await.unwrap();
}

async fn dropping_a_listener_resets_connections_in_its_queue(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let mut client = TcpStream::connect(&ends.client, address).await.unwrap();
    let_others_run().await;
    drop(listener);
    assert_eq!(client.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

async fn options_are_remembered_and_inherited(ends: Ends) {
    let options = firstbyte::SocketOptions { nodelay: true, keepalive: true, ..Default::default() };
    let builder = TcpListener::builder(&ends.server).socket_options(options);
    let listener = builder.bind(ends.address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let socket = ends.client.socket().nodelay(true).user_timeout(Some(Duration::from_secs(9)));
    let (client, accepted) = tokio::join!(socket.connect(address), listener.accept());
    let (client, server) = (client.unwrap(), accepted.unwrap().0);
    assert!(client.nodelay().unwrap());
    assert_eq!(client.options().unwrap().user_timeout, Some(Duration::from_secs(9)));
    assert!(server.nodelay().unwrap() && server.options().unwrap().keepalive);
    server.set_nodelay(false).unwrap();
    assert!(!server.nodelay().unwrap());
}

async fn options_out_of_range_are_refused(ends: Ends) {
    let (client, _server) = ends.connected().await;
    let refused = client.set_keepalive(Some(Duration::from_secs(40_000))).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let refused = client.set_option(SocketOption::Dscp(64)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

async fn flags_of_a_write_lose_nothing(ends: Ends) {
    let (mut client, mut server) = ends.connected().await;
    client.write_with(b"head ", WriteFlags::MORE).await.unwrap();
    client.write_with(b"body", WriteFlags::END_OF_RECORD).await.unwrap();
    client.push();
    let mut received = [0; 9];
    server.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"head body");
}

async fn a_local_address_can_be_chosen(ends: Ends) {
    let (_listener, address) = ends.listen().await;
    let chosen = ends.client.socket().bind("0.0.0.0:45678".parse().unwrap());
    let stream = chosen.connect(address).await.unwrap();
    assert_eq!(stream.local_addr().unwrap().port(), 45_678);
    let foreign = ends.client.socket().bind("192.0.2.1:0".parse().unwrap());
    assert_eq!(foreign.connect(address).await.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
}

async fn info_has_the_same_fields(ends: Ends) {
    let (mut client, mut server) = ends.connected().await;
    client.write_all(&pattern(10_000)).await.unwrap();
    server.read_exact(&mut vec![0; 10_000]).await.unwrap();
    client.delivered().await.unwrap();
    let info = client.info().unwrap();
    assert_eq!((info.state, info.bytes_sent, info.total_retrans_segs), (State::Established, 10_000, 0));
    assert_eq!((info.local, info.peer), (client.local_addr().unwrap(), client.peer_addr().unwrap()));
    assert!(info.srtt.is_some() && info.min_rtt.is_some() && info.rto > Duration::ZERO, "{info:?}");
    assert!(info.cwnd >= info.snd_mss && info.snd_mss > 500 && info.snd_wnd > 10_000, "{info:?}");
    assert_eq!(client.connection_info().is_ok(), ends.backend() == Backend::Stack);
    assert_eq!(ends.client.stack().is_ok(), ends.backend() == Backend::Stack);
}

async fn readiness_is_awaited_for_both_directions(ends: Ends) {
    let (client, mut server) = ends.connected().await;
    let both = Interest::READABLE | Interest::WRITABLE;
    assert_eq!(client.ready(both).await.unwrap(), Ready::WRITABLE);
    server.write_all(b"x").await.unwrap();
    assert!(client.ready(Interest::READABLE).await.unwrap().is_readable());
    client.readable().await.unwrap();
    assert_eq!(client.ready(both).await.unwrap(), Ready::READABLE | Ready::WRITABLE);
}

async fn buffers_and_slices_are_read_and_written_at_once(ends: Ends) {
    let (client, server) = ends.connected().await;
    let mut text = Vec::new();
    assert_eq!(server.try_read_buf(&mut text).unwrap_err().kind(), ErrorKind::WouldBlock);
    let slices = [&b"one "[..], b"", b"two"].map(std::io::IoSlice::new);
    assert_eq!(client.try_write_vectored(&slices).unwrap(), 7);
    while text.len() < 7 {
        server.readable().await.unwrap();
        match server.try_read_buf(&mut text) {
            Ok(len) => assert!(len > 0),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    assert_eq!(text, b"one two");
}

async fn the_hop_limit_is_read_and_set(ends: Ends) {
    let (client, _server) = ends.connected().await;
    assert_eq!(client.ttl().unwrap(), 64);
    client.set_ttl(7).unwrap();
    assert_eq!(client.ttl().unwrap(), 7);
    assert_eq!(client.set_ttl(256).unwrap_err().kind(), ErrorKind::InvalidInput);
}

async fn descriptors_come_and_go_where_there_are_some(ends: Ends) {
    let (client, mut server) = ends.connected().await;
    let shared = TcpListener::builder(&ends.server).reuse_port(true);
    if ends.backend() == Backend::Stack {
        assert_eq!(client.into_std().unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(shared.bind(ends.address).await.unwrap_err().kind(), ErrorKind::Unsupported);
        return;
    }
    let mut again = TcpStream::from_std(client.into_std().unwrap()).unwrap();
    again.write_all(b"moved").await.unwrap();
    let mut text = [0; 5];
    server.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"moved");
    let (read, _write) = again.into_split();
    drop(read);
    let first = shared.clone().bind(ends.address).await.unwrap();
    let second = shared.bind(first.local_addr().unwrap()).await.unwrap();
    assert_eq!(first.local_addr().unwrap(), second.local_addr().unwrap());
}

/// One exchange with a server that answers "reply" to 4 bytes; the outcome.
async fn visit(ends: &Ends, address: SocketAddr) -> Outcome {
    let mut stream = TcpStream::connect_with(&ends.client, address, "GET!").await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert_eq!(reply, "reply");
    stream.outcome()
}

/// Answers with the bytes that came early.
fn serve(listener: TcpListener) -> tokio::task::JoinHandle<Vec<usize>> {
    tokio::spawn(async move {
        let mut early = Vec::new();
        while early.len() < 2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            early.push(stream.early_data().len);
            stream.read_exact(&mut [0; 4]).await.unwrap();
            stream.write_all(b"reply").await.unwrap();
            stream.shutdown().await.unwrap();
        }
        early
    })
}

fn asked_for_a_cookie(backend: Backend) -> Outcome {
    match backend {
        Backend::Stack => Outcome::CookieRequested { granted: true },
        Backend::Kernel => Outcome::CookieAsked,
    }
}

async fn a_repeat_visit_has_its_data_on_the_syn(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let server = serve(listener);
    assert_eq!(visit(&ends, address).await, asked_for_a_cookie(ends.backend()));
    assert_eq!(visit(&ends, address).await, Outcome::Accepted);
    assert_eq!(server.await.unwrap(), [0, 4]);
}

async fn early_data_is_marked_until_confirmed(ends: Ends) {
    let (listener, address) = ends.listen().await;
    for early_len in [0, 4] {
        let connect = TcpStream::connect_with(&ends.client, address, "GET!");
        let (client, accepted) = tokio::join!(connect, listener.accept());
        let (_client, mut server) = (client.unwrap(), accepted.unwrap().0);
        server.read_exact(&mut [0; 4]).await.unwrap();
        assert_eq!(server.early_data().len, early_len);
        until(|| server.early_data().confirmed).await;
    }
}

async fn fast_open_that_is_off_is_skipped(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let server = serve(listener);
    for _ in 0..2 {
        let socket = ends.client.socket().fast_open(FastOpen::Off);
        let mut stream = socket.connect_with(address, "GET!").await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
        assert_eq!(stream.outcome(), Outcome::Skipped(Skipped::NotAsked));
    }
    assert_eq!(server.await.unwrap(), [0, 0]);
}

async fn a_deferred_repeat_visit_has_its_data_on_the_syn(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let server = serve(listener);
    for expected in [asked_for_a_cookie(ends.backend()), Outcome::Accepted] {
        let mut stream = TcpStream::connect_deferred(&ends.client, address).await.unwrap();
        stream.write_all(b"GET!").await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert_eq!((reply.as_str(), stream.outcome()), ("reply", expected));
    }
    assert_eq!(server.await.unwrap(), [0, 4]);
}

async fn first_bytes_larger_than_a_packet_arrive_once(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let first = pattern(100_000);
    for _ in 0..2 {
        let connect = TcpStream::connect_with(&ends.client, address, first.clone());
        let serve = async {
            let (mut server, _) = listener.accept().await.unwrap();
            let mut received = vec![0; first.len() + 4];
            server.read_exact(&mut received).await.unwrap();
            assert!(received[..first.len()] == first && &received[first.len()..] == b"tail");
        };
        let client = async {
            let mut client = connect.await.unwrap();
            client.write_all(b"tail").await.unwrap();
            client
        };
        tokio::join!(client, serve);
    }
}
