//! What was read of a host, in the words of ss(8), nstat(8), sysctl(8), tc(8) and ip(8).
//!
//! - [`sockets`]: connections and listeners; [`limits`]: what limits a connection, and the rate that each limit would allow;
//! - [`counters`], [`settings`], [`queues`], [`routes`], [`paths`]: as nstat, sysctl, tc, ip route and ip tcp_metrics show them;
//! - [`nics`]: devices, and the layers between them and TCP, as ip link, ethtool and /proc show
//!   them;
//! - [`glossary`]: what each figure is, what is usual, and which rules look at it.
//!
//! Numbers stay numbers: [`Word`]s become text, JSON or an entry of the glossary.
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

/// A figure and its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// Its name in the kernel's tools.
    pub name: &'static str,
    /// Its value.
    pub figure: Figure,
}

/// The value of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// It is so.
    Flag,
    /// A number of something.
    Count(u64),
    /// A time, microseconds.
    Micros(u64),
    /// A rate, bits a second.
    Rate(u64),
    /// Several figures, or a name.
    Text(String),
}

impl Word {
    /// As JSON: times in milliseconds, rates in bits a second.
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
            // ss(8) names it by its value alone.
            Figure::Text(text) if name == "congestion" => f.write_str(text),
            Figure::Text(text) => write!(f, "{name}:{text}"),
        }
    }
}

/// Words as an object.
fn object(words: &[Word]) -> Map<String, Value> {
    words.iter().map(|word| (word.name.to_owned(), word.json())).collect()
}

/// Words on one line.
fn line(words: &[Word]) -> String {
    words.iter().map(Word::to_string).collect::<Vec<_>>().join(" ")
}

/// Microseconds as milliseconds, without zeros behind.
struct Millis(u64);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 1000 {
            0 => write!(f, "{}", self.0 / 1000),
            part => write!(f, "{}.{}", self.0 / 1000, format!("{part:03}").trim_end_matches('0')),
        }
    }
}

/// Bytes a second as bits, with the unit a person would take.
pub fn rate(bytes: f64) -> String {
    let bits = bytes * 8.0;
    match bits {
        _ if bits >= 1e9 => format!("{:.2} Gbit/s", bits / 1e9),
        _ if bits >= 1e6 => format!("{:.2} Mbit/s", bits / 1e6),
        _ if bits >= 1e3 => format!("{:.2} kbit/s", bits / 1e3),
        _ => format!("{bits:.0} bit/s"),
    }
}

/// Lines whose cells stand below one another; numbers (`true`) to the right. The last cell is not filled up.
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
