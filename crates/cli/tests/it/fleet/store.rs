//! etcd from Debian, in this thread's namespace.
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const PORT: u16 = 2379;

/// A store of one member. Killed when dropped.
pub(super) struct Etcd {
    child: Option<Child>,
    folder: PathBuf,
    url: String,
    options: Vec<String>,
}

impl Etcd {
    pub(super) fn start() -> Etcd {
        Etcd::start_with("open", "http", &[])
    }

    /// Starts etcd with extra options; `name` keeps its data apart.
    pub(super) fn start_with(name: &str, scheme: &str, options: &[String]) -> Etcd {
        let folder = std::env::temp_dir().join(format!("firstbyte-etcd-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let url = format!("{scheme}://127.0.0.1:{PORT}");
        let mut etcd = Etcd { child: None, folder, url, options: options.to_vec() };
        etcd.restart();
        etcd
    }

    pub(super) fn url(&self) -> String {
        self.url.clone()
    }

    /// Starts it again with its existing data.
    pub(super) fn restart(&mut self) {
        let url = self.url();
        let mut command = testnet::command("etcd");
        command.arg("--data-dir").arg(&self.folder).args(&self.options);
        for option in ["--listen-client-urls", "--advertise-client-urls"] {
            command.args([option, &url]);
        }
        let log = std::fs::File::create(self.folder.with_extension("log")).unwrap();
        self.child = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", PORT)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "etcd does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills it.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
        let _ = std::fs::remove_file(self.folder.with_extension("log"));
    }
}
