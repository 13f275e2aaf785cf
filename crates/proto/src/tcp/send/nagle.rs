//! Decides whether a segment smaller than the MSS may be sent (RFC 896, RFC 9293 §3.7.4, with
//! Minshall's refinement).

mod connection;

bitflags::bitflags! {
    /// Wishes of the application about small segments, like Linux's `nonagle`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub(crate) struct Nagle: u8 {
        /// Small segments need not wait for an acknowledgment (`TCP_NODELAY`).
        const OFF = 0x1;
        /// Small segments wait, whatever is acknowledged (`TCP_CORK`).
        const CORK = 0x2;
        /// All queued data leaves, corked or not.
        const PUSH = 0x4;
        /// The last write announced another (`MSG_MORE`). Its data waits as if corked, but only
        /// until a segment arrives.
        const MORE = 0x8;
        /// A write that goes on sends its data: no burst waits for an ACK.
        const AT_ONCE = 0x10;
    }
}
