//! Megabytes through the TUN's offloads: merged segments in, large packets out, and every byte
//! where it belongs.
use crate::kernel_and_ours;

use interop::programs::{PYTHON, ready};
use interop::{IpVersion, KernelPeer};
use proto::Config;
use serde_json::json;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const LEN: usize = 8 << 20;

/// Sent to a kernel server and echoed by it, both at once.
#[test]
fn eight_megabytes_each_way() {
    if !ready(&[PYTHON]) {
        return;
    }
    let (host, ours) = kernel_and_ours(Config::default());
    let mut peer = KernelPeer::new(&host);
    for version in [IpVersion::V4, IpVersion::V6] {
        let address = host.addresses.of(version);
        peer.call(&json!({"do": "echo", "id": version as u8, "host": address, "port": 80, "qlen": 16}));
        let (net, sent) = (ours.net.clone(), pattern());
        let received = ours.run(async move {
            let stream = firstbyte::TcpStream::connect(&net, SocketAddr::new(address, 80))
                .await
                .expect("a connection");
            let (mut reader, mut writer) = stream.into_split();
            let writing = tokio::spawn(async move {
                writer.write_all(&sent).await.expect("all is taken");
                writer.shutdown().await.expect("an end");
            });
            let mut received = Vec::new();
            reader.read_to_end(&mut received).await.expect("all comes back");
            writing.await.expect("the writer ends well");
            received
        });
        let wrong = received.iter().zip(&pattern()).position(|(got, sent)| got != sent);
        assert_eq!((received.len(), wrong), (LEN, None), "{version:?}");
    }
}

/// Bytes that repeat only after more than any segment or merged packet.
fn pattern() -> Vec<u8> {
    (0..LEN as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
