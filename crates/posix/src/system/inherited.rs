//! The descriptors of devices, of which a child of `fork` has copies: as long as one is open, so is the device.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// One stack, and those of threads that start one at the same moment. What finds no place stays open in children.
static DEVICES: [AtomicI32; 4] = [const { AtomicI32::new(NONE) }; 4];
const NONE: i32 = -1;

/// A device's descriptor, which [`close`] closes. To be dropped before the device: its number may be another's then.
pub(crate) struct Remembered {
    place: Option<&'static AtomicI32>,
}

impl Remembered {
    pub(crate) fn new(device: BorrowedFd<'_>) -> Remembered {
        let number = device.as_raw_fd();
        let takes = |place: &&AtomicI32| {
            place.compare_exchange(NONE, number, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        Remembered { place: DEVICES.iter().find(takes) }
    }
}

impl Drop for Remembered {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            place.store(NONE, Ordering::Release);
        }
    }
}

/// In a child of `fork`, where nobody uses them. Async-signal-safe.
pub(crate) fn close() {
    for place in &DEVICES {
        let number = place.swap(NONE, Ordering::AcqRel);
        if number != NONE {
            // SAFETY: the thread that owned it is the parent's.
            unsafe { libc::close(number) };
        }
    }
}
