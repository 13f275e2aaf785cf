//! Calls that compile against tokio's types and against ours; docs/guide/tokio.md lists them.
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite, Interest, Ready};

fn is_a_stream<T: AsyncRead + AsyncWrite + Unpin + Send + Sync + std::fmt::Debug>(_: &T) {}

/// Defines a function that makes the calls. Compiling it is the test; nothing runs it.
macro_rules! calls {
    ($name:ident, $listener:ty, $stream:ty, $lookup_host:path) => {
        async fn $name(listener: $listener, mut stream: $stream) -> io::Result<$stream> {
            let _: SocketAddr = listener.local_addr()?;
            let (accepted, _): ($stream, SocketAddr) = listener.accept().await?;
            poll_fn(|cx| listener.poll_accept(cx)).await?;
            is_a_stream(&accepted);
            let _: (SocketAddr, SocketAddr) = (stream.local_addr()?, stream.peer_addr()?);
            stream.readable().await?;
            stream.writable().await?;
            let _: Ready = stream.ready(Interest::READABLE | Interest::WRITABLE).await?;
            let _: usize = stream.try_read(&mut [0; 8])?;
            let _: usize = stream.try_read_buf(&mut Vec::with_capacity(8))?;
            let _: usize = stream.try_write(b"x")?;
            let _: usize = stream.try_write_vectored(&[IoSlice::new(b"x")])?;
            let _: usize = stream.peek(&mut [0; 8]).await?;
            let _: bool = stream.nodelay()?;
            stream.set_nodelay(true)?;
            stream.set_quickack(true)?;
            let _: Option<io::Error> = stream.take_error()?;
            let _: u32 = stream.ttl()?;
            stream.set_ttl(64)?;
            let _: Option<std::time::Duration> = stream.linger()?;
            {
                let (read, write) = stream.split();
                read.readable().await?;
                write.writable().await?;
                let _: usize = read.try_read(&mut [0; 8])? + write.try_write(b"x")?;
                let _: (SocketAddr, SocketAddr) = (read.peer_addr()?, write.local_addr()?);
            }
            let (read, write) = stream.into_split();
            stream = read.reunite(write).map_err(io::Error::other)?;
            let (read, write) = accepted.into_split();
            let _: (SocketAddr, SocketAddr) = (read.local_addr()?, write.peer_addr()?);
            let _: usize = read.try_read(&mut [0; 8])? + write.try_write(b"x")?;
            write.forget();
            let _: usize = $lookup_host("localhost:80").await?.count();
            <$stream>::from_std(stream.into_std()?)
        }
    };
}

calls!(tokios, tokio::net::TcpListener, tokio::net::TcpStream, tokio::net::lookup_host);
calls!(ours, firstbyte::TcpListener, firstbyte::TcpStream, firstbyte::lookup_host);

#[test]
fn the_calls_of_the_page_compile_against_both() {
    // Naming the functions keeps them from being unused.
    let _ = (tokios, ours);
    let page = include_str!("../../../../docs/guide/tokio.md");
    for call in STREAM.iter().chain(&LISTENER).chain(&SOCKET) {
        assert!(page.contains(&format!("`{call}`")), "{call} is not in docs/guide/tokio.md");
    }
}

/// The methods of tokio 1.54 (src/net/tcp), without the traits.
const STREAM: [&str; 31] = [
    "async_io",
    "connect",
    "from_std",
    "into_split",
    "into_std",
    "linger",
    "local_addr",
    "nodelay",
    "peek",
    "peer_addr",
    "poll_peek",
    "poll_read_ready",
    "poll_write_ready",
    "quickack",
    "readable",
    "ready",
    "set_linger",
    "set_nodelay",
    "set_quickack",
    "set_ttl",
    "set_zero_linger",
    "split",
    "take_error",
    "try_io",
    "try_read",
    "try_read_buf",
    "try_read_vectored",
    "try_write",
    "try_write_vectored",
    "ttl",
    "writable",
];
const LISTENER: [&str; 8] =
    ["accept", "bind", "from_std", "into_std", "local_addr", "poll_accept", "set_ttl", "ttl"];
const SOCKET: [&str; 31] = [
    "bind",
    "bind_device",
    "connect",
    "device",
    "from_std_stream",
    "keepalive",
    "linger",
    "listen",
    "local_addr",
    "new_v4",
    "new_v6",
    "nodelay",
    "recv_buffer_size",
    "reuseaddr",
    "reuseport",
    "send_buffer_size",
    "set_keepalive",
    "set_linger",
    "set_nodelay",
    "set_recv_buffer_size",
    "set_reuseaddr",
    "set_reuseport",
    "set_send_buffer_size",
    "set_tclass_v6",
    "set_tos",
    "set_tos_v4",
    "set_zero_linger",
    "take_error",
    "tclass_v6",
    "tos",
    "tos_v4",
];
