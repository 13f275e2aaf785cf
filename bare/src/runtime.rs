//! The runtime of a program without the standard library: memory, an end, and a panic handler.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Bytes for all that is ever allocated: the program is short, and nothing is given back.
const HEAP: usize = 64 << 20;

struct Heap {
    bytes: UnsafeCell<[u8; HEAP]>,
    used: AtomicUsize,
}

// SAFETY: each byte of `bytes` is handed out once, by an atomic addition.
unsafe impl Sync for Heap {}

#[global_allocator]
static ALLOCATOR: Heap = Heap { bytes: UnsafeCell::new([0; HEAP]), used: AtomicUsize::new(0) };

// SAFETY: what `alloc` returns lies inside `bytes`, is aligned as asked, and overlaps nothing that
// was returned before.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let spare = layout.align() - 1;
        let begin = self.used.fetch_add(layout.size() + spare, Ordering::Relaxed);
        if begin + layout.size() + spare > HEAP {
            return core::ptr::null_mut();
        }
        // SAFETY: `begin` was just held to be inside the array.
        let place = unsafe { self.bytes.get().cast::<u8>().add(begin) };
        // SAFETY: at most `spare` bytes further, which were counted above.
        unsafe { place.add(place.align_offset(layout.align())) }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(crate::PANIC)
}

/// Linux's `exit`.
pub(crate) fn exit(status: i32) -> ! {
    // SAFETY: system call 60 of x86-64 takes a status and does not return.
    unsafe { core::arch::asm!("syscall", in("rax") 60, in("rdi") status, options(noreturn)) }
}
