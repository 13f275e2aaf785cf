//! Writes with flags, the urgent byte, and repeated listening.
use crate::pair::{Pair, SERVER, bounded, let_others_run, patient};
use firstbyte::{TcpListener, TcpStream, WriteFlags};
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Returns the lengths of the client's data packets.
fn texts(pair: &Pair) -> Vec<usize> {
    let log = pair.take_log();
    log.iter()
        .filter(|segment| segment.from_client)
        .map(|segment| segment.payload_len)
        .filter(|len| *len > 0)
        .collect()
}

#[tokio::test]
async fn what_is_announced_goes_with_what_follows_and_records_go_apart() {
    bounded(async {
        let pair = Pair::with(patient(), patient());
        let (mut client, mut server) = pair.connected().await;
        client.set_nodelay(true).unwrap();
        pair.take_log();
        client.write_with(b"head ", WriteFlags::MORE).await.unwrap();
        let_others_run().await;
        assert_eq!(texts(&pair), [], "the rest of it is awaited");
        client.write_with(b"body", WriteFlags::END_OF_RECORD).await.unwrap();
        client.write_with(b"second", WriteFlags::END_OF_RECORD).await.unwrap();
        let mut received = [0; 15];
        server.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"head bodysecond");
        assert_eq!(texts(&pair), [9, 6]);
        assert_eq!(client.try_write_with(b"third", WriteFlags::empty()).unwrap(), 5);
    })
    .await;
}

#[tokio::test]
async fn an_urgent_byte_overtakes_what_was_not_read() {
    bounded(async {
        let pair = Pair::with(patient(), patient());
        let (mut client, mut server) = pair.connected().await;
        assert_eq!(server.try_read_urgent().unwrap_err().kind(), ErrorKind::InvalidInput, "in the stream");
        server.set_oob_inline(false).unwrap();
        assert_eq!(server.try_read_urgent().unwrap_err().kind(), ErrorKind::InvalidInput, "there is none");
        client.write_with(b"commands!", WriteFlags::URGENT).await.unwrap();
        server.readable().await.unwrap();
        assert_eq!(server.urgent_mark().unwrap(), Some(8));
        assert_eq!(server.read_urgent().await.unwrap(), b'!');
        let mut buf = [0; 20];
        assert_eq!(server.read(&mut buf).await.unwrap(), 8);
        assert_eq!((&buf[..8], server.urgent_mark().unwrap()), (&b"commands"[..], Some(0)));
        client.write_with(b"more", WriteFlags::empty()).await.unwrap();
        assert_eq!(server.read(&mut buf).await.unwrap(), 4);
        assert_eq!(&buf[..4], b"more");
    })
    .await;
}

/// Also waits for an urgent byte that was not announced yet, until none can come.
#[tokio::test]
async fn an_urgent_byte_is_waited_for() {
    bounded(async {
        let pair = Pair::with(patient(), patient());
        let (mut client, mut server) = pair.connected().await;
        assert_eq!(server.read_urgent().await.unwrap_err().kind(), ErrorKind::InvalidInput, "in the stream");
        server.set_oob_inline(false).unwrap();
        for urgent in [b"!", b"?"] {
            let send = async {
                let_others_run().await;
                client.write_with(urgent, WriteFlags::URGENT).await.unwrap();
            };
            let (read, ()) = tokio::join!(server.read_urgent(), send);
            assert_eq!(read.unwrap(), urgent[0]);
        }
        let end = async {
            let_others_run().await;
            client.shutdown().await.unwrap();
        };
        let (read, ()) = tokio::join!(server.read_urgent(), end);
        assert_eq!(read.unwrap_err().kind(), ErrorKind::NotConnected);
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
    })
    .await;
}

/// An inline urgent byte is found by the mark.
#[tokio::test]
async fn a_read_stops_before_an_urgent_byte() {
    bounded(async {
        let pair = Pair::with(patient(), patient());
        let (mut client, mut server) = pair.connected().await;
        client.write_with(b"commands!", WriteFlags::URGENT).await.unwrap();
        let mut buf = [0; 20];
        assert_eq!(server.read(&mut buf).await.unwrap(), 8);
        assert_eq!(server.urgent_mark().unwrap(), Some(0));
        assert_eq!(server.read(&mut buf).await.unwrap(), 1);
        assert_eq!((buf[0], server.urgent_mark().unwrap()), (b'!', None));
    })
    .await;
}

/// The end of a record opens a deferred stream with all data written before.
#[tokio::test]
async fn a_record_opens_a_deferred_stream() {
    bounded(async {
        let pair = Pair::with(patient(), patient());
        let listener = pair.listen().await;
        let mut client = TcpStream::connect_deferred(&pair.client, SERVER).await.unwrap();
        client.write_with(b"ask", WriteFlags::MORE).await.unwrap();
        let_others_run().await;
        assert_eq!(pair.take_log(), []);
        client.write_with(b"ing", WriteFlags::END_OF_RECORD).await.unwrap();
        client.write_with(b"again", WriteFlags::END_OF_RECORD).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let mut received = [0; 11];
        server.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"askingagain");
        assert_eq!(texts(&pair), [6, 5]);
    })
    .await;
}

#[tokio::test]
async fn a_listener_may_listen_once_more() {
    bounded(async {
        let pair = Pair::new();
        let listener = TcpListener::builder(&pair.server).backlog(4).bind(SERVER).await.unwrap();
        assert_eq!(listener.info().unwrap().backlog, 4);
        pair.server.stack().unwrap().set("net.core.somaxconn", "100").unwrap();
        assert_eq!(listener.info().unwrap().backlog, 4, "not by itself");
        listener.set_backlog(500).unwrap();
        assert_eq!(listener.info().unwrap().backlog, 100);
        pair.server.shutdown().await.unwrap();
        assert_eq!(listener.set_backlog(1).unwrap_err().kind(), ErrorKind::ConnectionAborted);
    })
    .await;
}
