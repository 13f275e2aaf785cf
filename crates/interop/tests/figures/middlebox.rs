//! A middlebox that drops SYNs with data, at a round-trip time of 40 ms: what each connection
//! costs.
use crate::{ONE_WAY, alone, measure};
use interop::Maker::Kernel;
use interop::hook::drop_syn_data;
use interop::kernel_end::KernelEnd;
use interop::{Addresses, Ask, Bed, Exchange, Host, OurEnd, Serve, SocketDevice, Way, Wire};
use proto::Config;
use proto::fast_open::PathEntry;

/// What scheduling and timers may add to one of two visits that are compared, ms: less than half of
/// the least cost that is looked for, so that a visit that pays is told from one that does not even
/// on a busy machine.
const SLACK: f64 = 40.0;

fn first_byte(visit: &Exchange) -> f64 {
    assert_eq!(visit.reply, [b'r'; 43], "{visit:?}");
    visit.first_byte_ms.expect("a first byte")
}

/// A client of ours, and its stack, against a kernel server.
fn ours_to_kernel() -> (Bed, firstbyte::Net) {
    let (here, there) = (Addresses::nth(1), Addresses::nth(2));
    let (host, tun) = Host::new(there);
    let (device, end) = SocketDevice::new(1500);
    let client = OurEnd::new(device, Config::default(), here, there);
    let net = client.net.clone();
    let server = Box::new(KernelEnd::new(host, here));
    (Bed { client: Box::new(client), server, wire: Wire::new(end, tun, ONE_WAY) }, net)
}

/// First bytes in ms: a plain visit, then four with Fast Open after the path began to drop SYNs
/// with data.
fn costs(bed: &mut Bed, before_the_drops: impl FnOnce()) -> (f64, [f64; 4]) {
    bed.server.serve(&Serve::new());
    bed.client.exchange(&Ask::new(Way::FastOpen));
    let plain = first_byte(&bed.client.exchange(&Ask::new(Way::Plain)));
    before_the_drops();
    bed.wire.set_hook(drop_syn_data());
    (plain, [0; 4].map(|_| first_byte(&bed.client.exchange(&Ask::new(Way::FastOpen)))))
}

/// The kernel pays a second each time.
#[test]
fn kernel_client() {
    let Some(_alone) = alone() else { return };
    measure(|| {
        let (plain, visits) = costs(&mut Bed::new(Kernel, Kernel, ONE_WAY), || {});
        println!("kernel: plain {plain:.1} ms, then {visits:.1?} ms");
        let met = visits.iter().all(|visit| *visit >= plain + 1000.0 - SLACK);
        met.then_some(()).ok_or(format!("plain {plain:.1} ms, then {visits:.1?} ms"))
    });
}

/// Ours pays max(100 ms, 2.5 SRTT) once, where the round-trip time is remembered.
#[test]
fn our_client_with_a_cached_srtt() {
    let Some(_alone) = alone() else { return };
    measure(|| {
        let (mut bed, net) = ours_to_kernel();
        let mut srtt = None;
        let (plain, visits) = costs(&mut bed, || srtt = with_path(&net, |path| path.rtt()));
        let srtt = srtt.expect("a remembered round-trip time").as_secs_f64() * 1000.0;
        println!("ours: plain {plain:.1} ms, SRTT {srtt:.1} ms, then {visits:.1?} ms");
        only_the_first_costs(plain, 100_f64.max(2.5 * srtt), &visits)
    });
}

/// Ours pays a second once where it is not.
#[test]
fn our_client_without_an_srtt() {
    let Some(_alone) = alone() else { return };
    measure(|| {
        let (mut bed, net) = ours_to_kernel();
        let (plain, visits) = costs(&mut bed, || with_path(&net, |path| path.set_rtt(None)));
        println!("ours, no SRTT: plain {plain:.1} ms, then {visits:.1?} ms");
        only_the_first_costs(plain, 1000.0, &visits)
    });
}

/// The first visit costs `extra` ms on top of a plain one, later ones nothing.
fn only_the_first_costs(plain: f64, extra: f64, visits: &[f64; 4]) -> Result<(), String> {
    let first = plain + extra - SLACK..=plain + extra + SLACK;
    let met = first.contains(&visits[0]) && visits[1..].iter().all(|visit| *visit <= plain + SLACK);
    met.then_some(()).ok_or(format!("plain {plain:.1} ms, extra {extra:.1} ms, then {visits:.1?} ms"))
}

/// What our client remembers of the path to the server over IPv4.
fn with_path<T>(net: &firstbyte::Net, look: impl FnOnce(&mut PathEntry) -> T) -> T {
    let (here, there) = (Addresses::nth(1).v4.into(), Addresses::nth(2).v4.into());
    net.stack()
        .expect("a stack of ours")
        .with_path_cache(|cache| look(cache.entry(proto::Instant::ZERO, here, there)))
}
