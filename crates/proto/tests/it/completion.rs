//! How long transfers of all sizes take, from the SYN to the last byte read, with our habits and with Linux's, over the same paths with the
//! same seeds. The receiver is the same for both. Ours may not be slower.

use crate::pair::Pair;
use crate::peer::both_profiles;
use proto::*;
use qdisc::{Limit, Link, LinkConfig, Loss, Probability, Reorder};

#[derive(Clone, Copy)]
struct Path {
    bits_per_second: u64,
    rtt_ms: u64,
    /// Of the link's queue, in round trips of its rate.
    queue_percent: u64,
    /// Random loss, each way, percent.
    loss: f64,
    /// Segments that overtake all others, percent.
    overtaking: f64,
    /// Delay that differs from segment to segment, and so their order.
    jitter_ms: u64,
}

const DSL: Path = Path {
    bits_per_second: 10_000_000,
    rtt_ms: 40,
    queue_percent: 400,
    loss: 0.0,
    overtaking: 0.0,
    jitter_ms: 0,
};
const FIBER: Path = Path { bits_per_second: 100_000_000, ..DSL };

const PATHS: [(&str, Path); 8] = [
    ("nothing lost", DSL),
    ("a short queue", Path { queue_percent: 20, ..DSL }),
    ("1 % lost", Path { loss: 1.0, ..FIBER }),
    ("5 % lost", Path { loss: 5.0, ..FIBER }),
    ("10 % lost", Path { loss: 10.0, ..DSL }),
    ("some overtake", Path { overtaking: 2.0, ..DSL }),
    ("out of order", Path { jitter_ms: 4, ..FIBER }),
    ("out of order, 1 % lost", Path { jitter_ms: 4, loss: 1.0, ..FIBER }),
];

const SIZES: [usize; 4] = [1_000, 10_000, 40_000, 200_000];
const SEEDS: u64 = 30;

/// A client that sends, and a server that reads.
struct Transfer {
    pair: Pair,
    id: ConnId,
    listener: ListenerId,
    accepted: Option<ConnId>,
    unwritten: bytes::Bytes,
    read: usize,
}

impl Transfer {
    fn new(path: Path, size: usize, seed: u64, config: &Config) -> Transfer {
        let capabilities = Capabilities { mtu: 1500, gso_max_size: 65_536, tx_checksum: false };
        let mut pair = Pair::with(config.clone(), Config::linux(), 0, capabilities);
        let queue = path.bits_per_second / 8 * path.rtt_ms / 1000 * path.queue_percent / 100;
        let link = LinkConfig::new()
            .rate(path.bits_per_second)
            .delay(path.rtt_ms * 500_000)
            .loss(Loss::Random(Probability::percent(path.loss)));
        let there = link
            .clone()
            .limit(Limit::bytes(queue))
            .reorder(Reorder { probability: Probability::percent(path.overtaking), gap: 1 })
            .jitter_with_reordering(path.jitter_ms * 1_000_000);
        pair.links = Some([Link::new(there, seed), Link::new(link, seed + 1000)]);
        let listener = pair.listen(0);
        let id = pair.connect(ConnectOptions::default());
        Transfer { pair, id, listener, accepted: None, unwritten: vec![0; size].into(), read: 0 }
    }

    /// Milliseconds until the server has read all of it.
    fn run(mut self) -> f64 {
        let (begun, size) = (self.pair.now, self.unwritten.len());
        loop {
            self.applications();
            if self.read == size {
                return self.pair.now.since(begun).as_secs_f64() * 1000.0;
            }
            assert!(self.pair.step(), "something will happen");
        }
    }

    fn applications(&mut self) {
        let Pair { stacks: [client, server], now, .. } = &mut self.pair;
        while !self.unwritten.is_empty() && client.write_bytes(*now, self.id, &mut self.unwritten).is_ok() {
            if self.unwritten.is_empty() {
                client.shutdown(*now, self.id).unwrap();
            }
        }
        self.accepted = self.accepted.or_else(|| Some(server.accept(*now, self.listener).ok()?.0));
        let mut buffer = [0; 1 << 16];
        while let Some(id) = self.accepted
            && let Ok(n @ 1..) = server.read(*now, id, &mut buffer)
        {
            self.read += n;
        }
    }
}

/// Mean and 95th percentile, ms.
fn times(path: Path, size: usize, config: &Config) -> (f64, f64) {
    let mut times: Vec<f64> = (1..=SEEDS).map(|seed| Transfer::new(path, size, seed, config).run()).collect();
    times.sort_by(f64::total_cmp);
    (times.iter().sum::<f64>() / SEEDS as f64, times[SEEDS as usize * 95 / 100])
}

/// Nearly every acknowledgement of such a path tells of a hole; a window that grew only by those which tell of none takes 269 ms.
#[test]
fn a_path_that_reorders_lets_the_window_grow() {
    let path = Path { jitter_ms: 4, ..FIBER };
    for config in both_profiles() {
        let (mean, _) = times(path, 200_000, &config);
        assert!(mean < 230.0, "{mean} ms");
    }
}

#[test]
fn none_is_slower_than_with_linux_habits() {
    let mut slower = Vec::new();
    for (name, path) in PATHS {
        for size in SIZES {
            let (linux, ours) = (times(path, size, &Config::linux()), times(path, size, &Config::default()));
            let row = format!(
                "{name:22} {size:6}: Linux {:7.1} {:7.1}, ours {:7.1} {:7.1} ms",
                linux.0, linux.1, ours.0, ours.1
            );
            println!("{row}");
            if ours.0 > linux.0 * 1.04 || ours.1 > linux.1 * 1.1 {
                slower.push(row);
            }
        }
    }
    assert!(slower.is_empty(), "mean and 95th percentile of {SEEDS} transfers:\n{}", slower.join("\n"));
}
