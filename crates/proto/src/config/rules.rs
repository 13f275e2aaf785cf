//! Settings that decide several things at once: rules, where implementations differ. What follows from each is a method, so that the engine asks
//! for the behaviour and not for who has it.

use super::SettingKind;
use super::value::Value;
use alloc::string::{String, ToString};

macro_rules! rules {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $word:literal,)+ }
     $($(#[$method_doc:meta])* $method:ident: $holds:ident,)+) => {
        $(#[$doc])*
        ///
        /// What follows, and from which value:
        $(
            #[doc = ""]
            #[doc = concat!("* `", stringify!($method), "`, of `", stringify!($holds), "`:")]
            $(#[$method_doc])*
        )+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$value_doc])* $value,)+ }

        impl $name {
            $($(#[$method_doc])*
            pub(crate) const fn $method(self) -> bool {
                matches!(self, $name::$holds)
            })+
        }

        choice!($name { $($word => $name::$value),+ });
    };
}

rules! {
    /// What follows where both ends opened at once and their SYNs have crossed.
    CrossedSyns {
        /// RFC 7323 §2.2 and RFC 5961 §4.2: what the peer did not offer is not used, and its SYN is challenged when it comes again.
        Rfc = "rfc",
        /// The SYN is retransmitted with ACK, whatever the peer offers (`tcp_rcv_synsent_state_process`).
        Kernel = "kernel",
    }
    /// Where SYNs have crossed, the SYN-ACK offers all that our SYN did (Linux sends the same segment, with ACK); otherwise what the peer's SYN
    /// offered, too (RFC 7323 §2.2, §3.2).
    offers_all: Kernel,
    /// Where SYNs have crossed, our windows are advertised in the scale that we offered whatever the peer offers, and that of its SYN-ACK is taken
    /// to be scaled (Linux's `tcp_rcv_synsent_state_process`, `tcp_rcv_state_process`); otherwise neither is (RFC 7323 §2.2).
    scales: Kernel,
    /// A SYN that has crossed ours is answered each time it comes; otherwise it is challenged when it comes again (RFC 5961 §4.2), and the
    /// SYN-ACK waits for its timer.
    repeats_answer: Rfc,
    /// Where SYNs have crossed, what ours carried is retransmitted as soon as the SYN is acknowledged alone; otherwise after a time-out.
    retransmits_syn_data: Rfc,
}

rules! {
    /// What a peer may send before its handshake is complete.
    HalfOpenRules {
        /// A client that has restarted gets through, and a Fast Open child takes segments as any connection in SYN-RECEIVED (RFC 9293 §3.10.7.4).
        Lenient = "lenient",
        /// A request knows only the SYN it was made of, and so does a Fast Open child (`tcp_check_req`).
        Kernel = "kernel",
    }
    /// A SYN with another number inside the window of a half-open request ends it by a reset (RFC 9293 §3.10.7.4: back to LISTEN);
    /// otherwise it is acknowledged, and a client that has restarted gets through.
    syn_ends_request: Kernel,
    /// The SYN-ACK that answers a repeated SYN echoes its timestamp (RFC 7323 §4.3); otherwise that of the first.
    echoes_repeated_syn: Lenient,
    /// Until its handshake is complete a Fast Open child takes segments as a half-open request does, which knows only the SYN (Linux's
    /// `tcp_check_req`); otherwise as any connection in SYN-RECEIVED (RFC 9293 §3.10.7.4).
    child_is_request: Kernel,
}

rules! {
    /// How losses, reordering and spurious recoveries are detected.
    LossRules {
        /// RFC 8985, RFC 6675 and RFC 4015.
        Rfc = "rfc",
        /// Linux's, where its `tcp_input.c` and `tcp_recovery.c` differ from them.
        Kernel = "kernel",
    }
    /// Loss is found by time whatever `tcp_recovery`'s first bit says (Linux since 6.17, which counts no more).
    rack_always: Kernel,
    /// The rest of a packet whose beginning was acknowledged by itself counts as having been overtaken when it is acknowledged, so that the
    /// path is held to reorder.
    partial_ack_reorders: Kernel,
    /// RACK's round trip is that of whatever an acknowledgement tells of last, so that of an old segment keeps others from being held lost;
    /// and one that tells of none finds no losses; otherwise that of the segment sent last (RFC 8985 §6.2 step 2), and each is looked at.
    rtt_of_last: Kernel,
    /// RACK's window widens at most once for what is delivered after it did, of which an acknowledgement has to tell; otherwise once for what
    /// is outstanding (RFC 8985 §6.2 step 4), which lasts as long as the first segment is missing.
    dsack_rounds_by_delivery: Kernel,
    /// What an acknowledgement shows amid fast recovery, that it was spurious, counts only when no retransmission is on its way: until
    /// then nothing more does. Otherwise at once (RFC 4015 §3).
    undo_needs_quiet: Kernel,
    /// What an acknowledgement shows to be lost is retransmitted before the text of the same segment is taken, and so does not acknowledge that
    /// (Linux's `tcp_ack` ends by `tcp_xmit_recovery`); otherwise behind it, so that one packet does both.
    retransmits_before_text: Kernel,
    /// What is retransmitted after a time-out and is found to be lost once more is another loss, and begins a fast recovery; otherwise slow start
    /// goes on.
    lost_again_recovers: Kernel,
    /// A spurious retransmission that is reported to have arrived counts as delivered (Linux); otherwise only what was missing does.
    dsack_delivers: Kernel,
}

rules! {
    /// Partial acknowledgements amid a fast recovery, where the peer has no SACK.
    NewRenoRules {
        /// RFC 6582 §3.2, step 3: each has the next hole retransmitted, and the first few restart the retransmission timer. Half a flight that a
        /// queue dropped is left to the time-out's slow start, not repaired hole by hole, a round trip each.
        Rfc = "rfc",
        /// Each restarts the timer, and the hole waits until proportional rate reduction lets it go (`tcp_rearm_rto`, `tcp_xmit_recovery`).
        Kernel = "kernel",
    }
    /// RFC 6582 §3.2, step 3: "If this ACK does *not* acknowledge all of the data up to and including recover, then this is a partial ACK. In this
    /// case, retransmit the first unacknowledged segment."
    retransmits_at_once: Rfc,
    /// RFC 6582 §3.2, step 3: "For the first partial ACK that arrives during fast recovery, also reset the retransmit timer." Here it is the first
    /// four: as many holes are repaired as steadily as by duplicates.
    later_partial_acks_leave_timer: Rfc,
    /// A recovery of which the last acknowledgement shows that it was spurious is over by that (RFC 4015 §3.2), and its segments came late;
    /// otherwise duplicates mean nothing until more is acknowledged (RFC 6582 §3.2, step 1).
    end_what_was_spurious: Rfc,
}

rules! {
    /// Tail loss probes: when they go, and with what.
    ProbeRules {
        /// RFC 8985 §7.
        Rfc = "rfc",
        /// Linux's `tcp_schedule_loss_probe` and `tcp_send_loss_probe`.
        Kernel = "kernel",
    }
    /// New data sets the timer of a loss probe whatever it was set for, although one is unanswered, or the window shrinks for an echo of congestion
    /// and something was delivered out of order; otherwise not (RFC 8985 §7.2).
    new_data_sets_probe: Kernel,
    /// A probe that new data puts off goes no later than a time-out counted from when the first segment was last sent (Linux's
    /// `tcp_rto_delta_us`); otherwise the acknowledgements since put that off, too (RFC 6298 §5.3).
    counts_from_oldest: Kernel,
    /// Such a probe of new data may be a burst, where cwnd has room for it; otherwise it is one segment (RFC 8985 §7.3).
    may_be_burst: Kernel,
}

rules! {
    /// What the congestion window counts, and what follows from it. Read when a connection begins.
    WindowUnit {
        /// Bytes (RFC 5681, RFC 3465); CUBIC is RFC 9438 with HyStart++ (RFC 9406).
        Bytes = "bytes",
        /// Segments, as Linux; CUBIC and the older HyStart in its integers.
        Segments = "segments",
    }
    /// Whatever a segment holds, the congestion window and what follows from it count it as a whole one. What a Fast Open SYN without data has
    /// no data of is a segment, too (Linux's `tcp_send_syn_data` queues it), and so is a FIN that goes alone, for which the window must
    /// have room (RFC 5681 counts data).
    is_segments: Segments,
}

rules! {
    /// What the device is given to cut, where it does.
    BurstRules {
        /// Whatever the windows let go, but for a segment with CWR, which goes alone.
        Careful = "careful",
        /// As `tcp_write_xmit` and `tcp_xmit_retransmit_queue` make them.
        Kernel = "kernel",
    }
    /// On a path so slow that its bursts are of `tcp_min_tso_segs`, what the window leaves of one waits for the rest of it too. It may wait
    /// for a round trip there, with nothing gained.
    least_wait: Kernel,
    /// A burst takes half of the congestion window at most, so that two are in flight and acknowledgements keep coming.
    of_half_window: Kernel,
    /// The last segment of every burst is pushed, lest a receiver that merges segments waits for more (Linux since 5.4).
    are_pushed: Kernel,
    /// What tells that the window was reduced (CWR) may be a burst, of which the device marks the first segment or all; otherwise it is one
    /// segment (RFC 3168 §6.1.2).
    tell_reduction: Kernel,
    /// What was not sent together is retransmitted together only where it fits into one segment, and then what is not lost may go along
    /// (`tcp_retrans_try_collapse`); otherwise all that is lost in a row may.
    resend_as_sent: Kernel,
}

rules! {
    /// From what the congestion window is reduced, and how.
    ReductionRules {
        /// RFC 5681 §3.1 and RFC 3168 §6.1.2: from what is in flight; an echo of congestion at once.
        Rfc = "rfc",
        /// From the window, by proportional rate reduction also where congestion is echoed (`tcp_init_cwnd_reduction`).
        Kernel = "kernel",
    }
    /// A reduction starts from the congestion window, and a time-out amid a recovery adds none; otherwise from what is in flight, and it
    /// does (RFC 5681 §3.1, §4.3).
    start_at_cwnd: Kernel,
    /// When congestion is echoed the window shrinks with what is delivered (proportional rate reduction); otherwise at once.
    ecn_by_prr: Kernel,
}

rules! {
    /// Accurate ECN where implementations differ.
    AccurateEcnRules {
        /// RFC 9768 §3.2.
        Rfc = "rfc",
        /// Linux's `tcp_accecn_*`.
        Kernel = "kernel",
    }
    /// What a SYN-ACK says of our SYN's IP-ECN field is always looked at (RFC 9768 §3.2.2.3); otherwise only of one that is marked itself.
    checks_syn_ack: Rfc,
    /// Marks are counted as long as packets come (RFC 9768 §3.2.1); otherwise until either end has closed.
    counts_always: Rfc,
    /// A SYN-ACK, or the ACK of a SYN cookie, with a code of Accurate ECN is believed though only RFC 3168's was on offer.
    believes_unasked: Kernel,
}

rules! {
    /// What is sent into a peer's window that is small, closed, or taken back.
    PeerWindowRules {
        /// RFC 9293 §3.8.6: a closed window is probed, and a small one waited for.
        Rfc = "rfc",
        /// A closed window is tried with what was in flight, and a small one filled (`tcp_retransmit_timer`, `tcp_snd_wnd_test`).
        Kernel = "kernel",
    }
    /// What is in flight when the peer closes its window, and SYN data that a SYN-ACK with a closed window refuses, is retransmitted at each time-out,
    /// one segment, and counts as lost; who does not hear the peer any more gives up (Linux's `tcp_retransmit_timer`, `__tcp_retransmit_skb`).
    /// Otherwise it waits, and the window is probed (RFC 9293 §3.8.6.1).
    resends_into_closed: Kernel,
    /// A segment that repeats the last one's numbers may make the peer's window smaller (RFC 9293 §3.10.7.4); otherwise only larger, or
    /// zero (Linux's `tcp_may_update_window`).
    may_shrink: Rfc,
    /// Before each probe of a closed window another goes that has the next number, if urgent bytes wait, so that the peer takes the pointer
    /// (Linux's `tcp_write_wakeup`); otherwise the probe tells of them by its own number, which is old.
    probes_tell_urgent: Kernel,
    /// Segments of half the largest window the peer has offered at most, and whatever fits beside whole ones into the window goes with them.
    /// Otherwise less than a segment goes only alone, if it is half of that window (RFC 9293 §3.8.6.2.1).
    are_filled: Kernel,
}

rules! {
    /// What a write asks for, and what it tells of the application.
    WriteRules {
        /// It asks for room once, and takes what fits; the connection is app-limited whenever nothing waits.
        Whole = "whole",
        /// It asks for room where it begins a segment, and sends while it goes on (`tcp_sendmsg_locked`).
        BySegment = "by-segment",
    }
    /// The connection is found to be app-limited when the application writes: if less than a segment waits, and the congestion window has
    /// room. Otherwise after each transmission and acknowledgement, if nothing waits.
    tell_app_limited: BySegment,
    /// A write asks for room where it begins a segment, which it may then fill, and sends while it goes on. Otherwise it asks once, and
    /// takes what fits.
    are_by_segment: BySegment,
}

rules! {
    /// What becomes of a client that has completed the handshake and found no room in the accept queue.
    AcceptOverflow {
        /// It is accepted as soon as there is room, and reset when its request expires.
        Admit = "admit",
        /// It is accepted when it next sends something, and never reset (`tcp_v4_syn_recv_sock`).
        Forget = "forget",
    }
    /// A client that has completed the handshake but found no room in the accept queue is reset when its request expires;
    /// otherwise it believes in a connection that nobody has.
    resets_expired: Admit,
    /// Such a client is accepted as soon as there is room; otherwise when it next sends something.
    admits_waiting: Admit,
}

rules! {
    /// Which local ports are chosen, and which may be named while an old connection holds them.
    PortChoice {
        /// Any of the range, those in TIME-WAIT at the peer last; a port that is named waits as any other for TIME-WAIT.
        Any = "any",
        /// Connects and binds keep to halves of the range, and a port that is named cuts TIME-WAIT short (`__inet_hash_connect`).
        Parity = "parity",
    }
    /// A port that is presumably in TIME-WAIT at the peer, which closed first, is chosen last: a SYN from there may be challenged.
    avoids_peer_time_wait: Any,
    /// A connect that names its local port cuts short any TIME-WAIT or FIN-WAIT-2 there of a connection with timestamps, however young it is
    /// and whatever `tcp_tw_reuse` says (Linux's `tcp_twsk_unique`, `__inet_hash_connect`).
    named_reuses: Parity,
    /// An active open prefers the first, third … port of the range, unless its socket names one, and `bind` those between, lest they take each
    /// other's (Linux's `__inet_hash_connect`, `inet_csk_find_open_port`). With `SO_REUSEADDR` `bind` takes the upper half only when it finds none
    /// below.
    by_parity: Parity,
}

rules! {
    /// Which MSS is announced, and which is assumed of a peer.
    MssRules {
        /// RFC 6691 §2 and RFC 9293 §3.7.1.
        Rfc = "rfc",
        /// Linux's `dst_metric_advmss`, `tcp_send_syn_data` and `msstab`.
        Kernel = "kernel",
    }
    /// The MSS we announce is the route's `advmss` as it stands, or what the path's MTU allows, where an ICMP error reported one; otherwise no more
    /// than the device allows (RFC 6691 §2).
    mss_follows_path: Kernel,
    /// A peer that tells no MSS is held to take what an open that asked for Fast Open had assumed of it: what the cache knows, or our own
    /// (Linux's `tcp_send_syn_data`). Otherwise the default of RFC 9293 §3.7.1 holds.
    assumed_stays: Kernel,
    /// A SYN cookie knows only sizes that whole paths have, and a peer that takes less is sent the least of them (Linux's `msstab`);
    /// otherwise there are smaller ones below, and none is sent more than it takes.
    cookies_know_whole_paths: Kernel,
}
