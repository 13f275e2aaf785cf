//! Shutdown after the first signal: connections finish, and the server reports what it waits for.
use super::log::Log;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::stack::{PcapFile, Running};
use std::io;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Time for connections to finish after the signal to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Shutdown time that is not worth a message: peers may delay an ACK that long.
const AT_ONCE: Duration = Duration::from_millis(200);
/// Time between checks of the capture for faults.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time for pending packets to leave after the drain timeout.
const LAST_PACKETS: Duration = Duration::from_millis(50);

/// Serves until a signal arrives, then lets connections finish: all of them, until
/// [`DRAIN_TIMEOUT`], or until a second signal.
pub(super) async fn until_stopped(
    running: &Running,
    mut signals: Signals,
    stop: watch::Sender<bool>,
    mut all_gone: mpsc::Receiver<()>,
    log: &Log,
) -> Result<(), Failure> {
    let net = &running.net;
    let capture = running.own.as_ref().and_then(|own| own.pcap.as_ref());
    loop {
        tokio::select! {
            () = signals.next() => break,
            ended = net.closed() => {
                let why = ended.err().map_or_else(String::new, |error| format!(": {error}"));
                return Err(Failure::failed(format!("the stack has ended{why}")));
            }
            () = tokio::time::sleep(LOOK_EVERY), if capture.is_some() => {
                if let Some(warning) = capture.and_then(PcapFile::warning) {
                    log.warn(&warning);
                }
            }
        }
    }
    stop.send_replace(true);
    let finish = async {
        let begun = Instant::now();
        // Nothing is ever sent: the channel closes with the last task.
        let gone = tokio::time::timeout(DRAIN_TIMEOUT, all_gone.recv()).await;
        net.shutdown_timeout(DRAIN_TIMEOUT.saturating_sub(begun.elapsed()).max(LAST_PACKETS)).await?;
        match gone {
            // The kernel's sockets are closed with the process.
            Err(_) if running.own.is_none() => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    };
    let say = async {
        tokio::time::sleep(AT_ONCE).await;
        // The kernel delivers by itself, after the end of the process.
        let connections = running.own.as_ref().map(|own| own.stack.table_sizes().connections);
        log.stopping(connections, DRAIN_TIMEOUT);
        std::future::pending().await
    };
    let finished = tokio::select! {
        finished = finish => finished,
        finished = say => finished,
        () = signals.next() => net.shutdown_timeout(Duration::ZERO).await,
    };
    match finished {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            log.warn("connections that did not finish in time were reset")
        }
        Err(error) => return Err(Failure::failed(format!("the stack ended with an error: {error}"))),
        Ok(()) => {}
    }
    Ok(())
}
