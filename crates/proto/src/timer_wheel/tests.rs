use super::*;
use alloc::collections::BTreeMap;
use core::time::Duration;
use proptest::prelude::*;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// A wheel and the handles of small keys.
struct Wheel {
    wheel: TimerWheel,
    handles: Vec<TimerHandle>,
}

impl Wheel {
    fn new() -> Wheel {
        Wheel { wheel: TimerWheel::new(), handles: vec![TimerHandle::default(); 10_000] }
    }

    fn set(&mut self, key: u32, at: Instant) {
        self.wheel.set(&mut self.handles[key as usize], key, at);
    }

    fn clear(&mut self, key: u32) -> bool {
        self.wheel.clear(&mut self.handles[key as usize])
    }

    fn deadline(&self, key: u32) -> Option<Instant> {
        self.wheel.deadline(self.handles[key as usize])
    }

    fn pop_expired(&mut self, now: Instant) -> Option<u32> {
        let key = self.wheel.pop_expired(now)?;
        self.handles[key as usize] = TimerHandle::default();
        Some(key)
    }
}

impl core::ops::Deref for Wheel {
    type Target = TimerWheel;

    fn deref(&self) -> &TimerWheel {
        &self.wheel
    }
}

fn drain(wheel: &mut Wheel, now: u64) -> Vec<u32> {
    core::iter::from_fn(|| wheel.pop_expired(at(now))).collect()
}

#[test]
fn nothing_fires_early_and_everything_once() {
    let mut wheel = Wheel::new();
    assert_eq!((wheel.wheel.next(), wheel.pop_expired(at(u64::MAX))), (None, None));
    wheel.set(3, at(1_000_001));
    wheel.set(1, at(1_000_000));
    wheel.set(2, at(u64::MAX));
    assert_eq!(wheel.wheel.next(), Some(at(1_000_000)));
    assert_eq!(drain(&mut wheel, 999_999), []);
    assert_eq!(drain(&mut wheel, 1_000_000), [1]);
    assert_eq!(drain(&mut wheel, u64::MAX - 1), [3]);
    assert_eq!((wheel.wheel.next(), wheel.len()), (Some(at(u64::MAX)), 1));
    assert_eq!(drain(&mut wheel, u64::MAX), [2]);
    assert_eq!((wheel.wheel.next(), wheel.len()), (None, 0));
}

#[test]
fn a_wheel_that_has_run_out_gives_its_memory_back() {
    let mut wheel = Wheel::new();
    for round in 0..2 {
        (0..10_000).for_each(|key| wheel.set(key, at(u64::from(key) * 1000)));
        assert!(wheel.nodes.capacity() >= 10_000, "round {round}");
        assert!(wheel.clear(7) && wheel.clear(9_999));
        assert_eq!(drain(&mut wheel, u64::MAX).len(), 9_998);
        assert_eq!((wheel.wheel.next(), wheel.nodes.capacity()), (None, 0));
    }
}

#[test]
fn deadlines_move_both_ways() {
    let mut wheel = Wheel::new();
    wheel.set(0, at(5_000_000));
    wheel.set(1, at(9_000_000));
    wheel.set(0, at(20_000_000));
    assert_eq!((wheel.deadline(0), wheel.wheel.next()), (Some(at(20_000_000)), Some(at(9_000_000))));
    wheel.set(0, at(7_000_000));
    assert_eq!(wheel.wheel.next(), Some(at(7_000_000)));
    wheel.set(0, at(1));
    assert_eq!(wheel.wheel.next(), Some(at(1)));
    assert!(wheel.clear(0) && !wheel.clear(0) && !wheel.clear(77));
    assert_eq!((wheel.deadline(0), wheel.wheel.next()), (None, Some(at(9_000_000))));
}

/// Ten thousand retransmission timers, the earliest of which is moved again and again: what a busy server does.
#[test]
fn postponing_the_earliest_does_not_look_through_the_others() {
    const KEYS: u32 = 10_000;
    let (rto, step, round_trip) = (200_000_000, 1_000, 10_000_000);
    let mut wheel = Wheel::new();
    let mut expected = BTreeMap::new();
    for round in 0..5 {
        for key in 0..KEYS {
            let deadline = round * round_trip + u64::from(key) * step + rto;
            wheel.set(key, at(deadline));
            expected.insert(deadline, key);
            if round > 0 {
                expected.pop_first();
                assert_eq!(wheel.wheel.next(), expected.keys().next().map(|nanos| at(*nanos)));
            }
        }
    }
    wheel.check();
    // A list on the lowest level holds the 131 keys of 131 µs.
    assert!(wheel.visits < 4 * KEYS as usize * 150, "{} visits", wheel.visits);
}

#[test]
fn memory_follows_the_number_of_keys() {
    let mut wheel = Wheel::new();
    for key in 0..5_000 {
        wheel.set(key, at(1_000_000_000 + u64::from(key) * 300_000));
    }
    let crowded = wheel.wheels.len() - wheel.free_wheels.len();
    assert!(crowded > 100);
    for key in 0..5_000 {
        if key % 1_250 != 0 {
            wheel.clear(key);
        }
    }
    wheel.check();
    assert_eq!((wheel.len(), wheel.nodes.len()), (4, 5_000));
    wheel.set(0, at(1_000_000_000));
    wheel.set(7, at(1_000_000_001));
    assert!(wheel.clear(7));
    assert_eq!(wheel.nodes.len(), 5_000, "a node is used again");
    assert_eq!(wheel.wheels.len() - wheel.free_wheels.len(), 1);
    assert_eq!(drain(&mut wheel, u64::MAX), [0, 1_250, 2_500, 3_750]);
}

#[test]
fn equal_deadlines_all_fire() {
    let mut wheel = Wheel::new();
    for key in 0..1_000 {
        wheel.set(key, at(7_777_777));
    }
    let mut fired = drain(&mut wheel, 7_777_777);
    fired.sort_unstable();
    assert_eq!(fired, (0..1_000).collect::<Vec<_>>());
}

impl TimerWheel {
    fn len(&self) -> usize {
        self.wheels[ROOT as usize].len as usize
    }

    /// Lists, counts and bit maps agree, and no key lies in a slot after its deadline.
    fn check(&self) {
        let seen = self.check_wheel(ROOT);
        assert_eq!(seen, self.nodes.iter().filter(|node| node.wheel != NONE).count() as u32);
    }

    fn check_wheel(&self, index: u32) -> u32 {
        let wheel = &self.wheels[index as usize];
        assert!(index == ROOT || wheel.len > COLLAPSE);
        let mut seen = 0;
        for slot in 0..SLOTS as u8 {
            let first = wheel.slots[slot as usize];
            assert_eq!(first != NONE, wheel.occupied >> slot & 1 == 1);
            if wheel.is_child(slot) {
                assert_eq!(self.wheels[first as usize].parent, index);
                seen += self.check_wheel(first);
                continue;
            }
            let before = seen;
            let (mut key, mut prev) = (first, NONE);
            while key != NONE {
                let node = &self.nodes[key as usize];
                assert_eq!((node.wheel, node.slot, node.prev), (index, slot, prev));
                assert!(wheel.compare(tick(node.deadline), slot).is_ge());
                (prev, key) = (key, node.next);
                seen += 1;
            }
            assert!(wheel.level == 0 || seen - before == u32::from(wheel.lens[slot as usize]));
        }
        assert_eq!(seen, wheel.len);
        seen
    }
}

#[derive(Clone, Debug)]
enum Op {
    Set { key: u32, after: u64 },
    Clear(u32),
    Next,
    Advance(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let span = (0u32..44, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1));
    let op = prop_oneof![
        8 => (0u32..200, span.clone()).prop_map(|(key, after)| Op::Set { key, after }),
        2 => (0u32..200).prop_map(Op::Clear),
        1 => Just(Op::Next),
        1 => span.prop_map(Op::Advance),
    ];
    proptest::collection::vec(op, 1..1_200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn behaves_as_a_sorted_map(ops in ops(), start in prop_oneof![Just(0u64), any::<u32>().prop_map(u64::from), Just(1 << 60)]) {
        let mut wheel = Wheel::new();
        let mut model: BTreeMap<u32, u64> = BTreeMap::new();
        let mut now = start;
        for op in ops {
            match op {
                Op::Set { key, after } => {
                    wheel.set(key, at(now) + Duration::from_nanos(after));
                    model.insert(key, now + after);
                }
                Op::Clear(key) => prop_assert_eq!(wheel.clear(key), model.remove(&key).is_some()),
                Op::Next => prop_assert_eq!(wheel.wheel.next(), model.values().min().map(|nanos| at(*nanos))),
                Op::Advance(by) => {
                    now += by;
                    let fired = drain(&mut wheel, now);
                    let deadlines: Vec<_> = fired.iter().filter_map(|key| model.remove(key)).collect();
                    prop_assert_eq!(fired.len(), deadlines.len());
                    prop_assert!(deadlines.is_sorted() && deadlines.iter().all(|nanos| *nanos <= now));
                    prop_assert!(model.values().all(|nanos| *nanos > now));
                }
            }
            prop_assert_eq!(wheel.len(), model.len());
        }
        wheel.check();
        for key in 0..200 {
            prop_assert_eq!(wheel.deadline(key), model.get(&key).map(|nanos| at(*nanos)));
        }
    }
}
