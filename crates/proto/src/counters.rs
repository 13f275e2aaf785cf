//! Counters of a stack: Linux's under Linux's names, additional ones, and dropped packets by
//! reason.

use alloc::borrow::ToOwned;
use alloc::string::String;

macro_rules! counters {
    ($( $group:literal: { $( $(#[$doc:meta])* $field:ident = $name:literal; )+ } )+) => {
        /// Counters of a stack. They only increase.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters { $($( $(#[$doc])* pub $field: u64, )+)+ }

        impl Counters {
            /// Returns every counter by name, in the order of the table.
            pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
                self.grouped().map(|(_, name, value)| (name, value))
            }

            /// Every counter by its group, as `nstat` names it, and its name.
            fn grouped(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$($(($group, $name, self.$field),)+)+].into_iter()
            }

            /// Returns a counter by name, e.g. `TCPFastOpenActive`.
            pub fn get(&self, name: &str) -> Option<u64> {
                self.all().find(|(known, _)| *known == name).map(|(_, value)| value)
            }
        }
    };
}

counters! {
    // RFC 4022.
    "Tcp": {
    /// Active opens.
    active_opens = "ActiveOpens";
    /// Connections opened by a peer's SYN.
    passive_opens = "PassiveOpens";
    /// Opens that failed.
    attempt_fails = "AttemptFails";
    /// Established connections ended by a reset.
    estab_resets = "EstabResets";
    /// Segments received, bad ones included.
    in_segs = "InSegs";
    /// Segments sent, resets included, retransmissions excluded. Retransmitted SYN-ACKs of passive
    /// opens are included, as on Linux.
    out_segs = "OutSegs";
    /// Segments retransmitted.
    retrans_segs = "RetransSegs";
    /// Segments received in error.
    in_errs = "InErrs";
    /// Received segments with a wrong checksum.
    in_csum_errors = "InCsumErrors";
    /// Resets sent.
    out_rsts = "OutRsts";
    }
    "TcpExt": {
    /// SYN data acknowledged (client).
    tcp_fastopen_active = "TCPFastOpenActive";
    /// SYN data sent and not acknowledged (client).
    tcp_fastopen_active_fail = "TCPFastOpenActiveFail";
    /// Fast Open accepted (server).
    tcp_fastopen_passive = "TCPFastOpenPassive";
    /// Cookie refused (server).
    tcp_fastopen_passive_fail = "TCPFastOpenPassiveFail";
    /// Fast Open queue full (server).
    tcp_fastopen_listen_overflow = "TCPFastOpenListenOverflow";
    /// Cookie requests received (server).
    tcp_fastopen_cookie_reqd = "TCPFastOpenCookieReqd";
    /// Stack-wide pauses begun (client).
    tcp_fastopen_blackhole = "TCPFastOpenBlackhole";
    /// Cookies of the backup key accepted (server).
    tcp_fastopen_passive_alt_key = "TCPFastOpenPassiveAltKey";
    /// Probes of the path's MTU that were acknowledged.
    mtup_success = "TCPMTUPSuccess";
    /// Probes of the path's MTU that were lost.
    mtup_fail = "TCPMTUPFail";
    /// Retransmission time-outs.
    timeouts = "TCPTimeouts";
    /// Fast recoveries at peers with SACK.
    sack_recovery = "TCPSackRecovery";
    /// Fast recoveries at peers without SACK.
    reno_recovery = "TCPRenoRecovery";
    /// Segments retransmitted in fast recovery.
    fast_retrans = "TCPFastRetrans";
    /// Segments retransmitted in slow start after a time-out.
    slow_start_retrans = "TCPSlowStartRetrans";
    /// Segments retransmitted that were lost once more.
    lost_retransmit = "TCPLostRetransmit";
    /// Peers that dropped data which they had acknowledged by SACK.
    sack_reneging = "TCPSACKReneging";
    /// Retransmissions refused by the device or its queue.
    retrans_fail = "TCPRetransFail";
    /// ACKs that showed reordering.
    sack_reorder = "TCPSACKReorder";
    /// Duplicate ACKs that showed reordering, from peers without SACK.
    reno_reorder = "TCPRenoReorder";
    /// Timestamps that showed reordering.
    ts_reorder = "TCPTSReorder";
    /// Invalid SACK blocks.
    sack_discard = "TCPSACKDiscard";
    /// Fast recoveries undone by their last acknowledgment.
    full_undo = "TCPFullUndo";
    /// Fast recoveries undone by an earlier acknowledgment.
    partial_undo = "TCPPartialUndo";
    /// Recoveries undone by D-SACKs.
    dsack_undo = "TCPDSACKUndo";
    /// Timeouts undone.
    loss_undo = "TCPLossUndo";
    /// Timeouts found spurious by F-RTO.
    spurious_rtos = "TCPSpuriousRTOs";
    /// D-SACKs sent for segments in order.
    dsack_old_sent = "TCPDSACKOldSent";
    /// D-SACKs sent for segments out of order.
    dsack_ofo_sent = "TCPDSACKOfoSent";
    /// Tail loss probes sent.
    loss_probes = "TCPLossProbes";
    /// Losses repaired only by a tail loss probe.
    loss_probe_recovery = "TCPLossProbeRecovery";
    /// D-SACKs received.
    dsack_recv = "TCPDSACKRecv";
    /// D-SACKs received for segments out of order.
    dsack_ofo_recv = "TCPDSACKOfoRecv";
    /// Full segments reported by D-SACKs.
    dsack_recv_segs = "TCPDSACKRecvSegs";
    /// D-SACKs for more segments than were retransmitted.
    dsack_ignored_dubious = "TCPDSACKIgnoredDubious";
    /// Segments with data sent for the first time.
    orig_data_sent = "TCPOrigDataSent";
    /// Segments with data delivered to peers, by acknowledgment or SACK. Small writes acknowledged
    /// together with full segments count by their bytes.
    delivered = "TCPDelivered";
    /// Delivered segments whose acknowledgment echoed congestion (RFC 3168).
    delivered_ce = "TCPDeliveredCE";
    /// Slow starts ended by HyStart because an ACK train lasted half a round trip
    /// (`firstbyte.window_unit`).
    hystart_train_detect = "TCPHystartTrainDetect";
    /// Sum of their windows at that time, in segments.
    hystart_train_cwnd = "TCPHystartTrainCwnd";
    /// Slow starts ended by HyStart or HyStart++ because the round trip had grown.
    hystart_delay_detect = "TCPHystartDelayDetect";
    /// Sum of their windows at that time, in segments.
    hystart_delay_cwnd = "TCPHystartDelayCwnd";
    /// Keepalive probes sent.
    keep_alive = "TCPKeepAlive";
    /// SYNs and SYN-ACKs retransmitted.
    syn_retrans = "TCPSynRetrans";
    /// Acknowledgments sent by the delayed-ACK timer.
    delayed_acks = "DelayedACKs";
    /// Zero windows advertised.
    to_zero_window_adv = "TCPToZeroWindowAdv";
    /// Open windows advertised after a zero window.
    from_zero_window_adv = "TCPFromZeroWindowAdv";
    /// Segments dropped because the window was zero.
    zero_window_drop = "TCPZeroWindowDrop";
    /// Number of times the stack came under memory pressure (`tcp_mem`).
    memory_pressures = "TCPMemoryPressures";
    /// Milliseconds under memory pressure, of finished periods.
    memory_pressures_chrono = "TCPMemoryPressuresChrono";
    /// Receive buffers that had to shrink.
    prune_called = "PruneCalled";
    /// Receive buffers that still took too much memory afterwards.
    rcv_pruned = "RcvPruned";
    /// Times out-of-order data was dropped to free memory.
    ofo_pruned = "OfoPruned";
    /// Runs of small payloads that were merged by copying.
    rcv_collapsed = "TCPRcvCollapsed";
    /// Segments dropped for lack of memory.
    rcv_q_drop = "TCPRcvQDrop";
    /// Zero windows not advertised, because an earlier advertisement must not be revoked.
    want_zero_window_adv = "TCPWantZeroWindowAdv";
    /// Zero-window probes sent.
    win_probe = "TCPWinProbe";
    /// Segments received again that were entirely old: an acknowledgment may have been lost.
    delayed_ack_lost = "DelayedACKLost";
    /// Segments queued out of order.
    ofo_queue = "TCPOFOQueue";
    /// Segments out of order dropped for lack of memory.
    ofo_drop = "TCPOFODrop";
    /// Packets out of order without new data, or covered by a later one, with accounting by
    /// packets.
    ofo_merge = "TCPOFOMerge";
    /// Acknowledgments of segments out of order that were omitted, because one covers all.
    ack_compressed = "TCPAckCompressed";
    /// Timeouts in fast recovery, peers with SACK.
    sack_recovery_fail = "TCPSackRecoveryFail";
    /// Timeouts in fast recovery, peers without SACK.
    reno_recovery_fail = "TCPRenoRecoveryFail";
    /// Timeouts in disorder, peers with SACK.
    sack_failures = "TCPSackFailures";
    /// Timeouts in disorder, peers without SACK.
    reno_failures = "TCPRenoFailures";
    /// Timeouts while the losses of an earlier one were being retransmitted.
    loss_failures = "TCPLossFailures";
    /// ICMP errors that do not quote data in flight.
    out_of_window_icmps = "OutOfWindowIcmps";
    /// SYNs and final ACKs that found the accept queue full.
    listen_overflows = "ListenOverflows";
    /// SYNs, and final ACKs, dropped at a listener.
    listen_drops = "ListenDrops";
    /// SYNs that met a full SYN queue, or `tcp_syncookies` 2, and were not dropped.
    req_q_full_do_cookies = "TCPReqQFullDoCookies";
    /// SYNs dropped because the SYN queue was full.
    req_q_full_drop = "TCPReqQFullDrop";
    /// SYN cookies sent.
    syncookies_sent = "SyncookiesSent";
    /// SYN cookies returned.
    syncookies_recv = "SyncookiesRecv";
    /// ACKs for a listener that had sent SYN cookies, with an invalid or expired cookie.
    syncookies_failed = "SyncookiesFailed";
    /// Final ACKs without data that a listener deferred.
    defer_accept_drop = "TCPDeferAcceptDrop";
    /// Half-open requests and unaccepted connections that a closing listener passed to another one
    /// on its port (`tcp_migrate_req`).
    migrate_req_success = "TCPMigrateReqSuccess";
    /// Half-open requests and unaccepted connections of a closing listener without another one on
    /// its port.
    migrate_req_failure = "TCPMigrateReqFailure";
    /// Half-open requests ended by a reset of either end.
    embryonic_rsts = "EmbryonicRsts";
    /// Segments without a signature from peers with a key (RFC 2385).
    md5_not_found = "TCPMD5NotFound";
    /// Segments with a signature from peers without a key.
    md5_unexpected = "TCPMD5Unexpected";
    /// Segments with a wrong signature.
    md5_failure = "TCPMD5Failure";
    /// Challenge ACKs (RFC 5961).
    challenge_ack = "TCPChallengeACK";
    /// Segments that begin beyond the window.
    beyond_window = "BeyondWindow";
    /// SYNs of synchronized connections, which are challenged.
    syn_challenge = "TCPSYNChallenge";
    /// Answers withheld because the peer of a request had one recently (`tcp_invalid_ratelimit`).
    ack_skipped_syn_recv = "TCPACKSkippedSynRecv";
    /// ACKs to segments rejected for their timestamp, withheld by the rate limit
    /// (`tcp_invalid_ratelimit`).
    ack_skipped_paws = "TCPACKSkippedPAWS";
    /// ACKs to segments outside the window, withheld by the rate limit.
    ack_skipped_seq = "TCPACKSkippedSeq";
    /// ACKs in FIN-WAIT-2 after the application had closed, withheld by the rate limit.
    ack_skipped_fin_wait2 = "TCPACKSkippedFinWait2";
    /// ACKs in TIME-WAIT, withheld by the rate limit.
    ack_skipped_time_wait = "TCPACKSkippedTimeWait";
    /// Challenge ACKs withheld by the rate limit.
    ack_skipped_challenge = "TCPACKSkippedChallenge";
    /// SYN-ACKs rejected for their timestamp.
    paws_active_rejected = "PAWSActive";
    /// Segments rejected for their timestamp.
    paws_estab_rejected = "PAWSEstab";
    /// Packets with a hop limit below the socket's minimum.
    tcp_min_ttl_drop = "TCPMinTTLDrop";
    /// Final ACKs that echo a timestamp of no SYN-ACK.
    tsecr_rejected = "TSEcrRejected";
    /// Pure ACKs rejected for their timestamp, without an answer.
    paws_old_ack = "PAWSOldAck";
    /// Segments with the next data and nothing but an acknowledgment besides.
    hp_hits = "TCPHPHits";
    /// Acknowledgments with progress and no other information.
    hp_acks = "TCPHPAcks";
    /// Other acknowledgments without data, SYN or FIN.
    pure_acks = "TCPPureAcks";
    /// Segments rejected for their timestamp in TIME-WAIT.
    paws_time_wait = "PAWSTimewait";
    /// Connections reset because they were closed with unread data.
    abort_on_close = "TCPAbortOnClose";
    /// Connections reset because data arrived after close, or closed with a linger of zero.
    abort_on_data = "TCPAbortOnData";
    /// Orphans reset because there were too many.
    abort_on_memory = "TCPAbortOnMemory";
    /// Connections reset in FIN-WAIT-2, because the application did not want to wait for the peer's
    /// FIN.
    abort_on_linger = "TCPAbortOnLinger";
    /// Connections given up after retransmissions.
    abort_on_timeout = "TCPAbortOnTimeout";
    /// Connections reduced to an entry: in TIME-WAIT, or orphaned in FIN-WAIT-2.
    time_wait = "TW";
    /// TIME-WAIT or orphaned FIN-WAIT-2 entries that lasted four seconds or less.
    time_wait_killed = "TWKilled";
    /// TIME-WAIT entries whose tuple a connect reused.
    time_wait_recycled = "TWRecycled";
    /// TIME-WAIT entries removed to make room.
    time_wait_overflow = "TCPTimeWaitOverflow";
    }
    "": {
    /// Packets with a malformed IP header, and fragments and unsupported extension headers.
    ip_in_hdr_errors = "IpInHdrErrors";
    /// Packets for other addresses, or from an invalid address.
    ip_in_addr_errors = "IpInAddrErrors";
    /// Packets of another protocol, handed back to the caller.
    ip_in_unknown_protos = "IpInUnknownProtos";
    /// Connects without a local address of the peer's family, and packets from peers that a route
    /// rejects.
    ip_out_no_routes = "IpOutNoRoutes";
    }
    "TcpExt": {
    /// Packets without a route back (`rp_filter`).
    ip_reverse_path_filter = "IPReversePathFilter";
    }
    "": {
    /// ICMP messages received, of both versions.
    icmp_in_msgs = "IcmpInMsgs";
    /// Malformed ICMP messages received.
    icmp_in_errors = "IcmpInErrors";
    /// ICMP messages with a wrong checksum.
    icmp_in_csum_errors = "IcmpInCsumErrors";
    /// Destination unreachable, and packet too big.
    icmp_in_dest_unreachs = "IcmpInDestUnreachs";
    /// Time exceeded.
    icmp_in_time_excds = "IcmpInTimeExcds";
    /// Parameter problems.
    icmp_in_parm_probs = "IcmpInParmProbs";
    /// Echo requests received.
    icmp_in_echos = "IcmpInEchos";
    /// Echo replies received.
    icmp_in_echo_reps = "IcmpInEchoReps";
    /// Echo replies sent.
    icmp_out_echo_reps = "IcmpOutEchoReps";
    /// Echo requests without an answer, because too many came from one peer
    /// (`firstbyte.echo_replies_per_peer`).
    icmp_out_rate_limit = "IcmpOutRateLimitHost";
    }
    "Firstbyte": {
    /// Firstbyte: bytes of SYN data that were not accepted, and were retransmitted.
    syn_data_rejected_bytes = "SynDataRejectedBytes";
    /// Firstbyte: SYN-ACKs with the answer or the FIN.
    synack_data = "SynAckData";
    /// Firstbyte: retransmitted SYN-ACKs of passive opens; `OutSegs` includes them, as on Linux.
    syn_ack_retrans = "SynAckRetrans";
    /// Firstbyte: SYNs with a valid cookie seen before by the replay guard.
    replay_guard_hits = "ReplayGuardHits";
    /// Firstbyte: SYNs with a valid cookie rejected because the guard was full.
    replay_guard_full = "ReplayGuardFull";
    /// Firstbyte: cookies granted although the Fast Open queue was full.
    cookie_on_overflow = "CookieOnOverflow";
    /// Firstbyte: cookie keys created by the stack (`firstbyte.fast_open_key_rotation`).
    key_rotations = "FastOpenKeyRotations";
    /// Firstbyte: SYNs rejected because buffers use all available memory
    /// (`firstbyte.refuse_without_memory`).
    refused_on_memory = "RefusedOnMemory";
    }
}

/// A counter that is a sum of others, so that nothing has to be added to it per packet.
type Sum = (&'static str, fn(&Counters) -> u64);

const SUMS: [Sum; 4] = [
    ("IpInReceives", |c| IN_DELIVERS(c) + c.ip_in_hdr_errors + c.ip_in_addr_errors + c.ip_in_unknown_protos),
    ("IpInDelivers", IN_DELIVERS),
    ("IpOutRequests", |c| c.out_segs + c.retrans_segs - c.syn_ack_retrans + c.icmp_out_echo_reps),
    ("IcmpOutMsgs", |c| c.icmp_out_echo_reps),
];

const IN_DELIVERS: fn(&Counters) -> u64 = |c| c.in_segs + c.icmp_in_msgs;

impl Counters {
    /// Returns every counter by `nstat`'s name: `TcpActiveOpens`, `TcpExtTCPTimeouts`; additional
    /// ones begin with `Firstbyte`. `docs/counters.md` lists all lines of Linux.
    /// ```
    /// let names: Vec<String> = firstbyte_proto::Counters::default().nstat().map(|(name, _)| name).collect();
    /// let some = ["TcpInSegs", "TcpExtTCPTimeouts", "IpInReceives", "IcmpInMsgs", "FirstbyteSynAckData"];
    /// assert!(some.iter().all(|name| names.contains(&name.to_string())));
    /// ```
    pub fn nstat(&self) -> impl Iterator<Item = (String, u64)> {
        let named = self.grouped().map(|(group, name, value)| (format!("{group}{name}"), value));
        named.chain(SUMS.iter().map(|(name, sum)| ((*name).to_owned(), sum(self))))
    }
}

macro_rules! drop_reasons {
    ($( $(#[$doc:meta])* $variant:ident; )+) => {
        /// The reason why a packet was dropped. A drop is counted; it is not an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DropReason { $( $(#[$doc])* $variant, )+ }

        impl DropReason {
            const ALL: &[DropReason] = &[$(DropReason::$variant),+];
        }
    };
}

drop_reasons! {
    /// IP header malformed.
    IpHeader;
    /// A fragment.
    Fragment;
    /// An IPv6 extension header or an IPv4 option that is not supported.
    IpOption;
    /// An invalid source address, or a mapped address on the wire.
    BadAddress;
    /// TCP header malformed.
    TcpHeader;
    /// TCP checksum wrong.
    TcpChecksum;
    /// ICMP message malformed.
    Icmp;
    /// ICMP error about an unknown connection.
    IcmpUnrelated;
    /// A half-open request whose peer is unreachable according to ICMP.
    RequestUnreachable;
    /// SYN queue of the listener full.
    SynQueueFull;
    /// Accept queue of the listener full.
    AcceptQueueFull;
    /// Too many connections.
    TooManyConnections;
    /// No memory for another connection (`tcp_mem`).
    NoMemory;
    /// No route leads back to the source (`rp_filter`).
    ReversePath;
    /// A route rejects the source.
    NoRoute;
    /// A final ACK for a listener that waits for data.
    Deferred;
    /// A segment without meaning for a listener or a half-open request.
    NotForListener;
    /// A segment that TIME-WAIT ignores.
    TimeWait;
    /// A segment without a connection, after this second's resets were used up.
    RateLimited;
    /// A reset without a connection.
    StrayReset;
    /// A hop limit below the socket's minimum.
    HopLimit;
    /// Not signed as required (RFC 2385), or no room for a signature in an outgoing segment.
    Signature;
}

/// Dropped packets by reason.
#[derive(Clone, Debug, Default)]
pub struct Drops {
    counts: [u64; DropReason::ALL.len()],
}

impl Drops {
    pub(crate) fn count(&mut self, reason: DropReason) {
        self.counts[reason as usize] += 1;
    }

    /// The reasons that have been counted since `before`.
    pub(crate) fn since(&self, before: &Drops) -> impl Iterator<Item = DropReason> {
        DropReason::ALL.iter().copied().filter(|reason| self.get(*reason) > before.get(*reason))
    }

    /// Returns the packets dropped for `reason`.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.counts[reason as usize]
    }

    /// Returns every reason with its count.
    pub fn all(&self) -> impl Iterator<Item = (DropReason, u64)> {
        DropReason::ALL.iter().map(|reason| (*reason, self.get(*reason)))
    }
}
