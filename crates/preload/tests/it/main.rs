//! Unmodified programs on the stack: Python's use of sockets among other descriptors, its HTTP
//! server, nginx, curl.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;
use testnet::{counters, in_namespace, sysctl};

/// Returns the path of libfirstbyte_preload.so, after building it if needed.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| testnet::built("firstbyte-preload").join("libfirstbyte_preload.so"))
}

/// The distribution's own programs, without what stands in front of them in `PATH`.
const PATH: &str = "/usr/bin:/bin:/usr/local/bin:/usr/sbin";

/// A program over a stack; `None`, after a line that says so, where it is not installed.
fn over_the_stack(program: &str, stack: &str) -> Option<Command> {
    if !PATH.split(':').any(|folder| Path::new(folder).join(program).is_file()) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs {program}");
        return None;
    }
    let mut command = Command::new("/usr/bin/env");
    command.env("PATH", PATH).arg(format!("FIRSTBYTE={stack}"));
    command.arg(format!("LD_PRELOAD={}", library().display())).arg(program);
    Some(command)
}

struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn python_finds_sockets_as_the_kernels_among_other_descriptors() {
    let Some(mut python) = over_the_stack("python3", "device loopback; address 10.0.0.2/24") else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mixed.py");
    let output = python.arg(script).output().unwrap();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
}

#[test]
fn threads_are_cancelled_handlers_send_and_large_writes_are_cheap() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/habits.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("habits-{}", std::process::id()));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g"]).arg(source).arg("-o").arg(&program);
    assert!(cc.arg("-lpthread").status().unwrap().success(), "{cc:?}");
    let mut habits = Command::new(&program);
    habits.env("FIRSTBYTE", "device loopback; address 10.0.0.2/24").env("LD_PRELOAD", library());
    let output = habits.output().unwrap();
    fs::remove_file(program).unwrap();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_program_without_a_stack_says_why() {
    let Some(mut python) = over_the_stack("python3", "device loopback") else { return };
    let output = python.args(["-c", "import socket; socket.socket()"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("libfirstbyte_preload: a stack needs an address of its own"), "{said}");
    assert!(said.contains("Network is down"), "{said}");
}

/// A server that forks for each client: the child says what is wrong and ends, so that the client
/// is not left waiting, and the parent goes on.
const FORKING: &str = "
import errno, os, socket, socketserver, threading
address = ('10.0.0.2', 80)

class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            self.request.recv(1)
            os._exit(1)
        except OSError as error:
            os._exit(42 if error.errno == errno.ENETDOWN else 2)

def visit():
    with socket.create_connection(address) as client:
        client.settimeout(20)
        client.send(b'x')
        try:
            assert client.recv(1) == b''
        except ConnectionResetError:
            pass

with socketserver.ForkingTCPServer(address, Handler) as server:
    for _ in range(2):
        visitor = threading.Thread(target=visit)
        visitor.start()
        server.handle_request()
        visitor.join()
child = os.fork()
if child == 0:
    try:
        socket.socket()
    except OSError as error:
        os._exit(43 if error.errno == errno.ENETDOWN else 2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 43
print('the parent goes on')
";

#[test]
fn a_program_that_forks_is_told_why_its_children_have_no_sockets() {
    let Some(mut python) = over_the_stack("python3", "device loopback; address 10.0.0.2/24") else { return };
    let output = python.args(["-c", FORKING]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "the parent goes on\n");
    assert_eq!(said.matches("was forked from").count(), 3, "each child once: {said}");
    assert!(said.contains("run the program as one process"), "{said}");
}

/// Only children wait for connections at some listeners, each by another call; at the last one the
/// parent does, too. A child that only executes another program reports nothing.
const PREFORKING: &str = "
import os, select, socket, subprocess
calls = [
    lambda listener: listener.accept(),
    lambda listener: select.select([listener], [], []),
    lambda listener: (poll := select.poll(), poll.register(listener), poll.poll()),
    lambda listener: select.epoll().register(listener),
]
ports = range(80, 80 + len(calls))
listeners = [socket.create_server(('10.0.0.2', port)) for port in ports]
attended = socket.create_server(('10.0.0.2', 90))
attended.settimeout(20)
copy = listeners[0].dup()

def serve():
    with socket.create_connection(('10.0.0.2', 90)) as client:
        attended.accept()[0].send(b'x')
        assert client.recv(1) == b'x'

subprocess.run(['true'], close_fds=False, preexec_fn=lambda: None, check=True)
early = socket.create_connection(('10.0.0.2', 80), 20)
serve()
child = os.fork()
if child == 0:
    for call, listener in zip(calls + calls[:1], listeners + [attended]):
        try:
            call(listener)
            os._exit(2)
        except OSError:
            pass
    os._exit(44)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 44
try:
    early.recv(1)
    raise SystemExit('a client of the queue is left there')
except ConnectionResetError:
    pass
for port in ports:
    while True:
        try:
            client = socket.create_connection(('10.0.0.2', port), 20)
            client.settimeout(20)
            assert client.recv(1) == b''
        except ConnectionRefusedError:
            break
        except ConnectionResetError:
            pass
serve()
listeners[1].close()
with socket.create_server(('10.0.0.2', ports[1])) as again, socket.create_connection(('10.0.0.2', ports[1])) as client:
    again.accept()[0].send(b'y')
    assert client.recv(1) == b'y'
print('the parent goes on')
";

#[test]
fn listeners_that_only_children_wait_at_are_closed() {
    let Some(mut python) = over_the_stack("python3", "device loopback; address 10.0.0.2/24") else { return };
    let output = python.args(["-c", PREFORKING]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "the parent goes on\n");
    assert_eq!(said.matches("was forked from").count(), 1, "{said}");
    assert_eq!(said.matches("stopped listening at").count(), 4, "{said}");
    for port in 80..84 {
        assert!(
            said.contains(&format!("stopped listening at 10.0.0.2:{port}: only forked processes")),
            "{said}"
        );
    }
}

const STACK: &str = "device tun0; device-address 10.0.0.1/24; address 10.0.0.2/24";

/// A folder of this process with one file in it, `page`, which is given, too.
fn folder_with_a_page(name: &str) -> (PathBuf, Vec<u8>) {
    let folder = std::env::temp_dir().join(format!("firstbyte-preload-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let page: Vec<u8> = (0..1_000_000_u32).map(|at| (at * 7 % 251) as u8).collect();
    fs::write(folder.join("page"), &page).unwrap();
    (folder, page)
}

/// Asks the server over ours for the page, by the kernel's TCP.
fn get_the_page(mut client: TcpStream, page: &[u8]) {
    client.write_all(b"GET /page HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(page), "{} bytes", answer.len());
}

#[test]
fn pythons_http_server_serves_the_kernel() {
    let (folder, page) = folder_with_a_page("python");
    in_namespace(|| {
        let Some(mut python) = over_the_stack("python3", STACK) else { return };
        python.args(["-u", "-m", "http.server", "80"]).current_dir(&folder);
        let mut server = Ends(python.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
        // It says that it listens.
        server.0.stdout.as_mut().unwrap().read_exact(&mut [0; 10]).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| get_the_page(TcpStream::connect("10.0.0.2:80").unwrap(), &page));
            }
        });
    });
    fs::remove_dir_all(folder).unwrap();
}

/// tokio adds its sockets by a duplicate of the number that it waits for.
#[test]
fn a_program_on_tokio_serves_the_kernel() {
    in_namespace(|| {
        let program = testnet::built("firstbyte-cli").join("firstbyte");
        let mut doctor = Command::new("/usr/bin/env");
        doctor.arg(format!("FIRSTBYTE={STACK}")).arg(format!("LD_PRELOAD={}", library().display()));
        doctor.arg(program).args(["doctor", "--listen", "10.0.0.2:80"]).stdout(Stdio::piped());
        let mut server = Ends(doctor.spawn().unwrap());
        // It says that it listens.
        server.0.stdout.as_mut().unwrap().read_exact(&mut [0; 10]).unwrap();
        let mut client = TcpStream::connect("10.0.0.2:80").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        client.write_all(b"GET /nothing HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.0 404", "{}", String::from_utf8_lossy(&answer));
    });
}

/// Its backlog is 5: who finds the queue full tries again, and is served.
#[test]
fn pythons_http_server_serves_more_at_once_than_its_queue_holds() {
    let (folder, _) = folder_with_a_page("queue");
    fs::write(folder.join("small"), "hello").unwrap();
    in_namespace(|| {
        let Some(mut python) = over_the_stack("python3", STACK) else { return };
        if !testnet::has_program("ab") {
            let _ = writeln!(std::io::stderr(), "SKIPPED: needs ab (apache2-utils)");
            return;
        }
        python.args(["-u", "-m", "http.server", "80"]).current_dir(&folder);
        let mut server = Ends(python.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
        server.0.stdout.as_mut().unwrap().read_exact(&mut [0; 10]).unwrap();
        let mut ab = Command::new("ab");
        let output = ab.args(["-q", "-n", "2000", "-c", "20", "http://10.0.0.2/small"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            said.lines().any(|line| line.starts_with("Failed requests:") && line.ends_with(" 0")),
            "{said}"
        );
    });
    fs::remove_dir_all(folder).unwrap();
}

/// nginx as one process, because the workers of a master could not use the stack.
const NGINX: &str = "
    daemon off; master_process off; user root; pid FOLDER/pid; error_log stderr;
    events {}
    http {
        access_log off; sendfile on; tcp_nopush on; root FOLDER;
        client_body_temp_path FOLDER/body; proxy_temp_path FOLDER/proxy; fastcgi_temp_path FOLDER/fastcgi;
        uwsgi_temp_path FOLDER/uwsgi; scgi_temp_path FOLDER/scgi;
        server { listen 10.0.0.2:80 fastopen=16; }
    }
";

/// Event loop, `sendfile`, corks, and requests on SYNs.
#[test]
fn nginx_serves_the_kernel_and_takes_fast_open() {
    let (folder, page) = folder_with_a_page("nginx");
    let settings = folder.join("conf");
    fs::write(&settings, NGINX.replace("FOLDER", folder.to_str().unwrap())).unwrap();
    in_namespace(|| {
        sysctl("net.ipv4.tcp_fastopen", "1");
        let Some(mut nginx) = over_the_stack("nginx", STACK) else { return };
        if !testnet::has_program("curl") {
            let _ = writeln!(std::io::stderr(), "SKIPPED: needs curl");
            return;
        }
        let mut server = Ends(nginx.arg("-c").arg(&settings).spawn().unwrap());
        // Its process number is written when it listens.
        while !folder.join("pid").exists() {
            assert_eq!(server.0.try_wait().unwrap(), None, "it has ended");
            thread::sleep(Duration::from_millis(5));
        }
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| get_the_page(TcpStream::connect("10.0.0.2:80").unwrap(), &page));
            }
        });
        let accepted = || counters().of("TCPFastOpenActive");
        for visit in 0..3 {
            let mut curl = Command::new("/usr/bin/curl");
            curl.args(["--silent", "--show-error", "--max-time", "10", "--tcp-fastopen"]);
            let output = curl.arg("http://10.0.0.2/page").output().unwrap();
            assert!(output.stdout == page, "{} bytes, {:?}", output.stdout.len(), output.stderr);
            // The first visit asks for a cookie.
            assert_eq!(accepted(), visit, "visit {visit}");
        }
    });
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn curl_reaches_loopback_by_the_kernel() {
    in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:9999").unwrap();
        let server = thread::spawn(move || {
            let (mut stream, peer) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello").unwrap();
            peer
        });
        let Some(mut curl) = over_the_stack("curl", STACK) else { return };
        curl.args(["--silent", "--show-error", "--max-time", "10", "http://127.0.0.1:9999/"]);
        let output = curl.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "hello", "{output:?}");
        assert!(server.join().unwrap().ip().is_loopback());
        let Some(mut curl) = over_the_stack("curl", STACK) else { return };
        let refused = curl.args(["--silent", "--max-time", "10", "http://127.0.0.1:9999/"]).status().unwrap();
        assert_eq!(refused.code(), Some(7), "curl: failed to connect");
    });
}

#[test]
fn curl_puts_its_request_on_the_syn() {
    in_namespace(|| {
        // 0x400: every listener has a Fast Open queue.
        sysctl("net.ipv4.tcp_fastopen", "0x403");
        let listener = TcpListener::bind("0.0.0.0:80").unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = [0; 4096];
                while !request.windows(4).any(|window| window == b"\r\n\r\n") {
                    assert!(stream.read(&mut request).unwrap() > 0);
                }
                stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello").unwrap();
            }
        });
        let cache = std::env::temp_dir().join(format!("firstbyte-preload-cache-{}", std::process::id()));
        let stack = format!("{STACK}; cache {}", cache.display());
        let before = counters();
        for visit in 0..2 {
            let Some(mut curl) = over_the_stack("curl", &stack) else { return };
            curl.args(["--silent", "--show-error", "--max-time", "10", "--tcp-fastopen", "http://10.0.0.1/"]);
            let output = curl.output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), "hello", "{output:?}");
            // The first visit asks for a cookie, which the next process finds in the file.
            let taken = counters().of("TCPFastOpenPassive") - before.of("TCPFastOpenPassive");
            assert_eq!(taken, visit, "visit {visit}");
        }
        fs::remove_file(cache).unwrap();
    });
}
