//! TLS over our stack and over the kernel's sockets: visits, refusals, replays.
mod post_quantum;
mod redis;
mod refusals;
mod replays;

use crate::both::{Ends, on_both, on_kernel};
use crate::pair::{Pair, Segment, bounded, patient, pattern};
use firstbyte::tls::rustls::{RootCertStore, pki_types::CertificateDer};
use firstbyte::tls::{EarlyBytes, NotSent, Ticket, TlsAcceptor, TlsConnector, TlsOutcome, TlsStream};
use firstbyte::{Net, Outcome, TcpListener};
use refusals::*;
use replays::*;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub(crate) const NAME: &str = "www.example";

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n";
const POST: &[u8] = b"POST / HTTP/1.1\r\nHost: www.example\r\nContent-Length: 0\r\n\r\n";

/// A certificate for `www.example` and the servers' addresses, signed by itself, and its key, as
/// PEM.
pub(crate) fn certified() -> &'static (String, String, CertificateDer<'static>) {
    static CERTIFIED: OnceLock<(String, String, CertificateDer<'static>)> = OnceLock::new();
    CERTIFIED.get_or_init(|| {
        let names = [NAME, "127.0.0.1", "10.0.0.1"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem(), made.cert.der().clone())
    })
}

pub(crate) fn acceptor() -> TlsAcceptor {
    acceptor_of("http/1.1")
}

pub(crate) fn acceptor_of(protocol: &str) -> TlsAcceptor {
    let (chain, key, _) = certified();
    TlsAcceptor::from_pem(chain.as_bytes(), key.as_bytes(), [protocol]).unwrap()
}

pub(crate) fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(certified().2.clone()).unwrap();
    TlsConnector::builder().roots(roots).alpn(["http/1.1", "other"]).build().unwrap()
}

/// A server that answers each request with its first byte and how often one was executed.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    acceptor: Arc<Mutex<TlsAcceptor>>,
    executed: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn start(ends: &Ends, acceptor: TlsAcceptor) -> Server {
        let (listener, address) = ends.listen().await;
        Server::on(listener, address, acceptor)
    }

    pub(crate) fn on(listener: TcpListener, address: SocketAddr, acceptor: TlsAcceptor) -> Server {
        let executed = Arc::new(AtomicUsize::new(0));
        let acceptor = Arc::new(Mutex::new(acceptor));
        let (current, count) = (Arc::clone(&acceptor), Arc::clone(&executed));
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, count) = (current.lock().unwrap().clone(), Arc::clone(&count));
                tokio::spawn(async move { serve(acceptor.accept(tcp).await?, &count).await });
            }
        });
        Server { address, acceptor, executed }
    }

    /// Goes on with another acceptor, which knows no sessions.
    pub(crate) fn restart(&self, acceptor: TlsAcceptor) {
        *self.acceptor.lock().unwrap() = acceptor;
    }

    /// Number of requests that were executed.
    pub(crate) fn executed(&self) -> usize {
        self.executed.load(Ordering::Relaxed)
    }
}

async fn serve(mut stream: TlsStream, executed: &AtomicUsize) -> io::Result<()> {
    let mut request = Vec::new();
    while stream.read_buf(&mut request).await? > 0 {
        while let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            let number = executed.fetch_add(1, Ordering::Relaxed) + 1;
            let answer = format!("{} {number:04}", char::from(request[0]));
            request.drain(..end + 4);
            stream.write_all(answer.as_bytes()).await?;
            stream.flush().await?;
        }
    }
    stream.shutdown().await
}

/// Writes a request on a deferred stream, and reads the answer.
pub(crate) async fn visit(
    connector: &TlsConnector,
    net: &Net,
    address: SocketAddr,
    request: &[u8],
) -> io::Result<(String, TlsOutcome)> {
    let mut stream = connector.connect_deferred(net, address, NAME).await?;
    stream.write_all(request).await?;
    stream.flush().await?;
    let mut answer = [0; 6];
    stream.read_exact(&mut answer).await?;
    Ok((String::from_utf8_lossy(&answer).into_owned(), stream.outcome()))
}

/// Waits until the client has a ticket of the server.
pub(crate) async fn until_known(connector: &TlsConnector, server: &Server) {
    crate::pair::until(|| connector.knows(NAME, server.address.port()).unwrap()).await;
}

on_both! {
    needs_fast_open = false:
        data_of_any_length_crosses_in_both_directions, a_certificate_that_is_not_trusted_is_refused,
        a_server_that_is_no_tls_server_is_an_error, an_explicit_first_flight_is_answered,
        a_flush_sends_what_waits_for_the_handshake, a_stream_without_a_request_never_connects, clients_that_close_early_never_lack_a_ticket,
        a_refused_ticket_costs_a_handshake_and_loses_nothing, a_server_without_early_data_is_not_sent_any,
        another_protocol_is_reported_and_forgotten, a_copied_first_flight_is_executed_once,
        servers_that_share_sessions_resume_and_refuse_copies,
        a_store_that_fails_costs_a_handshake, clients_that_say_nothing_keep_nobody_out, a_handler_knows_whether_its_request_may_be_a_copy;
    needs_fast_open = true:
        a_repeat_visit_uses_cookie_ticket_and_early_data, a_request_that_is_not_repeatable_waits,
        a_server_without_fast_open_still_takes_early_data;
}

async fn a_repeat_visit_uses_cookie_ticket_and_early_data(ends: Ends) {
    let server = Server::start(&ends, acceptor()).await;
    let connector = connector();
    let (answer, outcome) = visit(&connector, &ends.client, server.address, GET).await.unwrap();
    assert_eq!(answer, "G 0001");
    assert_eq!(outcome.ticket, Ticket::None);
    assert_eq!(outcome.early_data, EarlyBytes::NotSent(NotSent::NoTicket));
    until_known(&connector, &server).await;
    for number in 2..=10 {
        let (answer, outcome) = visit(&connector, &ends.client, server.address, GET).await.unwrap();
        assert_eq!(answer, format!("G {number:04}"));
        assert_eq!(outcome.fast_open, Outcome::Accepted);
        assert_eq!(outcome.ticket, Ticket::Accepted);
        assert_eq!(outcome.early_data, EarlyBytes::Accepted);
        until_known(&connector, &server).await;
    }
    assert_eq!(server.executed(), 10);
}

async fn a_request_that_is_not_repeatable_waits(ends: Ends) {
    let server = Server::start(&ends, acceptor()).await;
    let connector = connector();
    visit(&connector, &ends.client, server.address, GET).await.unwrap();
    until_known(&connector, &server).await;
    let (answer, outcome) = visit(&connector, &ends.client, server.address, POST).await.unwrap();
    assert_eq!(answer, "P 0002");
    assert_eq!(outcome.fast_open, Outcome::Accepted, "the ClientHello may be on the SYN");
    assert_eq!(outcome.ticket, Ticket::Accepted);
    assert_eq!(outcome.early_data, EarlyBytes::NotSent(NotSent::NotRepeatable));
}

async fn a_flush_sends_what_waits_for_the_handshake(ends: Ends) {
    let server = Server::start(&ends, acceptor()).await;
    let mut stream = connector().connect_deferred(&ends.client, server.address, NAME).await.unwrap();
    stream.write_all(POST).await.unwrap();
    stream.flush().await.unwrap();
    // Nobody reads.
    crate::pair::until(|| server.executed() == 1).await;
    drop(stream);
}

async fn data_of_any_length_crosses_in_both_directions(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let data = pattern(3_000_001);
    let sent = data.clone();
    let server = tokio::spawn(async move {
        let mut stream = acceptor().accept(listener.accept().await.unwrap().0).await.unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.unwrap();
        stream.write_all(&received).await.unwrap();
        stream.shutdown().await.unwrap();
    });
    let mut stream = connector().connect(&ends.client, address, NAME).await.unwrap();
    assert_eq!(stream.alpn(), Some(&b"http/1.1"[..]));
    stream.write_all(&sent).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.unwrap();
    assert!(received == data, "bytes differ");
    server.await.unwrap();
}

async fn an_explicit_first_flight_is_answered(ends: Ends) {
    let server = Server::start(&ends, acceptor()).await;
    let connector = connector();
    for (request, early) in [(GET, EarlyBytes::NotSent(NotSent::NoTicket)), (POST, EarlyBytes::Accepted)] {
        let mut stream = connector.connect_with(&ends.client, server.address, NAME, request).await.unwrap();
        let mut answer = [0; 6];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer[0], request[0]);
        assert_eq!(stream.outcome().early_data, early);
        drop(stream);
        until_known(&connector, &server).await;
    }
}

async fn a_stream_without_a_request_never_connects(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let mut stream = connector().connect_deferred(&ends.client, address, NAME).await.unwrap();
    stream.flush().await.unwrap();
    assert!(stream.tcp().is_none());
    stream.shutdown().await.unwrap();
    drop(stream);
    let nobody = tokio::time::timeout(std::time::Duration::from_millis(20), listener.accept()).await;
    assert!(nobody.is_err());
}

async fn clients_that_close_early_never_lack_a_ticket(ends: Ends) {
    let server = Server::start(&ends, acceptor()).await;
    let connector = connector();
    visit(&connector, &ends.client, server.address, GET).await.unwrap();
    until_known(&connector, &server).await;
    for number in 2..=100 {
        // The stream is dropped with the first byte of the answer, before the tickets come.
        let (answer, outcome) = visit(&connector, &ends.client, server.address, GET).await.unwrap();
        assert_eq!(answer, format!("G {number:04}"));
        assert_eq!(outcome.early_data, EarlyBytes::Accepted, "visit {number}");
        until_known(&connector, &server).await;
    }
}

#[tokio::test]
async fn a_repeat_visit_takes_two_packets_to_the_answer() {
    bounded(async {
        let pair = Pair::with(patient(), patient());
        let address = "10.0.0.1:443".parse().unwrap();
        let listener = TcpListener::builder(&pair.server).fast_open(16).bind(address).await.unwrap();
        let server = Server::on(listener, address, acceptor());
        let connector = connector();
        visit(&connector, &pair.client, address, GET).await.unwrap();
        until_known(&connector, &server).await;
        pair.until_empty().await;
        pair.take_log();
        let mut stream = connector.connect_deferred(&pair.client, address, NAME).await.unwrap();
        stream.write_all(GET).await.unwrap();
        stream.flush().await.unwrap();
        let mut answer = [0; 6];
        stream.read_exact(&mut answer).await.unwrap();
        let log = pair.take_log();
        let Segment { payload_len: hello, .. } = log[0];
        let Segment { payload_len: flight, .. } = log[1];
        // ClientHello, change_cipher_spec and early data on the SYN; flight and answer on the
        // SYN-ACK.
        assert_eq!((log[0].flags.as_str(), log[1].flags.as_str()), ("S", "S."));
        assert!((350..450).contains(&hello), "{hello} bytes on the SYN");
        assert!((200..350).contains(&flight), "{flight} bytes on the SYN-ACK");
    })
    .await;
}
