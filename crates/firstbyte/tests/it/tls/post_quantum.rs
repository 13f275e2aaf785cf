//! A key share that is too long for a SYN: sent without a ticket, left out with one.
use super::*;
use crate::pair::patient;
use firstbyte::tls::PostQuantum;
use firstbyte::tls::rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup, ring,
};
use firstbyte::tls::rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use firstbyte::tls::rustls::{Error, NamedGroup, ServerConfig};

/// X25519 under the name of X25519MLKEM768, with shares as long as its. ring has no post-quantum
/// group, and only the length matters here.
#[derive(Debug)]
struct AsLong;

/// Bytes of a client's share of X25519MLKEM768.
const SHARE: usize = 1216;

struct Exchange {
    x25519: Box<dyn ActiveKeyExchange>,
    share: Vec<u8>,
}

impl SupportedKxGroup for AsLong {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let x25519 = ring::kx_group::X25519.start()?;
        let mut share = x25519.pub_key().to_vec();
        share.resize(SHARE, 0);
        Ok(Box::new(Exchange { x25519, share }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        self.x25519.complete(&peer[..32])
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.kx_groups.insert(0, &AsLong);
    Arc::new(provider)
}

fn acceptor() -> TlsAcceptor {
    let (chain, key, _) = certified();
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::new(config).unwrap()
}

/// One visit: the group that was chosen, the bytes on the SYN, and the packets to the answer.
#[derive(Debug, PartialEq)]
struct Visit {
    group: NamedGroup,
    on_syn: usize,
    packets: usize,
}

/// Makes two visits.
async fn visits(post_quantum: PostQuantum) -> [Visit; 2] {
    let pair = Pair::with(patient(), patient());
    let address = "10.0.0.1:443".parse().unwrap();
    let listener = TcpListener::builder(&pair.server).fast_open(16).bind(address).await.unwrap();
    let server = Server::on(listener, address, acceptor());
    let mut roots = RootCertStore::empty();
    roots.add(certified().2.clone()).unwrap();
    let builder = TlsConnector::builder().roots(roots).provider(provider());
    let connector = builder.post_quantum(post_quantum).build().unwrap();
    // The first connection only fetches a cookie.
    drop(firstbyte::TcpStream::connect_with(&pair.client, address, "x").await.unwrap());
    [visit(&pair, &connector, &server).await, visit(&pair, &connector, &server).await]
}

async fn visit(pair: &Pair, connector: &TlsConnector, server: &Server) -> Visit {
    pair.until_empty().await;
    pair.take_log();
    let mut stream = connector.connect_deferred(&pair.client, server.address, NAME).await.unwrap();
    stream.write_all(GET).await.unwrap();
    stream.flush().await.unwrap();
    stream.read_exact(&mut [0; 6]).await.unwrap();
    let log = pair.take_log();
    let group = stream.connection().unwrap().negotiated_key_exchange_group().unwrap().name();
    drop(stream);
    until_known(connector, server).await;
    let answer = log.iter().rposition(|packet| !packet.from_client && packet.payload_len > 0).unwrap();
    Visit { group, on_syn: log[0].payload_len, packets: answer + 1 }
}

#[tokio::test]
async fn a_post_quantum_share_is_sent_without_a_ticket_only() {
    bounded(async {
        let [first, repeat] = visits(PostQuantum::default()).await;
        // The first ClientHello fills the SYN; the second leaves room for the request.
        assert_eq!(first.group, NamedGroup::X25519MLKEM768);
        assert!(first.on_syn > 1400, "{first:?}");
        assert_eq!((repeat.group, repeat.packets), (NamedGroup::X25519, 2));
        assert!(repeat.on_syn < 500, "{repeat:?}");
    })
    .await;
}

#[tokio::test]
async fn a_post_quantum_share_on_each_visit_costs_a_round_trip() {
    bounded(async {
        let [_, repeat] = visits(PostQuantum::Always).await;
        assert_eq!((repeat.group, repeat.on_syn), (NamedGroup::X25519MLKEM768, 1428));
        assert!(repeat.packets > 2, "{repeat:?}");
    })
    .await;
}

#[tokio::test]
async fn no_post_quantum_share_is_sent_where_none_is_wanted() {
    bounded(async {
        for visit in visits(PostQuantum::Never).await {
            assert_eq!(visit.group, NamedGroup::X25519);
            assert!(visit.on_syn < 500, "{visit:?}");
        }
    })
    .await;
}
