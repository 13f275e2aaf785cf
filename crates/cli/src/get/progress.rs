//! A progress bar on standard error, if it is a terminal.
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar of one download, or nothing.
pub(crate) struct Progress {
    bar: ProgressBar,
    is_on: bool,
}

const OF_KNOWN: &str = "{bar:30} {bytes:>10} of {total_bytes} {binary_bytes_per_sec:>13}, {eta} left";
const OF_UNKNOWN: &str = "{spinner} {bytes:>10} {binary_bytes_per_sec:>13}";

impl Progress {
    pub(crate) fn off() -> Progress {
        Progress { bar: ProgressBar::hidden(), is_on: false }
    }

    pub(crate) fn on_terminal() -> Progress {
        Progress { bar: ProgressBar::hidden(), is_on: true }
    }

    /// Shows the bar: `from` bytes are there, `len` follow.
    pub(crate) fn begin(&mut self, from: u64, len: Option<u64>) {
        if !self.is_on {
            return;
        }
        // Draws nothing if standard error is not a terminal.
        let bar = ProgressBar::with_draw_target(len.map(|len| from + len), ProgressDrawTarget::stderr());
        let template = if len.is_some() { OF_KNOWN } else { OF_UNKNOWN };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        self.bar = bar.with_position(from);
        self.bar.reset_eta();
    }

    pub(crate) fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_valid() {
        for template in [OF_KNOWN, OF_UNKNOWN] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
