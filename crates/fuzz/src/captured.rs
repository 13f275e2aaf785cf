//! Capture files: pcap or pcapng, compressed or not. Every file is read to its end.
use capture::{CaptureFile, Connection, Limit, Side, Table};
use core::time::Duration;

/// More than the input could hold, and no more than memory does: a compressed one may be long.
const FRAMES_MAX: usize = 10_000;

/// A capture file; everything that can be asked of what is in it.
pub fn captures(data: &[u8]) {
    let Ok(mut file) = CaptureFile::open(data) else { return };
    let mut table = Table::default();
    for _ in 0..FRAMES_MAX {
        let Some(frame) = file.next_frame() else { break };
        if let Ok(packet) = frame.tcp() {
            table.handle(&packet, &mut |connection| judge(&connection));
        } else if let Some(error) = frame.icmp_error() {
            table.handle_icmp(&error);
        }
    }
    table.finish(&mut |connection| judge(&connection));
    let _ = (file.end(), file.oddities().count());
}

fn judge(connection: &Connection) {
    let _ = (connection.fast_open().to_string(), connection.fast_open_effect());
    let _ = (connection.rtt(), connection.time_to_first_byte(), connection.tunnels().to_string());
    for side in Side::BOTH {
        let half = connection.half(side);
        let _ = (half.unseen_bytes(), connection.is_seen_from(side));
        let waits = Limit::ALL.map(|limit| (half.sender().waited(limit), limit.is_certain(connection, side)));
        // Times of a capture are bounded so that their sums are.
        let _: Duration = waits.into_iter().map(|(waited, _)| waited).sum();
    }
    let _ = (
        connection.opening().to_string(),
        connection.captured_only(),
        connection.last_events().iter().count(),
    );
}
