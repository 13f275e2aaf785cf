use super::*;
use http_body_util::BodyExt;
use hyper::Request;

/// A folder with files, a link out of it, and a secret beside it; dropped with the value.
struct Site(PathBuf);

const PATIENCE: Duration = Duration::from_secs(20);

impl Site {
    fn new() -> Site {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder =
            Site(std::env::temp_dir().join(format!("firstbyte-files-{}-{number}", std::process::id())));
        std::fs::create_dir_all(folder.0.join("root/sub dir")).unwrap();
        std::fs::create_dir_all(folder.0.join("root/empty")).unwrap();
        std::fs::write(folder.0.join("secret"), "secret").unwrap();
        std::fs::write(folder.0.join("root/a.txt"), "0123456789").unwrap();
        std::fs::write(folder.0.join("root/sub dir/index.html"), "<p>").unwrap();
        std::fs::write(folder.0.join("root/large.bin"), vec![7; 200_000]).unwrap();
        std::os::unix::fs::symlink("../secret", folder.0.join("root/out")).unwrap();
        std::os::unix::fs::symlink("a.txt", folder.0.join("root/in")).unwrap();
        folder
    }

    async fn ask(&self, request: Request<()>) -> Response<Body> {
        self.root().answer(&request.into_parts().0).await
    }

    fn root(&self) -> Arc<Root> {
        Arc::new(Root::open(&self.0.join("root"), PATIENCE, Extras::default()).unwrap())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn get(path: &str, headers: &[(&str, &str)]) -> Request<()> {
    let request = Request::get(path);
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).body(()).unwrap()
}

async fn body(reply: Response<Body>) -> Vec<u8> {
    reply.into_body().collect().await.unwrap().to_bytes().to_vec()
}

#[tokio::test]
async fn files_come_with_their_type() {
    let folder = Site::new();
    let cases: [(&str, &str, &[u8]); 6] = [
        ("/a.txt", "text/plain; charset=utf-8", b"0123456789"),
        ("/./a%2etxt", "text/plain; charset=utf-8", b"0123456789"),
        ("//a.txt", "text/plain; charset=utf-8", b"0123456789"),
        ("/in", "application/octet-stream", b"0123456789"),
        ("/sub%20dir/", "text/html; charset=utf-8", b"<p>"),
        ("/large.bin", "application/octet-stream", &[7; 200_000]),
    ];
    for (path, content_type, expected) in cases {
        let reply = folder.ask(get(path, &[])).await;
        assert_eq!(reply.status(), StatusCode::OK, "{path}");
        assert_eq!(reply.headers()[CONTENT_TYPE], content_type, "{path}");
        assert_eq!(body(reply).await, expected, "{path}");
    }
}

#[tokio::test]
async fn nothing_outside_the_folder_is_served() {
    let folder = Site::new();
    for path in [
        "/../secret",
        "/%2e%2e/secret",
        "/sub%20dir/../../secret",
        "/..%2fsecret",
        "/out",
        "/%00",
        "/a.txt%",
        "/a.txt/x",
        "/a.txt/",
        "/empty/",
        "/none",
        "/../root/a.txt",
        "/%zz",
    ] {
        let reply = folder.ask(get(path, &[])).await;
        assert_eq!(reply.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_folder_without_its_slash_is_redirected_with_the_query() {
    let folder = Site::new();
    let reply = folder.ask(get("/sub%20dir?x=1", &[])).await;
    assert_eq!(
        (reply.status(), &reply.headers()[LOCATION]),
        (StatusCode::MOVED_PERMANENTLY, &HeaderValue::from_static("/sub%20dir/?x=1"))
    );
}

/// A browser would read the Location `//name/` as the host `name`.
#[tokio::test]
async fn a_redirect_stays_on_this_host() {
    let folder = Site::new();
    std::fs::create_dir(folder.0.join("root/\\name")).unwrap();
    for (path, location) in [
        ("//sub%20dir", "/sub%20dir/"),
        ("////sub%20dir", "/sub%20dir/"),
        ("/\\name", "/%5Cname/"),
        ("//\\name", "/%5Cname/"),
    ] {
        let reply = folder.ask(get(path, &[])).await;
        assert_eq!(
            (reply.status(), reply.headers()[LOCATION].to_str().unwrap()),
            (StatusCode::MOVED_PERMANENTLY, location),
            "{path}"
        );
    }
}

#[tokio::test]
async fn what_the_client_has_is_not_sent_again() {
    let folder = Site::new();
    let first = folder.ask(get("/a.txt", &[])).await;
    let etag = first.headers()[ETAG].to_str().unwrap().to_owned();
    let date = first.headers()[LAST_MODIFIED].to_str().unwrap().to_owned();
    let status = async |pairs: &[(&str, &str)]| folder.ask(get("/a.txt", pairs)).await.status();
    assert_eq!(status(&[("if-none-match", &etag)]).await, StatusCode::NOT_MODIFIED);
    assert_eq!(status(&[("if-none-match", &format!("\"x\", W/{etag}"))]).await, StatusCode::NOT_MODIFIED);
    assert_eq!(
        status(&[("if-none-match", "\"x\""), ("if-none-match", &etag)]).await,
        StatusCode::NOT_MODIFIED
    );
    assert_eq!(status(&[("if-none-match", "\"x\""), ("if-modified-since", &date)]).await, StatusCode::OK);
    assert_eq!(status(&[("if-modified-since", &date)]).await, StatusCode::NOT_MODIFIED);
    assert_eq!(status(&[("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT")]).await, StatusCode::OK);
    assert_eq!(status(&[("if-range", &etag), ("range", "bytes=0-1")]).await, StatusCode::PARTIAL_CONTENT);
    assert_eq!(status(&[("if-range", "\"x\""), ("range", "bytes=0-1")]).await, StatusCode::OK);
}

#[tokio::test]
async fn what_the_client_does_not_expect_is_not_sent() {
    let folder = Site::new();
    let first = folder.ask(get("/a.txt", &[])).await;
    let etag = first.headers()[ETAG].to_str().unwrap();
    let date = first.headers()[LAST_MODIFIED].to_str().unwrap();
    let old = "Thu, 01 Jan 1970 00:00:00 GMT";
    let status = async |pairs: &[(&str, &str)]| folder.ask(get("/a.txt", pairs)).await.status();
    assert_eq!(status(&[("if-match", "\"x\""), ("if-match", etag)]).await, StatusCode::OK);
    assert_eq!(status(&[("if-match", "*")]).await, StatusCode::OK);
    assert_eq!(status(&[("if-match", "\"x\"")]).await, StatusCode::PRECONDITION_FAILED);
    assert_eq!(status(&[("if-match", &format!("W/{etag}"))]).await, StatusCode::PRECONDITION_FAILED);
    assert_eq!(status(&[("if-match", etag), ("if-unmodified-since", old)]).await, StatusCode::OK);
    assert_eq!(status(&[("if-unmodified-since", date)]).await, StatusCode::OK);
    assert_eq!(status(&[("if-unmodified-since", "never")]).await, StatusCode::OK);
    assert_eq!(status(&[("if-unmodified-since", old)]).await, StatusCode::PRECONDITION_FAILED);
    assert_eq!(
        status(&[("if-match", "\"x\""), ("if-none-match", etag)]).await,
        StatusCode::PRECONDITION_FAILED
    );
}

#[tokio::test]
async fn a_range_is_for_get_alone() {
    let folder = Site::new();
    let mut request = get("/a.txt", &[("range", "bytes=0-1")]);
    *request.method_mut() = Method::HEAD;
    assert_eq!(folder.ask(request).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_range_is_that_part() {
    let folder = Site::new();
    let reply = folder.ask(get("/a.txt", &[("range", "bytes=2-4")])).await;
    assert_eq!(reply.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(reply.headers()[CONTENT_RANGE], "bytes 2-4/10");
    assert_eq!(body(reply).await, b"234");
}

#[test]
fn a_root_that_is_no_folder_is_refused() {
    let folder = Site::new();
    assert!(Root::open(&folder.0.join("secret"), PATIENCE, Extras::default()).is_err());
    assert!(Root::open(&folder.0.join("none"), PATIENCE, Extras::default()).is_err());
}

#[tokio::test]
async fn links_in_a_circle_and_links_to_nothing_are_not_found() {
    let folder = Site::new();
    for (name, target) in [("circle", "circle"), ("a", "b"), ("b", "a"), ("nothing", "none")] {
        std::os::unix::fs::symlink(target, folder.0.join("root").join(name)).unwrap();
    }
    for path in ["/circle", "/a", "/circle/x", "/nothing"] {
        assert_eq!(folder.ask(get(path, &[])).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

/// Opening a FIFO without a writer would wait.
#[tokio::test]
async fn only_regular_files_are_served() {
    let folder = Site::new();
    let root = folder.0.join("root");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, root.join("fifo"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    for path in ["/fifo", "/socket"] {
        assert_eq!(folder.ask(get(path, &[])).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

/// Another program repeatedly replaces a file by a FIFO, or by a link to the secret, while the
/// server reads it.
#[tokio::test]
async fn a_file_that_is_swapped_leads_nowhere_else() {
    use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
    let folder = Site::new();
    let path = |name: &str| folder.0.join("root").join(name);
    std::os::unix::fs::symlink("../secret", path("link")).unwrap();
    mknodat(CWD, path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let root = folder.root();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let is_over = &is_over;
    let mut served = 0;
    std::thread::scope(|scope| {
        for other in [path("link"), path("fifo")] {
            let file = path("a.txt");
            scope.spawn(move || {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    renameat_with(CWD, &other, CWD, &file, RenameFlags::EXCHANGE).unwrap();
                }
            });
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        // Outside the test's runtime.
        let asked = scope.spawn(move || {
            runtime.block_on(async {
                for _ in 0..20_000 {
                    let reply = root.answer(&get("/a.txt", &[]).into_parts().0).await;
                    match reply.status() {
                        StatusCode::OK => {
                            assert_eq!(body(reply).await, b"0123456789");
                            served += 1;
                        }
                        status => assert_eq!(status, StatusCode::NOT_FOUND),
                    }
                }
            });
            served
        });
        served = asked.join().unwrap();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(served > 100, "{served}");
}

/// The target `GET name` has no slash. The reply redirects to the valid form.
#[tokio::test]
async fn a_target_without_its_slash_is_moved_there() {
    let folder = Site::new();
    for (target, location) in [("a.txt", "/a.txt"), ("empty", "/empty/"), ("http://x//empty", "/empty/")] {
        let reply = folder.ask(get(target, &[])).await;
        assert_eq!(
            (reply.status(), reply.headers()[LOCATION].to_str().unwrap()),
            (StatusCode::MOVED_PERMANENTLY, location),
            "{target}"
        );
    }
    assert_eq!(folder.ask(get("none", &[])).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn several_ranges_come_as_parts_of_one_reply() {
    let folder = Site::new();
    for (path, len, content_type) in
        [("/a.txt", 10, "text/plain; charset=utf-8"), ("/large.bin", 200_000, "application/octet-stream")]
    {
        let last = format!("{}-{}", len - 5, len - 4);
        let reply = folder.ask(get(path, &[("range", &format!("bytes=0-1,{last}"))])).await;
        assert_eq!(reply.status(), StatusCode::PARTIAL_CONTENT);
        let kind = reply.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap().to_owned();
        assert!(!reply.headers().contains_key(CONTENT_RANGE));
        let body = body(reply).await;
        let parts = match path {
            "/a.txt" => ["01", "56"],
            _ => ["\u{7}\u{7}"; 2],
        };
        let expected = format!(
            "--{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: bytes 0-1/{len}\r\n\r\n{}\r\n\
             --{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: bytes {last}/{len}\r\n\r\n{}\r\n\
             --{boundary}--\r\n",
            parts[0], parts[1]
        );
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    }
    let reply = folder.ask(get("/large.bin", &[("range", "bytes=0-99999,100000-")])).await;
    let announced = hyper::body::Body::size_hint(reply.body()).exact().unwrap();
    assert_eq!(body(reply).await.len() as u64, announced, "parts that a helper thread reads");
}
