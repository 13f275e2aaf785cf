//! What Linux's TCP does on a host: read from the kernel, and turned into findings with evidence, reason and fix.
//!
//! Reading and judging are apart:
//!
//! - [`sources`]: netlink and procfs → a [`Sample`], a plain value that can be saved and read back;
//! - [`rules`]: two samples → [`Finding`]s; one file a family, each rule readable alone;
//! - [`policy`]: thresholds and silenced rules, from a file;
//! - [`show`]: what was read, in the words of the kernel's own tools;
//! - [`pace`]: how often, so that looking stays cheap;
//! - [`record`]: samples saved and read back;
//! - [`report`]: findings as text, JSON and Prometheus metrics;
//! - [`escape`]: what others named, made safe for a terminal and a shell.
//!
//! Nothing on the host is ever changed, and what could not be read is never reported as healthy: the rules that need it
//! are listed as not judged, with the reason.
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
