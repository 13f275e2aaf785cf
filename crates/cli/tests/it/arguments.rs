//! Help texts, and errors for wrong arguments.
use crate::{run, stderr, stdout};
use std::path::Path;

/// Compares help texts with files. `BLESS=1 cargo test` rewrites the files.
#[test]
fn help_is_as_it_was() {
    for (name, arguments) in [
        ("help", &["--help"][..]),
        ("serve", &["serve", "--help"][..]),
        ("get", &["get", "--help"][..]),
        ("metrics", &["metrics", "--help"][..]),
        ("bdp", &["bdp", "--help"][..]),
        ("script", &["script", "--help"][..]),
        ("doctor", &["doctor", "--help"][..]),
        ("explain", &["explain", "--help"][..]),
        ("watch", &["watch", "--help"][..]),
        ("key", &["key", "--help"][..]),
        ("fleet", &["fleet", "--help"][..]),
        ("fleet-agent", &["fleet", "agent", "--help"][..]),
        ("fleet-rotate", &["fleet", "rotate", "--help"][..]),
        ("ss", &["ss", "--help"][..]),
        ("nstat", &["nstat", "--help"][..]),
        ("sysctl", &["sysctl", "--help"][..]),
        ("tc", &["tc", "--help"][..]),
        ("route", &["route", "--help"][..]),
        ("route-set", &["route", "set", "--help"][..]),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/golden/{name}.txt"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, stdout(&output)).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap();
        assert_eq!(stdout(&output), golden, "{}", path.display());
        assert!(!golden.contains('\x1b') && golden.contains("firstbyte"));
    }
}

#[test]
fn wrong_arguments_are_answered_with_right_ones() {
    let cases: &[(&[&str], &str)] = &[
        (
            &["get", "http://a/", "--backend", "kernel", "--explain"],
            "cannot use --explain with --backend kernel",
        ),
        (
            &["get", "http://a/", "--backend", "kernel", "--tun", "x"],
            "cannot use --tun with --backend kernel",
        ),
        (
            &["get", "http://a/", "--backend", "kernel", "--list-settings"],
            "remove --list-settings, or use --backend stack",
        ),
        (&["get", "http://a/", "--backend", "linux"], "[possible values: kernel, stack]"),
        (&["get", "http://a/", "--continue"], "--output <FILE>"),
        (&["get", "http://a/", "--continue", "-o", "-"], "cannot use --continue with -o -: choose a FILE"),
        (&["get", "http://a/", "-I", "-d", "x"], "cannot be used with"),
        (&["get", "http://a/", "-I", "--json"], "--head needs the page, which --json and --explain omit"),
        (&["get", "http://a/", "--max-redirs", "3"], "--location"),
        (&["get", "http://a/", "-d", "x", "--data-less"], "cannot use --data-less for this POST"),
        (
            &["serve", "--backend", "kernel", "--address", "10.77.0.2/24"],
            "cannot use --address with --backend kernel",
        ),
        (
            &["serve", "--backend", "kernel", "--synack-hold", "1ms"],
            "cannot use --synack-hold with --backend kernel",
        ),
        (&["serve", "--bind", "127.0.0.1"], "use --address, or --backend kernel"),
        (&["serve", "--keep-alive", "--no-keep-alive"], "cannot be used with"),
        (&["lab", "fast-open", "--rtt", "-5ms"], "expected a round trip from 1us to 60s, such as 170ms"),
        (&["lab", "fast-open", "--count", "x"], "expected a whole number from 1 to 10000"),
        (&["lab", "fast-open", "--count", "-3"], "expected a whole number from 1 to 10000"),
        (&["lab", "packets", "--seed", "-1"], "expected a whole number, such as 1"),
        (&["lab", "round-trips", "--qdisc", "pfifo"], "neither its path nor a card has a rate"),
        (&["lab", "bufferbloat", "--qdisc", "fifi"], "Specified qdisc kind is unknown"),
        (&["ss", "--trace"], "add --stack or --control PATH"),
        (&["ss", "--trace", "--stack", "--port", "80"], "'--trace' cannot be used with '--port <PORT>'"),
        (&["ss", "--trace", "--stack", "-o"], "'--trace' cannot be used with '--options'"),
        (&["ss", "--trace", "--stack", "--limits"], "'--trace' cannot be used with '--limits'"),
        (&["ss", "-tulpn"], "for UDP use ss -u"),
        (&["ss", "-tp", "--stack"], "--processes only works for the kernel's sockets"),
        (&["fleet"], "NAME[:PORT]|FILE"),
        (&["fleet", "status", "web"], "--store"),
        (&["fleet", "status", "a/b", "--store", "http://[::1]"], "letters, digits, dots"),
        (&["fleet", "rotate", "web", "--store", "etcd:2379"], "http://HOST:2379 or https"),
        (&["fleet", "rotate", "web", "--store", "http://127.0.0.1:99999"], "http://HOST:2379 or https"),
        (&["fleet", "rotate", "web", "--store", "http://192.0.2.1"], "or allow it with --plaintext"),
        (&["fleet", "agent", "web", "--store", "https://192.0.2.1"], "https needs --cacert"),
        (
            &["key", "check", "x", "--client", "::1", "--server", "10.0.0.1", "--cookie", "0"],
            "8 to 32 hexadecimal digits",
        ),
        (&["fleet", "http://a/b"], "not a path"),
        (&["watch"], "watch needs a terminal; use `firstbyte doctor --watch` to print lines"),
        (&["watch", "--replay", "x", "--record", "y"], "cannot be used with"),
        (&["explain", "http://a/b"], "not a path"),
        (&["explain", "a", "--tun", "x"], "--address"),
        (&["explain", "a", "--request", "\\x"], "expected r, n or"),
        (&["sysctl", "-w", "a=1"], "the kernel's settings cannot be changed here"),
        (
            &["sysctl", "--stack", "-w", "net.ipv4.tcp_fastopen_key=00010203-04050607-08090a0b-0c0d0e0f"],
            "-w net.ipv4.tcp_fastopen_key would show the key to every user in the list of processes; write it to a file of mode \
             0600 and give --key-file FILE",
        ),
        (&["sysctl", "-w", "net/ipv4/tcp_fastopen_key=secret"], "give --key-file FILE"),
        (&["sysctl", "--key-file", "keys"], "the kernel's key cannot be changed here"),
        (&["metrics", "delete", "10.0.0.1"], "choose what to change: a FILE of --cache before the peer"),
        (&["metrics", "flush"], "choose what to change"),
        (&["metrics", "show", "x", "--control", "y"], "cannot be used with"),
        (&["metrics", "show", "x", "--kernel"], "cannot be used with"),
        (&["nstat", "--interval", "0s"], "invalid value '0s'"),
        (&["sysctl", "--explain"], "<NAME>..."),
        (&["route", "show", "--stack", "-6"], "only work for the kernel's routes"),
        (&["route", "show", "--table", "x"], "expected main, local, all or a number"),
        (&["ss", "--state", "open"], "one of estab, syn-sent, syn-recv"),
        (&["ss", "--stack", "--kernel"], "cannot be used with"),
        (&["ss", "-a", "-l"], "cannot be used with '--listening'"),
        (&["ss", "--summary", "-i"], "'--summary' cannot be used with '--info'"),
        (
            &["route", "set", "10.77.0.1/24", "initcwnd", "9"],
            "has bits beyond its length: write 10.77.0.0/24",
        ),
        (
            &["route", "set", "default"],
            "expected a metric after the prefix, such as '10.0.0.0/8 initcwnd 20'",
        ),
        (&["route", "set", "default", "via", "10.0.0.1"], "`via` is not one of: mtu, advmss, initcwnd"),
        (&["route", "del", "ten"], "`ten` is not a prefix such as 10.0.0.0/8"),
        (&["bdp", "100", "20ms"], "expected a rate with a unit, such as 100mbit, 2.5Gbps or 12.5MB/s"),
        (&["script"], "<FILE>..."),
        (&["script", "x.pkt", "-D", "COOKIE"], "expected NAME=VALUE"),
        (&["script", "x.pkt", "--seed", "x"], "invalid digit"),
        (&[], "Usage: firstbyte <COMMAND>"),
        (&["fetch"], "unrecognized subcommand 'fetch'"),
        (&["get"], "<URL>"),
        (&["get", "10.78.0.1/x"], "with its scheme, such as http://10.78.0.1/x"),
        (&["get", "ftp://a/"], "only http and https are supported, not ftp"),
        (&["get", "https://a/", "--syn-fin"], "cannot use --syn-fin with https"),
        (&["get", "https://a/", "-k", "--cacert", "x"], "cannot be used with"),
        (&["serve", "--cert-key", "x"], "--cert <FILE>"),
        (&["serve", "--listing"], "--root <DIR>"),
        (&["serve", "--log-format", "json"], "--access-log <FILE>"),
        (&["serve", "--log-format", "x", "--access-log", "-"], "[possible values: common, combined, json]"),
        (&["get", "http://a/", "--timeout", "10"], "expected a time with a unit, such as 500us, 1ms or 1.5s"),
        (&["get", "http://a/", "-i", "--json"], "choose a file for it with -o FILE"),
        (&["get", "http://a/", "-i", "--explain"], "choose a file for it with -o FILE"),
        (&["get", "http://a/", "-c", "0"], "expected a whole number of at least 1"),
        (
            &["get", "http://a/", "--resolve", "a:80"],
            "expected NAME:PORT:ADDRESS, such as example.test:80:10.78.0.1",
        ),
        (&["get", "http://a/", "-H", "x"], "expected `Name: value`"),
        (&["get", "http://a/", "--syn-fin", "--no-fast-open"], "cannot be used with '--no-fast-open'"),
        (
            &["get", "http://a/", "-d", "x", "--syn-fin"],
            "cannot use --syn-fin for this POST: its SYN may be delivered twice; allow it with",
        ),
        (&["serve", "--key", "123"], "write it to a file of mode 0600 and give --key-file FILE"),
        (
            &["serve", "--set", "net.ipv4.tcp_fastopen_key=00010203-04050607-08090a0b-0c0d0e0f"],
            "--set net.ipv4.tcp_fastopen_key would show the key to every user in the list of processes; write it to a file",
        ),
        (&["serve", "--timeout", "0"], "expected a time above 0"),
        (&["serve", "--max-connections", "0"], "expected a whole number of at least 1"),
        (&["serve", "--max-per-address", "0"], "expected a whole number of at least 1"),
        (&["serve", "--min-rate", "-1"], "expected a whole number of at least 0"),
        (&["serve", "--synack-hold", "1"], "expected a time with a unit"),
        (
            &["serve", "--address", "10.0.0.1"],
            "expected an address with its prefix length, such as 10.77.0.2/24",
        ),
        (&["serve", "--set", "x"], "expected NAME=VALUE, such as net.ipv4.tcp_fastopen=0x3"),
        (
            &["serve", "--set", "tcp_fastopen=3"],
            "there is no setting `tcp_fastopen`; did you mean net.ipv4.tcp_fastopen? --list-settings",
        ),
        (
            &["get", "http://192.0.2.1/", "--set", "net.ipv4.tcp_synretries=3"],
            "did you mean net.ipv4.tcp_syn_retries?",
        ),
        (
            &["serve", "--set", "net.ipv4.tcp_syn_retries=999"],
            "999 is out of range for net.ipv4.tcp_syn_retries",
        ),
        (&["serve", "--port", "7", "--echo", "7"], "cannot serve HTTP and echo on port 7"),
    ];
    for (arguments, part) in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn what_cannot_be_done_is_a_failure() {
    let cases: [(&[&str], &str); 5] = [
        (&["serve", "--key-file", "/nonexistent"], "error: cannot read /nonexistent: No such file"),
        (
            &["serve", "--key-file", "/proc/version"],
            "error: /proc/version: a Fast Open key is four hexadecimal words",
        ),
        (
            &["serve", "--root", "/nonexistent"],
            "error: cannot serve --root /nonexistent: No such file or directory",
        ),
        (&["get", "http://a/", "-o", "/nonexistent/x"], "error: cannot write /nonexistent/x: No such file"),
        (
            &["get", "http://a/", "-d", "@/nonexistent", "--no-fast-open"],
            "error: cannot read /nonexistent: No such file",
        ),
    ];
    for (arguments, part) in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).starts_with(part), "{arguments:?}: {}", stderr(&output));
    }
}

/// The command fails before there is anything to write.
#[test]
fn a_pattern_that_shows_nothing_is_told() {
    for (arguments, part) in [
        (&["nstat", "xyz"][..], "every counter that matches `xyz` is zero, or none does; `-z` shows zeros"),
        (&["nstat", "-z", "xyz", "zyx"], "no counter matches `xyz` or `zyx`"),
    ] {
        let output = run(arguments);
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""));
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}

#[test]
fn a_file_is_not_emptied_for_nothing() {
    let folder = std::env::temp_dir().join(format!("firstbyte-kept-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [kept, cache] = ["kept", "cache"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    std::fs::write(&kept, "precious").unwrap();
    std::fs::write(&cache, "no cache").unwrap();
    for (arguments, code) in [
        (&["get", "http://10.78.0.1/", "-o", &kept, "--cache", &cache][..], 1),
        (&["watch", "--record", &kept], 2),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "precious", "{arguments:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A full disk behind standard output or standard error, as `/dev/full` shows it.
#[test]
fn output_that_cannot_be_written_is_a_failure_and_no_panic() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for arguments in [
        &["bdp", "100mbit", "20ms"][..],
        &["bdp", "100mbit", "20ms", "--json"],
        &["serve", "--list-settings"],
        &["get", "http://a/", "--list-settings"],
    ] {
        let output = crate::firstbyte().args(arguments).stdout(full()).output().expect("it starts");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("cannot write to standard output"), "{}", stderr(&output));
    }
    let mut command = crate::firstbyte();
    let status =
        command.args(["serve", "--root", "/nonexistent"]).stderr(full()).status().expect("it starts");
    assert_eq!(status.code(), Some(1));
}

/// The stack must be named, or there must be exactly one: none, a closed one, several.
#[test]
fn without_one_stack_to_ask_it_says_what_to_do() {
    use std::os::unix::net::UnixListener;
    let folder = std::env::temp_dir().join(format!("firstbyte-run-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("firstbyte")).unwrap();
    let ask = |arguments: &[&str]| {
        let output =
            crate::firstbyte().env("XDG_RUNTIME_DIR", &folder).args(arguments).output().expect("it starts");
        (output.status.code(), stderr(&output).to_owned())
    };
    let (code, said) = ask(&["ss", "--stack"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("cannot find a running stack: there is no control socket in"), "{said}");
    assert!(
        said.contains("start one with `firstbyte serve`, or name its socket with --control PATH"),
        "{said}"
    );
    let (code, said) = ask(&["route", "show", "--control", "/nonexistent/socket"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("/nonexistent/socket: there is no such socket"), "{said}");

    let place = |name: &str| folder.join("firstbyte").join(name);
    // Left behind by a killed process: ignored, and removed.
    drop(UnixListener::bind(place("dead-1.sock")).unwrap());
    let alive = ["one-2.sock", "two-3.sock"].map(|name| UnixListener::bind(place(name)).unwrap());
    let (code, said) = ask(&["ss", "-l", "--stack"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("2 stacks are running; choose one:\n  --control "), "{said}");
    assert!(said.contains("one-2.sock") && said.contains("two-3.sock"), "{said}");
    assert!(!place("dead-1.sock").exists());
    drop(alive);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn settings_are_listed_as_they_would_be() {
    let output =
        run(&["serve", "--list-settings", "--set", "net.ipv4.tcp_fastopen=0x103", "--synack-hold", "300us"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).starts_with("warning: net.ipv4.tcp_fastopen: bits 0x100 are obsolete"),
        "{}",
        stderr(&output)
    );
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert!(lines.contains(&"net.ipv4.tcp_fastopen = 3") && lines.contains(&"firstbyte.synack_hold = 300us"));
    let linux = run(&["get", "http://a/", "--list-settings", "--profile", "linux"]);
    assert!(stdout(&linux).contains("net.ipv4.tcp_fastopen = 1\n"), "{}", stdout(&linux));
}

/// Only runs without root: with root and /dev/net/tun, `get` works.
#[test]
fn without_rights_it_says_which() {
    if testnet::can().is_ok() {
        return;
    }
    let output = run(&["get", "http://10.78.0.1/"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("run as root") || said.contains("modprobe tun"), "{said}");
}

/// An invalid cache file is reported by its line, before anything is done, and is not changed.
#[test]
fn a_bad_cache_file_is_a_failure_and_unharmed() {
    let folder = std::env::temp_dir().join(format!("firstbyte-cache-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("paths");
    let name = file.to_str().unwrap();
    std::fs::write(&file, "firstbyte paths 1\npath 10.0.0.1 10.0.0.2 mss lots\n").unwrap();
    for arguments in [&["get", "http://10.78.0.1/", "--cache", name][..], &["metrics", "flush", name]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1));
        let said = stderr(&output);
        assert!(said.contains("line 2: mss: `lots`") && said.contains("nothing was changed"), "{said}");
    }
    assert!(std::fs::read_to_string(&file).unwrap().ends_with("lots\n"));
    std::fs::write(
        &file,
        "firstbyte paths 1\npath 10.0.0.1 10.0.0.2 mss 1460\npath 10.0.0.1 10.0.0.3 mss 1400\n",
    )
    .unwrap();
    assert_eq!(stdout(&run(&["metrics", "show", name])).lines().count(), 2);
    assert_eq!(run(&["metrics", "delete", name, "10.0.0.2"]).status.code(), Some(0));
    assert!(stdout(&run(&["metrics", "show", name])).starts_with("10.0.0.3 age "));
    assert!(
        stderr(&run(&["metrics", "delete", name, "10.0.0.2"])).contains("nothing is cached for 10.0.0.2")
    );
    assert_eq!(run(&["metrics", "flush", name]).status.code(), Some(0));
    assert_eq!(stdout(&run(&["metrics", "show", name])), "");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn scripts_that_hold_and_that_do_not() {
    let file = std::env::temp_dir().join(format!("firstbyte-script-{}.pkt", std::process::id()));
    let name = file.to_str().unwrap();
    std::fs::write(&file, "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = FD\n+0 listen(3, 1) = 0\n").unwrap();
    let held = run(&["script", name, "-D", "FD=3"]);
    assert_eq!((held.status.code(), stdout(&held).to_owned()), (Some(0), format!("ok    {name}\n")));
    assert_eq!(stdout(&run(&["script", "--quiet", name, "-D", "FD=3"])), "");
    let failed = run(&["script", name]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(stdout(&failed).starts_with(&format!("FAIL  {name}:1: `FD` is no name that is known here")));
    assert!(stderr(&failed).contains("1 of 1 scripts failed"));
    // Captures the packets of a script for Wireshark and tcpdump.
    let pcap = std::env::temp_dir().join(format!("firstbyte-script-{}.pcapng", std::process::id()));
    let capture = pcap.to_str().unwrap();
    let opening = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                   +1 < S 0:0(0) win 1000 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n";
    std::fs::write(&file, opening).unwrap();
    assert_eq!(run(&["script", "-q", name, "--pcap", capture]).status.code(), Some(0));
    let bytes = std::fs::read(&pcap).unwrap();
    let packets = |size: usize| {
        bytes.windows(20).filter(|w| w[0] == 0x45 && usize::from(w[3]) == size && w[9] == 6).count()
    };
    assert_eq!((packets(44), bytes[..4].to_vec()), (2, vec![0x0a, 0x0d, 0x0d, 0x0a]));
    assert!(stderr(&run(&["script", name, name, "--pcap", capture])).contains("--pcap captures one script"));
    std::fs::remove_file(&pcap).unwrap();
    std::fs::write(&file, "0 socket(\n").unwrap();
    assert!(stdout(&run(&["script", "--check", name])).contains(":1:10: the script ends where a value"));
    std::fs::remove_file(&file).unwrap();
    assert!(stderr(&run(&["script", name])).contains(&format!("cannot read {name}")));
}

/// Passes an endless file to every verb that reads whole files.
#[test]
fn files_without_an_end_are_refused() {
    let refused = "cannot use /dev/zero: it ";
    let cases: [&[&str]; 8] = [
        &["fleet", "/dev/zero"],
        &["lab", "run", "/dev/zero"],
        &["lab", "check", "/dev/zero"],
        &["script", "/dev/zero"],
        &["doctor", "--since-boot", "--policy", "/dev/zero"],
        &["key", "show", "/dev/zero"],
        &["fleet", "web", "--key-file", "/dev/zero"],
        &[
            "fleet",
            "status",
            "web",
            "--store",
            "http://127.0.0.1:1",
            "--user",
            "root",
            "--password-file",
            "/dev/zero",
        ],
    ];
    for arguments in cases {
        let output = run(arguments);
        assert!(stderr(&output).contains(refused), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_list_of_servers_may_be_any_file() {
    let output = run(&["fleet", "/dev/null"]);
    assert!(stderr(&output).contains("cannot test /dev/null: it has no address"), "{}", stderr(&output));
    let output = run(&["fleet", "http://a/b"]);
    assert!(stderr(&output).contains("a host and a port"), "{}", stderr(&output));
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    for option in ["--help", "--version"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = crate::firstbyte().arg(option).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{option}");
        assert!(stderr(&output).contains("cannot write to standard output"), "{}", stderr(&output));
    }
}
