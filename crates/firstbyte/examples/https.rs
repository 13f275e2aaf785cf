//! HTTPS in one round trip: a server and three visits, on the kernel's sockets. Needs no root.
//!
//! ```text
//! cargo run -p firstbyte --example https --features tls
//! ```
//!
//! The certificate is made for this run. Fast Open of the server needs bit 2 of
//! `net.ipv4.tcp_fastopen`; without it, ticket and early data still save one round trip of two.
use firstbyte::tls::rustls::RootCertStore;
use firstbyte::tls::{TlsAcceptor, TlsConnector, TlsListener, TlsStream};
use firstbyte::{Net, TcpListener};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let certified = rcgen::generate_simple_self_signed(["localhost".into()]).map_err(io::Error::other)?;
    let (certificate, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
    let acceptor = TlsAcceptor::from_pem(certificate.as_bytes(), key.as_bytes(), ["http/1.1"])?;
    let net = Net::kernel();
    let listener = TcpListener::builder(&net).fast_open(256).bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(TlsListener::new(listener, acceptor)));

    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).map_err(io::Error::other)?;
    let connector = TlsConnector::builder().roots(roots).alpn(["http/1.1"]).build()?;
    for visit in 1..=3 {
        // Only a request that may be repeated is sent early: try POST.
        let mut stream = connector.connect_deferred(&net, address, "localhost").await?;
        stream.write_all(REQUEST).await?;
        stream.flush().await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let outcome = stream.outcome();
        println!("visit {visit}: {}", answer.lines().last().unwrap_or_default());
        println!("  cookie: {:?}", outcome.fast_open);
        println!("  ticket: {:?}, early data: {:?}", outcome.ticket, outcome.early_data);
    }
    Ok(())
}

async fn serve(mut listener: TlsListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(answer(stream));
    }
}

/// Answers one request, and says whether it may be a replay.
async fn answer(mut stream: TlsStream) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") && stream.read_buf(&mut request).await? > 0 {}
    let may_be_a_replay = !stream.handshake().is_complete();
    let body = format!("may be a replay: {may_be_a_replay}");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    stream.shutdown().await
}
