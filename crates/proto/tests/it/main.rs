//! Conversations of the engine in virtual time.
//!
//! `pair` joins two stacks by a wire, `transfer` sends in bulk over it; `peer` puts one stack opposite hand-made segments; `bottleneck`
//! lets flows share a link.
//!
//! | module | what |
//! |---|---|
//! | `opening`, `closing`, `orphans`, `time_wait` | handshakes, every way to end |
//! | `queues`, `listening`, `syn_cookies` | a listener's queues, and what happens when they are full |
//! | `arrival`, `icmp`, `mtu_search` | which segments and errors count; how large packets may be |
//! | `recovery_timers` | what the timer of loss is set for, and what is left of it
//! | `data`, `flow`, `small_windows`, `loss`, `wrap` | sending and receiving, windows, retransmission, what two gigabytes make old |
//! | `refused` | what the queue before the device does not take |
//! | `rfc_examples` | what the documents on loss recovery work out |
//! | `routes`, `paths` | values per destination, and what is remembered of them |
//! | `limits`, `buffers`, `memory` | what keeps a sender back; how large buffers are; what all of them may take |
//! | `habits`, `records`, `bursts`, `delayed_ack` | what small segments wait for; push, records, how much may wait; large bursts; what ACKs wait for |
//! | `expiry` | many timers that end at once |
//! | `keepalive`, `user_timeout`, `urgent`, `options` | silence; the user timeout; the urgent pointer; what else an application may ask of a connection |
//! | `counters`, `snmp`, `tcp_info`, `trace` | what can be seen |
//! | `strangers` | how many answers those get who have no connection, and what they cannot learn by them |
//! | `moving` | connections that go from one stack to another |
//! | `ports` | which local ports connections get |
//! | `signed` | MD5 signatures (RFC 2385) |
//! | `settings` | settings that no other module shows |
//! | `fairness`, `pacing`, `ecn`, `accurate_ecn` | what flows get of a link, and how evenly they send |
//! | `completion` | how long transfers take, beside Linux's habits |
//! | `fast_open` | RFC 7413, both ends |
//! | `mutation` | hostile input (`FIRSTBYTE_MUTATIONS`) |
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bottleneck;
mod pair;
mod peer;
mod random;
mod transfer;

mod accurate_ecn;
mod arrival;
mod buffers;
mod bursts;
mod closing;
mod completion;
mod counters;
mod data;
mod delayed_ack;
mod docs;
mod ecn;
mod expiry;
mod extremes;
mod fair_shares;
mod fairness;
mod fast_open;
mod flow;
mod fragments;
mod habits;
mod handshake;
mod icmp;
mod keepalive;
mod limits;
mod listening;
mod loss;
mod lossy;
mod memory;
mod moving;
mod mtu_search;
mod mutation;
mod opening;
mod openings_counted;
mod options;
mod orphans;
mod pacing;
mod packets;
mod paths;
mod ports;
mod put_off;
mod queues;
mod records;
mod recovery_timers;
mod refused;
mod requirements;
mod rfc_examples;
mod routes;
mod running_timer;
mod sack;
mod settings;
mod signed;
mod small_windows;
mod snmp;
mod sources;
mod state_table;
mod strangers;
mod syn_cookies;
mod tcp_info;
mod time_wait;
mod trace;
mod undo;
mod urgent;
mod user_timeout;
mod window;
mod wrap;
