//! `bulk-tun`: one stream to or from the kernel over a TUN device.

use super::{NAGLE, describe};
use crate::bulk::{BLOCK, Receiver, Sender};
use crate::exchange::Application;
use crate::meter::{Meter, now};
use crate::report::{Failure, Line, Outcome};
use crate::tun::{BATCH, Place, TunEnd};
use clap::{ArgAction, Args, ValueEnum};
use core::net::SocketAddr;
use core::time::Duration;
use proto::{Config, ConnId, ConnectOptions, SocketOptions, State};

/// Longest wait for the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that warms up: slow start is over.
const WARM_UP: Duration = Duration::from_millis(100);

/// A one-way stream, the kernel at the other end.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    place: Place,
    /// The kernel's port.
    #[arg(long, default_value_t = 7001)]
    port: u16,
    /// Who sends.
    #[arg(long, value_enum, default_value_t = Direction::Send)]
    dir: Direction,
    /// Virtio headers with segmentation and checksum offload: 0 or 1.
    #[arg(long, default_value = "0", action = ArgAction::Set, value_parser = super::zero_or_one)]
    gso: bool,
    /// The device's MTU, which must be this.
    #[arg(long, default_value_t = 1500)]
    mtu: usize,
    /// Send and receive buffer, bytes.
    #[arg(long, default_value_t = 1 << 20)]
    buf: u32,
    /// Seconds.
    #[arg(long, default_value_t = 2.0, value_parser = super::seconds)]
    secs: f64,
}

/// The sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// We do.
    Send,
    /// The kernel does.
    Recv,
}

/// Runs it.
///
/// # Errors
/// The connection was lost, or the device is not as asked.
pub fn run(options: &Options) -> Outcome {
    let config = Config::default();
    let mut end = TunEnd::open(&options.place, options.gso, &config)?;
    if end.mtu() != options.mtu {
        return Err(format!("the device's MTU is {}", end.mtu()).into());
    }
    let connect = ConnectOptions {
        socket: SocketOptions {
            nodelay: true,
            send_buffer: Some(options.buf),
            recv_buffer: Some(options.buf),
            ..SocketOptions::default()
        },
        ..ConnectOptions::default()
    };
    let peer = SocketAddr::new(options.place.peer, options.port);
    let id = end.stack.connect(now(), peer, connect).map_err(|error| format!("connect: {error:?}"))?;
    establish(&mut end, id)?;
    let figures = match options.dir {
        Direction::Send => {
            let mut sender = Sender::default();
            sender.fill(&mut end.stack, now(), id)?;
            measure(&mut end, id, options, &mut sender, |info| info.bytes_acked)
        }
        Direction::Recv => {
            measure(&mut end, id, options, &mut Receiver::default(), |info| info.bytes_received)
        }
    }?;
    end.stack.abort(now(), id);
    end.step(&mut ())?;
    let dir = if options.dir == Direction::Send { "send" } else { "recv" };
    Ok(figures
        .param("link", "tun")
        .param("dir", dir)
        .param("gso", u8::from(options.gso))
        .param("mtu", options.mtu)
        .param("cores", 1)
        .info("buf", options.buf)
        .info("block", BLOCK)
        .info("batch", BATCH)
        .info("nagle", NAGLE)
        .info("settings", describe(&config)))
}

fn establish(end: &mut TunEnd, id: ConnId) -> Result<(), Failure> {
    let begun = now();
    loop {
        match end.stack.info(id).map(|info| info.state) {
            Some(State::Established) => return Ok(()),
            Some(State::SynSent) if now().since(begun) < CONNECT_TIMEOUT => end.step(&mut ())?,
            other => return Err(format!("no connection: {other:?}").into()),
        }
    }
}

fn measure(
    end: &mut TunEnd,
    id: ConnId,
    options: &Options,
    application: &mut impl Application,
    bytes_of: impl Fn(&proto::ConnectionInfo) -> u64,
) -> Outcome {
    let until = |end: &mut TunEnd, application: &mut _, deadline| {
        while now() < deadline {
            end.step(application)?;
        }
        let info = end.stack.info(id).ok_or("the connection is gone")?;
        if info.state != State::Established {
            return Err(Failure::from(format!("the connection is {:?}", info.state)));
        }
        Ok(info)
    };
    let before = until(end, application, now() + WARM_UP)?;
    let packets = end.packets();
    let meter = Meter::start();
    let after = until(end, application, now() + Duration::from_secs_f64(options.secs))?;
    let spent = meter.spent();
    let bytes = bytes_of(&after) - bytes_of(&before);
    let gigabytes = bytes as f64 / 1e9;
    Ok(Line::new("bulk-tun")
        .figure("bytes", bytes as f64)
        .figure("cpu_s_per_gb", spent.cpu / gigabytes)
        .figure("user_s_per_gb", spent.user / gigabytes)
        .figure("sys_s_per_gb", spent.system / gigabytes)
        .figure("gbit_s", gigabytes * 8.0 / spent.wall)
        .figure("pkts_per_gb", (end.packets() - packets) as f64 / gigabytes)
        .figure("wall_s", spent.wall)
        .info("retransmitted", after.total_retrans - before.total_retrans))
}
