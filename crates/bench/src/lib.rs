//! Cost of the engine. One program, `firstbyte-bench WORKLOAD --key value …`, that prints one
//! line of JSON per figure.
//!
//! It drives [`proto::Stack`] itself, with a real clock and a loop of its own: no runtime, no lock,
//! no thread. What is measured is the engine and the device, nothing above them.
//!
//! | module | what |
//! |---|---|
//! | [`workload`] | one file per workload: its options and its figures |
//! | [`exchange`], [`bulk`], [`crowd`] | the applications: request and answer, a stream, many connections that stay |
//! | [`link`], [`pair`] | packets between two stacks of this process |
//! | [`tun`] | a stack behind a TUN device, with the kernel as its peer |
//! | [`meter`], [`report`] | CPU time, lines, failures |
//! | `side_by_side` | counts as many at once as there are processors |
//! | [`ids`] | connections to what an application knows of them |
//! | [`hostile`] | what hostile peers may cost: a table with bounds |
//! | [`budgets`] | instructions of packets that report holes or arrive out of order |
//! | [`instructions`] | instruction counts of the hot paths by callgrind, beside recorded ones |
//!
//! The exit status is 0 with a figure, 3 for a workload or parameter that does not exist here, 1
//! when a run lost a byte, met a reset or used another mode than it was asked for: then there is no
//! figure.
#![forbid(unsafe_code)]

pub mod budgets;
pub mod bulk;
pub mod crowd;
pub mod exchange;
pub mod hostile;
pub mod ids;
pub mod instructions;
pub mod link;
pub mod meter;
pub mod pair;
pub mod report;
mod side_by_side;
pub mod tun;
pub mod workload;
