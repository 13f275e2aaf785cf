//! Prints samples in the format of ss(8), nstat(8), sysctl(8), tc(8) and ip(8).
//!
//! - [`sockets`]: connections and listeners;
//! - [`limits`]: the limits of a connection, and the rate that each limit allows;
//! - [`counters`], [`settings`], [`queues`], [`routes`], [`paths`]: like nstat, sysctl, tc, ip
//!   route
//!   and ip tcp_metrics;
//! - [`nics`]: devices, and the layers between them and TCP, like ip link, ethtool and /proc;
//! - [`glossary`]: the meaning of each name, its usual value, and the rules that use it.
//!
//! A [`Word`] keeps its number, and is printed as text, as JSON or as a glossary entry.
pub mod counters;
pub mod glossary;
pub mod limits;
pub mod nics;
pub mod paths;
pub mod queues;
pub mod routes;
pub mod settings;
pub mod sockets;

use serde_json::{Map, Value};
use std::fmt;

/// A named value.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The name in the kernel's tools.
    pub name: &'static str,
    /// The value.
    pub figure: Figure,
}

/// The value of a word.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// The flag is set.
    Flag,
    /// A number.
    Count(u64),
    /// A time in microseconds.
    Micros(u64),
    /// A rate in bits per second.
    Rate(u64),
    /// Several numbers, or a name.
    Text(String),
}

impl Word {
    /// Returns the value as JSON. Times are in milliseconds, rates in bits per second.
    fn json(&self) -> Value {
        match &self.figure {
            Figure::Flag => true.into(),
            Figure::Count(number) | Figure::Rate(number) => (*number).into(),
            Figure::Micros(time) => (*time as f64 / 1000.0).into(),
            Figure::Text(text) => text.as_str().into(),
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        match &self.figure {
            Figure::Flag => f.write_str(name),
            Figure::Count(number) => write!(f, "{name}:{number}"),
            Figure::Micros(time) => write!(f, "{name}:{}", Millis(*time)),
            Figure::Rate(rate) => write!(f, "{name} {rate}bps"),
            // ss(8) prints it without its name.
            Figure::Text(text) if name == "congestion" => f.write_str(text),
            Figure::Text(text) => write!(f, "{name}:{text}"),
        }
    }
}

/// Returns the words as a JSON object.
fn object(words: &[Word]) -> Map<String, Value> {
    words.iter().map(|word| (word.name.to_owned(), word.json())).collect()
}

/// Returns the words as one line.
fn line(words: &[Word]) -> String {
    words.iter().map(Word::to_string).collect::<Vec<_>>().join(" ")
}

/// Microseconds, printed as milliseconds without trailing zeros.
struct Millis(u64);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 1000 {
            0 => write!(f, "{}", self.0 / 1000),
            part => write!(f, "{}.{}", self.0 / 1000, format!("{part:03}").trim_end_matches('0')),
        }
    }
}

/// Formats bytes per second as bits per second, with a fitting unit.
pub fn rate(bytes: f64) -> String {
    let bits = bytes * 8.0;
    match bits {
        _ if bits >= 1e9 => format!("{:.2} Gbit/s", bits / 1e9),
        _ if bits >= 1e6 => format!("{:.2} Mbit/s", bits / 1e6),
        _ if bits >= 1e3 => format!("{:.2} kbit/s", bits / 1e3),
        _ => format!("{bits:.0} bit/s"),
    }
}

/// Aligns the cells of lines in columns. Columns marked `true` are aligned to the right. The last
/// cell is not padded.
fn columns<const N: usize>(lines: &[[String; N]], right: [bool; N]) -> String {
    let widths: [usize; N] =
        std::array::from_fn(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(widths).zip(right).map(|((cell, width), right)| match right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        text += cells.collect::<Vec<_>>().join(" ").trim_end();
        text.push('\n');
    }
    text
}
