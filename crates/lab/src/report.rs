//! What an experiment hands back: text for people, values for programs, packets for Wireshark.

mod chart;
mod connections;
mod finding;
mod ladder;
mod page;
mod paint;
mod pcap;
mod picture;
mod remarks;
mod series;
mod table;
mod trace;
mod wrap;

pub use self::picture::{document, drawing, picture_words};
pub use chart::Chart;
pub use finding::Finding;
pub use page::{Block, Page, PageStyle};
pub use pcap::{Recording, write_pcapng, write_pcapng_of_servers};
pub use series::write_series;
pub use table::{Align, Table};
pub use trace::traces;
pub use wrap::wrapped;

/// The result of a scenario.
pub trait Report {
    /// Writes it for people.
    fn render(&self, page: &mut Page);

    /// Its figures beside what is expected of them; none where nothing is, as with parameters that a user chose.
    fn findings(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Writes it for people, with what was expected and came.
    fn render_with_findings(&self, page: &mut Page) {
        self.render(page);
        finding::render(page, &self.findings());
    }

    /// As values; times are in milliseconds.
    fn json(&self) -> serde_json::Value;

    /// The packets behind it, in the order they are to be written.
    fn recordings(&self) -> Vec<Recording<'_>>;

    /// Graphs over something else than the time of one run: distributions, sweeps.
    fn graphs(&self) -> Vec<::picture::Graph> {
        Vec::new()
    }
}
