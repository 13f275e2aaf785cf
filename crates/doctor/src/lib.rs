//! Reads the TCP state of a Linux host and turns it into findings with evidence, reason and fix.
//!
//! Reading and judging are separate:
//!
//! - [`sources`]: reads netlink and procfs into a [`Sample`], a plain value that can be saved;
//! - [`rules`]: judges two samples and returns [`Finding`]s, with one module per subject;
//! - [`policy`]: reads thresholds and silenced rules from a file;
//! - [`show`]: prints a sample in the format of the kernel's own tools;
//! - [`pace`]: limits the processor time of repeated samples;
//! - [`record`]: saves samples and reads them back;
//! - [`report`]: writes findings as text, JSON, HTML and Prometheus metrics;
//! - [`escape`]: makes names from other programs safe for a terminal and a shell.
//!
//! The crate never changes the host. A rule whose source could not be read counts as not judged,
//! with the reason, and never as healthy.
#![forbid(unsafe_code)]
mod change;
pub mod escape;
pub mod finding;
mod flood;
pub mod limit;
pub mod pace;
pub mod policy;
pub mod record;
pub mod report;
pub mod rules;
pub mod sample;
pub mod show;
pub mod sources;
pub mod window;

pub use finding::{Confidence, Evidence, Finding, Fix, Scope, Severity, Step};
pub use limit::{Limit, Limits};
pub use pace::{Pace, Slowed};
pub use policy::Policy;
pub use record::{Mask, Record};
pub use report::{NotJudged, Past, Report};
pub use rules::{Change, Kernels, RULES, Rule};
pub use sample::{Sample, Source};
pub use window::Window;
