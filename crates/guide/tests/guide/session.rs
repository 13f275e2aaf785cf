//! Shells that run a page's commands: as an ordinary user or as root, in the page's own folder.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{PipeReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// `nobody`, as Debian numbers it.
const ORDINARY: &str = "65534";
/// A command that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// A program in the background must be ready within this time.
const UNTIL_READY: Duration = Duration::from_secs(60);
/// A program in the background must end within this time after SIGINT.
const UNTIL_ENDED: Duration = Duration::from_secs(10);
/// Begins the line with the exit code; no command prints it.
const MARK: char = '\u{1e}';

/// A process group whose output is read; killed with this value.
pub(crate) struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    /// Output since the last command.
    text: Vec<u8>,
}

/// Folders and rights of the commands.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Where commands run.
    pub(crate) folder: &'a Path,
    /// Contains `firstbyte`.
    pub(crate) programs: &'a Path,
    pub(crate) is_root: bool,
}

impl Session {
    /// Starts a shell that waits for commands.
    pub(crate) fn shell(place: Place) -> Session {
        Session::start(place, &["bash", "--noprofile", "--norc"], true)
    }

    /// Starts a program in the background and waits until `is_ready` accepts its output.
    pub(crate) fn background(
        place: Place,
        command: &str,
        is_ready: impl Fn(&str) -> bool,
    ) -> Result<Session, String> {
        let mut session = Session::start(place, &["bash", "--noprofile", "--norc", "-c", command], false);
        let begun = Instant::now();
        while !is_ready(&session.text()) {
            let is_over = matches!(session.child.try_wait(), Ok(Some(_)));
            if is_over || begun.elapsed() > UNTIL_READY {
                session.drain();
                // It may have printed the last line and ended.
                if is_ready(&session.text()) {
                    break;
                }
                return Err(session.text());
            }
            session.wait(Duration::from_millis(20));
        }
        Ok(session)
    }

    fn start(place: Place, words: &[&str], takes_commands: bool) -> Session {
        let is_other_user = rustix::process::geteuid().is_root() && !place.is_root;
        let mut all: Vec<&str> = Vec::new();
        if is_other_user {
            all.extend(["setpriv", "--reuid", ORDINARY, "--regid", ORDINARY, "--clear-groups", "--"]);
        }
        all.extend(words);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let path = format!(
            "{}:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
            place.programs.display()
        );
        let mut command = Command::new(all[0]);
        command
            .args(&all[1..])
            .current_dir(place.folder)
            .env_clear()
            .envs([("PATH", path.as_str()), ("LC_ALL", "C.UTF-8"), ("TZ", "UTC"), ("NO_COLOR", "1")])
            .env("HOME", place.folder)
            .stdin(if takes_commands { Stdio::piped() } else { Stdio::null() })
            .stdout(writer.try_clone().expect("a descriptor"))
            .stderr(writer)
            .process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{all:?}: {error}"));
        // The descriptors of the pipe's other end live in the command.
        drop(command);
        let stdin = child.stdin.take();
        Session { child, stdin, output: read(reader), text: Vec::new() }
    }

    /// Runs a command of the shell; its output and exit code.
    pub(crate) fn run(&mut self, command: &str) -> Result<(String, i32), String> {
        self.text.clear();
        let quoted = command.replace('\'', r"'\''");
        let line = format!("eval '{quoted}' </dev/null\nprintf '{MARK}%d\\n' $?\n");
        let stdin = self.stdin.as_mut().expect("a shell");
        stdin.write_all(line.as_bytes()).map_err(|error| format!("the shell has ended: {error}"))?;
        let begun = Instant::now();
        loop {
            let text = self.text();
            if let Some((output, status)) = text.split_once(MARK)
                && let Some(status) = status.strip_suffix('\n')
            {
                let status = status.parse().map_err(|_| format!("exit code `{status}`"))?;
                return Ok((output.to_owned(), status));
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("did not end within {} s; printed:\n{text}", PATIENCE.as_secs()));
            }
            if !self.wait(Duration::from_millis(500)) {
                return Err(format!("the shell has ended; printed:\n{text}"));
            }
        }
    }

    /// Waits for more output; `false` if there cannot be any.
    fn wait(&mut self, most: Duration) -> bool {
        match self.output.recv_timeout(most) {
            Ok(more) => self.text.extend(more),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(most.min(Duration::from_millis(20)));
                return false;
            }
        }
        true
    }

    fn drain(&mut self) {
        while let Ok(more) = self.output.recv_timeout(Duration::from_millis(200)) {
            self.text.extend(more);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// Presses Ctrl-C and waits for the end.
    pub(crate) fn interrupt(mut self) -> Result<(), String> {
        self.signal(Signal::INT);
        let begun = Instant::now();
        while !matches!(self.child.try_wait(), Ok(Some(_))) {
            if begun.elapsed() > UNTIL_ENDED {
                return Err("a background program ignores SIGINT".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        // The group may have ended.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Reads in a thread, which ends with the last process that holds the pipe.
fn read(mut reader: PipeReader) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(len @ 1..) = reader.read(&mut bytes) {
            if sender.send(bytes[..len].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}
