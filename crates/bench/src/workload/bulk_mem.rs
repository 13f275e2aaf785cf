//! `bulk-mem`: one stream between two stacks of this process.

use super::{NAGLE, describe};
use crate::bulk::{BLOCK, Receiver, Sender};
use crate::meter::{Meter, now};
use crate::pair::{BATCH, Pair, SERVER};
use crate::report::{Line, Outcome};
use clap::{ArgAction, Args};
use core::net::SocketAddr;
use core::time::Duration;
use proto::{Config, ConnectOptions, ListenOptions, SocketOptions};

const PORT: u16 = 7001;
/// Bytes that warm up.
const WARM_UP: u64 = 4 << 20;

/// A one-way stream, two hosts in one process.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Largest packet, bytes.
    #[arg(long, default_value_t = 1500)]
    pub mtu: usize,
    /// Stop after this many seconds.
    #[arg(long, default_value_t = 2.0, value_parser = super::seconds)]
    pub secs: f64,
    /// Stop after this many bytes.
    #[arg(long, default_value_t = u64::MAX, value_parser = clap::value_parser!(u64).range(1..))]
    pub bytes: u64,
    /// Compute and verify checksums: 0 or 1.
    #[arg(long, default_value = "1", action = ArgAction::Set, value_parser = super::zero_or_one)]
    pub csum: bool,
}

/// Runs it.
///
/// # Errors
/// A byte or the connection was lost.
pub fn run(options: &Options) -> Outcome {
    let config = Config::default();
    let mut pair = Pair::new(&config, &config, options.mtu, options.csum);
    let address = SocketAddr::new(SERVER, PORT);
    let begun = now();
    let socket = SocketOptions { nodelay: true, ..SocketOptions::default() };
    let listen = ListenOptions { socket: socket.clone(), ..ListenOptions::default() };
    pair.server.stack.listen(begun, address, listen).map_err(|error| format!("listen: {error:?}"))?;
    let connect = ConnectOptions { socket, ..ConnectOptions::default() };
    let connection = pair.client.stack.connect(begun, address, connect);
    let connection = connection.map_err(|error| format!("connect: {error:?}"))?;
    let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
    while receiver.received() < WARM_UP {
        pair.round(now(), &mut sender, &mut receiver)?;
    }
    let (packets, before) = (pair.packets(), receiver.received());
    sender.end_at(before.saturating_add(options.bytes));
    let meter = Meter::start();
    let end = now() + Duration::from_secs_f64(options.secs);
    loop {
        let now = now();
        if now >= end || receiver.received() - before >= options.bytes {
            break;
        }
        pair.round(now, &mut sender, &mut receiver)?;
    }
    let spent = meter.spent();
    let (packets, bytes) = (pair.packets() - packets, receiver.received() - before);
    while receiver.received() < sender.sent() {
        pair.round(now(), &mut (), &mut receiver)?;
    }
    let retransmitted = pair.client.stack.info(connection).ok_or("the connection is gone")?.total_retrans;
    if receiver.received() != sender.sent() || retransmitted != 0 {
        return Err(format!("{} of {} bytes", receiver.received(), sender.sent()).into());
    }
    let gigabytes = bytes as f64 / 1e9;
    Ok(Line::new("bulk-mem")
        .param("link", "mem")
        .param("mtu", options.mtu)
        .param("cores", 1)
        .param("csum", u8::from(options.csum))
        .figure("cpu_s_per_gb", spent.cpu / gigabytes)
        .figure("gbit_s", gigabytes * 8.0 / spent.wall)
        .figure("gbit_per_cpu_s", gigabytes * 8.0 / spent.cpu)
        .figure("pkts_per_gb", packets as f64 / gigabytes)
        .figure("wall_s", spent.wall)
        .info("bytes", bytes)
        .info("block", BLOCK)
        .info("batch", BATCH)
        .info("nagle", NAGLE)
        .info("settings", describe(&config)))
}
