//! `firstbyte serve` as a web server: listings, compressed files, the access log, HTTPS.
use crate::get_web::Nginx;
use crate::{Server, firstbyte, run, skipped_without, stderr, stdout};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Requests a path of a server at 127.0.0.1:8080, on a connection of its own.
fn get(path: &str, fields: &str) -> String {
    let mut stream = TcpStream::connect("127.0.0.1:8080").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n{fields}Connection: close\r\n\r\n").unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    String::from_utf8_lossy(&reply).into_owned()
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, contents) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }
    folder
}

fn serve(root: &TempDir, more: &[&str]) -> Server {
    let own = ["--backend", "kernel", "--root", root.path().to_str().unwrap()];
    Server::start(&[&own[..], more].concat())
}

#[test]
fn a_folder_is_listed_only_on_request() {
    testnet::in_namespace(|| {
        let root = folder(&[("sub/a b.txt", "x"), ("sub/.hidden", "x"), ("index/index.html", "index")]);
        let server = serve(&root, &[]);
        assert!(get("/sub/", "").starts_with("HTTP/1.1 404 "));
        drop(server);
        let server = serve(&root, &["--listing"]);
        let page = get("/sub/", "");
        assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("content-type: text/html"), "{page}");
        assert!(page.contains("<a href=\"a%20b.txt\">a b.txt</a>") && !page.contains("hidden"), "{page}");
        assert!(get("/", "").contains("<a href=\"sub/\">sub/</a>"));
        assert!(get("/index/", "").ends_with("\r\n\r\nindex"));
        assert!(get("/sub", "").starts_with("HTTP/1.1 301 "));
        assert_eq!(server.stop().0, Some(0));
    });
}

/// A range is a part of the compressed file, and each coding has an ETag of its own.
#[test]
fn a_compressed_file_is_sent_to_clients_that_accept_it() {
    testnet::in_namespace(|| {
        let root =
            folder(&[("a.js", "plain"), ("old.css", "plain"), ("old.css.gz", "old"), ("alone.js", "plain")]);
        let modified = std::time::SystemTime::now() - Duration::from_secs(60);
        std::fs::File::open(root.path().join("old.css.gz")).unwrap().set_modified(modified).unwrap();
        std::fs::write(root.path().join("a.js.gz"), "gzipped").unwrap();
        std::fs::write(root.path().join("a.js.br"), "brotli").unwrap();
        let server = serve(&root, &["--precompressed"]);
        let field = |reply: &str, name: &str| {
            let line = reply.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.map(str::to_owned)
        };
        let plain = get("/a.js", "");
        assert!(plain.ends_with("\r\n\r\nplain"), "{plain}");
        assert_eq!(field(&plain, "vary").as_deref(), Some("Accept-Encoding"));
        let mut etags = vec![field(&plain, "etag")];
        for (accept, coding, body) in [
            ("gzip", "gzip", "gzipped"),
            ("gzip, br", "br", "brotli"),
            ("br;q=0.1, gzip;q=0.2", "gzip", "gzipped"),
        ] {
            let reply = get("/a.js", &format!("Accept-Encoding: {accept}\r\n"));
            assert!(reply.ends_with(&format!("\r\n\r\n{body}")), "{reply}");
            assert_eq!(field(&reply, "content-encoding").as_deref(), Some(coding));
            assert_eq!(field(&reply, "content-type").as_deref(), Some("text/javascript; charset=utf-8"));
            assert_eq!(field(&reply, "vary").as_deref(), Some("Accept-Encoding"));
            etags.push(field(&reply, "etag"));
        }
        assert!(etags[0] != etags[1] && etags[1] != etags[2] && etags[1] == etags[3], "{etags:?}");
        let part = get("/a.js", "Accept-Encoding: br\r\nRange: bytes=1-2\r\n");
        assert!(part.starts_with("HTTP/1.1 206 ") && part.ends_with("\r\n\r\nro"), "{part}");
        assert_eq!(field(&part, "content-range").as_deref(), Some("bytes 1-2/6"));
        for path in ["/old.css", "/alone.js"] {
            let reply = get(path, "Accept-Encoding: gzip\r\n");
            assert!(reply.ends_with("\r\n\r\nplain") && field(&reply, "vary").is_none(), "{reply}");
        }
        assert_eq!(server.stop().0, Some(0));
    });
}

#[test]
fn each_request_is_in_the_access_log() {
    testnet::in_namespace(|| {
        let root = folder(&[("a.txt", "four")]);
        let log = root.path().join("log");
        let server = serve(&root, &["--access-log", log.to_str().unwrap(), "--quiet"]);
        get("/a.txt?b=c", "User-Agent: me \"x\"\r\nReferer: http://r/\r\n");
        get("/none", "");
        assert_eq!(server.stop().0, Some(0));
        let text = std::fs::read_to_string(&log).unwrap();
        // A request is logged at the end of its connection, if it is the last one.
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_by_key(|line| line.contains("/none"));
        assert!(lines[0].starts_with("127.0.0.1 - - [") && lines[0].contains(" +0000] "), "{text}");
        let end = r#""GET /a.txt?b=c HTTP/1.1" 200 4 "http://r/" "me \"x\"""#;
        assert!(lines[0].ends_with(end), "{text}");
        assert!(lines[1].contains("\"GET /none HTTP/1.1\" 404 "), "{text}");
        assert_eq!(lines.len(), 2);

        let server = serve(&root, &["--access-log", "-", "--log-format", "json"]);
        get("/a.txt", "");
        let (code, lines) = server.stop();
        assert_eq!(
            (code, &lines[0]["target"], &lines[0]["status"]),
            (Some(0), &"/a.txt".into(), &200.into())
        );
        assert!(lines[0].get("event").is_none(), "the usual line is replaced: {lines:?}");
    });
}

/// The file is a pipe that nobody reads.
#[test]
fn an_access_log_that_nobody_reads_stops_nobody() {
    testnet::in_namespace(|| {
        let root = folder(&[("a.txt", "four")]);
        let fifo = root.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let unread = std::fs::File::options().read(true).write(true).open(&fifo).unwrap();
        let server = serve(&root, &["--access-log", fifo.to_str().unwrap(), "--quiet"]);
        let path = format!("/{}", "x".repeat(8000));
        for _ in 0..200 {
            assert!(get(&path, "").starts_with("HTTP/1.1 404 "));
        }
        let begun = Instant::now();
        assert_eq!(server.stop().0, Some(0));
        assert!(begun.elapsed() < Duration::from_secs(10));
        drop(unread);
    });
}

/// A certificate of its own authority, for `localhost`.
pub(crate) fn certificate(folder: &Path) -> [String; 2] {
    certificate_of(folder, "localhost")
}

fn certificate_of(folder: &Path, name: &str) -> [String; 2] {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let mut openssl = testnet::command("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]);
    openssl.args([
        "-subj",
        &format!("/CN={name}"),
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:10.77.0.2",
    ]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", &key, "-out", &cert]);
    assert!(openssl.output().unwrap().status.success());
    [cert, key]
}

fn report(arguments: &[&str]) -> Value {
    let output = run(&[&["get", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_str(stdout(&output)).unwrap()
}

/// Our own client and server, over both protocols: the second visit is resumed, and its request is
/// early data.
#[test]
fn a_repeat_visit_over_https_sends_its_request_early() {
    if skipped_without("openssl") {
        return;
    }
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.tcp_fastopen", "0x3");
        let root = folder(&[("a.txt", "four")]);
        let [cert, key] = certificate(root.path());
        let server = serve(&root, &["--cert", &cert, "--cert-key", &key]);
        for (protocol, more) in [("h2", &[][..]), ("http/1.1", &["--http1.1"])] {
            let url = "https://localhost:8443/a.txt";
            let report = report(&[&[url, "-c", "4", "--cacert", &cert], more].concat());
            let visits = report["visits"].as_array().unwrap();
            for (index, visit) in visits.iter().enumerate() {
                assert_eq!(
                    (&visit["status"], &visit["tls"]["alpn"]),
                    (&200.into(), &protocol.into()),
                    "{visit}"
                );
                let expected = if index == 0 { ("none", "not sent") } else { ("accepted", "accepted") };
                let tls = &visit["tls"];
                assert_eq!(
                    (&tls["ticket"], &tls["early_data"]),
                    (&expected.0.into(), &expected.1.into()),
                    "{visit}"
                );
                assert!(visit["tls_ms"].as_f64().is_some() && visit["handshake_ms"].as_f64().is_some());
            }
            assert_eq!(visits[3]["fast_open"]["outcome"], "accepted", "{report}");
        }
        let (code, lines) = server.stop();
        assert_eq!(code, Some(0));
        let early = |version: &str| {
            let requests = lines.iter().filter(|line| line["version"] == version);
            requests.map(|line| line["early"].as_bool().unwrap()).collect::<Vec<_>>()
        };
        // The kernel may complete the handshake before the server reads the request.
        for version in ["HTTP/2.0", "HTTP/1.1"] {
            let early = early(version);
            assert!(early.len() == 4 && !early[0], "{version}: {lines:?}");
        }
    });
}

/// A request that must not be executed twice waits for the handshake, or is refused until then.
#[test]
fn unsafe_requests_are_not_executed_early() {
    if skipped_without("openssl") {
        return;
    }
    testnet::in_namespace(|| {
        let root = tempfile::tempdir().unwrap();
        let [cert, key] = certificate(root.path());
        let server = Server::start(&["--backend", "kernel", "--cert", &cert, "--cert-key", &key]);
        let post = ["https://localhost:8443/", "-c", "3", "--cacert", &cert, "-d", "x"];
        let safe = report(&post);
        for visit in safe["visits"].as_array().unwrap() {
            assert_eq!(visit["status"], 200);
            assert_ne!(visit["tls"]["early_data"], "accepted");
        }
        let forced = report(&[&post[..], &["--force-early"]].concat());
        let statuses: Vec<_> =
            forced["visits"].as_array().unwrap().iter().map(|visit| &visit["status"]).collect();
        assert_eq!(statuses, [200, 425, 200, 425, 200], "{forced}");
        assert_eq!(server.stop().0, Some(0));
    });
}

/// Debian's curl and openssl as clients, and their idle connections.
#[test]
fn other_clients_speak_https_with_it() {
    if ["openssl", "curl"].iter().any(|program| skipped_without(program)) {
        return;
    }
    testnet::in_namespace(|| {
        let root = folder(&[("a.txt", "four"), ("large", &"x".repeat(3_000_000))]);
        let [cert, key] = certificate(root.path());
        let mut server = serve(&root, &["--cert", &cert, "--cert-key", &key, "--timeout", "2s"]);
        let curl = |more: &[&str]| {
            let mut curl = testnet::command("curl");
            curl.args(["-sS", "--max-time", "20", "--cacert", &cert]).args(more);
            let output = curl.output().unwrap();
            assert!(output.status.success(), "{more:?}: {}", stderr(&output));
            stdout(&output).to_owned()
        };
        let url = |path: &str| format!("https://localhost:8443{path}");
        for version in ["--http1.1", "--http2"] {
            assert_eq!(curl(&[version, &url("/a.txt")]), "four");
            assert_eq!(curl(&[version, &url("/large")]).len(), 3_000_000);
            let twice =
                curl(&[version, "-w", "%{http_version} %{num_connects} ", &url("/a.txt"), &url("/a.txt")]);
            let name = if version == "--http2" { "2" } else { "1.1" };
            assert_eq!(twice, format!("four{name} 1 four{name} 0 "));
        }
        for _ in 0..8 {
            assert_eq!(server.next_line()["event"], "request");
        }
        let mut idle = TcpStream::connect("127.0.0.1:8443").unwrap();
        let plain = TcpStream::connect("127.0.0.1:8443").and_then(|mut plain| {
            plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")?;
            plain.read_to_end(&mut Vec::new())
        });
        assert!(plain.is_ok(), "an alert, and the end: {plain:?}");
        idle.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let ended = idle.read(&mut [0; 64]);
        assert!(ended.is_ok_and(|len| len < 64), "a client that says nothing is disconnected");
        assert_eq!(server.stop().0, Some(0));
    });
}

/// The server runs on our own stack: its first flight and the reply are on the SYN-ACK.
#[test]
fn the_reply_over_https_is_on_the_syn_ack() {
    if skipped_without("openssl") {
        return;
    }
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.ip_forward", "1");
        let root = folder(&[("a.txt", "four")]);
        let [cert, key] = certificate(root.path());
        let files = ["--root", root.path().to_str().unwrap(), "--cert", &cert, "--cert-key", &key];
        let server = Server::start(&files);
        let url = "https://10.77.0.2/a.txt";
        let report = report(&[url, "-c", "3", "--cacert", &cert, "--explain", "--http1.1"]);
        let last = report["visits"].as_array().unwrap().last().unwrap();
        assert_eq!(last["fast_open"]["outcome"], "accepted", "{report}");
        assert_eq!(last["tls"]["early_data"], "accepted", "{report}");
        let rungs = last["ladder"]["rungs"].as_array().unwrap();
        assert!(
            rungs[0]["len"].as_u64().unwrap() > 400 && rungs[1]["len"].as_u64().unwrap() > 500,
            "{rungs:?}"
        );
        assert_eq!(rungs[1]["way"], "to_client", "{rungs:?}");
        assert_eq!(server.stop().0, Some(0));
    });
}

#[test]
fn certificates_that_are_not_trusted_are_refused_with_a_reason() {
    if skipped_without("openssl") {
        return;
    }
    testnet::in_namespace(|| {
        let root = tempfile::tempdir().unwrap();
        let [cert, key] = certificate(root.path());
        let server = Server::start(&["--backend", "kernel", "--cert", &cert, "--cert-key", &key]);
        let other = tempfile::tempdir().unwrap();
        let [stranger, _] = certificate_of(other.path(), "stranger");
        let url = "https://localhost:8443/";
        for (arguments, part) in [
            (&[url, "--cacert", &stranger][..], "no trusted authority has signed it"),
            (
                &["https://name.test:8443/", "--resolve", "name.test:8443:127.0.0.1", "--cacert", &cert],
                "not for this name",
            ),
            (&[url, "--cacert", &key], "it has no certificate in PEM"),
            (&[url, "--cacert", "/none"], "cannot read /none"),
        ] {
            let output = run(&[&["get"], arguments].concat());
            assert_eq!((output.status.code(), stdout(&output)), (Some(1), ""), "{arguments:?}");
            assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
        }
        let insecure = run(&["get", "-k", url]);
        assert!(stdout(&insecure).contains("after the handshakes of TCP and TLS"), "{}", stderr(&insecure));
        let system = testnet_command_with_roots(&cert).args(["get", url]).output().unwrap();
        assert_eq!(system.status.code(), Some(0), "{}", stderr(&system));
        assert_eq!(server.stop().0, Some(0));

        let wrong = run(&["serve", "--backend", "kernel", "--cert", &key]);
        assert_eq!(wrong.status.code(), Some(1));
        assert!(stderr(&wrong).contains("both must be PEM"), "{}", stderr(&wrong));
    });
}

/// The command with other certificates of the system.
fn testnet_command_with_roots(cert: &str) -> std::process::Command {
    let mut command = firstbyte();
    command.env("SSL_CERT_FILE", cert).env_remove("SSL_CERT_DIR");
    command
}

/// Debian's nginx: it takes early data, and any number of copies of it.
#[test]
fn nginx_answers_over_https() {
    if ["openssl", "nginx"].iter().any(|program| skipped_without(program)) {
        return;
    }
    testnet::in_namespace(|| {
        let root = folder(&[("a.txt", "four")]);
        let [cert, key] = certificate(root.path());
        let more = format!(
            "listen 127.0.0.1:8443 ssl http2; ssl_certificate {cert}; ssl_certificate_key {key}; \
             ssl_protocols TLSv1.2 TLSv1.3; ssl_early_data on;"
        );
        let nginx = Nginx::start(root.path(), &more);
        let url = "https://localhost:8443/a.txt";
        for (protocol, more) in [("h2", &[][..]), ("http/1.1", &["--http1.1"])] {
            let report = report(&[&[url, "-c", "3", "--cacert", &cert], more].concat());
            for visit in report["visits"].as_array().unwrap() {
                assert_eq!((&visit["status"], &visit["bytes"]), (&200.into(), &4.into()), "{report}");
                assert_eq!(
                    (&visit["tls"]["alpn"], &visit["tls"]["version"]),
                    (&protocol.into(), &"TLSv1_3".into())
                );
            }
        }
        let plain = run(&["get", "https://localhost:8081/a.txt"]);
        assert!(stderr(&plain).contains("does not speak TLS"), "{}", stderr(&plain));
        drop(nginx);
    });
}
