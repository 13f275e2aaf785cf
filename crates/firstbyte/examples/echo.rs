//! An echo server and its client: two hosts in one process, joined in memory. Needs no root.
//!
//! ```text
//! cargo run -p firstbyte --example echo
//! ```
use firstbyte::{Net, TcpListener, TcpStream, device};
use std::io;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SERVER: &str = "10.0.0.1:7";

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let wire = device::Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
    let (left, right) = device::memory::pair(wire);
    let server = Net::builder().device(left).address("10.0.0.1/24").start()?;
    let client = Net::builder().device(right).address("10.0.0.2/24").start()?;

    tokio::spawn(serve(TcpListener::builder(&server).fast_open(16).bind(SERVER).await?));

    for text in ["first visit: requests a cookie", "second visit: the SYN carries this text"] {
        let started = Instant::now();
        let mut stream = TcpStream::connect_with(&client, SERVER, text).await?;
        stream.shutdown().await?;
        let mut echoed = String::new();
        stream.read_to_string(&mut echoed).await?;
        let info = stream.connection_info()?;
        println!("{echoed}");
        println!("  Fast Open: {:?}; {} bytes on the SYN", stream.outcome(), info.syn_data_acked);
        println!("  {} bytes received in {:?}", echoed.len(), started.elapsed());
    }
    client.shutdown().await
}

/// Echoes every byte, each connection in its own task.
async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (mut stream, peer) = listener.accept().await?;
        tokio::spawn(async move {
            let (mut read, mut write) = stream.split();
            if let Err(error) = tokio::io::copy(&mut read, &mut write).await {
                eprintln!("{peer}: {error}");
            }
            write.shutdown().await
        });
    }
}
