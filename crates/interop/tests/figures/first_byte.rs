//! Time to the first byte on a repeat visit over a delayed path: the kernel's own Fast Open beside
//! ours.
use crate::{ONE_WAY, alone, measure};
use interop::Maker::{Kernel, Ours};
use interop::goodput::plan::median;
use interop::{Ask, Bed, Maker, Serve, Way};

/// Visits of each pair in a series, taken in turn so that a busy moment of the machine hits all.
const VISITS: usize = 15;
/// What ours may cost on top, ms.
const MARGIN: f64 = 0.5;

const PAIRS: [(Maker, Maker); 4] = [(Kernel, Kernel), (Kernel, Ours), (Ours, Kernel), (Ours, Ours)];

/// Our server with the kernel's client, and our client with the kernel's server. Ours to ours is
/// shown beside them.
#[test]
fn no_later_than_the_kernels_own() {
    let Some(_alone) = alone() else { return };
    let mut beds = PAIRS.map(|(client, server)| {
        let mut bed = Bed::new(client, server, ONE_WAY);
        bed.server.serve(&Serve::new());
        bed.client.exchange(&Ask::new(Way::FastOpen));
        bed
    });
    measure(|| {
        // A busy machine only adds time, and more to one pair than to another: the quickest visits
        // are compared.
        let quickest @ [kernel, our_server, our_client, _] = series(&mut beds);
        let met = our_server.max(our_client) <= kernel + MARGIN;
        met.then_some(())
            .ok_or(format!("{quickest:.2?} ms: more than {MARGIN} ms over the kernel's own Fast Open"))
    });
}

/// The quickest visit of each pair in one series, ms; the medians are printed beside them.
fn series(beds: &mut [Bed; 4]) -> [f64; 4] {
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..VISITS {
        for (bed, times) in beds.iter_mut().zip(&mut times) {
            let visit = bed.client.exchange(&Ask::new(Way::FastOpen));
            assert_eq!((visit.reply, visit.client_fail), (vec![b'r'; 43], 0));
            let first = visit.first_byte_ms.expect("a first byte");
            assert!(first >= 40.0, "faster than the path: {first:.2} ms");
            times.push(first);
        }
    }
    let quickest = times.each_ref().map(|times| times.iter().copied().fold(f64::INFINITY, f64::min));
    for (((client, server), times), quickest) in PAIRS.into_iter().zip(times).zip(quickest) {
        let pair = format!("{client:?} to {server:?}");
        let median = median(times);
        println!(
            "{pair:>18}: first byte after {median:.2} ms, quickest {quickest:.2} ms (median and least of {VISITS})"
        );
    }
    quickest
}
