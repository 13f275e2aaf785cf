//! Sessions that two servers share in Debian's Redis.
use super::*;
use firstbyte::tls::RedisSessions;
use std::process::{Child, Command, Stdio};

struct Redis {
    process: Child,
    port: u16,
}

impl Redis {
    /// Starts a server on a free port of the loopback interface; `None` where there is none.
    fn start() -> Option<Redis> {
        if !testnet::has_program("redis-server") {
            eprintln!("SKIPPED: needs redis-server (apt install redis-server)");
            return None;
        }
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string()]);
        Some(Redis { process: command.stdout(Stdio::null()).spawn().unwrap(), port })
    }

    /// Connects once the server is up.
    async fn sessions(&self) -> Arc<RedisSessions> {
        let url = format!("redis://127.0.0.1:{}/", self.port);
        loop {
            match RedisSessions::connect(&url).await {
                Ok(sessions) => return Arc::new(sessions),
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            }
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn redis_gives_a_session_to_one_server_once() {
    bounded(async {
        let Some(redis) = Redis::start() else { return };
        let ends = Ends::stack();
        let first = Server::start(&ends, acceptor().shared(redis.sessions().await)).await;
        let connector = connector();
        visit(&connector, &ends.client, first.address, GET).await.unwrap();
        until_known(&connector, &first).await;
        first.restart(acceptor().shared(redis.sessions().await));
        let (_, outcome) = visit(&connector, &ends.client, first.address, GET).await.unwrap();
        assert_eq!(outcome.early_data, EarlyBytes::Accepted, "another server takes the ticket");

        let flight = recorded(&ends, &first).await;
        let second = Server::start(&ends, acceptor().shared(redis.sessions().await)).await;
        assert!(replay(&ends, second.address, flight).await > 0);
        assert_eq!(second.executed(), 0, "but not twice");
    })
    .await;
}

#[tokio::test]
async fn an_address_of_redis_that_is_wrong_is_an_error() {
    let error = RedisSessions::connect("http://127.0.0.1/").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(
        error.to_string().starts_with("cannot use `http://127.0.0.1/` as the address of Redis"),
        "{error}"
    );
}
