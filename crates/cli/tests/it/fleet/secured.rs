//! A store that requires TLS, a client certificate and a password; and `firstbyte serve` as the
//! host whose keys are rotated.
use super::store::Etcd;
use crate::{Server, firstbyte, run, skipped_without, stderr, stdout};
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

const PASSWORD: &str = "a secret of the store";

/// Files of one test, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let folder = std::env::temp_dir().join(format!("firstbyte-secured-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        self.path(name)
    }

    fn openssl(&self, arguments: &[&str]) {
        let made = testnet::command("openssl").current_dir(&self.0).args(arguments).output().unwrap();
        assert!(made.status.success(), "{arguments:?}: {}", stderr(&made));
    }

    /// Creates a CA, and the certificates of the store and of an operator.
    fn certificates(&self) {
        const EC: [&str; 5] = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
        let new = |more: &[&str]| self.openssl(&[&EC[..], &["-noenc"], more].concat());
        for authority in ["ca", "stranger"] {
            let (key, cert) = (format!("{authority}.key"), format!("{authority}.pem"));
            new(&["-x509", "-days", "2", "-subj", "/CN=an authority", "-keyout", &key, "-out", &cert]);
        }
        // etcd's gateway presents its own certificate to etcd: a name in it would count as a user.
        for (name, subject) in [("store", "/O=etcd"), ("operator", "/O=operators")] {
            let (key, request, cert) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
            new(&["-subj", subject, "-keyout", &key, "-out", &request]);
            let extensions = self.file("extensions", "subjectAltName = IP:127.0.0.1\n");
            self.openssl(&[
                "x509",
                "-req",
                "-days",
                "2",
                "-in",
                &request,
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-extfile",
                &extensions,
                "-out",
                &cert,
            ]);
        }
    }

    fn store(&self) -> Etcd {
        let options =
            [("--cert-file", "store.pem"), ("--key-file", "store.key"), ("--trusted-ca-file", "ca.pem")];
        let options = options.iter().flat_map(|(option, file)| [(*option).to_owned(), self.path(file)]);
        let options: Vec<String> = options.chain(["--client-cert-auth".to_owned()]).collect();
        Etcd::start_with("secured", "https", &options)
    }

    /// Enables passwords, as an administrator does once through etcd's own interface.
    fn ask_for_passwords(&self, url: &str) {
        for (path, body) in [
            ("user/add", format!(r#"{{"name":"root","password":"{PASSWORD}"}}"#)),
            ("role/add", r#"{"name":"root"}"#.to_owned()),
            ("user/grant", r#"{"user":"root","role":"root"}"#.to_owned()),
            ("enable", "{}".to_owned()),
        ] {
            let mut curl = testnet::command("curl");
            curl.args(["--silent", "--show-error", "--fail", "--max-time", "20", "--data", &body]);
            for (option, file) in
                [("--cacert", "ca.pem"), ("--cert", "operator.pem"), ("--key", "operator.key")]
            {
                curl.args([option, &self.path(file)]);
            }
            let done = curl.arg(format!("{url}/v3/auth/{path}")).output().unwrap();
            assert!(done.status.success(), "{path}: {}", stderr(&done));
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Killed when dropped.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Repeats a command until it succeeds, and returns its output.
fn in_time(what: &str, mut ask: impl FnMut() -> Output) -> Output {
    let begun = Instant::now();
    loop {
        let said = ask();
        if said.status.success() {
            return said;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}: {}{}", stdout(&said), stderr(&said));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The server's cookies are made with the keys of the store, before and after a rotation. During
/// the rotation, the store forgets all logins.
#[test]
fn our_own_server_has_the_keys_of_a_store_with_tls_and_passwords() {
    if ["etcd", "openssl", "curl"].into_iter().any(skipped_without) {
        return;
    }
    testnet::in_namespace(|| {
        let folder = Folder::new();
        folder.certificates();
        let mut etcd = folder.store();
        let url = etcd.url();
        folder.ask_for_passwords(&url);
        let given = |cacert: &str, password: &str| {
            let files = [
                ("--cacert", folder.path(cacert)),
                ("--cert", folder.path("operator.pem")),
                ("--cert-key", folder.path("operator.key")),
                ("--user", "root".to_owned()),
                ("--password-file", folder.file(password, &format!("{password}\n"))),
                ("--store", url.clone()),
            ];
            files.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect::<Vec<_>>()
        };
        let on_fleet = |verb: &str, more: &[&str], store: &[String]| {
            let mut command = firstbyte();
            command.args(["fleet", verb, "web"]).args(more).args(store).output().unwrap()
        };
        let store = given("ca.pem", PASSWORD);
        let keys = folder.path("keys");
        assert_eq!(run(&["key", "new", &keys]).status.code(), Some(0));

        let unknown = on_fleet("create", &[], &given("stranger.pem", PASSWORD));
        assert!(
            stderr(&unknown)
                .contains("cannot reach the store: 127.0.0.1, port 2379: invalid peer certificate"),
            "{}",
            stderr(&unknown)
        );
        let wrong = on_fleet("create", &[], &given("ca.pem", "another word"));
        assert!(
            stderr(&wrong).contains("the store: ") && stderr(&wrong).contains("invalid user ID or password"),
            "{}",
            stderr(&wrong)
        );
        assert!(!stderr(&wrong).contains("another word"));
        let nobody = on_fleet("create", &[], &[&store[..6], &["--store".to_owned(), url.clone()]].concat());
        assert!(stderr(&nobody).contains("permission denied"), "{}", stderr(&nobody));
        let no_certificate = [&store[..2], &["--store".to_owned(), url.clone()]].concat();
        let nobody = on_fleet("create", &[], &no_certificate);
        assert!(
            stderr(&nobody)
                .contains("the store asks for a client certificate; give --cert FILE and --cert-key FILE"),
            "{}",
            stderr(&nobody)
        );
        let created = on_fleet("create", &["--key-file", &keys], &store);
        assert_eq!(created.status.code(), Some(0), "{}", stderr(&created));

        let control = folder.path("control");
        let server = Server::start(&["--control", &control]);
        let state = folder.path("state");
        let agent = |more: &[&str]| {
            let mut command = firstbyte();
            command.args(["fleet", "agent", "web", "--host", "here", "--interval", "100ms"]);
            command.args(["--control", &control, "--state", &state]).args(&store).args(more);
            command.stdout(Stdio::null()).stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        assert!(agent(&["--once"]).wait().unwrap().success());
        let cookie_of = |key: &str| {
            let said = run(&["fleet", "10.77.0.2", "--key-file", &keys]);
            assert!(
                said.status.success() && stdout(&said).contains(key),
                "{key}: {}{}",
                stdout(&said),
                stderr(&said)
            );
        };
        testnet::sysctl("net.ipv4.tcp_fastopen", "1");
        cookie_of("Its cookie was made with the primary key.");

        // Each login reads the password again. The rotation starts with the old content.
        std::fs::write(folder.path(PASSWORD), "another word\n").unwrap();
        let mut agent = Agent(agent(&[]));
        let mut complaint = String::new();
        BufReader::new(agent.0.stderr.take().unwrap()).read_line(&mut complaint).unwrap();
        assert!(complaint.contains("invalid user ID or password"), "{complaint}");
        std::fs::write(folder.path(PASSWORD), PASSWORD).unwrap();
        etcd.kill();
        etcd.restart();
        in_time("a rotation after the store has restarted", || on_fleet("rotate", &["--quiet", "0"], &store));
        let status = on_fleet("status", &["--json"], &store);
        let status: serde_json::Value = serde_json::from_str(stdout(&status)).unwrap();
        assert_eq!((&status["version"], &status["step"]), (&4.into(), &"settled".into()), "{status}");
        let said = run(&["fleet", "10.77.0.2", "--key-file", &keys]);
        assert!(stdout(&said).contains("Its cookie was made with neither key."), "{}", stdout(&said));
        assert_eq!(server.stop().0, Some(0));
        let secret = std::fs::read_to_string(&keys).unwrap();
        assert!(!std::fs::read_to_string(&state).unwrap().contains(secret.trim()), "the old key is gone");
    });
}
