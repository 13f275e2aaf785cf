use super::*;
use crate::apps::{Client, Closer, Opening, Server, Service, Visit};
use crate::exchange::exchanges;
use crate::middlebox::{DropNthSynAck, Duplicate};
use bytes::Bytes;
use core::net::SocketAddr;
use proto::{ConnectOptions, FastOpen};
use qdisc::{Limit, LinkConfig, Loss, Probability};

const V4: [&str; 2] = ["192.0.2.1", "198.51.100.1:80"];
const V6: [&str; 2] = ["2001:db8:1::1", "[2001:db8:2::1]:80"];
const RTT: Duration = Duration::from_millis(40);
const LONG: Duration = Duration::from_secs(120);

struct Lab {
    network: Network,
    client: HostId,
    server: HostId,
    peer: SocketAddr,
}

impl Lab {
    fn new(seed: u64, addresses: [&str; 2], service: Service, closer: Closer, route: Route) -> Lab {
        Lab::of(Network::new(seed), addresses, service, closer, route)
    }

    fn of(
        mut network: Network,
        [client, server]: [&str; 2],
        service: Service,
        closer: Closer,
        route: Route,
    ) -> Lab {
        let peer: SocketAddr = server.parse().unwrap();
        let address: core::net::IpAddr = client.parse().unwrap();
        let client = network.add_host(HostPlan::new(Profile::Firstbyte, address), Client::new());
        let program = Server::new(peer, Some(16), service, closer);
        let server = network.add_host(HostPlan::new(Profile::Firstbyte, peer.ip()), program);
        network.join(client, server, route);
        Lab { network, client, server, peer }
    }

    fn visit(&mut self, opening: Opening, request: Bytes, reply: Bytes, closer: Closer) -> (bool, bool) {
        let visit = Visit { peer: self.peer, local: None, opening, request, reply, closer };
        self.network.with_app(self.client, |client: &mut Client, sys| client.begin(sys, visit)).unwrap();
        let quiet = self.network.run_until_quiet(LONG);
        let ends = self.network.app::<Client>(self.client).ends();
        (ends.last().unwrap().is_some_and(|end| end.is_exact), quiet)
    }
}

fn answer(request_len: usize, reply_len: usize, think: Duration) -> Service {
    Service::Answer { request_len, reply: reply(reply_len), think }
}

fn reply(len: usize) -> Bytes {
    (0..len).map(|i| (i * 7) as u8).collect()
}

fn request(len: usize) -> Bytes {
    (0..len).map(|i| i as u8).collect()
}

const FAST_OPEN: Opening = Opening::FirstBytes(FastOpen::Auto);

#[test]
fn a_request_and_its_reply_cross_over_either_ip_version() {
    for addresses in [V4, V6] {
        let mut lab =
            Lab::new(1, addresses, answer(100, 3000, Duration::ZERO), Closer::Server, Route::with_rtt(RTT));
        for opening in [Opening::ConnectThenWrite, FAST_OPEN, FAST_OPEN] {
            assert_eq!(
                lab.visit(opening, request(100), reply(3000), Closer::Server),
                (true, true),
                "{opening:?}"
            );
        }
        let deliveries = lab.network.app::<Server>(lab.server).deliveries();
        assert!(deliveries.iter().all(|delivery| delivery.request == request(100)));
        assert_eq!(
            deliveries.iter().map(|delivery| delivery.early).collect::<Vec<_>>(),
            [false, false, true]
        );
    }
}

#[test]
fn a_slow_server_adds_its_thinking_time() {
    let think = Duration::from_millis(300);
    let mut lab = Lab::new(1, V4, answer(100, 50, think), Closer::Server, Route::with_rtt(RTT));
    lab.visit(Opening::ConnectThenWrite, request(100), reply(50), Closer::Server);
    let exchange = &exchanges(lab.network.capture(), lab.client)[0];
    assert_eq!(exchange.time_to_first_byte(), Some(2 * RTT + think));
}

#[test]
fn a_server_that_speaks_first_does_so_after_one_round_trip_with_a_cookie() {
    let greeting = Bytes::from_static(b"220 ready\r\n");
    let service = Service::Greet { greeting: greeting.clone() };
    let mut lab = Lab::new(1, V4, service, Closer::Server, Route::with_rtt(RTT));
    for _ in 0..2 {
        assert_eq!(
            lab.visit(Opening::DataLess, Bytes::new(), greeting.clone(), Closer::Server),
            (true, true)
        );
    }
    let found = exchanges(lab.network.capture(), lab.client);
    let times: Vec<_> = found.iter().map(|exchange| exchange.time_to_first_byte()).collect();
    assert_eq!(times[1], Some(RTT));
    assert!(times[0] >= Some(RTT) && times[0] <= Some(2 * RTT), "{times:?}");
}

#[test]
fn an_echo_comes_back_whole_and_the_client_closes() {
    let mut lab = Lab::new(1, V4, Service::Echo, Closer::Client, Route::with_rtt(RTT));
    for opening in [Opening::ConnectThenWrite, FAST_OPEN, FAST_OPEN] {
        assert_eq!(
            lab.visit(opening, request(20_000), request(20_000), Closer::Client),
            (true, true),
            "{opening:?}"
        );
    }
}

#[test]
fn lossy_and_narrow_paths_lose_no_byte() {
    let lossy = |seed| {
        let wire = || {
            LinkConfig::new()
                .delay(20_000_000)
                .rate(2_000_000)
                .limit(Limit { packets: Some(20), ..Limit::default() })
                .loss(Loss::Random(Probability::percent(5.0)))
        };
        let route = Route::new().wire(wire(), wire());
        let mut lab = Lab::new(seed, V4, answer(5000, 50_000, Duration::ZERO), Closer::Server, route);
        for _ in 0..3 {
            assert_eq!(
                lab.visit(FAST_OPEN, request(5000), reply(50_000), Closer::Server),
                (true, true),
                "seed {seed}"
            );
        }
        let deliveries = lab.network.app::<Server>(lab.server).deliveries();
        assert!(deliveries.iter().all(|delivery| delivery.request == request(5000)));
        assert_eq!(deliveries.len(), 3);
        lab.network.capture().observations().len()
    };
    for seed in 0..20 {
        assert!(lossy(seed) > 100);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let bytes = |seed| {
        let wire = || LinkConfig::new().delay(20_000_000).loss(Loss::Random(Probability::percent(10.0)));
        let route = Route::new().wire(wire(), wire());
        let mut lab = Lab::new(seed, V4, answer(3000, 30_000, Duration::ZERO), Closer::Server, route);
        lab.visit(FAST_OPEN, request(3000), reply(30_000), Closer::Server);
        lab.visit(FAST_OPEN, request(3000), reply(30_000), Closer::Server);
        let seen = lab.network.capture().observations();
        seen.iter().map(|seen| (seen.at, seen.place.clone(), seen.bytes.clone())).collect::<Vec<_>>()
    };
    assert_eq!(bytes(3), bytes(3));
    assert_ne!(bytes(3), bytes(4));
}

#[test]
fn a_doubled_syn_is_delivered_once() {
    let mut lab =
        Lab::new(1, V4, answer(100, 50, Duration::ZERO), Closer::Server, Route::through(RTT, Duplicate));
    for visit in 1..=3 {
        assert_eq!(lab.visit(FAST_OPEN, request(100), reply(50), Closer::Server), (true, true));
        assert_eq!(lab.network.app::<Server>(lab.server).deliveries().len(), visit);
    }
}

#[test]
fn a_lost_syn_ack_delays_but_loses_nothing() {
    let route = Route::through(RTT, DropNthSynAck::new(1));
    let mut lab = Lab::new(1, V4, answer(100, 50, Duration::ZERO), Closer::Server, route);
    for _ in 0..3 {
        assert_eq!(lab.visit(FAST_OPEN, request(100), reply(50), Closer::Server), (true, true));
    }
    let lost = lab.network.capture().journeys().iter().filter(|journey| journey.lost.is_some()).count();
    assert_eq!(lost, 3);
}

#[test]
fn halfway_is_half_the_time_even_of_odd_round_trips() {
    let rtt = Duration::from_nanos(40_000_001);
    let mut lab =
        Lab::new(1, V4, answer(100, 50, Duration::ZERO), Closer::Server, Route::through(rtt, Duplicate));
    lab.visit(Opening::ConnectThenWrite, request(100), reply(50), Closer::Server);
    assert_eq!(exchanges(lab.network.capture(), lab.client)[0].time_to_first_byte(), Some(2 * rtt));
}

#[test]
fn a_router_tells_whose_time_to_live_has_run_out() {
    let (here, there) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 1));
    let mut network = Network::new(1);
    let client = network.add_host(HostPlan::new(Profile::Linux, here), Idle);
    let router = network.add_router(Ipv4Addr::new(192, 0, 2, 254));
    let server = network.add_host(HostPlan::new(Profile::Linux, there), Idle);
    let gateway = Ipv4Addr::new(192, 0, 2, 254);
    network.join_link([client, router], [here, gateway], 24, Route::with_rtt(RTT));
    network.join_link([router, server], [Ipv4Addr::new(198, 51, 100, 254), there], 24, Route::with_rtt(RTT));
    let ways = network.ways_mut(client).unwrap();
    ways.replace_route((Ipv4Addr::UNSPECIFIED, 0), Some(gateway), None).unwrap();
    network.with_stack(client, |stack, now| {
        stack.set(now, "net.ipv4.ip_default_ttl", "1").unwrap();
        stack.connect(now, SocketAddr::from((there, 80)), ConnectOptions::default()).unwrap();
    });
    network.run_for(2 * RTT);
    let count = |host| {
        let counters = network.stack(host).nstat();
        counters.into_iter().find(|(name, _)| name == "IcmpInTimeExcds").map(|(_, value)| value)
    };
    assert_eq!((count(client), count(server)), (Some(1), Some(0)));
}

/// A middlebox's packets are verified, so hosts must send checksums.
#[test]
fn a_path_that_may_alter_packets_has_checksums_without_a_capture_too() {
    for route in [Route::with_rtt(RTT), Route::through(RTT, Duplicate)] {
        let (network, service) = (Network::without_capture(1), answer(100, 50_000, Duration::ZERO));
        let mut lab = Lab::of(network, V4, service, Closer::Server, route);
        let (is_exact, _) = lab.visit(Opening::ConnectThenWrite, request(100), reply(50_000), Closer::Server);
        assert!(is_exact);
    }
}

/// Returns the longest wait in the bottleneck's queue, given in `tc`'s words, beside a bulk
/// download.
fn longest_wait(qdisc: Option<&str>) -> u64 {
    let back = LinkConfig::new().rate(5_000_000).delay(5_000_000).limit(qdisc::Limit::packets(128));
    let mut route = Route::new().wire(LinkConfig::new().delay(5_000_000), back);
    if let Some(words) = qdisc {
        route = route.qdisc(crate::middlebox::Direction::Backward, words).unwrap();
    }
    let mut lab = Lab::new(1, V4, answer(100, 2_000_000, Duration::ZERO), Closer::Server, route);
    lab.visit(Opening::ConnectThenWrite, request(100), reply(2_000_000), Closer::Server);
    let waits = lab.network.capture().queues().iter().filter_map(|sample| match sample {
        crate::capture::QueueSample::Waited { nanos, .. } => Some(*nanos),
        crate::capture::QueueSample::Length { .. } => None,
    });
    waits.max().unwrap()
}

#[test]
fn a_discipline_on_a_wire_keeps_its_queue_short() {
    let (fifo, codel) = (longest_wait(None), longest_wait(Some("fq_codel target 5ms")));
    assert!(fifo > 150_000_000, "{fifo}");
    assert!(codel < fifo, "{codel} of {fifo}");
    let cake = longest_wait(Some("cake bandwidth 4900kbit besteffort"));
    assert!(cake < codel, "{cake} of {codel}");
}

#[test]
fn a_discipline_that_tc_refuses_is_refused_in_its_words() {
    let refused = Route::new()
        .wire(LinkConfig::new(), LinkConfig::new())
        .qdisc(crate::middlebox::Direction::Forward, "fq_codel targt 5ms");
    assert!(refused.is_err_and(|error| error.to_string().contains("targt")));
}
