//! redis-rs over a stream that opens with its first bytes, on the kernel's sockets. Needs no root.
//!
//! ```text
//! redis-server --port 6390 --save ""
//! cargo run -p firstbyte --example redis
//! ```
//!
//! An argument is another address of a server. Fast Open needs a server or proxy that accepts it;
//! Redis itself does not. With every other server the stream opens with a plain handshake.
use firstbyte::{Net, TcpStream};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, AsyncConnectionConfig, RedisConnectionInfo};
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:6390".to_owned());
    // The first bytes that redis-rs writes only name the client: they may arrive twice.
    let stream = TcpStream::connect_deferred(&Net::kernel(), &address).await?;
    let (info, config) = (RedisConnectionInfo::default(), AsyncConnectionConfig::new());
    let (mut redis, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
    tokio::spawn(driver);

    let visits: i64 = redis.incr("firstbyte:visits", 1).await?;
    let () = redis.set("firstbyte:greeting", "hello").await?;
    let greeting: String = redis.get("firstbyte:greeting").await?;
    println!("{greeting}, visit {visits}");
    Ok(())
}
