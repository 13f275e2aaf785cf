//! A finding: where a rule fired, its severity, the numbers, and the fix.
use crate::change::Act;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing. Nothing is affected yet.
    Info,
    /// Connections are slower than necessary, or the next burst will do harm.
    Warning,
    /// Connections fail.
    Critical,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        })
    }
}

/// The object of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "name")]
pub enum Scope {
    /// The whole host.
    Host,
    /// The network namespace that was read.
    Namespace,
    /// A listener, by its local port.
    Port(u16),
    /// A destination.
    Peer(String),
    /// One connection.
    Socket(String),
    /// A network device.
    Device(String),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Host => f.write_str("host"),
            Scope::Namespace => f.write_str("namespace"),
            Scope::Port(port) => write!(f, "port {port}"),
            Scope::Peer(peer) => write!(f, "peer {peer}"),
            Scope::Socket(socket) => write!(f, "socket {socket}"),
            Scope::Device(device) => write!(f, "device {device}"),
        }
    }
}

/// A number that supports the finding, under the kernel's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The kernel's name: a counter, a setting, or a field of a socket.
    pub name: String,
    /// The value, with its unit if it has one.
    pub value: String,
    /// The time it covers: "now", "5.0 s", "since boot".
    pub window: String,
}

/// The result of a rule in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule's id.
    pub id: String,
    /// The severity.
    pub severity: Severity,
    /// The object of the finding.
    pub scope: Scope,
    /// The visible symptom, in a few words.
    pub symptom: String,
    /// The numbers that support the finding.
    pub evidence: Vec<Evidence>,
    /// The condition, with the numbers filled in.
    pub formula: String,
    /// Why it matters.
    pub why: String,
    /// The fix.
    pub fix: Fix,
    /// The kernel versions that the rule applies to, in words.
    pub kernels: String,
    /// Confidence that the numbers mean what the finding says.
    pub confidence: Confidence,
}

/// Confidence that the numbers mean what the finding says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The kernel states it directly, with a dedicated counter or a setting.
    Certain,
    /// Several numbers agree, and other causes are rare.
    Likely,
    /// A place to start looking.
    Hint,
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Confidence::Certain => "certain",
            Confidence::Likely => "likely",
            Confidence::Hint => "hint",
        })
    }
}

/// The fix of a finding. It is printed, never applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// Advice for the part that no command can do.
    pub advice: String,
    /// Commands, in the order to run them.
    pub steps: Vec<Step>,
}

/// One command of a fix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Shell command, to be run as root.
    pub command: String,
    /// Makes the change persistent.
    pub persist: Option<String>,
    /// The command that reverts it.
    pub undo: Option<String>,
    /// The reason why it cannot be done on this host.
    pub obstacle: Option<String>,
    /// When the step takes effect, and what must be restarted. `None`: immediately.
    #[serde(default)]
    pub effect: Option<String>,
    /// The setting or route that the step changes. Other findings may change it too.
    #[serde(skip)]
    pub(crate) act: Act,
}
