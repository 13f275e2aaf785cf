//! A connection without its stack: the values with which another stack continues it.

use bytes::Bytes;
use core::net::SocketAddr;
use wire::SeqNum;

/// An established connection, saved by [`save_connection`](crate::Stack::save_connection) and
/// restored by [`restore_connection`](crate::Stack::restore_connection). The peer does not notice:
/// neither sends a packet.
///
/// Other values are reset: round trips, congestion window, timers, and out-of-order data, which
/// the peer retransmits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedConnection {
    /// Local address.
    pub local: SocketAddr,
    /// Peer's address.
    pub peer: SocketAddr,
    /// SND.UNA: sequence number of the first byte of `unacknowledged`.
    pub snd_una: SeqNum,
    /// Written data that is not acknowledged.
    pub unacknowledged: Bytes,
    /// Number of bytes at the end of `unacknowledged` that were never sent.
    pub unsent: usize,
    /// RCV.NXT: sequence number after the last byte of `unread`.
    pub rcv_nxt: SeqNum,
    /// Received data that was not read.
    pub unread: Bytes,
    /// MSS option of the peer's SYN, bytes (RFC 9293 §3.7.1).
    pub peer_mss: u16,
    /// Window scales of the peer and of this end, 0 to 14 (RFC 7323 §2); `None` without scaling.
    pub window_scale: Option<(u8, u8)>,
    /// True if SACK was negotiated (RFC 2018).
    pub sack: bool,
    /// TSval of a segment sent now, and the peer's last one (TS.Recent); `None` without timestamps
    /// (RFC 7323 §3).
    pub timestamps: Option<(u32, u32)>,
    /// The windows of both ends.
    pub windows: Windows,
}

/// Windows of a connection in bytes, in the words of Linux's `struct tcp_repair_window`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Sequence number of the segment that advertised `snd_wnd` (SND.WL1).
    pub snd_wl1: SeqNum,
    /// Last window advertised by the peer, from SND.UNA on.
    pub snd_wnd: u32,
    /// Maximum window ever advertised by the peer.
    pub max_window: u32,
    /// Last window advertised to the peer, from `rcv_wup` on.
    pub rcv_wnd: u32,
    /// RCV.NXT at that time.
    pub rcv_wup: SeqNum,
}

/// A part of a connection that is assembled by hand, as sockets in `TCP_REPAIR` are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair<'a> {
    /// The peer's MSS option.
    Mss(u16),
    /// Window scales of the peer and of this end; more than 14 counts as 14 (RFC 7323 §2.3).
    WindowScale(u8, u8),
    /// SACK was negotiated.
    Sack,
    /// Timestamps were negotiated.
    Timestamps,
    /// TSval of a segment sent now.
    TsVal(u32),
    /// The peer's last TSval.
    TsRecent(u32),
    /// The windows.
    Windows(Windows),
    /// Data that was sent after the data in the send queue and is not acknowledged. It is
    /// retransmitted after a timeout.
    Sent(&'a [u8]),
    /// Data received after the data in the receive queue.
    Received(&'a [u8]),
}
