//! What a rule has found: where, how bad, by which numbers, and what mends it.
use crate::change::Act;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing suffers yet.
    Info,
    /// Connections are slower than they need be, or the next burst will hurt.
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

/// What a finding is about.
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

/// A number that speaks for the finding, under the kernel's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The kernel's name of it: a counter, a setting, a field of a socket.
    pub name: String,
    /// Its value, with the unit where it has one.
    pub value: String,
    /// The time it belongs to: "now", "5.0 s", "since boot".
    pub window: String,
}

/// What a rule found in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule's id.
    pub id: String,
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub scope: Scope,
    /// What one sees, in a few words.
    pub symptom: String,
    /// The numbers.
    pub evidence: Vec<Evidence>,
    /// The condition, with the numbers filled in.
    pub formula: String,
    /// Why it matters, in one sentence.
    pub why: String,
    /// What mends it.
    pub fix: Fix,
    /// The kernels that the rule holds for, in words.
    pub kernels: String,
    /// How surely the numbers mean what the finding says.
    pub confidence: Confidence,
}

/// How surely the numbers mean what the finding says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The kernel says it itself: a counter of just this, a setting.
    Certain,
    /// Several figures fit together; other causes are rare.
    Likely,
    /// A direction to look in.
    Hint,
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Confidence::Certain => "certain",
            Confidence::Likely => "likely",
            Confidence::Hint => "a hint",
        })
    }
}

/// What mends a finding. It is printed, never applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// What a person has to do that no command does.
    pub advice: String,
    /// Commands, in their order.
    pub steps: Vec<Step>,
}

/// One command of a fix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// For a shell, as root.
    pub command: String,
    /// What makes it last.
    pub persist: Option<String>,
    /// The command that takes it back.
    pub undo: Option<String>,
    /// Why it cannot be done on this host.
    pub obstacle: Option<String>,
    /// The time at which the step takes effect, if not at once: what has to be restarted.
    #[serde(default)]
    pub effect: Option<String>,
    /// The setting or route that the step changes, and that other findings may change too.
    #[serde(skip)]
    pub(crate) act: Act,
}
