//! Epoll instances: which numbers stand for the same one, and what it has beside the kernel's.
//!
//! An instance has a part of the stack's from the first socket of ours that it watches. Whoever waits before that waits for the kernel, and for a
//! bell that rings when the part is there. All of it is read without a lock, as the numbers of sockets are.

use crate::real::{self, last_error};
use crate::table::Table;
use libc::c_int;
use posix::Errno;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Instances at once.
const INSTANCES_MAX: usize = 1 << 12;
/// The count of an instance whose last number is being closed.
const CLOSING: usize = usize::MAX;

/// By number: one more than the place among the instances, or 0.
static PLACES: Table = Table::new();
static INSTANCES: [Instance; INSTANCES_MAX] = [const { Instance::new() }; INSTANCES_MAX];

/// One that is known. Each descriptor is one more than it is, or 0.
pub(crate) struct Instance {
    /// How many numbers stand for it; 0: the place is free.
    numbers: AtomicUsize,
    part: AtomicI32,
    bell: AtomicI32,
}

impl Instance {
    const fn new() -> Instance {
        Instance { numbers: AtomicUsize::new(0), part: AtomicI32::new(0), bell: AtomicI32::new(0) }
    }

    /// The stack's part.
    pub(crate) fn part(&self) -> Option<c_int> {
        held(self.part.load(Ordering::SeqCst))
    }

    /// Gives it one, unless another thread has: that one then. Who waits is told.
    pub(crate) fn set_part(&self, part: c_int) -> Option<c_int> {
        let set = self.part.compare_exchange(0, part + 1, Ordering::SeqCst, Ordering::SeqCst);
        if let Some(bell) = held(self.bell.load(Ordering::SeqCst)) {
            // SAFETY: eight bytes are there. Nothing else writes to it, so that there is room.
            unsafe { real::write(bell, (&raw const RING).cast(), size_of_val(&RING)) };
        }
        set.err().map(|other| other - 1)
    }

    /// What can be read as soon as it has a part.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, as the kernel says.
    pub(crate) fn bell(&self) -> Result<c_int, Errno> {
        if let Some(bell) = held(self.bell.load(Ordering::SeqCst)) {
            return Ok(bell);
        }
        let bell = new_bell()?;
        match self.bell.compare_exchange(0, bell + 1, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => Ok(bell),
            Err(other) => {
                // SAFETY: nobody else knows this number.
                unsafe { real::close(bell) };
                Ok(other - 1)
            }
        }
    }

    /// One number less stands for it. The last one gets its part, to be closed.
    fn let_go(&self) -> Option<c_int> {
        let fewer = |numbers| if numbers == 1 { Some(CLOSING) } else { Some(numbers - 1) };
        let before = self.numbers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
        if before != Ok(1) {
            return None;
        }
        if let Some(bell) = held(self.bell.swap(0, Ordering::SeqCst)) {
            // SAFETY: nothing is passed but a number.
            unsafe { real::close(bell) };
        }
        let part = held(self.part.swap(0, Ordering::SeqCst));
        self.numbers.store(0, Ordering::SeqCst);
        part
    }
}

/// What is written to a bell.
static RING: u64 = 1;

fn held(entry: i32) -> Option<c_int> {
    entry.checked_sub(1).filter(|fd| *fd >= 0)
}

/// Programs count on the lowest numbers: this one lies above them, if the limit allows.
const ABOVE: usize = 512;

fn new_bell() -> Result<c_int, Errno> {
    // SAFETY: nothing is passed but numbers, the second of them this function's own.
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

/// The instance that this number stands for, if it is known.
pub(crate) fn known(number: c_int) -> Option<&'static Instance> {
    INSTANCES.get(PLACES.get(number)? as usize)
}

/// The instance that this number stands for, known from now on.
///
/// # Errors
/// `EBADF` where a table ends.
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

/// `new` stands for the same instance as `number`, if that is known.
///
/// # Errors
/// `EBADF` where the table ends.
pub(crate) fn duplicate(number: c_int, new: c_int) -> Result<(), Errno> {
    let (Some(place), Some(instance)) = (PLACES.get(number), known(number)) else { return Ok(()) };
    instance.numbers.fetch_add(1, Ordering::SeqCst);
    if !PLACES.set(new, place)? {
        instance.let_go();
    }
    Ok(())
}

/// The number stands for it no longer. The last one gets the part, to be closed.
pub(crate) fn forget(number: c_int) -> Option<c_int> {
    let place = PLACES.take(number)?;
    INSTANCES.get(place as usize)?.let_go()
}

/// The part of the instance that this number stands for.
pub(crate) fn part(number: c_int) -> Option<c_int> {
    known(number)?.part()
}

/// Instances with a part: one of the numbers of each, and the part.
pub(crate) fn all() -> Vec<(c_int, c_int)> {
    let mut all: Vec<(c_int, c_int)> = Vec::new();
    for (number, _) in PLACES.all() {
        if let Some(part) = part(number).filter(|part| all.iter().all(|(_, known)| known != part)) {
            all.push((number, part));
        }
    }
    all
}
