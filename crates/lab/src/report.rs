//! Results of scenarios: text for people, values for programs, packets for Wireshark.

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
    /// Writes the result for people.
    fn render(&self, page: &mut Page);

    /// Returns the checks. Empty if nothing is expected, as with parameters chosen by the user.
    fn findings(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Writes the result for people, with the checks.
    fn render_with_findings(&self, page: &mut Page) {
        self.render(page);
        finding::render(page, &self.findings());
    }

    /// Returns the result as JSON; times are in milliseconds.
    fn json(&self) -> serde_json::Value;

    /// Returns the packets of the runs, in the order of writing.
    fn recordings(&self) -> Vec<Recording<'_>>;

    /// Returns graphs over other axes than the time of one run: distributions, sweeps.
    fn graphs(&self) -> Vec<::picture::Graph> {
        Vec::new()
    }
}
