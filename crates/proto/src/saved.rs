//! A connection apart from its stack: what another one needs to go on with it.

use bytes::Bytes;
use core::net::SocketAddr;
use wire::SeqNum;

/// An established connection as [`save_connection`](crate::Stack::save_connection) tells it, and
/// [`restore_connection`](crate::Stack::restore_connection) takes it up. The peer notices nothing: no packet belongs to either.
///
/// What is not in it begins anew: round trips, the congestion window, text that came out of order (the peer sends it again), timers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedConnection {
    /// Our end.
    pub local: SocketAddr,
    /// The other one.
    pub peer: SocketAddr,
    /// SND.UNA: number of the first byte of `unacknowledged`.
    pub snd_una: SeqNum,
    /// What was written and is not acknowledged.
    pub unacknowledged: Bytes,
    /// How many bytes at the end of `unacknowledged` were never sent.
    pub unsent: usize,
    /// RCV.NXT: the number behind the last byte of `unread`.
    pub rcv_nxt: SeqNum,
    /// What came and was not read.
    pub unread: Bytes,
    /// The MSS that the peer's SYN announced, bytes (RFC 9293 §3.7.1).
    pub peer_mss: u16,
    /// Shifts of the windows that the peer tells and of those that we tell, 0 to 14 (RFC 7323 §2); `None`: windows are not scaled.
    pub window_scale: Option<(u8, u8)>,
    /// Selective acknowledgements were agreed (RFC 2018).
    pub sack: bool,
    /// TSval of a segment that leaves now, and the peer's last one (TS.Recent); `None`: no timestamps were agreed (RFC 7323 §3).
    pub timestamps: Option<(u32, u32)>,
    /// How far either end may send.
    pub windows: Windows,
}

/// Windows of a connection, in the words of Linux's `struct tcp_repair_window`; bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Number of the segment that advertised `snd_wnd` (SND.WL1).
    pub snd_wl1: SeqNum,
    /// What the peer offered last, from SND.UNA on.
    pub snd_wnd: u32,
    /// The most it ever offered.
    pub max_window: u32,
    /// What was offered to it last, from `rcv_wup` on.
    pub rcv_wnd: u32,
    /// RCV.NXT at that time.
    pub rcv_wup: SeqNum,
}

/// A piece of a connection that is put together by hand, as sockets in `TCP_REPAIR` are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair<'a> {
    /// The peer's MSS option.
    Mss(u16),
    /// Windows are scaled: shifts of those the peer tells, and of ours; more than 14 is taken for 14 (RFC 7323 §2.3).
    WindowScale(u8, u8),
    /// Selective acknowledgements were agreed.
    Sack,
    /// Timestamps were agreed.
    Timestamps,
    /// TSval of a segment that leaves now.
    TsVal(u32),
    /// The peer's last TSval.
    TsRecent(u32),
    /// The windows.
    Windows(Windows),
    /// Was written and sent behind what is in the send queue, which was sent, too, and is not acknowledged: it is retransmitted when a
    /// time-out says so.
    Sent(&'a [u8]),
    /// Came behind what is in the receive queue.
    Received(&'a [u8]),
}
