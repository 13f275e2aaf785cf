//! The table of what Linux's Fast Open does in each case, row by row: the kernel at both ends is
//! the control, then our stack stands at either end. A row is one function; [`Pair`] says who
//! plays.
mod basic;
mod cookies;
mod loss;
mod modes;
mod ours;
mod queue;
mod replay;
mod sizes;
mod syn_cookies;

use interop::{Ask, Bed, Conversation, Exchange, Maker, Record, Way};
use std::time::Duration;

/// Each way of the path; a round trip is 40 ms.
const ONE_WAY: Duration = Duration::from_millis(20);

/// Who plays the two ends of a row.
#[derive(Clone, Copy)]
struct Pair {
    client: Maker,
    server: Maker,
}

impl Pair {
    fn bed(self) -> Bed {
        Bed::new(self.client, self.server, ONE_WAY)
    }
}

/// The pairs every row of Linux's habits runs with.
const KERNEL_TO_KERNEL: Pair = Pair { client: Maker::Kernel, server: Maker::Kernel };
const OURS_TO_KERNEL: Pair = Pair { client: Maker::OursAsLinux, server: Maker::Kernel };
const KERNEL_TO_OURS: Pair = Pair { client: Maker::Kernel, server: Maker::OursAsLinux };

/// May this test run? Says why if not.
fn ready() -> bool {
    interop::programs::ready(&[interop::programs::PYTHON])
}

/// Declares each row once per pair.
macro_rules! rows {
    ($($row:ident),* $(,)?) => {
        mod kernel_to_kernel {
            $(#[test] fn $row() { if crate::ready() { interop::undisturbed(|| super::$row(crate::KERNEL_TO_KERNEL)); } })*
        }
        mod ours_to_kernel {
            $(#[test] fn $row() { if crate::ready() { interop::undisturbed(|| super::$row(crate::OURS_TO_KERNEL)); } })*
        }
        mod kernel_to_ours {
            $(#[test] fn $row() { if crate::ready() { interop::undisturbed(|| super::$row(crate::KERNEL_TO_OURS)); } })*
        }
    };
}
pub(crate) use rows;

/// Puts a cookie into the client's cache.
fn fetch_cookie(bed: &mut Bed) -> Conversation {
    exchange(bed, Way::FastOpen).1
}

/// One exchange of the table and what crossed the path.
fn exchange(bed: &mut Bed, way: Way) -> (Exchange, Conversation) {
    ask(bed, &Ask::new(way))
}

/// One exchange and its only conversation.
fn ask(bed: &mut Bed, ask: &Ask) -> (Exchange, Conversation) {
    let (exchange, record) = ask_record(bed, ask);
    (exchange, record.only())
}

/// One exchange and everything that crossed.
fn ask_record(bed: &mut Bed, ask: &Ask) -> (Exchange, Record) {
    drop(bed.wire.take_record());
    let exchange = bed.client.exchange(ask);
    (exchange, bed.record())
}

/// The reply came whole, its first byte after so many round trips, in as many packets as Linux
/// needs. One more or less is the FINs crossing, or an end slow to close that acknowledges the
/// other's FIN first; one less again is our stack, which acknowledges once what arrives together.
#[track_caller]
fn assert_served(pair: Pair, visit: &(Exchange, Conversation), round_trips: usize, packets: usize) {
    let (exchange, conversation) = visit;
    assert_eq!(exchange.error, None, "{exchange:?}\n{conversation}");
    assert_eq!(exchange.reply, [b'r'; 43], "{exchange:?}\n{conversation}");
    assert_eq!(conversation.round_trips_to_first_byte(ONE_WAY), Some(round_trips), "{conversation}");
    let is_control = pair.client == Maker::Kernel && pair.server == Maker::Kernel;
    let fewest = packets - if is_control { 1 } else { 2 };
    let count = conversation.len();
    assert!((fewest..=packets + 1).contains(&count), "{count} packets\n{conversation}");
}
