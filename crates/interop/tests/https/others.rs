//! The page with the programs that people use today, over the path of the other tests.
use crate::rtt;
use crate::side::{Side, certified, serve};
use bytes::Bytes;
use firstbyte::tls::rustls::{ClientConfig, RootCertStore, crypto};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use interop::Wire;
use interop::programs::{CURL, curl, ready};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Prints the median of `times`, in milliseconds and in round trips. Asserts that it was more than
/// `round_trips` less a half.
fn report(what: &str, times: &mut [Duration], round_trips: u32) {
    times.sort();
    let median = times[times.len() / 2];
    let in_round_trips = median.as_secs_f64() / rtt().as_secs_f64();
    println!(
        "{what}: first byte after {:.1} ms, {in_round_trips:.1} round trips",
        median.as_secs_f64() * 1e3
    );
    assert!(median > rtt() * round_trips - rtt() / 2, "{what} is faster than the documentation says");
}

fn config() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certified().2.clone()).expect("a certificate");
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.enable_early_data = true;
    config
}

/// One visit with hyper-util's client and hyper-rustls, on a connection of its own.
async fn visit(config: &ClientConfig) -> Duration {
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config.clone())
        .https_only()
        .enable_all_versions()
        .build();
    let client = Client::builder(TokioExecutor::new()).build::<_, Empty<Bytes>>(connector);
    let begun = Instant::now();
    let url = "https://10.77.0.2/".parse().expect("an address");
    let response = client.get(url).await.expect("an answer");
    let first_byte = begun.elapsed();
    response.into_body().collect().await.expect("a page");
    first_byte
}

#[test]
fn hyper_rustls_takes_three_round_trips_and_more() {
    if !ready(&[]) {
        return;
    }
    let (client, server) = (Side::kernel(1), Side::kernel(2));
    let _wire = Wire::new(client.end(), server.end(), rtt() / 2);
    serve(&server);
    let mut times: Vec<_> = client.run(async {
        let config = config();
        let mut times = Vec::new();
        for _ in 0..5 {
            times.push(visit(&config).await);
            tokio::time::sleep(rtt() * 2).await;
        }
        times
    });
    report("hyper-rustls, first visit", &mut times[..1], 3);
    report("hyper-rustls, repeat visits", &mut times[1..], 3);
}

#[test]
fn curl_takes_three_round_trips() {
    if !ready(&[CURL]) {
        return;
    }
    let (client, server) = (Side::kernel(1), Side::kernel(2));
    let _wire = Wire::new(client.end(), server.end(), rtt() / 2);
    serve(&server);
    let form = "%{time_starttransfer}\n";
    let mut arguments = vec!["--insecure", "--http1.1", "-H", "Connection: close", "-w", form];
    for _ in 0..5 {
        arguments.extend(["-o", "/dev/null", "https://10.77.0.2/"]);
    }
    let printed = curl(client.host(), &arguments);
    let mut times: Vec<_> =
        printed.lines().filter_map(|line| line.trim().parse().ok().map(Duration::from_secs_f64)).collect();
    assert_eq!(times.len(), 5, "{printed}");
    report("curl, new session", &mut times[..1], 3);
    report("curl, resumed", &mut times[1..], 3);
}
