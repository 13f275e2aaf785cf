//! Everything that is drawn of a world, as a value.
//!
//! `draw` makes one of a seed, and `added` adds what earlier draws did not have; `settings` and
//! `options` know what can be drawn of the engine's tables. What happens packet by packet (which
//! one is lost) is decided while the world is played, by [`Scenario::seed`].

mod added;
mod draw;
mod options;
mod settings;

pub use options::Opt;
pub(crate) use options::{mtu_discovery, socket};

use serde::{Deserialize, Serialize};

/// The number of settings, and of options, that are off their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Intensity {
    /// None.
    Defaults,
    /// One row on one side.
    One,
    /// Some two to six on each side.
    Few,
    /// Each with a chance of one in five.
    Many,
    /// Every one.
    All,
}

impl Intensity {
    /// Every intensity with its name.
    pub const ALL: [(&'static str, Intensity); 5] = [
        ("defaults", Intensity::Defaults),
        ("one", Intensity::One),
        ("few", Intensity::Few),
        ("many", Intensity::Many),
        ("all", Intensity::All),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Intensity::ALL.iter().find(|(_, intensity)| *intensity == self).map_or("", |(name, _)| name)
    }
}

/// A world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Decides what is not drawn: which packets suffer, sizes of single reads, the stacks' own
    /// randomness.
    pub seed: u64,
    /// IPv6, otherwise IPv4.
    pub v6: bool,
    /// The clock at the beginning, ns.
    pub start_ns: u64,
    /// Client and server.
    pub hosts: [Host; 2],
    /// The server's listener.
    pub listener: Listener,
    /// Connections that the client opens.
    pub connections: Vec<Connection>,
    /// The wire between the stacks.
    pub wire: Wire,
    /// Settings that change in the middle.
    pub changes: Vec<Change>,
    /// The machine sleeps: at that time, for so long, ms.
    pub sleeps: Vec<(u64, u64)>,
    /// Packets of an attacker.
    pub attacks: Vec<Attack>,
    /// Both sides sign their segments (`TCP_MD5SIG`).
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub signed: bool,
    /// Each host has a second stack, without fast paths, that is given the same and must do the
    /// same.
    #[serde(default)]
    pub differential: bool,
}

/// One of the two stacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Settings are Linux's, except `settings`; otherwise ours.
    pub linux: bool,
    /// Rows off their defaults, as (name, value).
    pub settings: Vec<(String, String)>,
    /// Largest packet of the device, bytes.
    pub mtu: usize,
    /// Bytes that the device cuts; 0: it does not.
    pub gso_max_size: usize,
    /// The device completes checksums.
    pub tx_checksum: bool,
    /// Metrics of the route to the other host, in `ip route`'s words.
    pub route: Vec<String>,
    /// The initial sequence number of every connection, if not RFC 6528's.
    pub isn: Option<u32>,
    /// Percent of packets that the device refuses while the wire is not honest.
    pub refusals: u64,
}

/// The listener.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listener {
    /// Accept queue.
    pub backlog: u32,
    /// Queue of Fast Open.
    pub fast_open: Option<u32>,
    /// Fast Open without cookies.
    pub no_cookie: bool,
    /// The SYN-ACK waits so long at most, µs.
    pub synack_hold_us: Option<u64>,
    /// Connections are accepted with their first data, ms.
    pub defer_accept_ms: u64,
    /// Milliseconds between a connection's arrival in the queue and `accept`.
    pub accepts_after_ms: u64,
    /// Options that connections inherit.
    pub options: Vec<Opt>,
}

/// One connection and what both applications do with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// The time of opening, ms.
    pub at_ms: u64,
    /// 0 off, 1 auto, 2 force, 3 without cookie.
    pub fast_open: u8,
    /// Bytes given to `connect`.
    pub first_bytes: u32,
    /// The cookie goes without data, too.
    pub data_less: bool,
    /// FIN behind the first bytes: nothing more is written.
    pub fin: bool,
    /// FIN may ride on the SYN.
    pub syn_fin: bool,
    /// Client and server.
    pub ends: [End; 2],
}

impl Connection {
    /// Bytes that an end has to say in all.
    pub fn says(&self, side: usize) -> u64 {
        let written = self.ends[side].steps.iter().map(Step::len);
        written.sum::<u64>() + if side == 0 { u64::from(self.first_bytes) } else { 0 }
    }
}

/// An application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Options of the client's socket (of the server's they are the listener's).
    pub options: Vec<Opt>,
    /// The steps, in order. The end then shuts down, reads to the end, and closes.
    pub steps: Vec<Step>,
    /// Most bytes of one read.
    pub read_most: u32,
    /// After so many bytes it reads none for so long, ms.
    pub pauses: Vec<(u64, u64)>,
    /// It shuts down only when the other end has.
    pub shuts_last: bool,
    /// `close` stands for `shutdown` where everything has been read.
    pub close_shuts: bool,
}

/// One step of an application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// Writes so many bytes, with these `MSG_` flags.
    Write {
        /** bytes */
        len: u32,
        /** `WriteFlags` */
        flags: u8,
    },
    /// Does nothing for so many milliseconds.
    Pause(u64),
    /// Goes on when it has read so many bytes in all, or the stream has ended.
    Await(u64),
    /// `push`.
    Push,
    /// Sets an option.
    Set(Opt),
    /// Moves the connection through `save_connection` and `restore_connection`.
    Move,
    /// `shutdown_read`; it goes on reading what it has.
    ReadNoMore,
    /// Lets go, whatever there is still to say or to hear.
    Close,
    /// Resets.
    Abort,
}

impl Step {
    /// Bytes that it writes.
    fn len(&self) -> u64 {
        match self {
            Step::Write { len, .. } => u64::from(*len),
            _ => 0,
        }
    }
}

/// The behaviour of the wire until it is honest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// One way, µs.
    pub delay_us: u64,
    /// Added to it at random, ms.
    pub jitter_ms: u64,
    /// Percent of packets that are lost.
    pub loss: u64,
    /// Percent that arrive twice.
    pub duplicate: u64,
    /// Percentage of packets in which a bit is flipped.
    pub corrupt: u64,
    /// Percent that take up to four times the delay.
    pub reorder: u64,
    /// Percent that routers mark as having met congestion, if they may.
    pub mark: u64,
    /// Percent that come back a second time after up to this many ms, long delayed.
    pub late: (u64, u64),
    /// Percent that routers answer by an ICMP error, without cause, and forward.
    pub icmp: u64,
    /// Largest packet from that time (ms) on.
    pub mtus: Vec<(u64, usize)>,
    /// Nothing gets through from that time, for so long, ms.
    pub outages: Vec<(u64, u64)>,
    /// From then on nothing happens to packets, ms.
    pub honest_after_ms: u64,
    /// Packets that the device would cut are handed over whole.
    pub merge: bool,
    /// Packets of one moment are handed over at once.
    pub batches: bool,
}

/// A setting that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// When, ms.
    pub at_ms: u64,
    /// Whose: 0 the client's, 1 the server's.
    pub side: usize,
    /// The row.
    pub name: String,
    /// Its new value.
    pub value: String,
}

/// A forged packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attack {
    /// After that many packets on the wire.
    pub after: u64,
    /// The receiver: 0 the client, 1 the server.
    pub to: usize,
    /// The kind of forgery.
    pub kind: Forgery,
    /// Added to the sequence number that the receiver expects.
    pub seq_off: i64,
    /// Added to the acknowledgement number that is right.
    pub ack_off: i64,
    /// So many of them, each a little further.
    pub count: u32,
}

impl Scenario {
    /// A short name of exactly this world (FNV-1a of its JSON, folded).
    ///
    /// # Panics
    /// Never: a scenario can be written as JSON.
    pub fn hash(&self) -> String {
        let json = serde_json::to_vec(self).expect("numbers, words and lists");
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let hash = json.iter().fold(0xcbf2_9ce4_8422_2325, step);
        format!("{:08x}", (hash >> 32) as u32 ^ hash as u32)
    }

    /// The attacker sends only packets that must harm nobody, so that every byte and every end is
    /// judged.
    pub fn is_judged(&self) -> bool {
        self.attacks.iter().all(|attack| attack.kind.is_bounded())
    }

    /// An end asks for a rate of its own.
    pub fn is_paced(&self) -> bool {
        self.has_option(|option| option.0 == "max_pacing_rate")
    }

    /// An end takes only so little from its application at a time that all of it waits for more
    /// (`TCP_NOTSENT_LOWAT` beside `MSG_MORE` or `TCP_CORK`).
    pub fn trickles(&self) -> bool {
        let more = |step: &Step| matches!(step, Step::Write { flags, .. } if flags & 1 != 0);
        let ends = self.connections.iter().flat_map(|plan| &plan.ends);
        self.has_option(|option| option.0 == "notsent_lowat")
            && (self.has_option(|option| option.0 == "cork")
                || ends.into_iter().any(|end| end.steps.iter().any(more)))
    }

    fn has_option(&self, is_it: impl Fn(&Opt) -> bool) -> bool {
        let steps =
            |end: &End| end.steps.iter().any(|step| matches!(step, Step::Set(option) if is_it(option)));
        let ends = self.connections.iter().flat_map(|plan| &plan.ends);
        self.listener.options.iter().any(&is_it)
            || ends.into_iter().any(|end| end.options.iter().any(&is_it) || steps(end))
    }

    /// ICMP errors arrive.
    pub fn has_icmp(&self) -> bool {
        self.wire.icmp > 0 || self.attacks.iter().any(|attack| attack.kind == Forgery::Error)
    }
}

impl Forgery {
    /// Kinds that a standard says must not end a connection, nor change what it carries, though
    /// their sender knows every number. Such a packet is made of the numbers that its receiver has
    /// at the very moment.
    pub const BOUNDED: [Forgery; 8] = [
        Forgery::Replay,
        Forgery::StrayReset,
        Forgery::StraySyn,
        Forgery::FarText,
        Forgery::FarAck,
        Forgery::LyingSack,
        Forgery::ShutWindow,
        Forgery::Error,
    ];

    /// One of those.
    pub fn is_bounded(self) -> bool {
        Forgery::BOUNDED.contains(&self)
    }
}

/// Kinds of forged packets. Of the first the attacker has seen the latest packet of the host it
/// impersonates, and they may destroy a connection that has nothing but its numbers to be known by;
/// for the others see [`Forgery::BOUNDED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Forgery {
    /// A reset.
    Reset,
    /// A SYN.
    Syn,
    /// A SYN-ACK.
    SynAck,
    /// An acknowledgement.
    Ack,
    /// One with a closed window.
    ZeroWindow,
    /// One with selective acknowledgements of everything and nothing.
    Sack,
    /// Text.
    Text,
    /// Text with an urgent pointer.
    Urgent,
    /// A FIN.
    Fin,
    /// An ICMP error of a random kind that quotes the latest packet.
    Icmp,
    /// The latest packet again, with one field at random.
    Mutated,
    /// Every flag at once.
    Christmas,
    /// The latest SYN that brought a Fast Open cookie and data again, from another address.
    StolenCookie,
    /// A packet of before, as it was (RFC 9293 §3.4: old duplicates).
    Replay,
    /// A reset with another number than the one expected (RFC 5961 §3.2).
    StrayReset,
    /// A SYN, or SYN-ACK, in the midst of a connection (RFC 5961 §4.2).
    StraySyn,
    /// Text, perhaps with a FIN, all before or all beyond the window (RFC 9293 §3.10.7.4, first
    /// check).
    FarText,
    /// An acknowledgement of what was never sent, or of what is long past (RFC 5961 §5.2).
    FarAck,
    /// Selective acknowledgements of anything (RFC 2018 §8: what they report may be taken back).
    LyingSack,
    /// A closed window (RFC 9293 §3.8.6.1: it is probed).
    ShutWindow,
    /// An ICMP error of any kind about the latest packet (RFC 5927 §5, RFC 5461).
    Error,
}
