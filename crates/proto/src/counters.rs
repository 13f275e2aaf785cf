//! What a stack counts: Linux's counters under Linux's names, ours beside them, and dropped packets by reason.

use alloc::borrow::ToOwned;
use alloc::string::String;

macro_rules! counters {
    ($( $group:literal: { $( $(#[$doc:meta])* $field:ident = $name:literal; )+ } )+) => {
        /// Counters of a stack. They only grow.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters { $($( $(#[$doc])* pub $field: u64, )+)+ }

        impl Counters {
            /// Every counter by name, in the order of the table.
            pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
                self.grouped().map(|(_, name, value)| (name, value))
            }

            /// Every counter by its group, as `nstat` names it, and its name.
            fn grouped(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$($(($group, $name, self.$field),)+)+].into_iter()
            }

            /// One counter by name, e.g. `TCPFastOpenActive`.
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
    /// Connections that came to be by a peer's SYN.
    passive_opens = "PassiveOpens";
    /// Opens that failed.
    attempt_fails = "AttemptFails";
    /// Established connections ended by a reset.
    estab_resets = "EstabResets";
    /// Segments received, bad ones included.
    in_segs = "InSegs";
    /// Segments sent, resets included, but not those that were retransmitted (as Linux, repeated SYN-ACKs of passive opens all the same).
    out_segs = "OutSegs";
    /// Segments retransmitted.
    retrans_segs = "RetransSegs";
    /// Segments received in error.
    in_errs = "InErrs";
    /// Of those, by their checksum.
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
    /// Peers that let go of data they had selectively acknowledged.
    sack_reneging = "TCPSACKReneging";
    /// Segments that were to be retransmitted and were refused here.
    retrans_fail = "TCPRetransFail";
    /// ACKs that showed reordering.
    sack_reorder = "TCPSACKReorder";
    /// Duplicate ACKs that showed reordering, from peers without SACK.
    reno_reorder = "TCPRenoReorder";
    /// Timestamps that showed reordering.
    ts_reorder = "TCPTSReorder";
    /// SACK blocks that meant nothing.
    sack_discard = "TCPSACKDiscard";
    /// Fast recoveries undone by their last acknowledgement.
    full_undo = "TCPFullUndo";
    /// Fast recoveries undone by an earlier one.
    partial_undo = "TCPPartialUndo";
    /// Recoveries undone by D-SACKs.
    dsack_undo = "TCPDSACKUndo";
    /// Time-outs undone.
    loss_undo = "TCPLossUndo";
    /// Of those, found spurious by F-RTO.
    spurious_rtos = "TCPSpuriousRTOs";
    /// D-SACKs sent for segments in order.
    dsack_old_sent = "TCPDSACKOldSent";
    /// D-SACKs sent for segments out of order.
    dsack_ofo_sent = "TCPDSACKOfoSent";
    /// Tail loss probes sent.
    loss_probes = "TCPLossProbes";
    /// Losses that only a tail loss probe repaired.
    loss_probe_recovery = "TCPLossProbeRecovery";
    /// D-SACKs received.
    dsack_recv = "TCPDSACKRecv";
    /// Of those, of segments out of order.
    dsack_ofo_recv = "TCPDSACKOfoRecv";
    /// Full segments that they reported.
    dsack_recv_segs = "TCPDSACKRecvSegs";
    /// D-SACKs of more than was ever retransmitted.
    dsack_ignored_dubious = "TCPDSACKIgnoredDubious";
    /// Segments with data sent for the first time.
    orig_data_sent = "TCPOrigDataSent";
    /// Segments with data that peers were found to have, acknowledged or reported; what was written small and acknowledged together with
    /// full ones counts by its bytes.
    delivered = "TCPDelivered";
    /// Of those, the ones whose acknowledgement echoed congestion (RFC 3168).
    delivered_ce = "TCPDeliveredCE";
    /// Slow starts that HyStart ended because acknowledgements came as an ACK train half a round trip long (`firstbyte.window_unit`).
    hystart_train_detect = "TCPHystartTrainDetect";
    /// Their windows at that time, segments in all.
    hystart_train_cwnd = "TCPHystartTrainCwnd";
    /// Slow starts that HyStart, or HyStart++, ended because the round trip had grown.
    hystart_delay_detect = "TCPHystartDelayDetect";
    /// Their windows at that time, segments in all.
    hystart_delay_cwnd = "TCPHystartDelayCwnd";
    /// Keepalive probes sent.
    keep_alive = "TCPKeepAlive";
    /// SYNs and SYN-ACKs retransmitted.
    syn_retrans = "TCPSynRetrans";
    /// Acknowledgements sent by the delayed-ACK timer.
    delayed_acks = "DelayedACKs";
    /// Closed windows that were advertised.
    to_zero_window_adv = "TCPToZeroWindowAdv";
    /// Open windows that were advertised after a closed one.
    from_zero_window_adv = "TCPFromZeroWindowAdv";
    /// Segments that came for a closed window, and were thrown away.
    zero_window_drop = "TCPZeroWindowDrop";
    /// Times the stack's memory came under pressure (`tcp_mem`).
    memory_pressures = "TCPMemoryPressures";
    /// Milliseconds it was, periods that are over.
    memory_pressures_chrono = "TCPMemoryPressuresChrono";
    /// Receive buffers that were to take less memory.
    prune_called = "PruneCalled";
    /// Of those, the ones that still take too much.
    rcv_pruned = "RcvPruned";
    /// Data out of order was dropped to free memory.
    ofo_pruned = "OfoPruned";
    /// Runs of loosely packed payloads that were copied together.
    rcv_collapsed = "TCPRcvCollapsed";
    /// Segments that came when there was no memory for them.
    rcv_q_drop = "TCPRcvQDrop";
    /// Closed windows that would have been advertised, if what was advertised before could be taken back.
    want_zero_window_adv = "TCPWantZeroWindowAdv";
    /// Probes of closed windows sent.
    win_probe = "TCPWinProbe";
    /// Segments that came again, wholly old: our acknowledgement may have been lost.
    delayed_ack_lost = "DelayedACKLost";
    /// Segments queued out of order.
    ofo_queue = "TCPOFOQueue";
    /// Segments out of order that were dropped for want of memory.
    ofo_drop = "TCPOFODrop";
    /// Packets out of order that brought nothing new, or were covered by a later one; of an accounting by packets.
    ofo_merge = "TCPOFOMerge";
    /// Acknowledgements of segments out of order that were left out, because one said it all.
    ack_compressed = "TCPAckCompressed";
    /// Time-outs in fast recovery at peers with SACK.
    sack_recovery_fail = "TCPSackRecoveryFail";
    /// Time-outs in fast recovery at peers without SACK.
    reno_recovery_fail = "TCPRenoRecoveryFail";
    /// Time-outs at peers with SACK that had reported something out of order.
    sack_failures = "TCPSackFailures";
    /// Time-outs at peers without SACK that had sent duplicate acknowledgements.
    reno_failures = "TCPRenoFailures";
    /// Time-outs while what an earlier one had lost was still being retransmitted.
    loss_failures = "TCPLossFailures";
    /// ICMP errors that quote nothing in flight.
    out_of_window_icmps = "OutOfWindowIcmps";
    /// SYNs and final ACKs that found the accept queue full.
    listen_overflows = "ListenOverflows";
    /// SYNs, and final ACKs, dropped at a listener.
    listen_drops = "ListenDrops";
    /// SYNs that met a full SYN queue, or `tcp_syncookies` 2, and were not dropped for it.
    req_q_full_do_cookies = "TCPReqQFullDoCookies";
    /// SYNs dropped because the SYN queue was full.
    req_q_full_drop = "TCPReqQFullDrop";
    /// SYN cookies sent.
    syncookies_sent = "SyncookiesSent";
    /// SYN cookies that came back.
    syncookies_recv = "SyncookiesRecv";
    /// ACKs for a listener that had sent SYN cookies, but not this one, or too long ago.
    syncookies_failed = "SyncookiesFailed";
    /// Final ACKs without data that a listener deferred.
    defer_accept_drop = "TCPDeferAcceptDrop";
    /// Half-open requests, and connections nobody had accepted, of a listener that closed and whose port others share (`tcp_migrate_req`):
    /// one of those has them.
    migrate_req_success = "TCPMigrateReqSuccess";
    /// Half-open requests, and connections nobody had accepted, of a listener that closed when no other listener shared its port.
    migrate_req_failure = "TCPMigrateReqFailure";
    /// Half-open requests ended by a reset, the peer's or ours.
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
    /// Answers not sent, because a request's peer had one lately (`tcp_invalid_ratelimit`).
    ack_skipped_syn_recv = "TCPACKSkippedSynRecv";
    /// ACKs to segments refused for their timestamp that the rate limit withheld (`tcp_invalid_ratelimit`).
    ack_skipped_paws = "TCPACKSkippedPAWS";
    /// ACKs to segments outside the window that the rate limit withheld.
    ack_skipped_seq = "TCPACKSkippedSeq";
    /// ACKs that the rate limit withheld in FIN-WAIT-2 after the application had closed.
    ack_skipped_fin_wait2 = "TCPACKSkippedFinWait2";
    /// ACKs that the rate limit withheld in TIME-WAIT.
    ack_skipped_time_wait = "TCPACKSkippedTimeWait";
    /// Challenge ACKs that the rate limit withheld.
    ack_skipped_challenge = "TCPACKSkippedChallenge";
    /// SYN-ACKs refused for their timestamp.
    paws_active_rejected = "PAWSActive";
    /// Segments refused for their timestamp.
    paws_estab_rejected = "PAWSEstab";
    /// Packets with a smaller hop limit than their socket takes.
    tcp_min_ttl_drop = "TCPMinTTLDrop";
    /// Final ACKs that echo a timestamp which no SYN-ACK had.
    tsecr_rejected = "TSEcrRejected";
    /// Pure ACKs refused for their timestamp, which are not answered.
    paws_old_ack = "PAWSOldAck";
    /// Segments with data that were the next, with nothing else to tell than an acknowledgement.
    hp_hits = "TCPHPHits";
    /// Acknowledgements that made progress, and said nothing else.
    hp_acks = "TCPHPAcks";
    /// Other acknowledgements without data, SYN or FIN.
    pure_acks = "TCPPureAcks";
    /// Segments refused for their timestamp in TIME-WAIT.
    paws_time_wait = "PAWSTimewait";
    /// Connections closed while something they had received was unread, which resets them.
    abort_on_close = "TCPAbortOnClose";
    /// Connections reset because data came that nobody will read, or closed with a linger of zero.
    abort_on_data = "TCPAbortOnData";
    /// Connections let go and reset because too many others had been.
    abort_on_memory = "TCPAbortOnMemory";
    /// Connections reset in FIN-WAIT-2, where their application did not want to wait for the peer's FIN.
    abort_on_linger = "TCPAbortOnLinger";
    /// Connections given up after retransmissions.
    abort_on_timeout = "TCPAbortOnTimeout";
    /// Connections of which only the numbers are kept: in TIME-WAIT, or in FIN-WAIT-2 when nobody holds them.
    time_wait = "TW";
    /// TIME-WAIT or unheld FIN-WAIT-2 entries that lasted four seconds or less.
    time_wait_killed = "TWKilled";
    /// TIME-WAIT entries that gave their tuple to a connect.
    time_wait_recycled = "TWRecycled";
    /// TIME-WAIT entries that had to make room.
    time_wait_overflow = "TCPTimeWaitOverflow";
    }
    "": {
    /// Packets whose IP header is malformed, and fragments and extension headers that are not followed.
    ip_in_hdr_errors = "IpInHdrErrors";
    /// Packets for another address than ours, or from one that no peer can have.
    ip_in_addr_errors = "IpInAddrErrors";
    /// Packets for us of another protocol; they go back to who handed them in.
    ip_in_unknown_protos = "IpInUnknownProtos";
    /// Connects to peers of a family that we have no address of, and packets from peers that a route keeps us from answering.
    ip_out_no_routes = "IpOutNoRoutes";
    }
    "TcpExt": {
    /// Packets from where no route leads back (`rp_filter`).
    ip_reverse_path_filter = "IPReversePathFilter";
    }
    "": {
    /// ICMP messages received, of both versions.
    icmp_in_msgs = "IcmpInMsgs";
    /// Of those, malformed ones.
    icmp_in_errors = "IcmpInErrors";
    /// Of those, by their checksum.
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
    /// Echo requests not answered, because too many came of one peer (`firstbyte.echo_replies_per_peer`).
    icmp_out_rate_limit = "IcmpOutRateLimitHost";
    }
    "Firstbyte": {
    /// Ours: bytes of SYN data sent in vain (they were retransmitted).
    syn_data_rejected_bytes = "SynDataRejectedBytes";
    /// Ours: SYN-ACKs that carried the answer, or the FIN.
    synack_data = "SynAckData";
    /// Ours: SYN-ACKs of passive opens retransmitted, which are among `OutSegs` too, as Linux counts them.
    syn_ack_retrans = "SynAckRetrans";
    /// Ours: SYNs with a valid cookie that the replay guard had seen before.
    replay_guard_hits = "ReplayGuardHits";
    /// Ours: SYNs with a valid cookie refused because the guard could not remember more.
    replay_guard_full = "ReplayGuardFull";
    /// Ours: cookies handed out although the Fast Open queue was full.
    cookie_on_overflow = "CookieOnOverflow";
    /// Ours: cookie keys that the stack has made itself since it began (`firstbyte.fast_open_key_rotation`).
    key_rotations = "FastOpenKeyRotations";
    /// Ours: SYNs refused because buffers hold all the memory there is for them (`firstbyte.refuse_without_memory`).
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
    /// Every counter as `nstat` names it: `TcpActiveOpens`, `TcpExtTCPTimeouts`; ours begin with `Firstbyte`. `docs/counters.md` says what
    /// became of each line that Linux has.
    ///
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
        /// Why a packet went no further. A drop is not an error: it is counted.
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
    /// An IPv6 extension header or an IPv4 option that must not be followed.
    IpOption;
    /// A source no peer can have, or a mapped address on the wire.
    BadAddress;
    /// TCP header malformed.
    TcpHeader;
    /// TCP checksum wrong.
    TcpChecksum;
    /// ICMP message malformed.
    Icmp;
    /// ICMP error about nothing of ours.
    IcmpUnrelated;
    /// Half-open request whose peer cannot be reached, as ICMP says.
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
    /// A route keeps us from answering the source.
    NoRoute;
    /// A final ACK for a listener that waits for data.
    Deferred;
    /// A segment that means nothing to a listener or a half-open request.
    NotForListener;
    /// A segment that TIME-WAIT ignores.
    TimeWait;
    /// A stranger's segment after this second's resets were used up.
    RateLimited;
    /// A reset for nobody.
    StrayReset;
    /// A smaller hop limit than the socket takes.
    HopLimit;
    /// Not signed as its socket asks (RFC 2385); of ours: without room for a signature.
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

    /// Packets dropped for `reason`.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.counts[reason as usize]
    }

    /// Every reason with its count.
    pub fn all(&self) -> impl Iterator<Item = (DropReason, u64)> {
        DropReason::ALL.iter().map(|reason| (*reason, self.get(*reason)))
    }
}
