//! etcd over HTTP: its JSON gateway, with TLS for https endpoints.
use super::tls::Tls;
use crate::failure::Failure;
use crate::secret::{self, warn_if_shared};
use clap::Args;
use fleet::etcd::{self, Call};
use fleet::layout::Stored;
use fleet::{Fleet, Layout};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// The store of a fleet's keys.
#[derive(Args, Debug)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// Client URLs of etcd 3.4 or later, separated by commas
    #[arg(long = "store", value_name = "URL", value_delimiter = ',', required = true, value_parser = endpoint)]
    endpoints: Vec<Endpoint>,
    /// CA certificates of the store (PEM), for https
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Client certificate for the store (PEM)
    #[arg(long, value_name = "FILE", requires = "cert_key")]
    cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    cert_key: Option<PathBuf>,
    /// User name for the store
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,
    /// File with the user's password; it is read at each login
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Allow sending cookie keys unencrypted to an http endpoint on another host
    #[arg(long)]
    plaintext: bool,
}

/// A member of the etcd cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Endpoint {
    is_tls: bool,
    host: String,
    port: u16,
}

/// Time limit of a call to one member.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer: more than the largest fleet needs.
const ANSWER_MAX: usize = 16 << 20;
/// Largest password file, bytes: far more than any password has.
const PASSWORD_MAX: u64 = 4096;
const PASSWORD: &str = "the password";
/// etcd's default port.
const PORT: u16 = 2379;
/// gRPC's code for an invalid token (codes.Unauthenticated).
const UNAUTHENTICATED: i64 = 16;

/// A call that failed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// No member answers: worth another attempt.
    Unreachable(String),
    /// The store rejected the call.
    Refused(String),
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Failure {
        match trouble {
            Trouble::Unreachable(why) => Failure::failed(format!("cannot reach the store: {why}")),
            Trouble::Refused(why) => Failure::failed(format!("the store: {why}")),
        }
    }
}

/// A client of the store.
pub(super) struct Store {
    endpoints: Vec<Endpoint>,
    /// Index of the member that answered last.
    at: usize,
    tls: Option<Tls>,
    /// User name, and the file with the password.
    login: Option<(String, PathBuf)>,
    token: Option<String>,
}

impl StoreArgs {
    /// Creates the client. Opens no connection yet.
    pub(super) fn open(&self) -> Result<Store, Failure> {
        if let Some(open) = self.endpoints.iter().find(|endpoint| !endpoint.is_tls && !endpoint.is_here())
            && !self.plaintext
        {
            return Err(Failure::usage(format!(
                "{} uses http: cookie keys would cross the network unencrypted; use https with \
                --cacert, or allow it with --plaintext",
                open.host
            )));
        }
        let any_tls = self.endpoints.iter().any(|endpoint| endpoint.is_tls);
        let login = match (&self.user, &self.password_file) {
            (Some(user), Some(file)) => {
                // Each login reads the file again. A file that cannot be used is an error at once.
                password(file)?;
                warn_if_shared(file, PASSWORD);
                Some((user.clone(), file.clone()))
            }
            _ => None,
        };
        Ok(Store {
            endpoints: self.endpoints.clone(),
            at: 0,
            tls: any_tls.then(|| self.tls()).transpose()?,
            login,
            token: None,
        })
    }

    fn tls(&self) -> Result<Tls, Failure> {
        let Some(cacert) = &self.cacert else {
            return Err(Failure::usage("https needs --cacert FILE with the CA certificates of the store"));
        };
        Tls::new(cacert, self.cert.as_deref().zip(self.cert_key.as_deref()))
    }
}

impl Store {
    /// Reads everything that is stored of a fleet.
    pub(super) async fn read(&mut self, layout: &Layout) -> Result<Stored, Trouble> {
        let answer = self.call(&layout.read()).await?;
        let entries = etcd::entries(&answer).map_err(Trouble::Refused)?;
        layout.stored(&entries).map_err(Trouble::Refused)
    }

    /// Calls [`read`](Self::read), and fails if the fleet does not exist.
    pub(super) async fn fleet(&mut self, layout: &Layout, name: &str) -> Result<(Fleet, Stored), Trouble> {
        let stored = self.read(layout).await?;
        match stored.fleet.clone() {
            Some(fleet) => Ok((fleet, stored)),
            None => Err(Trouble::Refused(format!(
                "there is no fleet {name}; `firstbyte fleet create {name}` creates it"
            ))),
        }
    }

    /// Runs a transaction. Returns true if its conditions held.
    pub(super) async fn transact(&mut self, call: &Call) -> Result<bool, Trouble> {
        etcd::succeeded(&self.call(call).await?).map_err(Trouble::Refused)
    }

    /// Renews the lease if it is still alive, or grants a new one of `seconds`.
    pub(super) async fn lease(&mut self, lease: Option<i64>, seconds: u64) -> Result<i64, Trouble> {
        if let Some(lease) = lease
            && etcd::is_alive(&self.call(&etcd::keep_alive(lease)).await?).map_err(Trouble::Refused)?
        {
            return Ok(lease);
        }
        etcd::granted(&self.call(&etcd::grant(seconds)).await?).map_err(Trouble::Refused)
    }

    /// Sends a call to the member that answered last, or to the next one that answers.
    pub(super) async fn call(&mut self, call: &Call) -> Result<Value, Trouble> {
        if self.token.is_none() {
            self.log_in().await?;
        }
        match self.anywhere(call).await? {
            (StatusCode::OK, answer) => Ok(answer),
            (_, answer) if self.login.is_some() && code(&answer) == Some(UNAUTHENTICATED) => {
                self.log_in().await?;
                refused(self.anywhere(call).await?)
            }
            other => refused(other),
        }
    }

    async fn log_in(&mut self) -> Result<(), Trouble> {
        let Some((user, file)) = &self.login else { return Ok(()) };
        let password = password(file).map_err(|failure| Trouble::Refused(failure.message().to_owned()))?;
        let call = etcd::authenticate(user, &password);
        self.token = None;
        let answer = refused(self.anywhere(&call).await?)?;
        self.token = Some(etcd::token(&answer).map_err(Trouble::Refused)?);
        Ok(())
    }

    async fn anywhere(&mut self, call: &Call) -> Result<(StatusCode, Value), Trouble> {
        let mut first = None;
        for turn in 0..self.endpoints.len() {
            let at = (self.at + turn) % self.endpoints.len();
            let endpoint = &self.endpoints[at];
            let asked = tokio::time::timeout(CALL_TIMEOUT, self.ask(endpoint, call)).await;
            let why = match asked {
                Ok(Ok(answer)) => {
                    self.at = at;
                    return Ok(answer);
                }
                Ok(Err(error)) => self.tls.as_ref().map_or_else(|| error.to_string(), |tls| tls.why(&error)),
                Err(_) => format!("no answer within {} s", CALL_TIMEOUT.as_secs()),
            };
            first.get_or_insert(format!("{}, port {}: {why}", endpoint.host, endpoint.port));
        }
        Err(Trouble::Unreachable(first.unwrap_or_default()))
    }

    async fn ask(&self, endpoint: &Endpoint, call: &Call) -> io::Result<(StatusCode, Value)> {
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
        match (&self.tls, endpoint.is_tls) {
            (Some(tls), true) => {
                let name = ServerName::try_from(endpoint.host.clone()).map_err(io::Error::other)?;
                let tls = TlsConnector::from(tls.config.clone());
                self.exchange(tls.connect(name, stream).await?, endpoint, call).await
            }
            _ => self.exchange(stream, endpoint, call).await,
        }
    }

    async fn exchange<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        endpoint: &Endpoint,
        call: &Call,
    ) -> io::Result<(StatusCode, Value)> {
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.map_err(io::Error::other)?;
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(call.path)
            .header(HOST, format!("{}:{}", endpoint.host, endpoint.port))
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        let body = Full::new(Bytes::from(call.body.to_string()));
        let request = request.body(body).map_err(io::Error::other)?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(io::Error::other)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
            let body = body.map_err(io::Error::other)?.to_bytes();
            // A body that is not JSON is not from etcd's gateway; the status says more.
            Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
        };
        tokio::pin!(connection);
        tokio::pin!(exchange);
        tokio::select! {
            answer = &mut exchange => answer,
            ended = &mut connection => match ended {
                Err(error) => Err(io::Error::other(error)),
                Ok(()) => exchange.await,
            },
        }
    }
}

impl Endpoint {
    /// True if the endpoint is on this machine.
    fn is_here(&self) -> bool {
        self.host == "localhost"
            || self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// Parses `http://HOST[:PORT]` or `https://HOST[:PORT]`.
fn endpoint(text: &str) -> Result<Endpoint, String> {
    let wrong = || "expected http://HOST:2379 or https://HOST:2379".to_owned();
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let is_tls = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(wrong()),
    };
    if uri.path_and_query().is_some_and(|path| path.as_str() != "/") {
        return Err(wrong());
    }
    let authority =
        uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(wrong)?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = match authority.as_str().strip_prefix(authority.host()).unwrap_or_default() {
        "" | ":" => PORT,
        given => given[1..].parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?,
    };
    Ok(Endpoint { is_tls, host, port })
}

fn password(path: &Path) -> Result<String, Failure> {
    let text = secret::read(path, PASSWORD_MAX, PASSWORD)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn code(answer: &Value) -> Option<i64> {
    answer.get("code")?.as_i64()
}

fn refused((status, answer): (StatusCode, Value)) -> Result<Value, Trouble> {
    match status {
        StatusCode::OK => Ok(answer),
        // The member has no leader, or is starting.
        status if status.is_server_error() => Err(Trouble::Unreachable(said(status, &answer))),
        status => Err(Trouble::Refused(said(status, &answer))),
    }
}

fn said(status: StatusCode, answer: &Value) -> String {
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => error.to_owned(),
        None => format!("HTTP {status}: is that etcd 3.4 or later?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read() {
        let read = |text| endpoint(text).map(|Endpoint { is_tls, host, port }| (is_tls, host, port));
        assert_eq!(read("http://10.0.0.1:2379"), Ok((false, "10.0.0.1".into(), 2379)));
        assert_eq!(read("https://etcd.example/"), Ok((true, "etcd.example".into(), 2379)));
        assert_eq!(read("https://[::1]:23"), Ok((true, "::1".into(), 23)));
        for wrong in [
            "",
            "etcd:2379",
            "ftp://a",
            "http://a/b",
            "http://u:p@a",
            "http://",
            "http://a:99999",
            "http://a:0",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
