//! Notes on what was read, skipped and ignored in a capture.
use super::account::Account;
use crate::values::counted;
use ::lab::report::Page;
use capture::CaptureFile;

/// Writes a paragraph for each kind of frame that is not a plain TCP packet.
pub(super) fn render(page: &mut Page, file: &CaptureFile<'_>, account: &Account) {
    for (tunnels, count) in account.tunnels() {
        page.paragraph(&format!("Inside {tunnels}: {}.", counted(count, "TCP packet", "TCP packets")));
    }
    for (why, count) in account.others() {
        page.paragraph(&format!("{}: {why}.", counted(count, "other frame", "other frames")));
    }
    if account.headers_cut() > 0 {
        page.paragraph(&format!(
            "{} cut: options are read as far as they go (capture with `tcpdump -s 128` or more).",
            counted(account.headers_cut(), "TCP header is", "TCP headers are")
        ));
    }
    let ignored: Vec<String> = file.oddities().map(|(oddity, count)| oddity.describe(count)).collect();
    if !ignored.is_empty() {
        page.paragraph(&format!("Ignored in the file: {}.", ignored.join(", ")));
    }
}
