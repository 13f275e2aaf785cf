//! Under loss, duplication, reordering and damage, every byte arrives once and in order, and every
//! request is served once.

use bytes::Bytes;
use lab::apps::{Client, Closer, Opening, Server, Service, Visit};
use lab::capture::HostId;
use lab::exchange::exchanges;
use lab::network::{HostPlan, Network, Profile, Route};
use proto::FastOpen;
use qdisc::{Limit, LinkConfig, Loss, Probability, Reorder};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

const DELAY_NANOS: u64 = 20_000_000;
const LIMIT: Duration = Duration::from_secs(900);

struct Lab {
    network: Network,
    client: HostId,
    server: HostId,
    peer: SocketAddr,
    request: Bytes,
    reply: Bytes,
    closer: Closer,
}

impl Lab {
    fn new(
        seed: u64,
        profile: Profile,
        closer: Closer,
        route: Route,
        request_len: usize,
        reply_len: usize,
    ) -> Lab {
        let (here, there) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 1));
        let peer = SocketAddr::from((there, 80));
        let mut network = Network::new(seed);
        let client = network.add_host(HostPlan::new(profile, here), Client::new());
        let reply = pattern(reply_len, 7);
        let service = Service::Answer { request_len, reply: reply.clone(), think: Duration::ZERO };
        let program = Server::new(peer, Some(16), service, closer);
        let server = network.add_host(HostPlan::new(profile, there), program);
        network.join(client, server, route);
        Lab { network, client, server, peer, request: pattern(request_len, 3), reply, closer }
    }

    /// Makes a visit and compares both programs' bytes with what the other end sent.
    fn visit(&mut self, opening: Opening) -> Result<(), String> {
        let visit = Visit {
            peer: self.peer,
            local: None,
            opening,
            request: self.request.clone(),
            reply: self.reply.clone(),
            closer: self.closer,
        };
        let index = self
            .network
            .with_app(self.client, |client: &mut Client, sys| client.begin(sys, visit))
            .expect("ports are free");
        let served_before = self.network.app::<Server>(self.server).deliveries().len();
        let quiet = self.network.run_until_quiet(LIMIT);
        let end = self.network.app::<Client>(self.client).ends()[index].ok_or("the visit never ended")?;
        let deliveries = &self.network.app::<Server>(self.server).deliveries()[served_before..];
        let exact = deliveries.iter().all(|delivery| delivery.request == self.request);
        match (end.is_exact, end.failure, deliveries.len(), exact, quiet) {
            (true, None, 1, true, true) => Ok(()),
            seen => Err(format!("(exact reply, failure, times served, exact request, quiet) = {seen:?}")),
        }
    }
}

fn pattern(len: usize, step: usize) -> Bytes {
    (0..len).map(|index| (index * step) as u8).collect()
}

const FAST_OPEN: Opening = Opening::FirstBytes(FastOpen::Auto);

/// Returns the numbers of the packets that a bit mask selects in one direction, counted from 1
/// after the first visit's.
fn chosen(mask: u32, already_sent: u64) -> impl Iterator<Item = u64> {
    (0..32u64).filter(move |bit| mask >> bit & 1 != 0).map(move |bit| already_sent + 1 + bit)
}

/// Returns the packets in each direction of an undisturbed first visit.
fn packets_of_first_visit(profile: Profile, closer: Closer) -> [u64; 2] {
    let wire = || LinkConfig::new().delay(DELAY_NANOS);
    let mut lab = Lab::new(1, profile, closer, Route::new().wire(wire(), wire()), 200, 500);
    lab.visit(FAST_OPEN).expect("an undisturbed visit");
    let journeys = exchanges(lab.network.capture(), lab.client).remove(0).journeys;
    [lab.client, lab.server]
        .map(|host| journeys.iter().filter(|journey| journey.sent.host == Some(host)).count() as u64)
}

#[test]
fn any_subset_of_the_first_packets_may_be_lost() {
    for profile in [Profile::Firstbyte, Profile::Linux] {
        for closer in [Closer::Server, Closer::Client] {
            let [client_sent, server_sent] = packets_of_first_visit(profile, closer);
            for mask in 0..1u32 << 8 {
                let there = LinkConfig::new().delay(DELAY_NANOS).drop_nth(chosen(mask & 0xf, client_sent));
                let back = LinkConfig::new().delay(DELAY_NANOS).drop_nth(chosen(mask >> 4, server_sent));
                let mut lab = Lab::new(1, profile, closer, Route::new().wire(there, back), 200, 500);
                lab.visit(FAST_OPEN).unwrap();
                let repeat = lab.visit(FAST_OPEN);
                assert_eq!(repeat, Ok(()), "{profile:?} {closer:?}, lost {mask:#010b}");
            }
        }
    }
}

/// Returns the number of seeds of the random test; `LAB_SEEDS=5000` runs more.
fn seeds() -> u64 {
    std::env::var("LAB_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

const FIN_ON_SYN: Opening = Opening::FirstBytesAndFin(FastOpen::Auto);

#[test]
fn random_faults_of_every_kind() {
    for seed in 0..seeds() {
        let wire = || {
            LinkConfig::new()
                .delay(DELAY_NANOS)
                .rate(10_000_000)
                .limit(Limit { packets: Some(50), ..Limit::default() })
                .loss(Loss::Random(Probability::percent(3.0)))
                .duplicate(Probability::percent(3.0))
                .corrupt(Probability::percent(2.0))
                .reorder(Reorder { probability: Probability::percent(5.0), gap: 0 })
        };
        let closer = if seed % 2 == 0 { Closer::Server } else { Closer::Client };
        let profile = if seed % 3 == 0 { Profile::Linux } else { Profile::Firstbyte };
        let request_len = [27, 1000, 4000][seed as usize / 2 % 3];
        let route = Route::new().wire(wire(), wire());
        let mut lab = Lab::new(seed, profile, closer, route, request_len, 60_000);
        for (number, opening) in
            [FAST_OPEN, FAST_OPEN, Opening::ConnectThenWrite, FIN_ON_SYN, FAST_OPEN].into_iter().enumerate()
        {
            assert_eq!(
                lab.visit(opening),
                Ok(()),
                "seed {seed}, visit {number}, {profile:?} {closer:?} {request_len}"
            );
        }
    }
}
