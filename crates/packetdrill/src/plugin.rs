//! The process that scripts see: a stack with Linux's profile, its sockets, its clock, its settings
//! and counters in files.

use crate::commands::Notes;
use crate::flags::Flags;
use crate::give_up;
use posix::c::Process;
use posix::sysctl::{SysctlTree, counter_files};
use posix::tools::{NetworkCommand, RouteVerb};
use posix::{Errno, Sockets, Stop, VirtualProcess, scripted};
use proto::{Counters, Instant, Stack};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Most time that passes while packetdrill waits for one packet.
pub(crate) const PACKET_WAIT: Duration = Duration::from_secs(200);

/// What packetdrill's userdata points to.
#[derive(Debug)]
pub(crate) struct Plugin {
    pub(crate) process: VirtualProcess,
    files: Mutex<Files>,
}

#[derive(Debug)]
struct Files {
    tree: Option<SysctlTree>,
    netstat: Option<PathBuf>,
    snmp: Option<PathBuf>,
    written: Option<Counters>,
    notes: Option<Notes>,
}

impl Plugin {
    pub(crate) fn new(flags: &Flags) -> Plugin {
        let stack = scripted::stack(flags.local, flags.mtu, flags.seed);
        let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let files = Files {
            tree: path("PD_SYSCTL_DIR").map(|root| SysctlTree::new(&root, &stack)),
            netstat: path("PROC_NET_NETSTAT"),
            snmp: path("PROC_NET_SNMP"),
            written: None,
            notes: Notes::prepare(),
        };
        let process = VirtualProcess::new(Sockets::new(stack, scripted::FD_BASE), scripted::start());
        let plugin = Plugin { process, files: Mutex::new(files) };
        plugin.exchange_files();
        plugin
    }

    /// Takes settings that have changed, and shows counters that have.
    pub(crate) fn exchange_files(&self) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let commands = files.notes.as_ref().map(Notes::take).unwrap_or_default();
        for command in &commands {
            if let NetworkCommand::Queue { admits } = command {
                self.process.set_admission(*admits);
            }
        }
        self.process.call(|sockets, now| {
            if let Some(tree) = &mut files.tree {
                tree.refresh(now, sockets);
            }
            for command in &commands {
                // Which routes packetdrill has made is not told.
                match (command.apply(sockets, now, |_| true), command) {
                    (Ok(()), _) => {}
                    // Scripts say `|| true` where there may be nothing to remove.
                    (
                        Err(problem),
                        NetworkCommand::Route(RouteVerb::Delete, ..) | NetworkCommand::ForgetPath(_),
                    ) => eprintln!("libfirstbyte_packetdrill: {problem}"),
                    // Our `ip` has said already that all is well.
                    (Err(problem), _) => give_up(&problem),
                }
            }
            files.show(sockets.stack());
        });
    }
}

impl Files {
    fn show(&mut self, stack: &Stack) {
        let shown = self.netstat.is_some() || self.snmp.is_some();
        if !shown || self.written.as_ref() == Some(stack.counters()) {
            return;
        }
        self.written = Some(stack.counters().clone());
        let (netstat, snmp) = counter_files(stack);
        for (path, text) in [(&self.netstat, netstat), (&self.snmp, snmp)] {
            if let Some(path) = path
                && let Err(error) = std::fs::write(path, text)
            {
                eprintln!("libfirstbyte_packetdrill: {}: {error}", path.display());
            }
        }
    }
}

impl Process for Plugin {
    fn call<R>(&self, call: impl FnOnce(&mut Sockets, Instant) -> R) -> R {
        self.exchange_files();
        let result = self.process.call(call);
        self.exchange_files();
        result
    }

    fn wait<R>(&self, attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>) -> Result<R, Errno> {
        self.exchange_files();
        let result = self.process.wait(attempt);
        self.exchange_files();
        result
    }
}
