//! What a write says beside its bytes.

use super::connection::Connection;
use super::nagle::Nagle;
use crate::WriteFlags;

impl Connection {
    /// A write with these flags begins.
    pub(crate) fn before_write(&mut self, flags: WriteFlags) {
        if self.snd.nagle.contains(Nagle::PUSH) && self.unsent() == 0 {
            // What was pushed has gone.
            self.snd.nagle.remove(Nagle::PUSH);
        }
        self.snd.nagle.set(Nagle::MORE, flags.contains(WriteFlags::MORE));
    }

    /// All its bytes are queued. RFC 9293 §3.9.1: the last of them is pushed, unless more was announced.
    pub(crate) fn after_write(&mut self, flags: WriteFlags) {
        if !flags.contains(WriteFlags::MORE) {
            self.snd.queue.mark_push();
        }
    }
}
