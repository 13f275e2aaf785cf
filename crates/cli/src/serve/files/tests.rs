use super::*;
use http_body_util::BodyExt;

/// A folder with files, a link out of it, and a secret beside it; it vanishes with the value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder =
            Folder(std::env::temp_dir().join(format!("firstbyte-files-{}-{number}", std::process::id())));
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

    fn root(&self) -> Root {
        Root::open(&self.0.join("root")).unwrap()
    }
}

impl Drop for Folder {
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
    let folder = Folder::new();
    let cases: [(&str, &str, &[u8]); 6] = [
        ("/a.txt", "text/plain; charset=utf-8", b"0123456789"),
        ("/./a%2etxt", "text/plain; charset=utf-8", b"0123456789"),
        ("//a.txt", "text/plain; charset=utf-8", b"0123456789"),
        ("/in", "text/plain; charset=utf-8", b"0123456789"),
        ("/sub%20dir/", "text/html; charset=utf-8", b"<p>"),
        ("/large.bin", "application/octet-stream", &[7; 200_000]),
    ];
    for (path, content_type, expected) in cases {
        let reply = folder.root().answer(&get(path, &[]));
        assert_eq!(reply.status(), StatusCode::OK, "{path}");
        assert_eq!(reply.headers()[CONTENT_TYPE], content_type, "{path}");
        assert_eq!(body(reply).await, expected, "{path}");
    }
}

#[test]
fn nothing_outside_the_folder_is_served() {
    let folder = Folder::new();
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
        let reply = folder.root().answer(&get(path, &[]));
        assert_eq!(reply.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[test]
fn a_folder_without_its_slash_is_redirected_with_the_query() {
    let folder = Folder::new();
    let reply = folder.root().answer(&get("/sub%20dir?x=1", &[]));
    assert_eq!(
        (reply.status(), &reply.headers()[LOCATION]),
        (StatusCode::MOVED_PERMANENTLY, &HeaderValue::from_static("/sub%20dir/?x=1"))
    );
}

/// `//name/` as a Location would be the root of a host `name`.
#[test]
fn a_redirect_stays_on_this_host() {
    let folder = Folder::new();
    std::fs::create_dir(folder.0.join("root/\\name")).unwrap();
    for (path, location) in [
        ("//sub%20dir", "/sub%20dir/"),
        ("////sub%20dir", "/sub%20dir/"),
        ("/\\name", "/%5Cname/"),
        ("//\\name", "/%5Cname/"),
    ] {
        let reply = folder.root().answer(&get(path, &[]));
        assert_eq!(
            (reply.status(), reply.headers()[LOCATION].to_str().unwrap()),
            (StatusCode::MOVED_PERMANENTLY, location),
            "{path}"
        );
    }
}

#[test]
fn what_the_client_has_is_not_sent_again() {
    let folder = Folder::new();
    let root = folder.root();
    let first = root.answer(&get("/a.txt", &[]));
    let etag = first.headers()[ETAG].to_str().unwrap().to_owned();
    let date = first.headers()[LAST_MODIFIED].to_str().unwrap().to_owned();
    let status = |pairs: &[(&str, &str)]| root.answer(&get("/a.txt", pairs)).status();
    assert_eq!(status(&[("if-none-match", &etag)]), StatusCode::NOT_MODIFIED);
    assert_eq!(status(&[("if-none-match", &format!("\"x\", W/{etag}"))]), StatusCode::NOT_MODIFIED);
    assert_eq!(status(&[("if-none-match", "\"x\""), ("if-none-match", &etag)]), StatusCode::NOT_MODIFIED);
    assert_eq!(status(&[("if-none-match", "\"x\""), ("if-modified-since", &date)]), StatusCode::OK);
    assert_eq!(status(&[("if-modified-since", &date)]), StatusCode::NOT_MODIFIED);
    assert_eq!(status(&[("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT")]), StatusCode::OK);
    assert_eq!(status(&[("if-range", &etag), ("range", "bytes=0-1")]), StatusCode::PARTIAL_CONTENT);
    assert_eq!(status(&[("if-range", "\"x\""), ("range", "bytes=0-1")]), StatusCode::OK);
}

#[test]
fn what_the_client_does_not_expect_is_not_sent() {
    let folder = Folder::new();
    let root = folder.root();
    let first = root.answer(&get("/a.txt", &[]));
    let etag = first.headers()[ETAG].to_str().unwrap();
    let date = first.headers()[LAST_MODIFIED].to_str().unwrap();
    let old = "Thu, 01 Jan 1970 00:00:00 GMT";
    let status = |pairs: &[(&str, &str)]| root.answer(&get("/a.txt", pairs)).status();
    assert_eq!(status(&[("if-match", "\"x\""), ("if-match", etag)]), StatusCode::OK);
    assert_eq!(status(&[("if-match", "*")]), StatusCode::OK);
    assert_eq!(status(&[("if-match", "\"x\"")]), StatusCode::PRECONDITION_FAILED);
    assert_eq!(status(&[("if-match", &format!("W/{etag}"))]), StatusCode::PRECONDITION_FAILED);
    assert_eq!(status(&[("if-match", etag), ("if-unmodified-since", old)]), StatusCode::OK);
    assert_eq!(status(&[("if-unmodified-since", date)]), StatusCode::OK);
    assert_eq!(status(&[("if-unmodified-since", "never")]), StatusCode::OK);
    assert_eq!(status(&[("if-unmodified-since", old)]), StatusCode::PRECONDITION_FAILED);
    assert_eq!(status(&[("if-match", "\"x\""), ("if-none-match", etag)]), StatusCode::PRECONDITION_FAILED);
}

#[test]
fn a_range_is_for_get_alone() {
    let folder = Folder::new();
    let mut request = get("/a.txt", &[("range", "bytes=0-1")]);
    *request.method_mut() = Method::HEAD;
    assert_eq!(folder.root().answer(&request).status(), StatusCode::OK);
}

#[tokio::test]
async fn a_range_is_that_part() {
    let folder = Folder::new();
    let reply = folder.root().answer(&get("/a.txt", &[("range", "bytes=2-4")]));
    assert_eq!(reply.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(reply.headers()[CONTENT_RANGE], "bytes 2-4/10");
    assert_eq!(body(reply).await, b"234");
}

#[test]
fn ranges_are_cut_to_the_file() {
    let cases = [
        ("bytes=0-", Choice::Part(0..10)),
        ("bytes=9-99", Choice::Part(9..10)),
        ("bytes=-3", Choice::Part(7..10)),
        ("bytes=-99", Choice::Part(0..10)),
        ("bytes=10-", Choice::Unsatisfiable),
        ("bytes=-0", Choice::Unsatisfiable),
        ("bytes=4-2", Choice::Whole),
        ("bytes=0-1,3-4", Choice::Whole),
        ("bytes=0-18446744073709551615", Choice::Part(0..10)),
        ("lines=1-2", Choice::Whole),
        ("bytes=+1-+2", Choice::Whole),
        ("bytes=-+2", Choice::Whole),
    ];
    for (range, expected) in cases {
        assert_eq!(part_of(10, range), expected, "{range}");
    }
}

#[test]
fn a_root_that_is_no_folder_is_refused() {
    let folder = Folder::new();
    assert!(Root::open(&folder.0.join("secret")).is_err());
    assert!(Root::open(&folder.0.join("none")).is_err());
}
