//! First bytes on the SYN, replies on the SYN-ACK, and their outcomes.
use crate::pair::{Pair, SERVER, Segment, bounded};
use firstbyte::{Config, FastOpen, KeyRing, NotAcknowledged, Outcome, Skipped, TcpListener, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Answers every request of 4 bytes with "reply" and closes, before it waits again.
fn serve(listener: TcpListener) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4];
            if stream.read_exact(&mut request).await.is_ok() {
                stream.write_all(b"reply").await.unwrap();
                stream.shutdown().await.unwrap();
            }
        }
    })
}

/// Makes one exchange. Returns the outcome of Fast Open.
async fn visit(pair: &Pair) -> Outcome {
    let mut stream = TcpStream::connect_with(&pair.client, SERVER, "GET!").await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert_eq!(reply, "reply");
    stream.outcome()
}

fn packet(from_client: bool, flags: &str, payload_len: usize) -> Segment {
    Segment { from_client, flags: flags.to_owned(), payload_len }
}

async fn repeat_visit_takes_four_packets() {
    let pair = Pair::new();
    serve(pair.listen().await);
    assert_eq!(visit(&pair).await, Outcome::CookieRequested { granted: true });
    pair.until_empty().await;
    pair.take_log();
    assert_eq!(visit(&pair).await, Outcome::Accepted);
    pair.until_empty().await;
    let expected =
        [packet(true, "S", 4), packet(false, "SF.", 5), packet(true, "F.", 0), packet(false, ".", 0)]
            .to_vec();
    assert_eq!(pair.take_log(), expected);
    assert_eq!(pair.server.stack().unwrap().counters().synack_data, 1);
}

#[tokio::test]
async fn a_repeat_visit_takes_four_packets() {
    bounded(repeat_visit_takes_four_packets()).await;
}

#[tokio::test]
async fn a_flush_does_not_end_the_hold_and_a_push_does() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        let server = tokio::spawn(async move {
            for round in 0..3 {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 4];
                stream.read_exact(&mut request).await.unwrap();
                stream.write_all(b"reply").await.unwrap();
                if round == 1 {
                    stream.flush().await.unwrap();
                } else {
                    stream.push();
                    // The driver sends the pushed data before this task continues.
                    tokio::task::yield_now().await;
                }
                stream.shutdown().await.unwrap();
            }
        });
        let mut on_synack = Vec::new();
        for _ in 0..3 {
            pair.take_log();
            visit(&pair).await;
            pair.until_empty().await;
            let log = pair.take_log();
            on_synack.push(log.into_iter().find(|segment| !segment.from_client).unwrap());
        }
        server.await.unwrap();
        assert_eq!(on_synack, [packet(false, "S.", 0), packet(false, "SF.", 5), packet(false, "S.", 5)]);
    })
    .await;
}

#[tokio::test]
async fn early_data_is_marked_until_the_peer_is_confirmed() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        for (round, early_len) in [(0, 0), (1, 4)] {
            let client = tokio::spawn({
                let net = pair.client.clone();
                async move { TcpStream::connect_with(&net, SERVER, "GET!").await.unwrap() }
            });
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4];
            stream.read_exact(&mut request).await.unwrap();
            assert_eq!(stream.early_data().len, early_len, "visit {round}");
            stream.write_all(b"reply").await.unwrap();
            stream.delivered().await.unwrap();
            assert!(early_len == 0 || stream.early_data().confirmed);
            assert_eq!(client.await.unwrap().connection_info().unwrap().syn_data_acked, early_len);
        }
    })
    .await;
}

#[tokio::test]
async fn first_bytes_larger_than_a_packet_arrive_once_and_in_order() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        let first = crate::pair::pattern(10_000);
        for _ in 0..2 {
            let connect = TcpStream::connect_with(&pair.client, SERVER, first.clone());
            let (client, server) = tokio::join!(connect, listener.accept());
            let (mut client, mut server) = (client.unwrap(), server.unwrap().0);
            client.write_all(b"tail").await.unwrap();
            client.shutdown().await.unwrap();
            let mut received = Vec::new();
            server.read_to_end(&mut received).await.unwrap();
            assert!(received == [&first[..], b"tail"].concat());
        }
    })
    .await;
}

#[tokio::test]
async fn outcomes_tell_why_it_did_not_work() {
    bounded(async {
        let pair = Pair::new();
        // Disabled at the client.
        serve(pair.listen().await);
        pair.client.stack().unwrap().set("net.ipv4.tcp_fastopen", "0").unwrap();
        assert_eq!(visit(&pair).await, Outcome::Skipped(Skipped::Disabled));
        pair.client.stack().unwrap().set("net.ipv4.tcp_fastopen", "1").unwrap();
        // Not requested.
        let plain = TcpStream::connect(&pair.client, SERVER).await.unwrap();
        assert_eq!(plain.outcome(), Outcome::Skipped(Skipped::NotAsked));
        drop(plain);
        // The server changed its key in between.
        assert_eq!(visit(&pair).await, Outcome::CookieRequested { granted: true });
        pair.server
            .stack()
            .unwrap()
            .set("net.ipv4.tcp_fastopen_key", "00112233-44556677-8899aabb-ccddeeff")
            .unwrap();
        assert_eq!(visit(&pair).await, Outcome::NotAcknowledged(NotAcknowledged::StaleCookie));
        assert_eq!(visit(&pair).await, Outcome::Accepted);
    })
    .await;
}

#[tokio::test]
async fn a_server_with_fast_open_off_is_served_all_the_same() {
    bounded(async {
        let pair = Pair::new();
        serve(TcpListener::bind(&pair.server, SERVER).await.unwrap());
        assert_eq!(visit(&pair).await, Outcome::CookieRequested { granted: false });
    })
    .await;
}

#[tokio::test]
async fn two_linux_profiles_never_put_the_reply_on_the_synack() {
    bounded(async {
        let mut linux = Config::linux();
        linux.tcp_fastopen = 3;
        let pair = Pair::with(linux.clone(), linux);
        serve(pair.listen().await);
        visit(&pair).await;
        pair.until_empty().await;
        pair.take_log();
        assert_eq!(visit(&pair).await, Outcome::Accepted);
        pair.until_empty().await;
        let log = pair.take_log();
        assert_eq!(log[..2], [packet(true, "S", 4), packet(false, "S.", 0)]);
    })
    .await;
}

#[tokio::test]
async fn fin_on_the_syn_makes_three_packets() {
    bounded(async {
        let pair = Pair::new();
        serve(pair.listen().await);
        visit(&pair).await;
        pair.until_empty().await;
        pair.take_log();
        let socket = pair.client.socket().fin(true).syn_fin(true);
        let mut stream = socket.connect_with(SERVER, "GET!").await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert_eq!((reply.as_str(), stream.outcome()), ("reply", Outcome::Accepted));
        drop(stream);
        pair.until_empty().await;
        let expected = [packet(true, "SF", 4), packet(false, "SF.", 5), packet(true, ".", 0)];
        assert_eq!(pair.take_log(), expected);
    })
    .await;
}

#[tokio::test]
async fn a_data_less_syn_lets_the_server_speak_first() {
    bounded(async {
        let pair = Pair::new();
        let listener = pair.listen().await;
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(b"220 ready").await.unwrap();
                stream.shutdown().await.unwrap();
            }
        });
        for is_repeat in [false, true] {
            pair.take_log();
            let socket = pair.client.socket().fast_open(FastOpen::Auto).data_less(true);
            let mut stream = socket.connect(SERVER).await.unwrap();
            let mut banner = String::new();
            stream.read_to_string(&mut banner).await.unwrap();
            assert_eq!(banner, "220 ready");
            drop(stream);
            pair.until_empty().await;
            assert_eq!(
                pair.take_log()[1],
                if is_repeat { packet(false, "SF.", 9) } else { packet(false, "S.", 0) }
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_listener_may_have_keys_of_its_own() {
    bounded(async {
        let pair = Pair::new();
        let key = |text: &str| text.parse::<KeyRing>().unwrap();
        let (old, new) = ("00112233-44556677-8899aabb-ccddeeff", "01234567-89abcdef-01234567-89abcdef");
        let mut outcomes = Vec::new();
        for ring in [key(old), key(old), key(&format!("{new},{old}")), key(new), key(old)] {
            let listener =
                TcpListener::builder(&pair.server).fast_open(16).key(ring).bind(SERVER).await.unwrap();
            let server = serve(listener);
            outcomes.push(visit(&pair).await);
            pair.until_empty().await;
            server.abort();
            let _ = server.await;
        }
        let stale = Outcome::NotAcknowledged(NotAcknowledged::StaleCookie);
        let requested = Outcome::CookieRequested { granted: true };
        assert_eq!(outcomes, [requested, Outcome::Accepted, Outcome::Accepted, Outcome::Accepted, stale]);
    })
    .await;
}
