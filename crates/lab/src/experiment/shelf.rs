//! The built-in scenario files: the files of `scenarios`, in the order worth reading.

/// A built-in scenario file.
#[derive(Clone, Copy, Debug)]
pub struct Shelved {
    /// Its name on the command line.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

macro_rules! shelf {
    ($($name:literal),+ $(,)?) => {
        [$(Shelved { name: $name, text: include_str!(concat!("../../scenarios/", $name, ".toml")) }),+]
    };
}

/// All built-in scenario files.
pub const SHELF: &[Shelved] = &shelf![
    "round-trips",
    "local-network",
    "key-change",
    "alternating-nat",
    "server-pool",
    "syn-data-dropped",
    "break-even",
    "long-request",
    "fast-open-queue",
    "first-byte-of-https",
    "window-scaling",
    "receive-buffer",
    "zero-window",
    "syn-proxy",
    "sliding-window",
    "send-buffer",
    "memory",
    "initial-window",
    "cached-ssthresh",
    "ack-thinning",
    "loss-and-rtt",
    "tail-loss",
    "fast-retransmit",
    "idle-restart",
    "fairness",
    "accept-queue",
    "syn-queue",
    "syn-retries",
    "syn-ack-retries",
    "close-wait",
    "orphan-black-hole",
    "orphan-closed-window",
    "orphans",
    "waiting-for-fin",
    "time-wait",
    "ports",
    "acknowledged",
    "bufferbloat",
    "beside-a-download",
    "large-packets",
    "crowd",
    "byte-queue-limits",
    "small-queues",
    "queue-length",
    "burst",
    "atm",
    "tc-verbs",
    "queues-and-flows",
    "offloads",
    "input-backlog",
    "black-hole",
    "segmentation",
    "bonding",
    "dual-homed",
    "forgetful-firewall",
    "nagle",
];
