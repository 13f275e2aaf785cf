//! The memory of a table, as the allocator sees it: its maximum stays near the bound.
#![expect(unsafe_code, reason = "a global allocator is unsafe to write")]
extern crate firstbyte_capture as capture;

use capture::{CaptureFile, Table};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, with a count of allocated bytes.
struct Counting {
    now: AtomicUsize,
    most: AtomicUsize,
}

#[global_allocator]
static MEMORY: Counting = Counting { now: AtomicUsize::new(0), most: AtomicUsize::new(0) };

// SAFETY: every call goes to the system's allocator. The default `realloc` allocates, copies and
// frees, so both pieces count.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = self.now.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        self.most.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller fulfils the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        self.now.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller fulfils the contract of `dealloc`, and `place` came from the same
        // allocator.
        unsafe { System.dealloc(place, layout) }
    }
}

const BOUND: usize = 8 << 20;

/// Returns the maximum memory of a table with the bound while it reads the capture.
fn peak_of(capture: &[u8]) -> usize {
    let mut file = CaptureFile::open(capture).expect("a header");
    let mut table = Table::default().within(BOUND);
    let mut over = 0;
    let before = MEMORY.now.load(Ordering::Relaxed);
    MEMORY.most.store(before, Ordering::Relaxed);
    while let Some(frame) = file.next_frame() {
        let packet = frame.tcp().expect("a segment");
        table.handle(&packet, &mut |_| over += 1);
    }
    assert!(table.evicted() > 0, "the bound is met");
    let begun = table.begun();
    table.finish(&mut |_| over += 1);
    assert_eq!(over, begun);
    MEMORY.most.load(Ordering::Relaxed) - before
}

/// Returns a capture of concurrent connections, each with a SYN and segments of one byte with a
/// hole before each.
fn with_holes(connections: u16, holes: u32) -> Vec<u8> {
    let mut capture = Vec::new();
    // pcap of raw IP in network byte order.
    for word in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 262_144, 101] {
        capture.extend(word.to_be_bytes());
    }
    let mut at = 0_u32;
    for round in 0..=holes {
        for port in 0..connections {
            at += 1;
            let (flags, text): (u8, &[u8]) = if round == 0 { (0x02, &[]) } else { (0x10, b"x") };
            let len = 40 + text.len() as u32;
            for word in [at / 1_000_000, at % 1_000_000, len, len] {
                capture.extend(word.to_be_bytes());
            }
            capture.extend([0x45, 0, 0, len as u8, (at >> 8) as u8, at as u8, 0, 0, 64, 6, 0, 0]);
            capture.extend([10, 0, 0, 1, 10, 0, 0, 2]);
            capture.extend((10_000 + port).to_be_bytes());
            capture.extend(80_u16.to_be_bytes());
            capture.extend((1 + round * 10).to_be_bytes());
            capture.extend(1_u32.to_be_bytes());
            capture.extend([0x50, flags, 3, 232, 0, 0, 0, 0]);
            capture.extend(text);
        }
    }
    capture
}

/// A single test, because allocations of other tests would count too.
#[test]
fn the_real_peak_stays_near_the_bound() {
    for (connections, holes) in [(2000, 64), (20_000, 0)] {
        let peak = peak_of(&with_holes(connections, holes));
        println!("{connections} connections with {holes} holes: {peak} of {BOUND} bytes");
        assert!(
            peak < BOUND + BOUND / 8,
            "{connections} connections with {holes} holes: {peak} of {BOUND} bytes"
        );
        assert!(peak > BOUND / 2, "{connections} connections with {holes} holes: {peak} of {BOUND} bytes");
    }
}
