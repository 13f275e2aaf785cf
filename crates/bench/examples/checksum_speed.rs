//! Checksum throughput beside memcpy, in GB/s: `cargo run --profile dist -p firstbyte-bench
//! --example checksum_speed`.
//!
//! Each figure is the best of several rounds, on data that stays in the cache: what a stack sees
//! just after the application's write.
use std::hint::black_box;
use std::time::{Duration, Instant};
use wire::Checksum;

const ROUNDS: usize = 15;
const BYTES_PER_ROUND: usize = 256 << 20;

fn main() {
    println!("{:>8} {:>10} {:>10} {:>14}   GB/s", "bytes", "memcpy", "checksum", "copy+checksum");
    for len in [20, 60, 536, 1460, 16 << 10, 64 << 10] {
        let src: Vec<u8> = (0..len).map(|i| (i * 31) as u8).collect();
        let mut dst = vec![0; len];
        let memcpy = gigabytes_per_second(len, || black_box(&mut dst[..]).copy_from_slice(black_box(&src)));
        let add = gigabytes_per_second(len, || {
            let mut sum = Checksum::new();
            sum.add(black_box(&src));
            black_box(sum.finish());
        });
        let fused = gigabytes_per_second(len, || {
            let mut sum = Checksum::new();
            sum.copy_and_add(black_box(&mut dst), black_box(&src));
            black_box(sum.finish());
        });
        println!("{len:>8} {memcpy:>10.1} {add:>10.1} {fused:>14.1}");
    }
}

fn gigabytes_per_second(len: usize, mut work: impl FnMut()) -> f64 {
    let count = BYTES_PER_ROUND / len / 16;
    let mut round = || {
        let start = Instant::now();
        (0..count).for_each(|_| work());
        start.elapsed()
    };
    let best = (0..ROUNDS).map(|_| round()).min().unwrap_or(Duration::MAX);
    (count * len) as f64 / best.as_secs_f64() / 1e9
}
