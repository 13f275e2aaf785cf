//! Cookies, tickets, early data, certificates and protocols that the other side refuses.
use super::*;
use firstbyte::tls::TlsListener;
use firstbyte::tls::rustls;
use std::time::Duration;

/// Makes a visit, so that the next one has a ticket.
async fn visited(ends: &Ends, acceptor: TlsAcceptor) -> (Server, TlsConnector) {
    let server = Server::start(ends, acceptor).await;
    let connector = connector();
    visit(&connector, &ends.client, server.address, GET).await.unwrap();
    until_known(&connector, &server).await;
    (server, connector)
}

pub(super) async fn a_refused_ticket_costs_a_handshake_and_loses_nothing(ends: Ends) {
    let (server, connector) = visited(&ends, acceptor()).await;
    server.restart(acceptor());
    let (answer, outcome) = visit(&connector, &ends.client, server.address, GET).await.unwrap();
    assert_eq!(answer, "G 0002");
    assert_eq!(outcome.ticket, Ticket::Refused);
    assert_eq!(outcome.early_data, EarlyBytes::Refused);
    until_known(&connector, &server).await;
    let (answer, outcome) = visit(&connector, &ends.client, server.address, GET).await.unwrap();
    assert_eq!(answer, "G 0003");
    assert_eq!(outcome.early_data, EarlyBytes::Accepted);
}

pub(super) async fn a_server_without_early_data_is_not_sent_any(ends: Ends) {
    let server = Server::start(&ends, acceptor().max_early_data(0)).await;
    let connector = connector();
    let mut outcome = visit(&connector, &ends.client, server.address, GET).await.unwrap().1;
    // A ticket without early data does not make the server known.
    crate::pair::until(|| connector.has_ticket(NAME, server.address.port()).unwrap()).await;
    assert!(!connector.knows(NAME, server.address.port()).unwrap());
    assert_eq!(outcome.ticket, Ticket::None);
    outcome = visit(&connector, &ends.client, server.address, GET).await.unwrap().1;
    assert_eq!(outcome.ticket, Ticket::Accepted);
    assert_eq!(outcome.early_data, EarlyBytes::NotSent(NotSent::NotTaken));
    assert_eq!(server.executed(), 2);
}

pub(super) async fn another_protocol_is_reported_and_forgotten(ends: Ends) {
    let (server, connector) = visited(&ends, acceptor()).await;
    server.restart(acceptor_of("other"));
    let error = visit(&connector, &ends.client, server.address, GET).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
    assert!(error.to_string().contains("another protocol"), "{error}");
    let (answer, _) = visit(&connector, &ends.client, server.address, GET).await.unwrap();
    assert_eq!(answer, "G 0002", "the first request was executed once, the refused one never");
}

pub(super) async fn a_server_without_fast_open_still_takes_early_data(ends: Ends) {
    let listener = TcpListener::builder(&ends.server).bind(ends.any()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::on(listener, address, acceptor());
    let connector = connector();
    visit(&connector, &ends.client, server.address, GET).await.unwrap();
    until_known(&connector, &server).await;
    let (answer, outcome) = visit(&connector, &ends.client, server.address, GET).await.unwrap();
    assert_eq!(answer, "G 0002");
    assert_ne!(outcome.fast_open, Outcome::Accepted);
    assert_eq!(outcome.early_data, EarlyBytes::Accepted);
}

pub(super) async fn a_certificate_that_is_not_trusted_is_refused(ends: Ends) {
    let server = Server::start(&ends, acceptor()).await;
    let other = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(other.cert.der().clone()).unwrap();
    let connector = TlsConnector::builder().roots(roots).build().unwrap();
    let error = connector.connect(&ends.client, server.address, NAME).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    assert!(matches!(cause, Some(rustls::Error::InvalidCertificate(_))), "{error}");
    let error = connector.connect(&ends.client, server.address, "not a name").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = TlsConnector::builder().build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

pub(super) async fn a_server_that_is_no_tls_server_is_an_error(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let server = tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.unwrap();
        tcp.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let (mut tcp, _) = listener.accept().await.unwrap();
        tcp.read_buf(&mut Vec::new()).await.unwrap();
        tcp.shutdown().await.unwrap();
        tcp.read_to_end(&mut Vec::new()).await.unwrap();
    });
    let connector = connector();
    let error = connector.connect(&ends.client, address, NAME).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    let error = connector.connect(&ends.client, address, NAME).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{error}");
    server.await.unwrap();
}

pub(super) async fn clients_that_say_nothing_keep_nobody_out(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let mut listener = TlsListener::new(listener, acceptor()).handshakes(8);
    let server = tokio::spawn(async move { listener.accept().await.unwrap().1 });
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(firstbyte::TcpStream::connect(&ends.client, address).await.unwrap());
    }
    let client = connector().connect(&ends.client, address, NAME).await.unwrap();
    assert_eq!(server.await.unwrap(), client.tcp().unwrap().local_addr().unwrap());
    // The oldest were closed to make room; the newest still may speak.
    let closed = tokio::time::timeout(Duration::from_secs(1), silent[0].readable()).await;
    assert!(closed.is_ok());
    assert_eq!(silent[0].try_read(&mut [0; 8]).map_err(|error| error.kind()), Ok(0));
}
