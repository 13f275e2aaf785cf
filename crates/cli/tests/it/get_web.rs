//! `firstbyte get` on the kernel's sockets: redirects, bodies, downloads that continue, and servers
//! of others.
use crate::{Server, run, skipped_without, stderr, stdout};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A server that answers each request with the next reply, and keeps the requests.
struct Scripted {
    at: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    fn start(replies: Vec<String>) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = requests.clone();
        std::thread::spawn(move || {
            for reply in replies {
                let (stream, _) = listener.accept().unwrap();
                kept.lock().unwrap().push(read_request(&stream));
                (&stream).write_all(reply.as_bytes()).unwrap();
            }
        });
        Scripted { at, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Reads the head and the body of a request.
fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut text = String::new();
    let mut len = 0;
    while !text.ends_with("\r\n\r\n") && reader.read_line(&mut text).unwrap() > 0 {
        let line = text.lines().last().unwrap_or_default();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            len = value.parse().unwrap();
        }
    }
    reader.take(len).read_to_string(&mut text).unwrap();
    text
}

fn reply(status: &str, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn redirect(status: &str, to: &str) -> String {
    reply(status, &format!("Location: {to}\r\n"), "moved")
}

#[test]
fn redirects_are_followed_only_on_request_and_shown() {
    let server = Scripted::start(vec![
        redirect("302 Found", "/b"),
        redirect("302 Found", "b"),
        reply("200 OK", "", "here"),
    ]);
    let stays = run(&["get", &server.url("/a/x")]);
    assert_eq!((stays.status.code(), stdout(&stays)), (Some(0), "moved"));
    let goes = run(&["get", "-L", &server.url("/a/x")]);
    assert_eq!((goes.status.code(), stdout(&goes)), (Some(0), "here"), "{}", stderr(&goes));
    let told = format!("redirected to {} at {}", server.url("/a/b"), server.at);
    assert!(stderr(&goes).contains(&told), "{}", stderr(&goes));
    assert!(server.requests()[2].starts_with("GET /a/b HTTP/1.1\r\n"));
}

#[test]
fn too_many_redirects_and_strange_ones_are_failures() {
    let server = Scripted::start(vec![
        redirect("301 Moved Permanently", "/1"),
        redirect("301 Moved Permanently", "/2"),
        redirect("301 Moved Permanently", "ftp://a/"),
    ]);
    let many = run(&["get", "-L", "--max-redirs", "1", &server.url("/")]);
    assert_eq!(many.status.code(), Some(1));
    assert!(stderr(&many).contains("more than 1 redirects (--max-redirs)"), "{}", stderr(&many));
    let strange = run(&["get", "-L", &server.url("/")]);
    assert_eq!((strange.status.code(), stdout(&strange)), (Some(1), ""));
    let told = "cannot follow the redirect to ftp://a/: only http";
    assert!(stderr(&strange).contains(told), "{}", stderr(&strange));
}

#[test]
fn a_redirect_to_another_origin_gets_no_credentials_and_a_post_becomes_a_get() {
    let other = Scripted::start(vec![reply("200 OK", "", "other")]);
    let server = Scripted::start(vec![redirect("303 See Other", &other.url("/x"))]);
    let headers = ["-H", "Authorization: secret", "-H", "Cookie: a=b", "-H", "X-Trace: 7"];
    let output = run(&[&["get", "-L", "-d", "name=value", &server.url("/form")], &headers[..]].concat());
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "other"), "{}", stderr(&output));
    let (first, second) = (&server.requests()[0], &other.requests()[0]);
    assert!(first.starts_with("POST /form ") && first.ends_with("\r\n\r\nname=value"), "{first}");
    assert!(first.contains("content-type: application/x-www-form-urlencoded"), "{first}");
    assert!(first.contains("authorization: secret") && first.contains("cookie: a=b"), "{first}");
    assert!(second.starts_with("GET /x ") && second.contains("x-trace: 7"), "{second}");
    for absent in ["authorization", "cookie", "content-", "name=value"] {
        assert!(!second.contains(absent), "{absent}: {second}");
    }
}

/// The second run asks only for the rest of the same version. The file appears when it is whole.
#[test]
fn an_interrupted_download_continues() {
    let fields = "ETag: \"v1\"\r\n";
    let cut =
        "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\nConnection: close\r\n\r\n01234".to_owned();
    let rest = reply("206 Partial Content", &format!("{fields}Content-Range: bytes 5-9/10\r\n"), "56789");
    let server =
        Scripted::start(vec![cut.clone(), rest, cut, reply("200 OK", "ETag: \"v2\"\r\n", "another")]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let get = || run(&["get", &server.url("/"), "--continue", "-o", file.to_str().unwrap()]);
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let names = || std::fs::read_dir(folder.path()).unwrap().count();

    let first = get();
    assert_eq!(first.status.code(), Some(1));
    assert!(
        stdout(&first).contains("closed the connection before its reply was complete"),
        "{}",
        stdout(&first)
    );
    assert!(stderr(&first).contains("kept 5 bytes in "), "{}", stderr(&first));
    assert_eq!((file.exists(), read(&folder.path().join("file.part"))), (false, "01234".to_owned()));
    let second = get();
    assert_eq!((second.status.code(), read(&file), names()), (Some(0), "0123456789".to_owned(), 1));
    let asked = &server.requests()[1];
    assert!(asked.contains("range: bytes=5-\r\n") && asked.contains("if-range: \"v1\"\r\n"), "{asked}");

    assert_eq!(get().status.code(), Some(1));
    assert_eq!(read(&file), "0123456789", "the old file stays until the new one is whole");
    assert_eq!((get().status.code(), read(&file), names()), (Some(0), "another".to_owned(), 1));
}

/// An error page is not a part of the file.
#[test]
fn a_page_that_is_an_error_does_not_end_a_download() {
    let server = Scripted::start(vec![reply("404 Not Found", "", "nothing")]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let output = run(&["get", &server.url("/"), "--continue", "-o", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn time_without_progress_and_time_at_all_are_limited() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for number in 0.. {
            let (mut stream, _) = listener.accept().unwrap();
            if number > 0 {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx").unwrap();
            }
            kept.push(stream);
        }
    });
    let silent = run(&["get", &url, "--timeout", "300ms"]);
    assert_eq!(silent.status.code(), Some(1));
    assert!(stderr(&silent).contains("within 300ms (--timeout); check that it is up"), "{}", stderr(&silent));
    let stalled = run(&["get", &url, "--timeout", "300ms"]);
    assert!(stderr(&stalled).contains("sent nothing more for 300ms (--timeout)"), "{}", stderr(&stalled));
    let limited = run(&["get", &url, "-m", "300ms"]);
    assert_eq!(limited.status.code(), Some(1));
    assert!(stderr(&limited).contains("not complete within 300ms (--max-time)"), "{}", stderr(&limited));
}

/// A name with two addresses. The first does not answer.
#[test]
fn the_next_address_is_tried_if_one_refuses() {
    let server = Scripted::start(vec![reply("200 OK", "", "here")]);
    let port = server.at.port();
    let by_hand = ["127.0.0.9", "127.0.0.1"].map(|addr| format!("two.test:{port}:{addr}"));
    let [first, second] = &by_hand;
    let url = format!("http://two.test:{port}/");
    let output = run(&["get", &url, "--resolve", first, "--resolve", second, "--json"]);
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    let visit = &report["visits"][0];
    assert_eq!((&visit["status"], &visit["peer"]), (&200.into(), &server.at.to_string().into()), "{report}");
    assert!(visit["name_ms"].as_f64().is_some());
}

/// Debian's nginx as the server of a download, in two parts and whole.
#[test]
fn nginx_serves_the_rest_of_a_file() {
    if skipped_without("nginx") {
        return;
    }
    testnet::in_namespace(|| {
        let folder = tempfile::tempdir().unwrap();
        let contents: Vec<u8> = (0..200_000_u32).map(|number| number as u8).collect();
        std::fs::write(folder.path().join("file"), &contents).unwrap();
        let nginx = Nginx::start(folder.path(), "");
        let out = folder.path().join("out");
        let get = |path: &str| {
            run(&["get", &format!("http://127.0.0.1:8081{path}"), "--continue", "-o", out.to_str().unwrap()])
        };
        assert_eq!(get("/file").status.code(), Some(0));
        assert!(std::fs::read(&out).unwrap() == contents);
        let head = run(&["get", "-I", "http://127.0.0.1:8081/file"]);
        let etag = stdout(&head).lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
        assert!(stdout(&head).starts_with("HTTP/1.1 200 OK\r\n") && stdout(&head).ends_with("\r\n\r\n"));
        std::fs::write(folder.path().join("out.part"), &contents[..150_000]).unwrap();
        std::fs::write(folder.path().join("out.part.id"), etag).unwrap();
        std::fs::remove_file(&out).unwrap();
        let rest = get("/file");
        assert_eq!(rest.status.code(), Some(0), "{}", stderr(&rest));
        assert!(stdout(&rest).contains(" 206 ") && stdout(&rest).contains(" 50000 "), "{}", stdout(&rest));
        assert!(std::fs::read(&out).unwrap() == contents);
        drop(nginx);
    });
}

/// An nginx that serves a folder at 127.0.0.1:8081; ends with this value.
pub(crate) struct Nginx(std::process::Child);

impl Nginx {
    pub(crate) fn start(folder: &Path, more: &str) -> Nginx {
        let at = folder.display();
        let config = format!(
            "daemon off; user root; pid {at}/pid; error_log {at}/error;\n\
             events {{}}\nhttp {{ access_log off; client_body_temp_path {at}/tmp; proxy_temp_path {at}/tmp;\n\
             fastcgi_temp_path {at}/tmp; uwsgi_temp_path {at}/tmp; scgi_temp_path {at}/tmp;\n\
             server {{ listen 127.0.0.1:8081; root {at}; {more} }} }}\n"
        );
        std::fs::write(folder.join("conf"), config).unwrap();
        let conf = folder.join("conf");
        let child = testnet::command("nginx").arg("-c").arg(conf).spawn().expect("nginx starts");
        let nginx = Nginx(child);
        let begun = std::time::Instant::now();
        while TcpStream::connect("127.0.0.1:8081").is_err() {
            assert!(begun.elapsed() < std::time::Duration::from_secs(20), "nginx does not listen");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        nginx
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Our own server: a folder's name leads to its slash, and the rest of a file comes as asked.
#[test]
fn our_own_server_continues_a_download() {
    testnet::in_namespace(|| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join("sub/index.html"), "0123456789").unwrap();
        let root = folder.path().to_str().unwrap();
        let server = Server::start(&["--backend", "kernel", "--root", root]);
        let out = folder.path().join("out");
        let get =
            || run(&["get", "-L", "http://127.0.0.1:8080/sub", "--continue", "-o", out.to_str().unwrap()]);
        let whole = get();
        assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "0123456789");
        assert_eq!(server.stop().0, Some(0));
    });
}
