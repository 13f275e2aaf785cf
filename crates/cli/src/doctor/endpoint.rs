//! Serves metrics over HTTP: hyper on the kernel's sockets.
use super::reading::Looks;
use super::{DoctorArgs, not_done};
use crate::failure::Failure;
use crate::terminal::print;
use doctor::{Pace, Policy, Report, Sample, Slowed, Window};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Time limit for a client to send the head of its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest life of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Most clients at once. A monitoring system needs one; others wait in the backlog.
const CONNECTIONS_MAX: usize = 64;
/// Pause before the next attempt when descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The metrics of the last window.
type Latest = Arc<Mutex<String>>;

/// Serves until interrupted.
pub(super) fn serve(args: &DoctorArgs, policy: &Policy, address: SocketAddr) -> Result<ExitCode, Failure> {
    let failed = |what: &str, error: std::io::Error| not_done(Failure::failed(format!("{what}: {error}")));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed("cannot start", error))?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| failed(&format!("cannot listen on {address}"), error))?;
        let bound = listener.local_addr().map_err(|error| failed("cannot listen", error))?;
        let mut pace = Pace::new(args.interval, args.budget);
        let mut looks = Looks::new(args);
        let mut before = looks.next()?;
        let latest = Latest::new(Mutex::new(metrics(&before, &before, policy, None)));
        print(&format!("metrics at http://{bound}/metrics\n"))?;
        let mut next = Instant::now() + pace.rest();
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next) => {
                    let now = looks.next()?;
                    let text = metrics(&before, &now, policy, pace.slowed());
                    *latest.lock().unwrap_or_else(PoisonError::into_inner) = text;
                    before = now;
                    next = Instant::now() + pace.rest();
                }
                (stream, place) = accept(&listener, &places) => {
                    let latest = latest.clone();
                    tokio::spawn(async move {
                        answer(stream, latest).await;
                        drop(place);
                    });
                }
                _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
            }
        }
    })
}

/// Accepts the next client when there is a place for it. Ignores a client that is already gone.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed, which would be the only error.
    let place = places.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

fn metrics(before: &Sample, now: &Sample, policy: &Policy, slowed: Option<Slowed>) -> String {
    let report = Report::by(&Window::between(before, now).by(policy.limits()), policy);
    Report { slowed, ..report }.prometheus()
}

async fn answer(stream: TcpStream, latest: Latest) {
    let service = service_fn(move |request: Request<Incoming>| {
        let body = latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        async move { Ok::<_, Infallible>(reply(&request, body)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    // Errors of a client do not concern the server.
    let _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
}

fn reply(request: &Request<Incoming>, body: String) -> Response<Full<Bytes>> {
    let (status, kind, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, OPEN_METRICS, body),
        (&Method::GET | &Method::HEAD, _) => {
            (StatusCode::NOT_FOUND, "text/plain", "look at /metrics\n".to_owned())
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n".to_owned()),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}
