//! Tables by number, read without a lock.

use libc::c_int;
use posix::Errno;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// The size of a table; `RLIMIT_NOFILE` rarely exceeds it.
pub(crate) const NUMBERS_MAX: usize = 1 << 16;

/// By number: the entry plus one, or 0 if there is none.
pub(crate) struct Table([AtomicI32; NUMBERS_MAX]);

/// The highest number that was ever in one of the tables, plus one.
static END: AtomicUsize = AtomicUsize::new(0);

impl Table {
    pub(crate) const fn new() -> Table {
        Table([const { AtomicI32::new(0) }; NUMBERS_MAX])
    }

    fn at(&self, number: c_int) -> Option<&AtomicI32> {
        self.0.get(usize::try_from(number).ok()?)
    }

    pub(crate) fn get(&self, number: c_int) -> Option<c_int> {
        self.at(number)?.load(Ordering::Acquire).checked_sub(1).filter(|fd| *fd >= 0)
    }

    /// Sets the entry of a number.
    ///
    /// # Errors
    /// `EBADF` if the number is beyond the table.
    pub(crate) fn put(&self, number: c_int, behind: c_int) -> Result<(), Errno> {
        self.entered(number)?.store(behind + 1, Ordering::Release);
        Ok(())
    }

    fn entered(&self, number: c_int) -> Result<&AtomicI32, Errno> {
        let entry = self.at(number).ok_or(Errno::EBADF)?;
        END.fetch_max(number as usize + 1, Ordering::AcqRel);
        Ok(entry)
    }

    /// Sets the entry of a number that has none. Returns false if it has one.
    ///
    /// # Errors
    /// `EBADF` if the number is beyond the table.
    pub(crate) fn set(&self, number: c_int, behind: c_int) -> Result<bool, Errno> {
        let entry = self.entered(number)?;
        Ok(entry.compare_exchange(0, behind + 1, Ordering::AcqRel, Ordering::Acquire).is_ok())
    }

    /// Returns each number with its entry.
    pub(crate) fn all(&self) -> impl Iterator<Item = (c_int, c_int)> {
        (0..END.load(Ordering::Acquire) as c_int).filter_map(|number| Some((number, self.get(number)?)))
    }

    pub(crate) fn take(&self, number: c_int) -> Option<c_int> {
        self.at(number)?.swap(0, Ordering::AcqRel).checked_sub(1).filter(|fd| *fd >= 0)
    }
}

/// Returns a number above every number in the tables.
pub(crate) fn end() -> usize {
    END.load(Ordering::Acquire)
}
