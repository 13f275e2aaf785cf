//! Requests that may be replays, as HTTP handles them (RFC 8470).
use crate::PeerInfo;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// The header field that tells a server behind this one of the risk (RFC 8470 §5.1).
const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

type Answer<R, E> = Pin<Box<dyn Future<Output = Result<R, E>> + Send>>;

/// Guards a server's handlers from replays: a layer for axum and other tower services.
///
/// A request that came before the handshake was complete may be a replay. GET, HEAD and OPTIONS are
/// passed on with `Early-Data: 1`, so that handlers and the servers behind them know. Everything
/// else is answered with 425 Too Early (RFC 8470 §5.2): the client repeats it after the handshake.
///
/// The connection is found in the request's extensions: axum's `ConnectInfo<PeerInfo>`, or a
/// [`PeerInfo`] of your own. Without, requests pass unchanged.
///
/// ```
/// # #[cfg(feature = "axum")]
/// # async fn example(listener: firstbyte::tls::TlsListener) -> std::io::Result<()> {
/// use axum::{Router, routing::get};
/// use firstbyte::{PeerInfo, http::EarlyDataLayer};
///
/// let router = Router::new().route("/", get(|| async { "hello" })).layer(EarlyDataLayer);
/// axum::serve(listener, router.into_make_service_with_connect_info::<PeerInfo>()).await
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct EarlyDataLayer;

impl<S> Layer<S> for EarlyDataLayer {
    type Service = EarlyData<S>;

    fn layer(&self, inner: S) -> EarlyData<S> {
        EarlyData { inner }
    }
}

/// The service of an [`EarlyDataLayer`].
#[derive(Clone, Debug)]
pub struct EarlyData<S> {
    inner: S,
}

impl<S, B, R> Service<Request<B>> for EarlyData<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: Default + Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Answer<Response<R>, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if peer(&request).is_some_and(PeerInfo::is_early) {
            if !is_safe(request.method()) {
                let mut response = Response::new(R::default());
                *response.status_mut() = StatusCode::TOO_EARLY;
                return Box::pin(std::future::ready(Ok(response)));
            }
            request.headers_mut().insert(EARLY_DATA, HeaderValue::from_static("1"));
        }
        Box::pin(self.inner.call(request))
    }
}

fn peer<B>(request: &Request<B>) -> Option<&PeerInfo> {
    #[cfg(feature = "axum")]
    if let Some(info) = request.extensions().get::<axum::extract::ConnectInfo<PeerInfo>>() {
        return Some(&info.0);
    }
    request.extensions().get::<PeerInfo>()
}

/// Methods that change nothing at the server (RFC 9110 §9.2.1).
fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Repeats a client's requests that were answered with 425 Too Early: a layer around hyper-util's
/// client and other tower services.
///
/// A request is repeated once, when its connection has completed the handshake, so that it is not
/// early any more (RFC 8470 §5.2). The body must be one that can be cloned.
///
/// ```
/// use firstbyte::{Net, http::{Connector, RetryTooEarlyLayer}};
/// use http_body_util::Empty;
/// use hyper::body::Bytes;
/// use hyper_util::{client::legacy::Client, rt::TokioExecutor};
/// use tower_layer::Layer;
///
/// let connector = Connector::new(&Net::kernel());
/// let client = Client::builder(TokioExecutor::new()).build::<_, Empty<Bytes>>(connector);
/// let client = RetryTooEarlyLayer.layer(client);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryTooEarlyLayer;

impl<S> Layer<S> for RetryTooEarlyLayer {
    type Service = RetryTooEarly<S>;

    fn layer(&self, inner: S) -> RetryTooEarly<S> {
        RetryTooEarly { inner }
    }
}

/// The service of a [`RetryTooEarlyLayer`].
#[derive(Clone, Debug)]
pub struct RetryTooEarly<S> {
    inner: S,
}

impl<S, B, R> Service<Request<B>> for RetryTooEarly<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Clone + Send + 'static,
    R: Send,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Answer<Response<R>, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The clone may not be ready; the service that was polled is.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        Box::pin(async move {
            let again = request.clone();
            let response = inner.call(request).await?;
            if response.status() != StatusCode::TOO_EARLY {
                return Ok(response);
            }
            std::future::poll_fn(|cx| inner.poll_ready(cx)).await?;
            inner.call(again).await
        })
    }
}
