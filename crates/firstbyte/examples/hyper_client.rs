//! hyper-util's client over the connector, on the kernel's sockets. Needs no root.
//!
//! ```text
//! cargo run -p firstbyte --example hyper_client --features hyper-util
//! cargo run -p firstbyte --example hyper_client --features hyper-util -- http://example.com/
//! ```
//!
//! Without an address it visits a small server of its own. That server accepts data on the SYN if
//! bit 2 of `net.ipv4.tcp_fastopen` is set: `sysctl -w net.ipv4.tcp_fastopen=3` as root, once.
use firstbyte::http::{Connector, HttpInfo};
use firstbyte::{Net, TcpListener};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use std::error::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let net = Net::kernel();
    let address = match std::env::args().nth(1) {
        Some(address) => address,
        None => serve(&net).await?,
    };
    let visits = [
        ("first visit", Method::GET),
        ("repeat visit", Method::GET),
        // Not repeatable, so it waits for the handshake.
        ("a POST", Method::POST),
    ];
    for (visit, method) in visits {
        // A client for each visit: its pool would use the connection again.
        let client = Client::builder(TokioExecutor::new()).build(Connector::new(&net));
        let request = Request::builder().method(method).uri(&*address).body(Full::<Bytes>::default())?;
        let response = client.request(request).await?;
        let outcome = response.extensions().get::<HttpInfo>().map(HttpInfo::outcome);
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        println!("{visit}: {status}, {} bytes, {outcome:?}", body.len());
    }
    Ok(())
}

/// Starts a server that answers everything, and returns its address.
async fn serve(net: &Net) -> std::io::Result<String> {
    let listener = TcpListener::builder(net).fast_open(16).bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 8192]).await?;
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nhello\n";
                stream.write_all(answer.as_bytes()).await?;
                stream.shutdown().await
            });
        }
    });
    Ok(format!("http://{address}/"))
}
