//! Early data that somebody recorded and sends again.
use super::*;
use firstbyte::TcpStream;
use firstbyte::tls::{SessionFuture, SharedSessions};
use std::collections::HashMap;

/// Listens between client and server, and keeps what the client sends before the server answers.
struct Recorder {
    address: SocketAddr,
    flight: Arc<Mutex<Vec<u8>>>,
}

impl Recorder {
    async fn before(ends: &Ends, server: SocketAddr) -> Recorder {
        let (listener, address) = ends.listen().await;
        let flight = Arc::new(Mutex::new(Vec::new()));
        let (net, record) = (ends.client.clone(), Arc::clone(&flight));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, net.clone(), server, Arc::clone(&record)));
            }
        });
        Recorder { address, flight }
    }
}

async fn relay(
    mut client: TcpStream,
    net: Net,
    server: SocketAddr,
    record: Arc<Mutex<Vec<u8>>>,
) -> io::Result<()> {
    let mut server = TcpStream::connect(&net, server).await?;
    let mut first = vec![0; 16_384];
    let len = client.read(&mut first).await?;
    first.truncate(len);
    server.write_all(&first).await?;
    *record.lock().unwrap() = first;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Sends recorded bytes to a server, and returns how much it answered within 100 ms.
pub(super) async fn replay(ends: &Ends, server: SocketAddr, flight: Vec<u8>) -> usize {
    let mut stream = TcpStream::connect_with(&ends.client, server, flight).await.unwrap();
    let mut answer = Vec::new();
    let limit = std::time::Duration::from_millis(100);
    let _ = tokio::time::timeout(limit, stream.read_to_end(&mut answer)).await;
    answer.len()
}

/// Makes two visits through a recorder, and returns the first flight of the second, which carried
/// early data.
pub(super) async fn recorded(ends: &Ends, server: &Server) -> Vec<u8> {
    let recorder = Recorder::before(ends, server.address).await;
    let connector = connector();
    let known = || connector.knows(NAME, recorder.address.port()).unwrap();
    visit(&connector, &ends.client, recorder.address, GET).await.unwrap();
    crate::pair::until(known).await;
    let (_, outcome) = visit(&connector, &ends.client, recorder.address, GET).await.unwrap();
    assert_eq!(outcome.early_data, EarlyBytes::Accepted);
    crate::pair::until(known).await;
    let flight = recorder.flight.lock().unwrap().clone();
    assert!(flight.len() > 300, "{} bytes", flight.len());
    flight
}

pub(super) async fn a_copied_first_flight_is_executed_once(ends: Ends) {
    let server = Server::start(&ends, acceptor()).await;
    let flight = recorded(&ends, &server).await;
    assert_eq!(server.executed(), 2);
    for _ in 0..3 {
        assert!(replay(&ends, server.address, flight.clone()).await > 0, "a whole handshake is offered");
    }
    assert_eq!(server.executed(), 2);
    // A server that was restarted, or another one, does not know the ticket.
    server.restart(acceptor());
    replay(&ends, server.address, flight).await;
    assert_eq!(server.executed(), 2);
}

/// Sessions in the memory of this test.
#[derive(Debug, Default)]
struct Memory(Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>);

impl SharedSessions for Memory {
    fn put(&self, key: Vec<u8>, session: Vec<u8>) -> SessionFuture<()> {
        self.0.lock().unwrap().insert(key, session);
        Box::pin(async { Ok(()) })
    }

    fn take(&self, key: Vec<u8>) -> SessionFuture<Option<Vec<u8>>> {
        let session = self.0.lock().unwrap().remove(&key);
        Box::pin(async { Ok(session) })
    }
}

pub(super) async fn servers_that_share_sessions_resume_and_refuse_copies(ends: Ends) {
    let store = Arc::new(Memory::default());
    let first = Server::start(&ends, acceptor().shared(Arc::clone(&store) as _)).await;
    let connector = connector();
    visit(&connector, &ends.client, first.address, GET).await.unwrap();
    until_known(&connector, &first).await;
    // Another server at the same address, as behind a load balancer.
    first.restart(acceptor().shared(Arc::clone(&store) as _));
    let (_, outcome) = visit(&connector, &ends.client, first.address, GET).await.unwrap();
    assert_eq!(outcome.ticket, Ticket::Accepted);
    assert_eq!(outcome.early_data, EarlyBytes::Accepted);

    let flight = recorded(&ends, &first).await;
    let second = Server::start(&ends, acceptor().shared(store as _)).await;
    assert!(replay(&ends, second.address, flight).await > 0);
    assert_eq!(second.executed(), 0);
}

/// A store that cannot be reached.
#[derive(Debug)]
struct Broken;

impl SharedSessions for Broken {
    fn put(&self, _: Vec<u8>, _: Vec<u8>) -> SessionFuture<()> {
        Box::pin(async { Err(ErrorKind::ConnectionRefused.into()) })
    }

    fn take(&self, _: Vec<u8>) -> SessionFuture<Option<Vec<u8>>> {
        Box::pin(std::future::pending())
    }
}

pub(super) async fn a_store_that_fails_costs_a_handshake(ends: Ends) {
    let server = Server::start(&ends, acceptor().shared(Arc::new(Broken))).await;
    let connector = connector();
    visit(&connector, &ends.client, server.address, GET).await.unwrap();
    until_known(&connector, &server).await;
    let (answer, outcome) = visit(&connector, &ends.client, server.address, GET).await.unwrap();
    assert_eq!(answer, "G 0002");
    assert_eq!((outcome.ticket, outcome.early_data), (Ticket::Refused, EarlyBytes::Refused));
}

pub(super) async fn a_handler_knows_whether_its_request_may_be_a_copy(ends: Ends) {
    let (listener, address) = ends.listen().await;
    let acceptor = acceptor();
    let server = tokio::spawn(async move {
        let mut were_complete = Vec::new();
        for _ in 0..2 {
            let mut stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
            let mut handshake = stream.handshake();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut request).await.unwrap();
            }
            were_complete.push(handshake.is_complete());
            stream.write_all(b"answer").await.unwrap();
            stream.flush().await.unwrap();
            // The rest of the stream is read in the meantime.
            let rest = tokio::spawn(async move { stream.read_to_end(&mut Vec::new()).await });
            assert!(handshake.completed().await);
            let _ = rest.await.unwrap();
        }
        were_complete
    });
    let connector = connector();
    for _ in 0..2 {
        visit(&connector, &ends.client, address, GET).await.unwrap();
        crate::pair::until(|| connector.knows(NAME, address.port()).unwrap()).await;
    }
    assert_eq!(server.await.unwrap(), [true, false]);
}
