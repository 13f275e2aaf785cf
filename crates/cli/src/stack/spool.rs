//! A pcapng file written by its own thread. A slow disk, or a pipe that is not read, does not delay
//! packets.
use crate::backlog::Backlog;
use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Most bytes that wait to be written.
const WAITING_MAX: usize = 16 << 20;

/// Most time to write the last blocks.
const LAST_BLOCKS: Duration = Duration::from_secs(10);

/// Accepts a pcapng file as it is made, and queues its blocks. A block that finds no room is
/// dropped whole, so that the file stays valid.
pub(crate) struct Spool {
    /// The beginning of a block.
    begun: Vec<u8>,
    order: ByteOrder,
    queue: Arc<Queue>,
}

/// The byte order of a section, which its first block shows.
#[derive(Clone, Copy, Default)]
struct ByteOrder {
    is_big_endian: bool,
}

/// The blocks of a [`Spool`], and the error of the thread that writes them.
pub(crate) struct Queue {
    backlog: Backlog<Vec<u8>>,
    error: Arc<Mutex<Option<io::Error>>>,
}

impl Spool {
    /// Starts the thread, which writes to `file`.
    pub(crate) fn start(file: impl Write + Send + 'static) -> io::Result<Spool> {
        let mut file = BufWriter::new(file);
        let error = Arc::new(Mutex::new(None));
        let failed = error.clone();
        let mut is_whole = true;
        let backlog = Backlog::start("capture", WAITING_MAX, move |blocks: VecDeque<Vec<u8>>, _| {
            // A reader could not find the blocks after a partial one.
            if !is_whole {
                return;
            }
            let written = blocks.iter().try_for_each(|block| file.write_all(block));
            if let Err(error) = written.and_then(|()| file.flush()) {
                is_whole = false;
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        })?;
        Ok(Spool {
            begun: Vec::new(),
            order: ByteOrder::default(),
            queue: Arc::new(Queue { backlog, error }),
        })
    }

    pub(crate) fn queue(&self) -> Arc<Queue> {
        self.queue.clone()
    }
}

impl Queue {
    /// Returns why the file is not complete, if it is not.
    pub(crate) fn fault(&self) -> Option<String> {
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*error, self.backlog.dropped()) {
            (Some(error), _) => Some(error.to_string()),
            (None, 0) => None,
            (None, dropped) => Some(format!("writing was too slow, and {dropped} packets are missing")),
        }
    }

    /// Waits a limited time until everything is written. Returns why the file is not complete, if
    /// it is not.
    pub(crate) fn finish(&self) -> Option<String> {
        match self.backlog.finish(LAST_BLOCKS) {
            true => self.fault(),
            false => Some(format!("the last packets were not written within {} s", LAST_BLOCKS.as_secs())),
        }
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        while let Some(len) = self.order.block_len(&self.begun).filter(|len| self.begun.len() >= *len) {
            let rest = self.begun.split_off(len);
            let block = std::mem::replace(&mut self.begun, rest);
            self.queue.backlog.put(block, len);
        }
        Ok(bytes.len())
    }

    /// Does nothing: the thread flushes what it writes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Type of a section header block, a palindrome, and its byte-order magic (draft-ietf-opsawg-pcapng
/// §4.1).
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const BIG_ENDIAN_MAGIC: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];

impl ByteOrder {
    /// Returns the length of the block that begins here, once it is known (§3.1).
    fn block_len(&mut self, begun: &[u8]) -> Option<usize> {
        let word = |at: usize| begun.get(at..at + 4)?.first_chunk::<4>().copied();
        if word(0)? == SECTION_HEADER {
            self.is_big_endian = word(8)? == BIG_ENDIAN_MAGIC;
        }
        let len = word(4)?;
        let len = if self.is_big_endian { u32::from_be_bytes(len) } else { u32::from_le_bytes(len) };
        Some(len as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstbyte::device::tap::{Captured, PcapngWriter};
    use std::sync::mpsc::{Receiver, channel};

    /// Blocks at the first write until its sender has gone.
    struct Slow(Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_that_takes_nothing_holds_up_nobody_and_lacks_whole_packets() {
        let (open, gate) = channel();
        let file = Arc::new(Mutex::new(Vec::new()));
        let spool = Spool::start(Slow(gate, file.clone())).unwrap();
        let queue = spool.queue();
        let mut writer = PcapngWriter::new(spool).unwrap();
        let interface = writer.add_interface("tun0", "").unwrap();
        let data = [7; 60_000];
        let packet = Captured { interface, at: 0, direction: None, comments: &[], data: &data };
        (0..1000).for_each(|_| writer.write_packet(&packet).unwrap());
        let fault = queue.fault().unwrap();
        assert!(fault.starts_with("writing was too slow, and "), "{fault}");
        drop(open);
        assert_eq!(queue.finish().unwrap(), fault);
        let file = file.lock().unwrap();
        let (mut rest, mut blocks, mut order) = (&file[..], 0, ByteOrder::default());
        while let Some(len) = order.block_len(rest) {
            rest = &rest[len..];
            blocks += 1;
        }
        assert!(rest.is_empty() && (200..600).contains(&blocks), "{blocks} blocks");
    }

    #[test]
    fn an_error_is_told_once_and_the_rest_is_left_out() {
        let spool = Spool::start(std::fs::File::options().write(true).open("/dev/full").unwrap()).unwrap();
        let queue = spool.queue();
        let mut writer = PcapngWriter::new(spool).unwrap();
        writer.add_interface("tun0", "").unwrap();
        assert!(queue.finish().unwrap().contains("No space left on device"));
    }
}
