//! Signed segments (RFC 2385): segments to a peer with a key are signed, and its segments must be.
//! While no socket has a key, a packet costs one test of a null pointer and one of a flag of its
//! options.

use crate::md5::Md5Key;
use crate::stack::Stack;
use crate::stack::demux::holders::Holder;
use crate::tcp::connection::Connection;
use crate::tcp::input::Segment;
use crate::time_wait::TimeWaitTable;
use crate::tuple::FourTuple;
use crate::{ConnId, DropReason, Instant, ListenerId, Md5Keys, OptionError};
use alloc::collections::BTreeMap;
use wire::{SIGNATURE_LEN, TCP_HEADER_LEN, TxPacket, signature, signature_in};

/// Keys of connections in TIME-WAIT that are kept before those are looked for that are over.
const PARTED_MIN: usize = 64;

/// What is kept of signatures.
#[derive(Default)]
pub(in crate::stack) struct Signing {
    /// The fixed header of the segment that is being handled, and its length without IP.
    header: Option<([u8; TCP_HEADER_LEN], u32)>,
    /// Keys of connections in TIME-WAIT, whose entries have no room for them. Never iterated where order matters.
    parted: BTreeMap<FourTuple, Md5Key>,
    /// How many of these keys are kept before the next look for those whose entry is gone.
    parted_max: usize,
}

impl Signing {
    pub(in crate::stack) fn note(&mut self, segment: Option<&[u8]>) {
        self.header = segment.and_then(|segment| Some((*segment.first_chunk()?, segment.len() as u32)));
    }

    /// A connection enters TIME-WAIT: what is still to be said for it is signed as it was, or not at all.
    pub(in crate::stack) fn keep_key(
        &mut self,
        time_wait: &TimeWaitTable,
        tuple: FourTuple,
        key: Option<Md5Key>,
    ) {
        let Some(key) = key else {
            self.parted.remove(&tuple);
            return;
        };
        if self.parted.len() >= self.parted_max.max(PARTED_MIN) {
            self.parted.retain(|tuple, _| time_wait.lookup(tuple).is_some());
            self.parted_max = 2 * self.parted.len();
        }
        self.parted.insert(tuple, key);
    }
}

/// Who a segment is for.
enum Owner {
    Socket(Md5Keys),
    TimeWait,
    Nobody,
}

impl Stack {
    /// Replaces the keys of a connection. Its next segment is signed with them, or not at all.
    ///
    /// # Errors
    /// [`OptionError::NotFound`].
    pub fn set_md5_keys(&mut self, now: Instant, id: ConnId, keys: Md5Keys) -> Result<(), OptionError> {
        let connection = self.owned(id).ok_or(OptionError::NotFound)?;
        connection.set_md5_keys(keys);
        let options = connection.options.clone();
        self.enable_hooks(&options);
        self.settle(now, id.index);
        Ok(())
    }

    fn owner_of(&self, hash: u64, tuple: &FourTuple) -> Owner {
        let listener = match self.holder_at(hash, tuple) {
            Some(Holder::Connection(index)) => {
                let keys = self.connections.get(index).map(|connection| &connection.options.md5_keys);
                return keys.map_or(Owner::Nobody, |keys| Owner::Socket(keys.clone()));
            }
            Some(Holder::Request(index)) => self.requests.get(index).map(|request| request.listener),
            None if self.time_wait.lookup(tuple).is_some() => return Owner::TimeWait,
            None => self.find_listener(tuple),
        };
        match listener.and_then(|id| self.listener(id)) {
            Some(listener) => Owner::Socket(listener.socket.rare.md5_keys.clone()),
            None => Owner::Nobody,
        }
    }

    /// May this segment be looked at? Linux's `tcp_inbound_hash`: signed where a key is known, and rightly, and else not at all.
    #[cold]
    pub(in crate::stack) fn is_signed_as_due(
        &mut self,
        hash: u64,
        tuple: &FourTuple,
        segment: &Segment,
    ) -> bool {
        let signed = segment.header.options.md5;
        let keys = match self.owner_of(hash, tuple) {
            Owner::Socket(keys) => keys,
            Owner::TimeWait => return true,
            // Who signs is not reset by somebody who has no key to sign the reset with.
            Owner::Nobody if signed => {
                self.drops.count(DropReason::Signature);
                return false;
            }
            Owner::Nobody => return true,
        };
        self.is_signed_by(&keys, tuple, segment)
    }

    /// May this listener look at a segment that came by way of TIME-WAIT, whose keys it was not held to (Linux's `tcp_inbound_hash` behind
    /// `process` in `tcp_v4_rcv`)?
    #[cold]
    pub(in crate::stack) fn is_signed_for(
        &mut self,
        id: ListenerId,
        tuple: &FourTuple,
        segment: &Segment,
    ) -> bool {
        let keys = self.listener(id).map(|listener| listener.socket.rare.md5_keys.clone());
        keys.is_none_or(|keys| self.is_signed_by(&keys, tuple, segment))
    }

    fn is_signed_by(&mut self, keys: &Md5Keys, tuple: &FourTuple, segment: &Segment) -> bool {
        let signed = segment.header.options.md5;
        let counters = &mut self.shared.counters;
        let wrong = match keys.for_peer(tuple.peer.to_ip()) {
            None if !signed => return true,
            None => &mut counters.md5_unexpected,
            Some(_) if !signed => &mut counters.md5_not_found,
            Some(key)
                if self
                    .hooks
                    .as_deref()
                    .is_some_and(|hooks| is_right(&hooks.signing, tuple, segment, key)) =>
            {
                return true;
            }
            Some(_) => &mut counters.md5_failure,
        };
        *wrong += 1;
        self.drops.count(DropReason::Signature);
        false
    }

    /// Signs a packet that leaves, if its socket has a key for its peer. False: it cannot be, and must not leave.
    pub(in crate::stack) fn sign(&self, packet: &mut TxPacket) -> bool {
        let key = tuple_of(packet).and_then(|tuple| self.key_of(&tuple));
        key.is_none_or(|key| packet.sign(&key.secret))
    }

    /// The key by which packets of this tuple are signed.
    fn key_of(&self, tuple: &FourTuple) -> Option<Md5Key> {
        match self.owner_of(tuple.hash(&self.hash_key), tuple) {
            Owner::Socket(keys) => keys.for_peer(tuple.peer.to_ip()).cloned(),
            Owner::TimeWait => self.hooks.as_deref()?.signing.parted.get(tuple).cloned(),
            Owner::Nobody => None,
        }
    }

    /// Signs the reply to this tuple that was queued last: whose it was may not be known any more when it leaves.
    #[cold]
    pub(in crate::stack) fn sign_reply(&mut self, tuple: &FourTuple) {
        if let Some(key) = self.key_of(tuple)
            && let Some(packet) = self.replies.last_mut().filter(|packet| tuple_of(packet) == Some(*tuple))
        {
            packet.sign(&key.secret);
        }
    }
}

/// Of a packet of ours.
pub(super) fn tuple_of(packet: &TxPacket) -> Option<FourTuple> {
    let ((local, local_port), (peer, peer_port)) = wire::ends_of(packet.header())?;
    Some(FourTuple { local, local_port, peer, peer_port })
}

impl Connection {
    /// Signs a packet that waits: whose it was may not be known any more when it leaves.
    pub(in crate::stack) fn sign_ahead(&self, packet: &mut TxPacket) {
        if let Some(key) = self.md5_key() {
            packet.sign(&key.secret);
        }
    }
}

fn is_right(signing: &Signing, tuple: &FourTuple, segment: &Segment, key: &Md5Key) -> bool {
    let Some((header, len)) = signing.header else { return false };
    let text: &[u8] = &segment.payload;
    let made = signature((tuple.peer, tuple.local), &header, len, [text], &key.secret);
    // Every byte is looked at, whichever differs first.
    let differing =
        |found: [u8; SIGNATURE_LEN]| found.iter().zip(made).fold(0, |sum, (one, other)| sum | (one ^ other));
    signature_in(&segment.header).is_some_and(|found| differing(found) == 0)
}
