//! Many connections, many tasks.
use crate::pair::{Pair, SERVER, bounded};
use firstbyte::{Outcome, TcpListener, TcpStream};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

/// Echoes each connection until its end, in `acceptors` tasks.
fn echo(listener: TcpListener, acceptors: usize) {
    let listener = Arc::new(listener);
    for _ in 0..acceptors {
        let listener = listener.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    tokio::io::copy(&mut read, &mut write).await?;
                    write.shutdown().await
                });
            }
        });
    }
}

async fn exchange(pair: &Pair, number: u32, with_fast_open: bool) -> Outcome {
    let question = number.to_be_bytes();
    let mut stream = if with_fast_open {
        TcpStream::connect_with(&pair.client, SERVER, question.to_vec()).await.unwrap()
    } else {
        let mut stream = TcpStream::connect(&pair.client, SERVER).await.unwrap();
        stream.write_all(&question).await.unwrap();
        stream
    };
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, question);
    stream.outcome()
}

async fn a_thousand_at_once(with_fast_open: bool) {
    let pair = Arc::new(Pair::new());
    let listener =
        TcpListener::builder(&pair.server).backlog(2000).fast_open(2000).bind(SERVER).await.unwrap();
    echo(listener, 4);
    exchange(&pair, 0, true).await;
    let mut tasks = JoinSet::new();
    for number in 0..1000 {
        let pair = pair.clone();
        tasks.spawn(async move { exchange(&pair, number, with_fast_open).await });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.len(), 1000);
    if with_fast_open {
        let accepted = outcomes.iter().filter(|outcome| **outcome == Outcome::Accepted).count();
        assert_eq!(accepted, 1000);
    }
    pair.until_empty().await;
    // The remaining tasks wait in accept.
    assert_eq!(
        (pair.client.stack().unwrap().waiting_count(), pair.server.stack().unwrap().waiting_count()),
        (0, 1)
    );
}

#[tokio::test]
async fn a_thousand_plain_connections_on_one_thread() {
    bounded(a_thousand_at_once(false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_plain_connections_on_two_threads() {
    bounded(a_thousand_at_once(false)).await;
}

#[tokio::test]
async fn a_thousand_fast_open_connections_on_one_thread() {
    bounded(a_thousand_at_once(true)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_fast_open_connections_on_two_threads() {
    bounded(a_thousand_at_once(true)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn halves_work_in_different_tasks() {
    bounded(async {
        let pair = Pair::new();
        echo(pair.listen().await, 1);
        let stream = TcpStream::connect(&pair.client, SERVER).await.unwrap();
        let (mut read, mut write) = stream.into_split();
        let writer = tokio::spawn(async move {
            for number in 0..1000u32 {
                write.write_all(&number.to_be_bytes()).await.unwrap();
            }
        });
        for number in 0..1000 {
            assert_eq!(read.read_u32().await.unwrap(), number);
        }
        writer.await.unwrap();
        assert_eq!(read.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(read.as_ref().connection_info().unwrap().bytes_received, 4000);
    })
    .await;
}
