//! What an experiment hands back: text for people, values for programs, packets for Wireshark.

mod chart;
mod connections;
mod ladder;
mod page;
mod pcap;
mod picture;
mod remarks;
mod series;
mod table;
mod trace;

pub use self::picture::document;
pub use chart::Chart;
pub use page::{Block, Page, PageStyle};
pub use pcap::{Recording, write_pcapng};
pub use series::write_series;
pub use table::{Align, Table};
pub use trace::traces;

/// The result of a scenario.
pub trait Report {
    /// Writes it for people.
    fn render(&self, page: &mut Page);

    /// As values; times are in milliseconds.
    fn json(&self) -> serde_json::Value;

    /// The packets behind it, in the order they are to be written.
    fn recordings(&self) -> Vec<Recording<'_>>;

    /// Graphs over something else than the time of one run: distributions, sweeps.
    fn graphs(&self) -> Vec<::picture::Graph> {
        Vec::new()
    }
}
