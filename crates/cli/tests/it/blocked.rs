//! `firstbyte serve` while a file or device that it uses does not respond.
use crate::hostile::{ask, connect, rest};
use crate::{Server, firstbyte, run};
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn get(path: &str) -> String {
    let mut stream = connect();
    ask(&mut stream, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    rest(&mut stream)
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("firstbyte-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A pipe holds 64 KiB and the queue before it 1 MiB; these requests make 4 MB of log.
#[test]
fn a_log_that_nobody_reads_stops_nobody() {
    testnet::in_namespace(|| {
        let folder = Folder::new("unread");
        let control = folder.path("control");
        let mut server = Server::start(&["--control", &control]);
        let path = format!("/{}", "x".repeat(8000));
        for _ in 0..500 {
            assert!(get(&path).starts_with("HTTP/1.1 200 "));
        }
        assert!(crate::stdout(&run(&["ss", "--summary", "--control", &control])).contains("LISTEN"));
        // Starts reading: the log continues, and says how much is missing.
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line: &serde_json::Value| line["event"] != "dropped") {
            lines.push(server.next_line());
        }
        let dropped = lines.last().unwrap()["lines"].as_u64().unwrap();
        assert!(lines.len() > 100 && dropped > 100, "{} and {dropped}", lines.len());
        assert_eq!(lines.len() as u64 - 1 + dropped, 500);
        let (code, lines) = server.stop();
        assert_eq!(code, Some(0));
        assert_eq!(lines.last().unwrap()["lines_dropped"], dropped);
        assert_eq!(lines.last().unwrap()["requests"], 500);
    });
}

#[test]
fn a_log_that_nobody_reads_does_not_keep_the_server_from_ending() {
    testnet::in_namespace(|| {
        let mut server = Server::start(&[]);
        let path = format!("/{}", "x".repeat(8000));
        for _ in 0..30 {
            assert!(get(&path).starts_with("HTTP/1.1 200 "));
        }
        let begun = Instant::now();
        server.send(rustix::process::Signal::TERM);
        assert_eq!(server.wait(), Some(0));
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    });
}

/// A file system whose program never answers, like a network file system whose server is gone. More
/// requests hang in it than one lane has helper threads.
#[test]
fn a_file_system_that_hangs_stops_nobody_else() {
    if crate::skipped_without("unshare") || crate::skipped_without("mount") {
        return;
    }
    if !std::fs::metadata("/dev/fuse").is_ok_and(|metadata| metadata.file_type().is_char_device()) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs /dev/fuse");
        return;
    }
    testnet::in_namespace(|| {
        let folder = Folder::new("hung");
        let hung = folder.path("hung");
        std::fs::create_dir_all(&hung).unwrap();
        std::fs::write(folder.path("small"), "small").unwrap();
        std::fs::write(folder.path("large"), vec![b'x'; 1 << 20]).unwrap();
        let control = folder.path("control");
        let mount = "exec 9<>/dev/fuse && \
                     mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 hung \"$1\" && shift && exec \"$@\"";
        let mut command = testnet::command("unshare");
        command.args(["--mount", "sh", "-c", mount, "sh", &hung]).arg(firstbyte().get_program());
        let server = Server::start_by(
            command,
            &["--root", &folder.path(""), "--control", &control, "--timeout", "4s", "--quiet"],
        );
        let mut hanging: Vec<_> = (0..100)
            .map(|number| {
                let mut stream = connect();
                ask(
                    &mut stream,
                    &format!("GET /hung/{number} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                );
                stream
            })
            .collect();
        assert!(get("/small").ends_with("\r\n\r\nsmall"));
        assert!(get("/large").len() > 1 << 20);
        assert!(crate::stdout(&run(&["ss", "--summary", "--control", &control])).contains("LISTEN"));
        for stream in &mut hanging {
            let said = rest(stream);
            assert!(said.starts_with("HTTP/1.1 503 "), "{said}");
        }
        // One more that hangs while the server ends.
        ask(&mut connect(), "GET /hung/last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert_eq!(server.stop().0, Some(0));
    });
}

/// A pipe without a reader holds 64 KiB, like a stopped terminal multiplexer.
#[test]
fn a_capture_that_nobody_reads_stops_nobody() {
    testnet::in_namespace(|| {
        let folder = Folder::new("capture");
        let fifo = folder.path("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        // Opened for both directions, so that opening does not wait.
        let unread = std::fs::File::options().read(true).write(true).open(&fifo).unwrap();
        let server = Server::start(&["--pcap", &fifo, "--quiet"]);
        let path = format!("/{}", "x".repeat(8000));
        for _ in 0..100 {
            assert!(get(&path).starts_with("HTTP/1.1 200 "));
        }
        // Waits 10 s, because the last packets might still be accepted.
        assert_eq!(server.stop().0, Some(1));
        drop(unread);
    });
}
