//! When half-open requests time out.
//!
//! Nearly all are answered within their first time-out, which is the same for all: so those wait in a row, the oldest first, and nothing
//! is to be done when one is answered. Those that go on after it have a place in the wheel.

use crate::Instant;
use crate::slab::Slab;
use crate::stack::listen::request::Request;
use crate::timer_wheel::{TimerHandle, TimerWheel};
use alloc::collections::{BTreeMap, VecDeque};

/// Places of requests that are no more are always tolerated up to so many.
const GONE_MIN: usize = 64;

/// A request that waits for its first time-out.
struct First {
    at: Instant,
    /// As the request knows it: another means that the time-out was begun anew.
    sent_at: Instant,
    index: u32,
    generation: u32,
}

impl First {
    fn waits(&self, requests: &Slab<Request>) -> bool {
        requests.find(self.index, self.generation).is_some_and(|request| {
            request.timeouts == 0
                && request.sent_at == self.sent_at
                && request.timer == TimerHandle::default()
        })
    }
}

/// See the module.
pub(in crate::stack) struct RequestTimers {
    row: VecDeque<First>,
    wheel: TimerWheel,
}

impl RequestTimers {
    pub(in crate::stack) fn new() -> RequestTimers {
        RequestTimers { row: VecDeque::new(), wheel: TimerWheel::new() }
    }

    /// A request times out `at` that moment, and no longer at another.
    pub(in crate::stack) fn set(&mut self, requests: &mut Slab<Request>, index: u32, at: Instant) {
        self.bound_gone(requests);
        let Some((generation, request)) = requests.entry_mut(index) else { return };
        let in_order = self.row.back().is_none_or(|last| last.at <= at);
        if request.timeouts > 0 || !in_order {
            return self.wheel.set(&mut request.timer, index, at);
        }
        self.wheel.clear(&mut request.timer);
        self.row.push_back(First { at, sent_at: request.sent_at, index, generation });
    }

    /// A new request, whose SYN-ACK goes now, times out `at` that moment.
    pub(in crate::stack) fn begin(
        &mut self,
        requests: &mut Slab<Request>,
        (index, generation): (u32, u32),
        sent_at: Instant,
        at: Instant,
    ) {
        self.bound_gone(requests);
        if self.row.back().is_none_or(|last| last.at <= at) {
            self.row.push_back(First { at, sent_at, index, generation });
        } else {
            self.set(requests, index, at);
        }
    }

    /// A request is no more.
    pub(in crate::stack) fn clear(&mut self, request: &mut Request) {
        self.wheel.clear(&mut request.timer);
    }

    /// When each request in the row times out, by its index.
    pub(in crate::stack) fn firsts(&self, requests: &Slab<Request>) -> BTreeMap<u32, Instant> {
        self.row.iter().filter(|first| first.waits(requests)).map(|first| (first.index, first.at)).collect()
    }

    /// When a request that is not in the row times out.
    pub(in crate::stack) fn later(&self, request: &Request) -> Option<Instant> {
        self.wheel.deadline(request.timer)
    }

    /// The earliest time-out.
    pub(in crate::stack) fn next(&mut self, requests: &Slab<Request>) -> Option<Instant> {
        self.forget_gone(requests);
        let (first, other) = (self.row.front().map(|first| first.at), self.wheel.next());
        first.into_iter().chain(other).min()
    }

    /// Takes a request whose time-out is `now` or was earlier, the earliest first.
    pub(in crate::stack) fn pop_expired(
        &mut self,
        requests: &mut Slab<Request>,
        now: Instant,
    ) -> Option<u32> {
        self.forget_gone(requests);
        let other = self.wheel.next();
        if let Some(first) = self.row.front()
            && first.at <= now
            && other.is_none_or(|other| first.at <= other)
        {
            return self.row.pop_front().map(|first| first.index);
        }
        let index = self.wheel.pop_expired(now)?;
        if let Some(request) = requests.get_mut(index) {
            request.timer = TimerHandle::default();
        }
        Some(index)
    }

    /// The first in the row waits.
    fn forget_gone(&mut self, requests: &Slab<Request>) {
        while self.row.pop_front_if(|first| !first.waits(requests)).is_some() {}
    }

    /// Those that do not wait any more are not many more than those that do.
    #[inline]
    fn bound_gone(&mut self, requests: &Slab<Request>) {
        match requests.len() {
            // The one that is about to wait.
            1 => self.row.clear(),
            len if self.row.len() > GONE_MIN + 2 * len => self.row.retain(|first| first.waits(requests)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ListenerId;
    use crate::rate_limit::LastAnswer;
    use crate::tcp::ecn::EcnMode;
    use crate::tcp::ecn::accurate::OptionSeen;
    use crate::tcp::open::negotiation::Negotiated;
    use crate::tuple::FourTuple;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;
    use wire::SeqNum;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// The timers, and the requests they are of.
    struct Half {
        timers: RequestTimers,
        requests: Slab<Request>,
    }

    impl Half {
        fn new() -> Half {
            Half { timers: RequestTimers::new(), requests: Slab::new() }
        }

        /// One that times out a second after `ms`.
        fn open(&mut self, ms: u64) -> u32 {
            let host = Ipv4Addr::LOCALHOST.into();
            let (peer_mss, timestamps, sack, ecn) = (1460, false, false, EcnMode::Off);
            let request = Request {
                tuple: FourTuple { local: host, local_port: 80, peer: host, peer_port: 1 },
                hash: 0,
                listener: ListenerId { index: 0, generation: 0 },
                irs: SeqNum(0),
                iss: SeqNum(0),
                agreed: Negotiated { peer_mss, snd_wscale: None, timestamps, sack, ecn },
                rcv_wscale: 0,
                peer_window: 0,
                ts_recent: 0,
                ts_offset: 0,
                transmissions: 1,
                timeouts: 0,
                sent_at: at(ms),
                first_sent_ms: ms as u32,
                last_answer: LastAnswer::default(),
                acked: false,
                dscp: 0,
                timer: TimerHandle::default(),
                waiting: false,
                saved_syn: None,
                option_seen: OptionSeen::Nothing,
            };
            let (index, _) = self.requests.insert(request);
            self.timers.set(&mut self.requests, index, at(ms + 1000));
            index
        }

        fn answer(&mut self, index: u32) {
            let mut request = self.requests.remove(index).unwrap();
            self.timers.clear(&mut request);
        }

        /// The time-out has passed, and the next comes `at` that moment.
        fn goes_on(&mut self, index: u32, next: Instant) {
            self.requests.get_mut(index).unwrap().timeouts += 1;
            self.timers.set(&mut self.requests, index, next);
        }

        fn expired(&mut self, now: Instant) -> Vec<u32> {
            core::iter::from_fn(|| self.timers.pop_expired(&mut self.requests, now)).collect()
        }

        fn next(&mut self) -> Option<Instant> {
            self.timers.next(&self.requests)
        }
    }

    #[test]
    fn each_expires_in_its_turn_and_the_answered_never() {
        let mut half = Half::new();
        let indices: Vec<u32> = (0..5).map(|ms| half.open(ms)).collect();
        half.answer(indices[0]);
        half.answer(indices[2]);
        assert_eq!(half.timers.firsts(&half.requests)[&indices[3]], at(1003));
        assert_eq!(half.timers.firsts(&half.requests).len(), 3);
        assert_eq!(half.next(), Some(at(1001)));
        assert_eq!(half.expired(at(1000)), []);
        assert_eq!(half.expired(at(1003)), [indices[1], indices[3]]);
        half.goes_on(indices[1], at(3001));
        half.goes_on(indices[3], at(3003));
        assert_eq!(half.timers.later(half.requests.get(indices[3]).unwrap()), Some(at(3003)));
        // Its place is another's now, in the row and in the slab.
        let again = half.open(2500);
        assert_eq!(half.expired(at(3002)), [indices[4], indices[1]]);
        half.answer(indices[3]);
        assert_eq!((half.next(), half.expired(at(9000))), (Some(at(3500)), vec![again]));
        assert_eq!(half.next(), None);
    }

    #[test]
    fn a_time_out_begun_anew_forgets_the_first() {
        let mut half = Half::new();
        let index = half.open(0);
        half.requests.get_mut(index).unwrap().sent_at = at(600);
        half.timers.set(&mut half.requests, index, at(1600));
        // An earlier one than the last of the row: the time-out was changed.
        let hasty = half.open(0);
        half.timers.set(&mut half.requests, hasty, at(700));
        assert_eq!(half.next(), Some(at(700)));
        assert_eq!(half.expired(at(1599)), [hasty]);
        assert_eq!(half.expired(at(1600)), [index]);
    }

    /// One peer is silent, and many come and go behind it.
    #[test]
    fn places_of_those_who_were_answered_do_not_pile_up() {
        let mut half = Half::new();
        let silent = half.open(0);
        for _ in 0..10_000 {
            let index = half.open(1);
            half.answer(index);
        }
        assert!(half.timers.row.len() <= GONE_MIN + 4, "{}", half.timers.row.len());
        assert_eq!(half.expired(at(5000)), [silent]);
    }
}
