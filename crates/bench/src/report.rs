//! One result: a line of JSON, and why there is none.

use core::fmt;
use serde::Serialize;
use std::collections::BTreeMap;

/// A figure with what identifies it. Serialised in the order of the fields.
#[derive(Debug, Serialize)]
pub struct Line {
    workload: &'static str,
    #[serde(rename = "impl")]
    implementation: &'static str,
    params: BTreeMap<&'static str, String>,
    m: BTreeMap<&'static str, f64>,
    info: BTreeMap<&'static str, String>,
}

impl Line {
    /// An empty line of `workload`.
    pub fn new(workload: &'static str) -> Line {
        Line {
            workload,
            implementation: "firstbyte",
            params: BTreeMap::new(),
            m: BTreeMap::new(),
            info: BTreeMap::from([("version", env!("CARGO_PKG_VERSION").to_string())]),
        }
    }

    /// Adds a parameter: lines are compared when all of these are equal.
    #[must_use]
    pub fn param(mut self, key: &'static str, value: impl ToString) -> Line {
        self.params.insert(key, value.to_string());
        self
    }

    /// Adds a figure.
    #[must_use]
    pub fn figure(mut self, key: &'static str, value: f64) -> Line {
        self.m.insert(key, value);
        self
    }

    /// Adds what a reader needs to judge the figures.
    #[must_use]
    pub fn info(mut self, key: &'static str, value: impl ToString) -> Line {
        self.info.insert(key, value.to_string());
        self
    }

    /// Formats the line as JSON.
    ///
    /// # Errors
    /// A figure is no number, as where nothing was measured.
    pub fn text(&self) -> Result<String, Failure> {
        if let Some((key, _)) = self.m.iter().find(|(_, figure)| !figure.is_finite()) {
            return Err(format!("too little was measured: `{key}` is no number").into());
        }
        serde_json::to_string(self).map_err(|error| error.to_string().into())
    }
}

/// Why a workload gives no figure.
#[derive(Debug)]
pub struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Failure {
        Failure(text.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure(error.to_string())
    }
}

/// The result of a workload.
pub type Outcome = Result<Line, Failure>;
