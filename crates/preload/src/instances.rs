//! Epoll instances: their numbers, and their part in the stack.
//!
//! An instance gets a part in the stack with the first of the stack's sockets that it watches.
//! Before that, a thread that waits for the instance waits for the kernel and for a bell, an
//! eventfd that rings when the part is created. Everything is read without a lock, as the numbers
//! of sockets are.

use crate::real::{self, last_error};
use crate::table::Table;
use libc::c_int;
use posix::Errno;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// The limit of instances at a time.
const INSTANCES_MAX: usize = 1 << 12;
/// The count of an instance whose last number is being closed.
const CLOSING: usize = usize::MAX;

/// By number: the index of the instance.
static PLACES: Table = Table::new();
static INSTANCES: [Instance; INSTANCES_MAX] = [const { Instance::new() }; INSTANCES_MAX];

/// A registered instance. Descriptors are stored plus one; 0 is none.
pub(crate) struct Instance {
    /// The count of its numbers; 0 if this entry is free.
    numbers: AtomicUsize,
    part: AtomicI32,
    bell: AtomicI32,
}

impl Instance {
    const fn new() -> Instance {
        Instance { numbers: AtomicUsize::new(0), part: AtomicI32::new(0), bell: AtomicI32::new(0) }
    }

    /// Returns its part in the stack.
    pub(crate) fn part(&self) -> Option<c_int> {
        held(self.part.load(Ordering::SeqCst))
    }

    /// Sets its part, and wakes waiting threads. Returns the part that another thread set before.
    pub(crate) fn set_part(&self, part: c_int) -> Option<c_int> {
        let set = self.part.compare_exchange(0, part + 1, Ordering::SeqCst, Ordering::SeqCst);
        if let Some(bell) = held(self.bell.load(Ordering::SeqCst)) {
            // SAFETY: eight bytes are readable. The counter cannot overflow: only this line writes.
            unsafe { real::write(bell, (&raw const RING).cast(), size_of_val(&RING)) };
        }
        set.err().map(|other| other - 1)
    }

    /// Returns a descriptor that is readable once the part is set.
    ///
    /// # Errors
    /// The kernel's: `EMFILE`, `ENFILE`.
    pub(crate) fn bell(&self) -> Result<c_int, Errno> {
        if let Some(bell) = held(self.bell.load(Ordering::SeqCst)) {
            return Ok(bell);
        }
        let bell = new_bell()?;
        match self.bell.compare_exchange(0, bell + 1, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => Ok(bell),
            Err(other) => {
                // SAFETY: no one else knows this number.
                unsafe { real::close(bell) };
                Ok(other - 1)
            }
        }
    }

    /// Removes one of its numbers. Returns the part, to be closed, if it was the last.
    fn let_go(&self) -> Option<c_int> {
        let fewer = |numbers| if numbers == 1 { Some(CLOSING) } else { Some(numbers - 1) };
        let before = self.numbers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
        if before != Ok(1) {
            return None;
        }
        if let Some(bell) = held(self.bell.swap(0, Ordering::SeqCst)) {
            // SAFETY: only a number is passed.
            unsafe { real::close(bell) };
        }
        let part = held(self.part.swap(0, Ordering::SeqCst));
        self.numbers.store(0, Ordering::SeqCst);
        part
    }
}

/// The eight bytes that ring a bell.
static RING: u64 = 1;

fn held(entry: i32) -> Option<c_int> {
    entry.checked_sub(1).filter(|fd| *fd >= 0)
}

/// Programs rely on the lowest numbers: a bell gets one above these, if the limit allows.
const ABOVE: usize = 512;

fn new_bell() -> Result<c_int, Errno> {
    // SAFETY: only numbers are passed; the second is this function's own.
    unsafe {
        let bell = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
        if bell < 0 {
            return Err(last_error());
        }
        let above = real::fcntl(bell, libc::F_DUPFD_CLOEXEC, ABOVE);
        if above >= 0 {
            real::close(bell);
            return Ok(above);
        }
        Ok(bell)
    }
}

/// Returns the instance of a number, if it is registered.
pub(crate) fn known(number: c_int) -> Option<&'static Instance> {
    INSTANCES.get(PLACES.get(number)? as usize)
}

/// Returns the instance of a number, and registers it if needed.
///
/// # Errors
/// `EBADF` if a table is full.
pub(crate) fn note(number: c_int) -> Result<&'static Instance, Errno> {
    if let Some(instance) = known(number) {
        return Ok(instance);
    }
    let is_free = |instance: &&Instance| {
        instance.numbers.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    };
    let place = INSTANCES.iter().position(|instance| is_free(&instance)).ok_or(Errno::EBADF)?;
    if PLACES.set(number, place as c_int)? {
        return Ok(&INSTANCES[place]);
    }
    INSTANCES[place].let_go();
    known(number).ok_or(Errno::EBADF)
}

/// Adds `new` to the numbers of the instance of `number`, if that is registered.
///
/// # Errors
/// `EBADF` if the number is beyond the table.
pub(crate) fn duplicate(number: c_int, new: c_int) -> Result<(), Errno> {
    let (Some(place), Some(instance)) = (PLACES.get(number), known(number)) else { return Ok(()) };
    instance.numbers.fetch_add(1, Ordering::SeqCst);
    if !PLACES.set(new, place)? {
        instance.let_go();
    }
    Ok(())
}

/// Removes a number. Returns the part of the instance, to be closed, if it was the last.
pub(crate) fn forget(number: c_int) -> Option<c_int> {
    let place = PLACES.take(number)?;
    INSTANCES.get(place as usize)?.let_go()
}

/// Returns the part of the instance of a number.
pub(crate) fn part(number: c_int) -> Option<c_int> {
    known(number)?.part()
}

/// Returns the instances with a part: one number of each, and the part.
pub(crate) fn all() -> Vec<(c_int, c_int)> {
    let mut all: Vec<(c_int, c_int)> = Vec::new();
    for (number, _) in PLACES.all() {
        if let Some(part) = part(number).filter(|part| all.iter().all(|(_, known)| known != part)) {
            all.push((number, part));
        }
    }
    all
}
