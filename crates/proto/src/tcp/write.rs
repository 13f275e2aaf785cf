//! What a write says beside its bytes, how many of them are taken, and when more may come.

use super::connection::Connection;
use super::nagle::Nagle;
use crate::{Config, Events, WriteFlags};

impl Connection {
    /// Bytes that may be written now. `least`: all the send buffer may hold, because the stack has no memory.
    pub(crate) fn send_room(&self, config: &Config, least: Option<u32>) -> usize {
        let limit = least.map_or(self.snd.limit, |least| least.min(self.snd.limit));
        let room = (limit as usize).saturating_sub(self.snd.queue.len());
        match self.notsent_lowat(config) {
            u32::MAX => room,
            most => room.min(most.saturating_sub(self.unsent()) as usize),
        }
    }

    /// Most bytes that may wait to be sent; `u32::MAX`: the send buffer alone limits them.
    fn notsent_lowat(&self, config: &Config) -> u32 {
        self.options.notsent_lowat.unwrap_or(config.tcp_notsent_lowat)
    }

    /// A writer that found no room may try again: a third of the send buffer is free, and less than half of what may wait to be sent
    /// does (as with Linux's `sk_stream_is_writeable`).
    pub(crate) fn wake_writer(&mut self, config: &Config) {
        let free = self.snd.queue.len() * 3 <= self.snd.limit as usize * 2;
        if self.snd.blocked && free && u64::from(self.unsent()) * 2 < u64::from(self.notsent_lowat(config)) {
            self.snd.blocked = false;
            self.events |= Events::WRITABLE;
        }
    }

    /// A write with these flags begins.
    pub(crate) fn before_write(&mut self, flags: WriteFlags) {
        if self.snd.nagle.contains(Nagle::PUSH) && self.unsent() == 0 {
            // What was pushed has gone.
            self.snd.nagle.remove(Nagle::PUSH);
        }
        self.snd.nagle.set(Nagle::MORE, flags.contains(WriteFlags::MORE));
        self.snd.queue.push_span = self.snd.wnd_max / 2;
    }

    /// All its bytes are queued. RFC 9293 §3.9.1: the last of them is pushed, unless more was announced.
    pub(crate) fn after_write(&mut self, flags: WriteFlags) {
        if !flags.contains(WriteFlags::MORE) {
            self.snd.queue.mark_push();
        }
        if flags.contains(WriteFlags::URGENT) {
            self.queue_urgent();
        }
        if flags.contains(WriteFlags::END_OF_RECORD) {
            self.snd.queue.end_record();
        }
    }
}
