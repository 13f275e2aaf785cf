//! Signals that ask a command to end: from a user, a service manager, or a closed terminal.
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, SIGTERM, and SIGHUP unless it was ignored at the start, as under nohup(1).
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    /// Installs the handlers. Needs a tokio runtime.
    pub(crate) fn install() -> io::Result<Signals> {
        let hangup = if is_hangup_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup,
        })
    }

    /// Waits for a signal.
    pub(crate) async fn next(&mut self) {
        let Signals { interrupt, terminate, hangup } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => _ = hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = hung_up => {}
        }
    }
}

/// True if SIGHUP was ignored at the start.
pub(crate) fn is_hangup_ignored() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores_hangup(&status))
}

/// Reads the mask of ignored signals of proc_pid_status(5); its lowest bit is SIGHUP.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_known_by_the_ignored_signals() {
        assert!(ignores_hangup("Name:\tx\nSigBlk:\t0\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"));
        assert!(!ignores_hangup("SigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n"));
        assert!(!ignores_hangup(""));
    }
}
