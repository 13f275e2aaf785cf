//! Files that verbs write are replaced whole or not at all, whatever happens to the process or the
//! disk.
use crate::{firstbyte, run};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Content of the file before the verb runs.
const OLD: &[u8] = b"what was here before";

/// Kills of each verb, spread over its run time.
const KILLS: u32 = 12;

/// Size of the disk, bytes: less than any document.
const DISK: u64 = 1024;

/// Verbs that need neither root nor a network, with `FILE` for each output file.
const VERBS: &[&str] = &[
    "lab qlen --pcap FILE",
    "lab qlen --pcap-server FILE",
    "lab congestion --size 200 --csv FILE",
    "lab qlen --html FILE",
    "lab qlen --svg FILE",
    "lab sweep round-trips --repeat 60 --csv FILE",
    "lab sweep round-trips --repeat 60 --parquet FILE",
    "pcap CAPTURE --html FILE",
    "doctor --since-boot --record FILE",
    "doctor --interval 100ms --html FILE",
    "script SCRIPT --pcap FILE",
];

/// Returns the arguments of a verb, with its inputs created and its output file inserted.
fn words(verb: &str, folder: &Path, file: &Path) -> Vec<String> {
    let capture = folder.join("input.pcapng");
    if verb.contains("CAPTURE") && !capture.exists() {
        let made = run(&["lab", "qlen", "--pcap", capture.to_str().unwrap()]);
        assert!(made.status.success(), "{made:?}");
    }
    let script = folder.join("input.pkt");
    if verb.contains("SCRIPT") && !script.exists() {
        // A hundred requests, so that the capture is longer than the disk.
        let mut text = String::from(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
             +0 < S 0:0(0) win 32792 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n+.1 < . 1:1(0) ack 1 win 257\n+0 accept(3, ..., ...) = 4\n",
        );
        for at in 0..100 {
            let begin = 1 + at * 100;
            text +=
                &format!("+.1 < P. {begin}:{}(100) ack 1 win 257\n+0 read(4, ..., 100) = 100\n", begin + 100);
        }
        fs::write(&script, text).unwrap();
    }
    verb.split(' ')
        .map(|word| match word {
            "FILE" => file.display().to_string(),
            "CAPTURE" => capture.display().to_string(),
            "SCRIPT" => script.display().to_string(),
            word => word.to_owned(),
        })
        .collect()
}

/// Returns the names in a folder that are neither inputs nor `out`.
fn left_behind(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with("input.") && name != "out").collect()
}

/// True if the bytes are a whole document of this verb, with its beginning and end.
fn is_whole(verb: &str, bytes: &[u8]) -> bool {
    let is = |begin: &[u8], end: &[u8]| bytes.starts_with(begin) && bytes.trim_ascii_end().ends_with(end);
    match verb {
        _ if verb.contains("--html") => is(b"<!", b"</html>"),
        _ if verb.contains("--svg") => is(b"<", b"</svg>"),
        _ if verb.contains("--parquet") => is(b"PAR1", b"PAR1"),
        _ if verb.contains("--csv") => bytes.len() > 100 && bytes.ends_with(b"\n"),
        _ if verb.contains("--record") => is(b"{", b"}"),
        _ => are_blocks(bytes),
    }
}

/// True if the bytes are whole blocks of pcapng, one after another.
fn are_blocks(mut bytes: &[u8]) -> bool {
    let mut blocks = 0;
    // The byte-order magic of the section header, in network order.
    let is_big = bytes.get(8..12) == Some(&[0x1a, 0x2b, 0x3c, 0x4d]);
    while let [_, _, _, _, a, b, c, d, ..] = *bytes {
        let len = if is_big { u32::from_be_bytes([a, b, c, d]) } else { u32::from_le_bytes([a, b, c, d]) };
        let Some(rest) = bytes.get(len.max(12) as usize..) else { return false };
        (bytes, blocks) = (rest, blocks + 1);
    }
    bytes.is_empty() && blocks > 2
}

#[test]
fn a_killed_verb_leaves_the_old_file_or_the_new_one() {
    for verb in VERBS {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let words = words(verb, folder.path(), &out);
        let begun = Instant::now();
        let output = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let took = begun.elapsed();
        let new = fs::read(&out).unwrap_or_else(|_| panic!("{verb}: {output:?}"));
        assert!(is_whole(verb, &new), "{verb}: {output:?}");
        for kill in 1..=KILLS {
            fs::write(&out, OLD).unwrap();
            let mut child =
                firstbyte().args(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // Files are written in the last tenths of a run.
            let after = took.mul_f64(0.6 + 0.5 * f64::from(kill) / f64::from(KILLS));
            std::thread::sleep(after);
            let _ = child.kill();
            let _ = child.wait();
            let found = fs::read(&out).unwrap();
            assert!(
                found == OLD || is_whole(verb, &found),
                "{verb}: killed after {after:?}: {} bytes, torn",
                found.len()
            );
        }
    }
}

#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_beside_it() {
    for verb in VERBS {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        fs::write(&out, OLD).unwrap();
        let words = words(verb, folder.path(), &out);
        // A limit of the file size stands for the disk: it needs no root (RLIMIT_FSIZE,
        // setrlimit(2)).
        let limited = "trap '' XFSZ; ulimit -f $1; shift; exec \"$@\"";
        let mut command = Command::new("bash");
        command.args(["-c", limited, "bash", &(DISK / 1024).to_string(), env!("CARGO_BIN_EXE_firstbyte")]);
        let output = command.args(&words).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("cannot write") && said.contains("File too large"), "{verb}: {output:?}");
        assert_ne!(output.status.code(), Some(0), "{verb}");
        assert_eq!(fs::read(&out).unwrap(), OLD, "{verb}");
        assert_eq!(left_behind(folder.path()), [""; 0], "{verb}");
    }
}

#[test]
fn a_link_is_replaced_and_its_target_left() {
    let folder = tempfile::tempdir().unwrap();
    let (victim, link) = (folder.path().join("victim"), folder.path().join("link"));
    fs::write(&victim, OLD).unwrap();
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    let output = run(&["doctor", "--since-boot", "--record", link.to_str().unwrap()]);
    assert!(output.status.code().is_some_and(|code| code < 3), "{output:?}");
    assert_eq!(fs::read(&victim).unwrap(), OLD);
    assert!(is_whole("--record", &fs::read(&link).unwrap()));
}

#[test]
fn standard_output_can_be_named_as_a_file() {
    let output = run(&["lab", "qlen", "--svg", "/dev/stdout"]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.windows(6).any(|text| text == b"</svg>"), "{output:?}");
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink(), "it is not replaced");
}
