//! A gRPC server and its client with tonic, on the kernel's sockets. Needs no root, and no protoc.
//!
//! ```text
//! cargo run -p firstbyte --example tonic --features tonic,hyper-util
//! ```
//!
//! A call is a POST, which may ride on the SYN only if the service says that it may be executed
//! twice: `FirstRequest::Always`. The server accepts data on the SYN if bit 2 of
//! `net.ipv4.tcp_fastopen` is set: `sysctl -w net.ipv4.tcp_fastopen=3` as root, once.
use firstbyte::http::{Connector, FirstRequest};
use firstbyte::{Net, PeerInfo, TcpListener};
use hyper::http;
use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::server::UnaryService;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower_service::Service;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let net = Net::kernel();
    let listener = TcpListener::builder(&net).fast_open(16).bind("127.0.0.1:0").await?;
    let endpoint = Endpoint::from_shared(format!("http://{}", listener.local_addr()?))?;
    tokio::spawn(Server::builder().serve_with_incoming(Greeter, listener));

    for visit in ["first visit", "repeat visit"] {
        let connector = Connector::new(&net).first_request(FirstRequest::Always);
        let channel = endpoint.connect_with_connector(connector).await?;
        println!("{visit}: {}", hello(channel, "world").await?);
    }
    Ok(())
}

/// Calls `SayHello`, as code that tonic generates does.
pub(crate) async fn hello(channel: Channel, name: &str) -> Result<String, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = http::uri::PathAndQuery::from_static("/hello.Greeter/SayHello");
    let request = Request::new(HelloRequest { name: name.to_owned() });
    let codec = ProstCodec::<HelloRequest, HelloReply>::default();
    Ok(client.unary(request, path, codec).await?.into_inner().message)
}

/// `message HelloRequest { string name = 1; }`
#[derive(Clone, PartialEq, prost::Message)]
struct HelloRequest {
    #[prost(string, tag = "1")]
    name: String,
}

/// `message HelloReply { string message = 1; }`
#[derive(Clone, PartialEq, prost::Message)]
struct HelloReply {
    #[prost(string, tag = "1")]
    message: String,
}

/// `service Greeter { rpc SayHello (HelloRequest) returns (HelloReply); }`
#[derive(Clone)]
pub(crate) struct Greeter;

impl Service<http::Request<Body>> for Greeter {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let codec = ProstCodec::<HelloReply, HelloRequest>::default();
            Ok(tonic::server::Grpc::new(codec).unary(SayHello, request).await)
        })
    }
}

struct SayHello;

impl UnaryService<HelloRequest> for SayHello {
    type Response = HelloReply;
    type Future = std::future::Ready<Result<Response<HelloReply>, Status>>;

    fn call(&mut self, request: Request<HelloRequest>) -> Self::Future {
        let early = request.extensions().get::<PeerInfo>().map_or(0, |peer| peer.early_data().len);
        let name = request.into_inner().name;
        let message = format!("hello {name}; {early} bytes came on the SYN");
        std::future::ready(Ok(Response::new(HelloReply { message })))
    }
}
