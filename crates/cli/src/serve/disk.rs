//! Runs work that may wait for a disk or an unresponsive file system on helper threads, never on
//! the stack's thread.
//!
//! Each lane has few threads, so that a file system that hangs leaves threads for the others.
//! Closing a file may hang too: [`OpenFile`] closes it on a helper thread.
use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// All lanes, by name.
pub(crate) struct Disk {
    lanes: Mutex<HashMap<Vec<u8>, Weak<Semaphore>>>,
    timeout: Duration,
}

/// The helper threads for files that are probably on one file system.
#[derive(Clone)]
pub(crate) struct Lane {
    places: Arc<Semaphore>,
    timeout: Duration,
}

/// Helper threads of one lane. tokio has 512 for all lanes.
const LANE_MAX: usize = 64;
/// Number of lanes above which unused ones are removed.
const LANES_KEPT: usize = 256;

thread_local! {
    static IS_HELPER: Cell<bool> = const { Cell::new(false) };
}

impl Disk {
    /// Creates the lanes. A caller waits at most `timeout` for its work.
    pub(crate) fn new(timeout: Duration) -> Disk {
        Disk { lanes: Mutex::default(), timeout }
    }

    /// Returns the lane of this name.
    pub(crate) fn lane(&self, name: &[u8]) -> Lane {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lanes.get(name).and_then(Weak::upgrade);
        let places = known.unwrap_or_else(|| {
            if lanes.len() >= LANES_KEPT {
                lanes.retain(|_, places| places.strong_count() > 0);
            }
            let places = Arc::new(Semaphore::new(LANE_MAX));
            lanes.insert(name.to_owned(), Arc::downgrade(&places));
            places
        });
        Lane { places, timeout: self.timeout }
    }
}

impl Lane {
    /// Runs `work` on a helper thread, once the lane has a free one.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut): the work takes too long. The thread continues, and
    /// its result is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let done = tokio::time::timeout(self.timeout, self.work(work)).await;
        done.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the disk did not answer in time"))?
    }

    async fn work<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let place = self.places.clone().acquire_owned().await.map_err(io::Error::other)?;
        let job = spawn_blocking(move || {
            IS_HELPER.set(true);
            let done = work();
            drop(place);
            done
        });
        job.await.map_err(io::Error::other)
    }
}

/// A file that is closed by a helper thread.
pub(crate) struct OpenFile {
    /// The open file; `None` once it is being closed.
    file: Option<File>,
    lane: Lane,
}

impl OpenFile {
    pub(crate) fn new(file: File, lane: Lane) -> OpenFile {
        OpenFile { file: Some(file), lane }
    }

    pub(crate) fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Returns the file, for a helper thread.
    pub(crate) fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let (file, lane) = (self.file.take(), self.lane.clone());
        if IS_HELPER.get() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { lane.work(move || drop(file)).await });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// All threads of one lane hang. Another lane still works, and the caller of the first one gets
    /// an error in time.
    #[test]
    fn a_lane_that_hangs_leaves_the_others_alone() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let disk = Disk::new(Duration::from_secs(2));
        let (release, hung) = channel::<()>();
        let hung = Arc::new(Mutex::new(hung));
        runtime.block_on(async {
            let stuck: Vec<_> = (0..600)
                .map(|_| {
                    let hung = hung.clone();
                    tokio::spawn(disk.lane(b"stuck").run(move || hung.lock().unwrap().recv().is_ok()))
                })
                .collect();
            for job in stuck {
                assert_eq!(job.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
            }
            assert_eq!(disk.lane(b"other").run(|| 7).await.unwrap(), 7);
        });
        drop(release);
    }
}
