//! Settings: one table with Linux's names, units, ranges and both profiles.
//!
//! [`Config::default`] is Firstbyte's profile, [`Config::linux`] is the behavior of Linux 6.18.
//! Every difference between the two is a row of this table; the engine never asks which profile it
//! runs. Rows without a Linux name have a `firstbyte.` name.

mod check;
mod choice;
mod error;
mod port_range;
mod row;
#[macro_use]
mod value;
mod rules;

use crate::PathMtuDiscovery;
use crate::port_set::PortSet;
use crate::tcp::ecn::Asked;
use alloc::string::String;
use alloc::vec::Vec;
pub use choice::{AckHabit, CongestionControl, ReceiveAccounting, RttVariation, SynDataRoom};
use core::time::Duration;
pub use error::SettingError;
pub use row::{SettingKind, SettingRow};
pub use rules::{
    AcceptOverflow, AccurateEcnRules, BurstRules, CrossedSyns, HalfOpenRules, LossRules, MssRules,
    NewRenoRules, PeerWindowRules, PortChoice, ProbeRules, ReductionRules, WindowUnit, WriteRules,
};
pub(crate) use value::Value;

macro_rules! settings {
    ($( $(#[$doc:meta])* $field:ident : $type:ty = $name:literal, ours $ours:expr, linux $linux:expr, range $range:pat, )+) => {
        /// Settings of a stack, read whenever they matter unless a row says otherwise: a change
        /// affects the next packet.
        ///
        /// Any release may add rows, so a configuration starts with one of the profiles. Each row
        /// has a method of its name, and [`set`](Config::set) accepts rows by name.
        /// ```
        /// use firstbyte_proto::Config;
        ///
        /// let mut config = Config::linux().tcp_fastopen(0x3).replay_guard(true);
        /// config.set("net.ipv4.tcp_ecn", "1").unwrap();
        /// assert_eq!((config.tcp_fastopen, config.replay_guard, config.tcp_ecn), (0x3, true, 1));
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Config { $( $(#[$doc])* pub $field: $type, )+ }

        impl Default for Config {
            fn default() -> Config { Config { $($field: $ours,)+ } }
        }

        /// A method per row. Values are checked when a stack begins with them, or by [`check`](Config::check).
        impl Config {
            $(
                #[doc = concat!("The same configuration with another value of `", $name, "`.")]
                #[must_use]
                pub fn $field(mut self, value: $type) -> Config {
                    self.$field = value;
                    self
                }
            )+
        }

        impl Config {
            /// Returns the settings of Linux 6.18.
            pub fn linux() -> Config { Config { $($field: $linux,)+ } }

            /// Returns every setting as (name, value), in the order of the table.
            pub fn all(&self) -> Vec<(&'static str, String)> {
                vec![$(($name, self.$field.show()),)+]
            }

            /// Returns the value of a setting, in the form that [`set`](Config::set) accepts.
            pub fn get(&self, name: &str) -> Option<String> {
                match name {
                    $($name => Some(self.$field.show()),)+
                    _ => None,
                }
            }

            /// Returns the rows of the table, in order.
            pub fn rows() -> Vec<SettingRow> {
                vec![$(SettingRow { name: $name, kind: <$type as Value>::KIND, range: stringify!($range) },)+]
            }

            /// Is each number in its range?
            fn check_rows(&self) -> Result<(), SettingError> {
                $(if !matches!(self.$field, $range) {
                    return Err(out_of_range($name, &self.$field.show(), stringify!($range)));
                })+
                Ok(())
            }

            fn assign(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
                match name {
                    $($name => {
                        let value = <$type as Value>::parse(text).map_err(SettingError::Invalid)?;
                        if !matches!(value, $range) {
                            return Err(out_of_range($name, text, stringify!($range)));
                        }
                        self.$field = value;
                    })+
                    _ => return Err(SettingError::Unknown),
                }
                Ok(())
            }
        }
    };
}

fn out_of_range(name: &str, value: &str, range: &str) -> SettingError {
    SettingError::Invalid(format!("{value} is out of range for {name}: {range}"))
}

settings! {
    /// Bits: 0x1 client, 0x2 server, 0x4 client sends SYN data without a cookie, 0x200 server takes SYN data without a
    /// cookie, 0x400 every listener serves Fast Open (read at `listen`). See [`fastopen`].
    tcp_fastopen: u32 = "net.ipv4.tcp_fastopen", ours 0x3, linux 0x1, range _,
    /// Seconds of the stack-wide pause after Fast Open black holes; 0 = off.
    tcp_fastopen_blackhole_timeout_sec: u32 = "net.ipv4.tcp_fastopen_blackhole_timeout_sec", ours 0, linux 0, range _,
    /// The stack makes itself a new cookie key so often, and the one before becomes the backup: a cookie is good for this long at least, and
    /// twice as long at most. Counted from the first SYN that a key is needed for; 0 = keys stay until they are set. Those of a listener stay.
    fast_open_key_rotation: Duration = "firstbyte.fast_open_key_rotation", ours Duration::ZERO, linux Duration::ZERO, range _,
    /// Longest time a SYN-ACK that accepts Fast Open waits for the application's answer; zero sends it at once.
    synack_hold: Duration = "firstbyte.synack_hold", ours Duration::from_millis(1), linux Duration::ZERO, range _,
    /// The reply may ride on the SYN-ACK.
    synack_data: bool = "firstbyte.synack_data", ours true, linux false, range _,
    /// Before the handshake's ACK a Fast Open client is sent so many times the bytes of its SYN at most (RFC 9000 §8.1 has 3), in IP packets
    /// beside SYN-ACKs without data and a reset. 0 = no data (RFC 7413 §5.2); 4294967295 = no limit but the congestion window (Linux).
    fast_open_amplification: u32 = "firstbyte.fast_open_amplification", ours u32::MAX, linux u32::MAX, range _,
    /// Remember paths where Fast Open failed and leave it off there for a while (RFC 7413 §4.1.3.1).
    fast_open_verdicts: bool = "firstbyte.fast_open_verdicts", ours true, linux false, range _,
    /// The plain SYN follows an unanswered Fast Open SYN after max(100 ms, 2.5 SRTT) when an SRTT is remembered.
    fast_fallback: bool = "firstbyte.fast_fallback", ours true, linux false, range _,
    /// A Fast Open SYN that meets an older connection between the same ports is sent again with cookie and data, behind the reset that ends
    /// the older connection. Linux sends a plain SYN (`tcp_rcv_synsent_state_process`).
    repeat_challenged_syn: bool = "firstbyte.repeat_challenged_syn", ours true, linux false, range _,
    /// A listener whose Fast Open queue is full still hands out cookies.
    cookie_on_overflow: bool = "firstbyte.cookie_on_overflow", ours true, linux false, range _,
    /// While the SYN queue is full, or SYN cookies are sent, a valid Fast Open cookie is honoured and one asked for is handed out;
    /// otherwise the option is not looked at.
    fast_open_past_syn_queue: bool = "firstbyte.fast_open_past_syn_queue", ours true, linux false, range _,
    /// SYNs accepted with data are remembered, so that a copy is not accepted again (RFC 7413 §6.1).
    replay_guard: bool = "firstbyte.replay_guard", ours true, linux false, range _,
    /// Entries of one generation of the replay guard (8 bytes each, allocated as used). Read when the stack is made.
    replay_guard_entries: u32 = "firstbyte.replay_guard_entries", ours 1 << 20, linux 1 << 20, range 1..,
    /// Room the options take from SYN data.
    syn_data_room: SynDataRoom = "firstbyte.syn_data_room", ours SynDataRoom::Exact, linux SynDataRoom::Reserve40, range _,
    /// SYN data to a server whose MSS is not remembered is limited to 536 (IPv4) or 1220 (IPv6) bytes (RFC 7413 §4.1.3).
    syn_data_default_mss: bool = "firstbyte.syn_data_default_mss", ours true, linux false, range _,
    /// A server takes a FIN with SYN data it accepts; otherwise SYN+FIN is dropped in LISTEN.
    syn_fin: bool = "firstbyte.syn_fin", ours true, linux false, range _,
    /// `shutdown` of a Fast Open child sends its FIN before the handshake's ACK, as `close` does; otherwise with that.
    early_shutdown: bool = "firstbyte.early_shutdown", ours true, linux false, range _,
    /// Who closes before the SYN is answered has what was written delivered; otherwise the attempt ends.
    deliver_after_early_close: bool = "firstbyte.deliver_after_early_close", ours true, linux false, range _,
    /// What a peer may send before its handshake is complete.
    half_open_rules: HalfOpenRules = "firstbyte.half_open_rules", ours HalfOpenRules::Lenient, linux HalfOpenRules::Kernel, range _,
    /// The MSS of a peer that was connected to without Fast Open is remembered for SYN data, too.
    mss_of_plain_opens: bool = "firstbyte.mss_of_plain_opens", ours true, linux false, range _,
    /// Data on a SYN-ACK that refuses ours is not taken: it comes again behind (Linux's `tcp_rcv_fastopen_synack`).
    refusal_brings_no_answer: bool = "firstbyte.refusal_brings_no_answer", ours false, linux true, range _,
    /// What follows where both ends opened at once and their SYNs have crossed.
    crossed_syns: CrossedSyns = "firstbyte.crossed_syns", ours CrossedSyns::Rfc, linux CrossedSyns::Kernel, range _,
    /// What is sent into a peer's window that is small, closed, or taken back.
    peer_window_rules: PeerWindowRules = "firstbyte.peer_window_rules", ours PeerWindowRules::Rfc, linux PeerWindowRules::Kernel, range _,
    /// TIME-WAIT takes TS.Recent over from segments that it answers, such as the peer's FIN again (RFC 7323 §4.3); otherwise only from empty
    /// ones that are next (Linux's `tcp_timewait_state_process`).
    time_wait_remembers_answered: bool = "firstbyte.time_wait_remembers_answered", ours true, linux false, range _,
    /// Text that reaches beyond the peer's own FIN resets the connection (Linux's `tcp_rcv_state_process`); otherwise it is ignored (RFC 9293
    /// §3.10.7.4).
    reset_text_beyond_fin: bool = "firstbyte.reset_text_beyond_fin", ours false, linux true, range _,
    /// A server whose SYN is acknowledged without the data it had sent before sends that data again at once.
    resend_after_synack: bool = "firstbyte.resend_after_synack", ours true, linux true, range _,
    /// Nothing is left to later connections when one ends.
    tcp_no_metrics_save: bool = "net.ipv4.tcp_no_metrics_save", ours false, linux false, range _,
    /// No slow-start threshold is left, and none that is remembered is used: one unlucky transfer would slow down all that follow.
    tcp_no_ssthresh_metrics_save: bool = "net.ipv4.tcp_no_ssthresh_metrics_save", ours true, linux true, range _,
    /// How long a path's round trip, windows and reordering are believed after they were learnt.
    path_metrics_life: Duration = "firstbyte.path_metrics_life", ours Duration::from_secs(3600), linux Duration::from_secs(3600), range _,
    /// The first round trip of a connection is remembered at once, not only when it ends.
    path_rtt_at_once: bool = "firstbyte.path_rtt_at_once", ours true, linux false, range _,
    /// Remembered paths (cookie, MSS, RTT, windows) and verdicts, each. Read when the stack is made.
    path_cache_entries: u32 = "firstbyte.path_cache_entries", ours 4096, linux 4096, range 1..,

    /// Retransmissions of a SYN before `connect` fails.
    tcp_syn_retries: u32 = "net.ipv4.tcp_syn_retries", ours 6, linux 6, range 1..=127,
    /// First retransmissions of a SYN that wait the initial time-out each, before it doubles.
    tcp_syn_linear_timeouts: u32 = "net.ipv4.tcp_syn_linear_timeouts", ours 4, linux 4, range 0..=127,
    /// Retransmissions of a SYN-ACK before the request is dropped.
    tcp_synack_retries: u32 = "net.ipv4.tcp_synack_retries", ours 5, linux 5, range 0..=255,
    /// R1: the number of retransmissions, with timeouts that double from 200 ms on, after which the
    /// path is suspected (RFC 9293 §3.8.3). See `tcp_mtu_probing`.
    tcp_retries1: u32 = "net.ipv4.tcp_retries1", ours 3, linux 3, range 0..=255,
    /// The largest packets that a path carries are found by sending them (RFC 4821), not only by ICMP's telling: 0 never, 1 where nothing
    /// gets through after `tcp_retries1`, 2 from the beginning. (1 costs nothing where packets get through, and where large ones do not, and
    /// ICMP is dropped as well, the connection lives.)
    tcp_mtu_probing: u32 = "net.ipv4.tcp_mtu_probing", ours 1, linux 0, range 0..=2,
    /// Payload of the segments that the search begins with, bytes.
    tcp_base_mss: u32 = "net.ipv4.tcp_base_mss", ours 1024, linux 1024, range 48..=65_535,
    /// Least payload that it goes down to while nothing gets through, bytes.
    tcp_mtu_probe_floor: u32 = "net.ipv4.tcp_mtu_probe_floor", ours 48, linux 48, range 48..=65_535,
    /// The search ends when the largest packet that got through and the least that did not are nearer than this, bytes.
    tcp_probe_threshold: u32 = "net.ipv4.tcp_probe_threshold", ours 8, linux 8, range 1..,
    /// After so many seconds another search begins.
    tcp_probe_interval: Duration = "net.ipv4.tcp_probe_interval", ours Duration::from_secs(600), linux Duration::from_secs(600), range _,
    /// With `tcp_mtu_probing` 2 a passive open sends segments of full size until its first probe, which is smaller; otherwise of
    /// `tcp_base_mss`, like an active one.
    mtu_search_from_full: bool = "firstbyte.mtu_search_from_full", ours false, linux true, range _,
    /// R2: the number of retransmissions, with timeouts that double from 200 ms on, that gives the
    /// time limit for unanswered data. The first timeout after that time ends the connection (RFC
    /// 9293 §3.8.3). For window probes it is the number of unanswered ones.
    tcp_retries2: u32 = "net.ipv4.tcp_retries2", ours 15, linux 15, range 1..=255,
    /// `tcp_retries2` of a connection whose application has closed it. 0 = 8 while the time-out is below `tcp_rto_max_ms`, then none.
    tcp_orphan_retries: u32 = "net.ipv4.tcp_orphan_retries", ours 0, linux 0, range 0..=255,
    /// Connections whose application has let go and that still deliver; one more is reset at once. (Linux's default grows with the
    /// memory: half the slots of its table of connections, one for each 128 KiB. This is that of 16 GiB.)
    tcp_max_orphans: u32 = "net.ipv4.tcp_max_orphans", ours 131_072, linux 65_536, range _,
    /// FIN-WAIT-2 of a connection whose application has let go.
    tcp_fin_timeout: Duration = "net.ipv4.tcp_fin_timeout", ours Duration::from_secs(60), linux Duration::from_secs(60), range _,
    /// TIME-WAIT (2 MSL; Linux has it as a constant).
    time_wait: Duration = "firstbyte.time_wait", ours Duration::from_secs(60), linux Duration::from_secs(60), range _,
    /// TIME-WAIT entries; over it the oldest goes. (Linux's default grows with the memory as `tcp_max_orphans` does.)
    tcp_max_tw_buckets: u32 = "net.ipv4.tcp_max_tw_buckets", ours 262_144, linux 65_536, range _,
    /// A connect may take the tuple of a TIME-WAIT whose connection had timestamps, when no other is free: 0 never, 1 always, 2 to
    /// loopback addresses and our own.
    tcp_tw_reuse: u32 = "net.ipv4.tcp_tw_reuse", ours 1, linux 2, range 0..=2,
    /// For so many milliseconds it may not.
    tcp_tw_reuse_delay: u32 = "net.ipv4.tcp_tw_reuse_delay", ours 1000, linux 1000, range 1..=60_000,
    /// Which local ports are chosen, and which may be named while an old connection holds them.
    port_choice: PortChoice = "firstbyte.port_choice", ours PortChoice::Any, linux PortChoice::Parity, range _,
    /// A reset does not end TIME-WAIT (RFC 1337).
    tcp_rfc1337: bool = "net.ipv4.tcp_rfc1337", ours true, linux false, range _,
    /// A socket has the bounds of the time-out that held when it was made, and a passive open those of its listener (Linux's `tcp_init_sock`);
    /// otherwise those that hold when its connection begins.
    rto_bounds_of_socket: bool = "firstbyte.rto_bounds_of_socket", ours false, linux true, range _,
    /// Initial retransmission time-out (RFC 6298 §2.1).
    rto_initial: Duration = "firstbyte.rto_initial", ours Duration::from_secs(1), linux Duration::from_secs(1), range _,
    /// Least retransmission time-out of connections that name none, microseconds. Read when a connection begins.
    tcp_rto_min_us: u32 = "net.ipv4.tcp_rto_min_us", ours 200_000, linux 200_000, range 1..=120_000_000,
    /// A round trip is that of the first segment that an acknowledgement is news of, so that its delay counts (as with RFC 7323 §4.1's
    /// echoes); otherwise that of the last.
    rtt_of_first: bool = "firstbyte.rtt_of_first", ours false, linux true, range _,
    /// How the time-out follows from round trips. Read when a connection begins.
    rtt_variation: RttVariation = "firstbyte.rtt_variation", ours RttVariation::Rfc6298, linux RttVariation::Windowed, range _,
    /// Which MSS is announced, and which is assumed of a peer.
    mss_rules: MssRules = "firstbyte.mss_rules", ours MssRules::Rfc, linux MssRules::Kernel, range _,
    /// Greatest retransmission time-out of connections that name none, also of SYNs and window probes, milliseconds; an odd number counts
    /// as the next even one (RFC 6298 §2.5 asks for 60 s at least).
    tcp_rto_max_ms: u32 = "net.ipv4.tcp_rto_max_ms", ours 120_000, linux 120_000, range 1_000..=120_000,
    /// The first six time-outs of a connection with less than four segments in flight do not double.
    tcp_thin_linear_timeouts: bool = "net.ipv4.tcp_thin_linear_timeouts", ours false, linux false, range _,
    /// Timestamps option (RFC 7323): 0 = never, 1 = each connection's count from a number of its own (§7.1), more = all are the stack's
    /// clock in milliseconds.
    tcp_timestamps: u32 = "net.ipv4.tcp_timestamps", ours 1, linux 1, range 0..=255,
    /// Explicit congestion notification: 0 = never; RFC 3168's is 1 = asked for and granted, 2 = granted; Accurate ECN (RFC 9768), or
    /// RFC 3168's where the peer knows no other, is 3 = asked for and granted, 4 = granted, and RFC 3168's asked for, 5 = granted. (Linux 6.18
    /// has all that in its code and documentation, but its sysctl ends at 2.)
    tcp_ecn: u32 = "net.ipv4.tcp_ecn", ours 2, linux 2, range 0..=5,
    /// A repeated SYN does not ask for ECN; and who hears that its SYN or SYN-ACK was marked, which cannot be, sends nothing that can
    /// (RFC 9768 §3.2.2.3).
    tcp_ecn_fallback: bool = "net.ipv4.tcp_ecn_fallback", ours true, linux true, range _,
    /// The option of Accurate ECN, once the peer has sent one: 0 = never, not on a SYN-ACK either; 1 = after a change, and so often that no
    /// counter wraps unseen; 2 = on every segment.
    tcp_ecn_option: u32 = "net.ipv4.tcp_ecn_option", ours 2, linux 2, range 0..=2,
    /// Where not every segment has it, least options of Accurate ECN per round trip; 0 = none without need.
    tcp_ecn_option_beacon: u32 = "net.ipv4.tcp_ecn_option_beacon", ours 3, linux 3, range 0..=3,
    /// Accurate ECN where implementations differ.
    accurate_ecn_rules: AccurateEcnRules = "firstbyte.accurate_ecn_rules", ours AccurateEcnRules::Rfc, linux AccurateEcnRules::Kernel, range _,
    /// Window scale option (RFC 7323).
    tcp_window_scaling: bool = "net.ipv4.tcp_window_scaling", ours true, linux true, range _,
    /// SACK option (RFC 2018).
    tcp_sack: bool = "net.ipv4.tcp_sack", ours true, linux true, range _,
    /// Least MSS, with options, of what is sent, however little the peer or the path asks for: else it could make a packet of every byte.
    tcp_min_snd_mss: u32 = "net.ipv4.tcp_min_snd_mss", ours 48, linux 48, range 48..=65_535,
    /// Bits: 0x1 loss is found by time (RACK, RFC 8985; otherwise by RFC 6675's counting), 0x2 the reordering window stays a quarter of
    /// the least RTT, 0x4 three segments beyond a hole do not make it a loss by themselves.
    tcp_recovery: u32 = "net.ipv4.tcp_recovery", ours 0x1, linux 0x1, range 0..=7,
    /// How losses, reordering and spurious recoveries are detected.
    loss_rules: LossRules = "firstbyte.loss_rules", ours LossRules::Rfc, linux LossRules::Kernel, range _,
    /// Added to the time that a segment which may only be reordered is waited for: what timers cost the machine's rest (Linux's
    /// `TCP_TIMEOUT_MIN_US`).
    reo_timer_slack: Duration = "firstbyte.reo_timer_slack", ours Duration::ZERO, linux Duration::from_millis(2), range _,
    /// Tail loss probes: when they go, and with what.
    probe_rules: ProbeRules = "firstbyte.probe_rules", ours ProbeRules::Rfc, linux ProbeRules::Kernel, range _,
    /// What the device is given to cut, where it does.
    burst_rules: BurstRules = "firstbyte.burst_rules", ours BurstRules::Careful, linux BurstRules::Kernel, range _,
    /// From what the congestion window is reduced, and how.
    reduction_rules: ReductionRules = "firstbyte.reduction_rules", ours ReductionRules::Rfc, linux ReductionRules::Kernel, range _,
    /// What a write asks for, and what it tells of the application.
    write_rules: WriteRules = "firstbyte.write_rules", ours WriteRules::Whole, linux WriteRules::BySegment, range _,
    /// Small segments are retransmitted as one, where no record ends between them; with 0 along their old borders.
    tcp_retrans_collapse: bool = "net.ipv4.tcp_retrans_collapse", ours true, linux true, range _,
    /// Partial acknowledgements amid a fast recovery, where the peer has no SACK.
    newreno_rules: NewRenoRules = "firstbyte.newreno_rules", ours NewRenoRules::Rfc, linux NewRenoRules::Kernel, range _,
    /// What arrives twice is reported (D-SACK, RFC 2883).
    tcp_dsack: bool = "net.ipv4.tcp_dsack", ours true, linux true, range _,
    /// 3 or 4: a probe goes before the retransmission time-out (tail loss probe, RFC 8985 §7); less: none.
    tcp_early_retrans: u32 = "net.ipv4.tcp_early_retrans", ours 3, linux 3, range 0..=4,
    /// Not 0: a time-out is watched for being spurious (F-RTO, RFC 5682).
    tcp_frto: u32 = "net.ipv4.tcp_frto", ours 2, linux 2, range 0..=2,
    /// Segments delivered beyond a hole that make it a loss, until the path is seen to reorder more.
    tcp_reordering: u32 = "net.ipv4.tcp_reordering", ours 3, linux 3, range 1..=300,
    /// Most segments that number is raised to by reordering.
    tcp_max_reordering: u32 = "net.ipv4.tcp_max_reordering", ours 300, linux 300, range 1..=65_535,
    /// Memory of all buffers, in pages of 4096 bytes: below the first all is well; above the second, until it is below the first, buffers
    /// do not grow and windows shrink to four segments; above the third nothing is taken in or written but what is needed to go on.
    /// (Linux's defaults grow with the memory, of which the second is a sixteenth: these are those of 8 GiB and 16 GiB.)
    tcp_mem: [u32; 3] = "net.ipv4.tcp_mem", ours [98_304, 131_072, 196_608], linux [196_608, 262_144, 393_216], range _,
    /// Above `tcp_mem`'s third size a listener takes no SYN, either: who opens tries again. Otherwise the few bytes that every connection may
    /// hold are given to new ones, too (Linux).
    refuse_without_memory: bool = "firstbyte.refuse_without_memory", ours true, linux false, range _,
    /// No network (an IPv4 address, or 64 bits of an IPv6 one) can use up what all share. Above `tcp_mem`'s second size each send buffer gets
    /// a small part of what is left. Half-way to the third the connections that make the least progress are reset, first those of the
    /// network that holds most, and networks that hold much open no more; after three quarters of the way nothing more is taken in. The last
    /// quarter of `firstbyte.max_connections`, of an accept queue and of a Fast Open queue, if these have 64 places or more, is for networks
    /// that have few there. Read when a listener is made for its Fast Open queue.
    fair_shares: bool = "firstbyte.fair_shares", ours true, linux false, range _,
    /// Packets that a device in memory holds for the stack; what comes on top is dropped and counted (`Stats::rx_dropped`). 0: nothing is, and
    /// the sender waits for room. Read when such a device is made.
    netdev_max_backlog: u32 = "net.core.netdev_max_backlog", ours 0, linux 1000, range _,
    /// Largest receive buffer an application may choose, bytes of payload.
    rmem_max: u32 = "net.core.rmem_max", ours 4_194_304, linux 4_194_304, range 2304..,
    /// Largest send buffer an application may choose, bytes.
    wmem_max: u32 = "net.core.wmem_max", ours 4_194_304, linux 4_194_304, range 4608..,
    /// Receive buffers grow with what the application takes in a round trip, up to `tcp_rmem`'s most.
    tcp_moderate_rcvbuf: bool = "net.ipv4.tcp_moderate_rcvbuf", ours true, linux true, range _,
    /// Seconds for which a least round trip holds (RFC 8985 §6.2, step 1); later ones take its place.
    tcp_min_rtt_wlen: u32 = "net.ipv4.tcp_min_rtt_wlen", ours 300, linux 300, range 0..=86_400,
    /// Microseconds of round trip below which buffers grow less: large ones would only cool the caches.
    tcp_rcvbuf_low_rtt: u32 = "net.ipv4.tcp_rcvbuf_low_rtt", ours 1000, linux 1000, range 1..,
    /// Ticks by which a timestamp may be older than TS.Recent without being taken for a wrapped one (Linux's `TCP_PAWS_WINDOW`; RFC 7323
    /// §5.3 has none).
    paws_slack: u32 = "firstbyte.paws_slack", ours 0, linux 1, range 0..=1000,
    /// How the receive buffer is counted, and which window follows.
    receive_accounting: ReceiveAccounting = "firstbyte.receive_accounting", ours ReceiveAccounting::Payload, linux ReceiveAccounting::Packets, range _,
    /// Of an accounting by packets: 2⁻ⁿ of a new buffer is set aside for the application, and a segment at least; 0 = nothing is.
    tcp_app_win: u32 = "net.ipv4.tcp_app_win", ours 31, linux 31, range 0..=31,
    /// A peer that offers no window scaling is never advertised more than 32767 bytes, lest it take the number for a signed one.
    tcp_workaround_signed_windows: bool = "net.ipv4.tcp_workaround_signed_windows", ours false, linux false, range _,
    /// Of an accounting by packets: the right edge may retreat when memory runs out, on connections that scale windows.
    tcp_shrink_window: bool = "net.ipv4.tcp_shrink_window", ours false, linux false, range _,
    /// Acknowledgements of packets out of order that one may stand for, once three have gone at once; of an accounting by packets, with
    /// SACK. 0 = each goes at once.
    tcp_comp_sack_nr: u32 = "net.ipv4.tcp_comp_sack_nr", ours 0, linux 44, range 0..=255,
    /// Longest wait of a compressed acknowledgement, ns.
    tcp_comp_sack_delay_ns: u32 = "net.ipv4.tcp_comp_sack_delay_ns", ours 1_000_000, linux 1_000_000, range _,
    /// Longest wait of a compressed acknowledgement as a part of a round trip, per cent.
    tcp_comp_sack_rtt_percent: u32 = "net.ipv4.tcp_comp_sack_rtt_percent", ours 33, linux 33, range 1..=1000,
    /// The window begins with what the first segment says of it, and grows by twice what arrives.
    window_slow_start: bool = "firstbyte.window_slow_start", ours false, linux true, range _,
    /// Receive buffer in bytes: least, initial, most. What it holds in payload is measured; half of it at first. (Linux's most is a 128th of
    /// the memory, and 32 MiB where there are 4 GiB.)
    tcp_rmem: [u32; 3] = "net.ipv4.tcp_rmem", ours [4096, 1_048_576, 6_291_456], linux [4096, 131_072, 33_554_432], range _,
    /// Send buffer in congestion windows, as far as `tcp_wmem` lets it.
    sndbuf_windows: u32 = "firstbyte.sndbuf_windows", ours 2, linux 2, range 1..=100,
    /// Bytes that the send buffer counts for each segment beside its payload; if any, an application's choice is doubled for them. (Of
    /// Linux the `truesize` of an empty `sk_buff` on a 64-bit machine.)
    sndbuf_overhead: u32 = "firstbyte.sndbuf_overhead", ours 0, linux 832, range 0..=65_535,
    /// Send buffer in bytes: least, initial, most.
    tcp_wmem: [u32; 3] = "net.ipv4.tcp_wmem", ours [4096, 262_144, 4_194_304], linux [4096, 16_384, 4_194_304], range _,
    /// The urgent pointer of the peer is the last urgent byte's (RFC 1122), otherwise the next one's (RFC 6093).
    tcp_stdurg: bool = "net.ipv4.tcp_stdurg", ours false, linux false, range _,
    /// Most bytes written and not sent of connections that name none (`TCP_NOTSENT_LOWAT`); 4294967295 = as the send buffer takes.
    tcp_notsent_lowat: u32 = "net.ipv4.tcp_notsent_lowat", ours u32::MAX, linux u32::MAX, range 1..,
    /// Silence after which a connection with keepalive is probed (RFC 9293 §3.8.4).
    tcp_keepalive_time: Duration = "net.ipv4.tcp_keepalive_time", ours Duration::from_secs(7200), linux Duration::from_secs(7200), range _,
    /// Between two keepalive probes.
    tcp_keepalive_intvl: Duration = "net.ipv4.tcp_keepalive_intvl", ours Duration::from_secs(75), linux Duration::from_secs(75), range _,
    /// Keepalive probes without an answer that end a connection.
    tcp_keepalive_probes: u32 = "net.ipv4.tcp_keepalive_probes", ours 9, linux 9, range 1..=127,
    /// Congestion control of connections that name none.
    tcp_congestion_control: CongestionControl = "net.ipv4.tcp_congestion_control", ours CongestionControl::Cubic, linux CongestionControl::Cubic, range _,
    /// The first slow start (every one where `window_unit` is segments) ends when the round-trip time grows (HyStart++; not Reno's).
    hystart: bool = "firstbyte.hystart", ours true, linux true, range _,
    /// Fewer segments of a flow of Vegas in the queue of the bottleneck make its window grow (α). Read when a connection begins.
    vegas_alpha: u32 = "firstbyte.vegas_alpha", ours 3, linux 2, range 1..=255,
    /// More make it shrink (β); as many as that or fewer, but no fewer than α, leave it as it is: flows that share a link get equal parts
    /// only where both are the same.
    vegas_beta: u32 = "firstbyte.vegas_beta", ours 3, linux 4, range 1..=255,
    /// What the congestion window counts, and what follows from it. Read when a connection begins.
    window_unit: WindowUnit = "firstbyte.window_unit", ours WindowUnit::Bytes, linux WindowUnit::Segments, range _,
    /// Spread what the congestion window allows over the round trip, even where a socket sets no limit.
    pacing: bool = "firstbyte.pacing", ours false, linux false, range _,
    /// Least segments of a burst that the device cuts, however slow the path.
    tcp_min_tso_segs: u32 = "net.ipv4.tcp_min_tso_segs", ours 2, linux 2, range 1..=65_535,
    /// Each 2^this microseconds of round trip halve what near peers get beyond that in one burst.
    tcp_tso_rtt_log: u32 = "net.ipv4.tcp_tso_rtt_log", ours 9, linux 9, range 0..=31,
    /// A burst of less than the window over this waits for an ACK that is due within a millisecond; 0: of three segments or less.
    tcp_tso_win_divisor: u32 = "net.ipv4.tcp_tso_win_divisor", ours 3, linux 3, range 0..=255,
    /// A sender that wakes late makes up at once for as much as this, a quarter of the round trip, or half of a burst's time.
    pacing_slack: Duration = "firstbyte.pacing_slack", ours Duration::from_millis(8), linux Duration::ZERO, range _,
    /// Pacing rate while the window is below half of ssthresh, in percent of window per SRTT.
    tcp_pacing_ss_ratio: u32 = "net.ipv4.tcp_pacing_ss_ratio", ours 200, linux 200, range 1..=1000,
    /// Pacing rate otherwise.
    tcp_pacing_ca_ratio: u32 = "net.ipv4.tcp_pacing_ca_ratio", ours 120, linux 120, range 1..=1000,
    /// A congestion window that was not used for a retransmission time-out decays (RFC 2861).
    tcp_slow_start_after_idle: bool = "net.ipv4.tcp_slow_start_after_idle", ours true, linux true, range _,
    /// A window is held to be used, too, when an acknowledgement may have let it grow (Linux's `snd_cwnd_stamp`); otherwise only when it is
    /// full (RFC 2861).
    acks_use_window: bool = "firstbyte.acks_use_window", ours false, linux true, range _,
    /// Initial congestion window in segments (RFC 6928); 0 = two to four by the MSS (RFC 5681 §3.1).
    initcwnd: u32 = "firstbyte.initcwnd", ours 10, linux 10, range 0..=1000,
    /// A route's `cwnd` and `ssthresh` hold as they stand. Otherwise `cwnd` does so only with `lock`, and `ssthresh` is merely what the
    /// memory of a path begins with, so that it counts for nothing while `tcp_no_ssthresh_metrics_save` is on. Read when a route is set.
    route_metrics_unlocked: bool = "firstbyte.route_metrics_unlocked", ours true, linux false, range _,
    /// How many SYNs or SYN-ACKs lost in a row make the initial window one segment (RFC 5681 §3.1 after one, Linux after two); 0: none do.
    syn_losses_initcwnd: u32 = "firstbyte.syn_losses_initcwnd", ours 2, linux 2, range _,
    /// Segments that one acknowledgement may add to the window in slow start: RFC 3465's L is 2, RFC 9406's 8 for a sender that does not
    /// pace (§4.3). 0 = all that it acknowledges: a receiver behind GRO acknowledges a batch at once, where a limit makes slow start linear.
    abc_limit: u32 = "firstbyte.abc_limit", ours 0, linux 0, range _,
    /// Slow-start threshold of a new connection in segments; 0 = none.
    initial_ssthresh: u32 = "firstbyte.initial_ssthresh", ours 0, linux 0, range _,
    /// When a lone segment is acknowledged.
    ack_habit: AckHabit = "firstbyte.ack_habit", ours AckHabit::Merge, linux AckHabit::QuickStart, range _,
    /// Delay of an acknowledgement that waits for company: of `quickstart` the least (Linux's `TCP_DELACK_MIN`), of `merge` the greatest, of
    /// which it waits an eighth where no answer may follow (RFC 9293 §3.8.6.3 allows 500 ms).
    delayed_ack: Duration = "firstbyte.delayed_ack", ours Duration::from_millis(40), linux Duration::from_millis(40), range _,
    /// The greatest of `quickstart`, and of the last ACK of a handshake whose socket has quick ACKs switched off (`TCP_DELACK_MAX`).
    delayed_ack_max: Duration = "firstbyte.delayed_ack_max", ours Duration::from_millis(200), linux Duration::from_millis(200), range _,
    /// Answers soon after what they answer until an exchange is held to go back and forth: then acknowledgements wait for them.
    tcp_pingpong_thresh: u32 = "net.ipv4.tcp_pingpong_thresh", ours 1, linux 1, range 1..=255,
    /// Cap of a listener's backlog, which limits its accept queue and its SYN queue.
    somaxconn: u32 = "net.core.somaxconn", ours 4096, linux 4096, range _,
    /// A final ACK that finds the accept queue full is answered by a reset, which ends the request; that of a SYN cookie only where
    /// `firstbyte.accept_overflow` is `admit` (Linux's drops it).
    tcp_abort_on_overflow: bool = "net.ipv4.tcp_abort_on_overflow", ours false, linux false, range _,
    /// What becomes of a client that has completed the handshake and found no room in the accept queue.
    accept_overflow: AcceptOverflow = "firstbyte.accept_overflow", ours AcceptOverflow::Admit, linux AcceptOverflow::Forget, range _,
    /// SYN cookies: 0 never, 1 while a SYN queue is full, 2 always.
    tcp_syncookies: u32 = "net.ipv4.tcp_syncookies", ours 1, linux 1, range 0..=2,
    /// Without SYN cookies, half-open requests of a listener; the last quarter is for peers whose round-trip time is remembered. With
    /// them the backlog alone counts. (Linux's default grows with the memory: one for each 128 slots of its table of connections, from 128
    /// to 4096. This is that of 16 GiB.)
    tcp_max_syn_backlog: u32 = "net.ipv4.tcp_max_syn_backlog", ours 4096, linux 1024, range _,
    /// Full connections of the stack.
    max_connections: u32 = "firstbyte.max_connections", ours 1 << 20, linux 1 << 20, range 1..,
    /// Ephemeral ports: lowest.
    port_low: u32 = "firstbyte.ip_local_port_low", ours 32_768, linux 32_768, range 1..=65_535,
    /// Ephemeral ports: highest.
    port_high: u32 = "firstbyte.ip_local_port_high", ours 60_999, linux 60_999, range 1..=65_535,
    /// Ports that are never chosen, though they may be asked for.
    ip_local_reserved_ports: PortSet = "net.ipv4.ip_local_reserved_ports", ours PortSet::default(), linux PortSet::default(), range _,
    /// What a listener that closes has not handed over goes to another one that shares its port; otherwise its clients are reset.
    tcp_migrate_req: bool = "net.ipv4.tcp_migrate_req", ours true, linux false, range _,
    /// Least milliseconds between two answers to segments of one connection, or one half-open request, that are not taken and bring no
    /// text.
    tcp_invalid_ratelimit: u32 = "net.ipv4.tcp_invalid_ratelimit", ours 500, linux 500, range _,
    /// Challenge ACKs (RFC 5961 §7) of the stack per second, about; 2147483647 = no limit but that of each connection.
    tcp_challenge_ack_limit: u32 = "net.ipv4.tcp_challenge_ack_limit", ours 2_147_483_647, linux 2_147_483_647, range _,
    /// Resets for strangers per second, about, for each peer (address of IPv4, /64 of IPv6); 2147483647 = no limit (as in Linux, whose
    /// `tcp_v4_send_reset` has none).
    resets_per_peer: u32 = "firstbyte.resets_per_peer", ours 1000, linux 2_147_483_647, range _,
    /// Answers to echo requests, likewise. (Linux's `icmp_ratelimit` and `icmp_msgs_per_sec` hold only for what `icmp_ratemask` names: errors.)
    echo_replies_per_peer: u32 = "firstbyte.echo_replies_per_peer", ours 1000, linux 2_147_483_647, range _,
    /// How long new connections keep to a path MTU that an ICMP error reported.
    mtu_expires: Duration = "net.ipv4.route.mtu_expires", ours Duration::from_secs(600), linux Duration::from_secs(600), range _,
    /// Packets of IPv4 may be cut on their way, where a socket does not say otherwise ([`PathMtuDiscovery`]): 0 they may not. Else they may, and
    /// of ICMP's "fragmentation needed" is believed: with 1 that it happened, not which size it tells (`min_pmtu` it is), with 2 nothing, with 3
    /// everything.
    ip_no_pmtu_disc: u32 = "net.ipv4.ip_no_pmtu_disc", ours 0, linux 0, range 0..=3,
    /// Least path MTU of IPv4 that is believed, bytes, lest a forger make us send tiny packets. Who hears of less keeps to it, and lets packets be
    /// cut.
    min_pmtu: u32 = "net.ipv4.route.min_pmtu", ours 552, linux 552, range 68..=65_535,
    /// SYN-ACKs, and connections that are accepted, have the class of the SYN (RFC 2474) and not that of the listener.
    tcp_reflect_tos: bool = "net.ipv4.tcp_reflect_tos", ours false, linux false, range _,
    /// A source of IPv4 is believed only if a route leads back to it: 1 by the device it came by (RFC 3704 §2.2), 2 by any (§2.4). What holds is
    /// the greater one of this and the device's own, `rp_filter`; a stack has one device, so 1 and 2 differ in nothing.
    rp_filter_all: u32 = "net.ipv4.conf.all.rp_filter", ours 0, linux 0, range 0..=2,
    /// Reverse-path filter of the stack's device: `net.ipv4.conf.NAME.rp_filter` once it has a name (`Stack::set_device_name`).
    rp_filter: u32 = "firstbyte.rp_filter", ours 0, linux 0, range 0..=2,
    /// Packets whose source cannot be right are reported by the trace (`Traced::Martian`), if this says so or the device's own.
    log_martians_all: bool = "net.ipv4.conf.all.log_martians", ours false, linux false, range _,
    /// Martian packets of the stack's device are traced: `net.ipv4.conf.NAME.log_martians`.
    log_martians: bool = "firstbyte.log_martians", ours false, linux false, range _,
    /// Hop limit of what we send, where a socket sets none.
    ip_default_ttl: u32 = "net.ipv4.ip_default_ttl", ours 64, linux 64, range 1..=255,
    /// Answer ICMP echo requests.
    icmp_echo: bool = "firstbyte.icmp_echo", ours true, linux true, range _,
}

/// Bits of `tcp_fastopen`.
pub mod fastopen {
    /// Client enabled.
    pub const CLIENT: u32 = 0x1;
    /// Server enabled.
    pub const SERVER: u32 = 0x2;
    /// The client sends SYN data without asking for a cookie or showing one.
    pub const CLIENT_NO_COOKIE: u32 = 0x4;
    /// The server accepts SYN data, and data-less cookie requests, without a valid cookie.
    pub const SERVER_NO_COOKIE: u32 = 0x200;
    /// Every listener serves Fast Open.
    pub const ALL_LISTENERS: u32 = 0x400;
    /// Bits of earlier Linux versions: 0x100 (skip the cookie check) and 0x800 (queue size in the
    /// upper half).
    pub const OBSOLETE: u32 = 0x100 | 0x800;
}

/// What Linux has and does not use for TCP, and why.
const WITHOUT_EFFECT: [(&str, &str); 3] = [
    ("net.ipv4.tcp_adv_win_scale", "a window is what its buffer really holds (Linux since 6.6)"),
    (
        "net.core.rmem_default",
        "a TCP socket begins with the second size of net.ipv4.tcp_rmem (tcp_init_sock)",
    ),
    (
        "net.core.wmem_default",
        "a TCP socket begins with the second size of net.ipv4.tcp_wmem (tcp_init_sock)",
    ),
];

impl Config {
    /// Returns whether timestamps are requested and granted.
    pub fn timestamps(&self) -> bool {
        self.tcp_timestamps > 0
    }

    /// [`tcp_invalid_ratelimit`](Config::tcp_invalid_ratelimit) as a time.
    pub(crate) fn invalid_ratelimit(&self) -> Duration {
        Duration::from_millis(self.tcp_invalid_ratelimit.into())
    }

    /// Returns [`tcp_rto_min_us`](Config::tcp_rto_min_us) as a time.
    pub fn rto_min(&self) -> Duration {
        Duration::from_micros(self.tcp_rto_min_us.into())
    }

    /// Returns [`tcp_rto_max_ms`](Config::tcp_rto_max_ms) as a time.
    pub fn rto_max(&self) -> Duration {
        Duration::from_millis(self.tcp_rto_max_ms.into())
    }

    /// Returns whether SYNs request ECN, of either kind (`tcp_ecn`).
    pub fn asks_for_ecn(&self) -> bool {
        Asked::by(self) != Asked::Nothing
    }

    /// The filter that holds (Linux's `IN_DEV_RPFILTER`).
    pub(crate) fn reverse_path_filter(&self) -> u32 {
        self.rp_filter_all.max(self.rp_filter)
    }

    /// (Linux's `IN_DEV_LOG_MARTIANS`.)
    pub(crate) fn tells_martians(&self) -> bool {
        self.log_martians_all || self.log_martians
    }

    /// Where a socket does not say otherwise.
    pub(crate) fn path_mtu_discovery(&self) -> PathMtuDiscovery {
        if self.ip_no_pmtu_disc == 0 { PathMtuDiscovery::Want } else { PathMtuDiscovery::Dont }
    }

    /// `ip_default_ttl`, of 1 to 255, as the header has it.
    pub(crate) fn hop_limit(&self) -> u8 {
        self.ip_default_ttl as u8
    }

    /// Sets one row by name. The value is a decimal or 0x number, 0 or 1, three sizes, or a time
    /// with unit (without one, seconds).
    ///
    /// Returns a warning if a part of the value was refused (obsolete `tcp_fastopen` bits), or all
    /// of it (`tcp_adv_win_scale`, `rmem_default`, `wmem_default`). `net.ipv4.ip_local_port_range`
    /// sets two rows, the lowest and the highest port.
    ///
    /// # Errors
    /// [`SettingError::Unknown`] for an unknown name, [`SettingError::Invalid`] for a value out of
    /// range or in conflict with another value (see [`check`](Config::check)). Nothing has changed
    /// then.
    /// ```
    /// let mut config = firstbyte_proto::Config::default();
    /// assert_eq!(config.set("net.ipv4.tcp_fastopen", "0x403"), Ok(None));
    /// assert!(config.set("net.ipv4.tcp_fastopen", "0x103").unwrap().is_some());
    /// assert_eq!(config.tcp_fastopen, 0x3);
    /// ```
    pub fn set(&mut self, name: &str, value: &str) -> Result<Option<String>, SettingError> {
        if let Some((_, why)) = WITHOUT_EFFECT.iter().find(|(known, _)| *known == name) {
            value
                .trim()
                .parse::<i64>()
                .map_err(|_| SettingError::Invalid(format!("`{value}` is not a number")))?;
            return Ok(Some(format!("{name} has no effect: {why}")));
        }
        let mut changed = self.clone();
        match name {
            port_range::NAME => changed.assign_port_range(value)?,
            _ => changed.assign(name, value.trim())?,
        }
        changed.check()?;
        *self = changed;
        let refused = self.tcp_fastopen & fastopen::OBSOLETE;
        if refused == 0 {
            return Ok(None);
        }
        self.tcp_fastopen &= !fastopen::OBSOLETE;
        Ok(Some(format!(
            "net.ipv4.tcp_fastopen: bits {refused:#x} are obsolete and were not set (Linux removed them)"
        )))
    }
}

#[cfg(test)]
mod tests;
