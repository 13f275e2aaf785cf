//! What is behind a number: tables that are read without a lock.

use libc::c_int;
use posix::Errno;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Numbers that may have something behind them; what `RLIMIT_NOFILE` rarely exceeds.
pub(crate) const NUMBERS_MAX: usize = 1 << 16;

/// By number: one more than what is behind it, or 0.
pub(crate) struct Table([AtomicI32; NUMBERS_MAX]);

/// One more than the highest number that was ever in one of the tables.
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

    /// Puts this behind it, whatever was there.
    ///
    /// # Errors
    /// `EBADF` where the table ends.
    pub(crate) fn put(&self, number: c_int, behind: c_int) -> Result<(), Errno> {
        self.entered(number)?.store(behind + 1, Ordering::Release);
        Ok(())
    }

    fn entered(&self, number: c_int) -> Result<&AtomicI32, Errno> {
        let entry = self.at(number).ok_or(Errno::EBADF)?;
        END.fetch_max(number as usize + 1, Ordering::AcqRel);
        Ok(entry)
    }

    /// Puts this behind it. False: there is something already.
    ///
    /// # Errors
    /// `EBADF` where the table ends.
    pub(crate) fn set(&self, number: c_int, behind: c_int) -> Result<bool, Errno> {
        let entry = self.entered(number)?;
        Ok(entry.compare_exchange(0, behind + 1, Ordering::AcqRel, Ordering::Acquire).is_ok())
    }

    /// Numbers and what is behind them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (c_int, c_int)> {
        (0..END.load(Ordering::Acquire) as c_int).filter_map(|number| Some((number, self.get(number)?)))
    }

    pub(crate) fn take(&self, number: c_int) -> Option<c_int> {
        self.at(number)?.swap(0, Ordering::AcqRel).checked_sub(1).filter(|fd| *fd >= 0)
    }
}

/// No number in one of the tables is as high.
pub(crate) fn end() -> usize {
    END.load(Ordering::Acquire)
}
