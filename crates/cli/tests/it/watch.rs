//! `firstbyte watch` on a terminal: the terminal is always restored.
use crate::firstbyte;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// The command on its own terminal; killed when dropped.
struct Watched {
    child: Child,
    /// The side of the terminal's user; `None` once it is closed.
    user: Option<File>,
    /// The side of the command.
    terminal: File,
    before: Termios,
    written: Vec<u8>,
}

impl Watched {
    /// Starts it with these variables, and waits until it has drawn its page.
    fn start(variables: &[(&str, &str)]) -> Watched {
        let mut watched = Watched::spawn(variables);
        watched.read_until(b"q quit");
        watched
    }

    fn spawn(variables: &[(&str, &str)]) -> Watched {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&user).unwrap();
        unlockpt(&user).unwrap();
        let name = ptsname(&user, Vec::new()).unwrap().into_string().unwrap();
        let terminal = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let before = tcgetattr(&terminal).unwrap();
        let side = || terminal.try_clone().unwrap();
        let mut command = firstbyte();
        for variable in ["LC_ALL", "LC_CTYPE", "LANG"] {
            command.env_remove(variable);
        }
        command.args(["watch", "--interval", "30s"]).env("TERM", "xterm").envs(variables.iter().copied());
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        Watched { child, user: Some(File::from(user)), terminal, before, written: Vec::new() }
    }

    /// Reads what is written to the terminal until it contains `text`.
    fn read_until(&mut self, text: &[u8]) {
        let user = self.user.as_mut().expect("it is open");
        while !self.written.windows(text.len()).any(|written| written == text) {
            let mut ready = [PollFd::new(user, PollFlags::IN)];
            let timeout = Timespec { tv_sec: 60, tv_nsec: 0 };
            let text = String::from_utf8_lossy(text);
            assert_eq!(poll(&mut ready, Some(&timeout)), Ok(1), "{text} is not written");
            let mut some = [0; 4096];
            let len = user.read(&mut some).unwrap();
            self.written.extend_from_slice(&some[..len]);
        }
    }

    fn end(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not end");
            self.read_for_a_moment();
        }
    }

    /// Reads what is written to the terminal within 5 ms: a full terminal would block the command.
    fn read_for_a_moment(&mut self) {
        let moment = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        let Some(user) = self.user.as_mut() else {
            std::thread::sleep(Duration::from_millis(5));
            return;
        };
        let mut ready = [PollFd::new(user, PollFlags::IN)];
        if poll(&mut ready, Some(&moment)) == Ok(1) {
            let mut some = [0; 4096];
            let len = user.read(&mut some).unwrap_or(0);
            self.written.extend_from_slice(&some[..len]);
        }
    }

    /// Checks that the terminal is as before: normal screen, visible cursor, echo, and input by
    /// lines.
    fn assert_restored(&mut self) {
        self.read_until(b"\x1b[?1049l");
        let last = |sequence: &[u8]| self.written.windows(sequence.len()).rposition(|text| text == sequence);
        assert!(last(b"\x1b[?1049l") > last(b"\x1b[?1049h"));
        let after = tcgetattr(&self.terminal).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(after.output_modes, self.before.output_modes);
        self.read_until(b"\x1b[?25h");
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut watched = Watched::start(&[]);
        assert!(tcgetattr(&watched.terminal).unwrap().local_modes != watched.before.local_modes);
        kill_process(Pid::from_child(&watched.child), signal).unwrap();
        assert_eq!(watched.end().signal(), Some(signal.as_raw()), "its parent sees how it ended");
        watched.assert_restored();
    }
}

#[test]
fn a_closed_terminal_ends_it() {
    let mut watched = Watched::start(&[]);
    watched.user = None;
    assert!(!watched.end().success());
}

#[test]
fn a_terminal_without_unicode_gets_ascii_alone() {
    let plain = Watched::start(&[("LANG", "C")]);
    assert!(plain.written.is_ascii() && plain.written.windows(15).any(|text| text == b"^v Enter detail"));
    let mut full = Watched::spawn(&[("LANG", "C"), ("LC_ALL", "C.UTF-8")]);
    full.read_until("↑↓".as_bytes());
}

#[test]
fn a_dumb_terminal_gets_a_sentence() {
    let mut watched = Watched::spawn(&[("TERM", "dumb")]);
    watched.read_until(b"use `firstbyte doctor --watch` to print lines");
    assert_eq!(watched.end().code(), Some(2));
    assert!(!watched.written.contains(&0x1b), "no escape sequence");
}
