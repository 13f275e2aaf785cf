use crate::capture::Place;
use crate::exchange::exchanges;
use crate::ladder::Ladder;
use crate::report::{Page, PageStyle};
use crate::testing::*;
use wire::Flags;

fn drawn(capture: &crate::capture::Capture, width: usize) -> Vec<String> {
    let exchange = exchanges(capture, CLIENT).remove(0);
    let mut page = Page::new(PageStyle { width, color: false });
    page.ladder(&Ladder::of("t", &exchange));
    page.into_text().lines().map(str::to_string).collect()
}

#[test]
fn four_packets_drawn() {
    assert_eq!(
        drawn(&four_packets(), 100),
        [
            "t",
            "     client                                                                                 server",
            "     0.0 ms ├─ SYN     seq 0 len 27  cookie 1d0aa246…  mss 1460 ───────────────────────▶   20.0 ms",
            "    40.0 ms ◀────────────────────────────── SYN FIN ACK seq 0 ack 28 len 43  mss 1460 ─┤   20.0 ms",
            "    40.0 ms ├─ FIN ACK seq 28 ack 45 ──────────────────────────────────────────────────▶   60.0 ms",
            "    80.0 ms ◀────────────────────────────────────────────────── ACK     seq 45 ack 29 ─┤   60.0 ms",
        ]
    );
}

#[test]
fn lost_packets_say_who_lost_them_and_lines_keep_their_width() {
    let capture = Tape::default()
        .lost(
            0,
            "firewall with a long name",
            from_client(Flags::SYN, 0, 0, 27).with_fast_open(Some(a_cookie())),
        )
        .packet(100, from_client(Flags::SYN, 0, 0, 0))
        .lost(120, "loss on the line", from_server(Flags::SYN | Flags::ACK, 0, 1, 0))
        .capture();
    for width in [60, 72, 100, 140, 300] {
        let lines = drawn(&capture, width);
        assert!(lines[2].contains("× firewall with a long name"), "{}", lines[2]);
        assert!(lines[4].contains("loss on the line ×─"), "{}", lines[4]);
        let lane = |line: &String| line.chars().skip(12).take_while(|c| *c != '▶' && *c != '┤').count();
        assert_eq!(lane(&lines[3]), lane(&lines[4]), "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= width.clamp(72, 140)), "{lines:#?}");
    }
}

#[test]
fn a_capture_of_one_end_leaves_the_other_blank() {
    let capture = four_packets();
    let at_client = |place: &Place| matches!(place, Place::Left(CLIENT) | Place::Arrived(CLIENT));
    let seen = capture.observations().iter().filter(|seen| at_client(&seen.place));
    let packets: Vec<_> = seen.map(|seen| (seen.at, seen.bytes.clone())).collect();
    let mut page = Page::new(PageStyle::default());
    page.ladder(&Ladder::at_client("t", server_addr(), &packets));
    let text = page.into_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[2..],
        [
            "     0.0 ms ├─ SYN     seq 0 len 27  cookie 1d0aa246…  mss 1460 ───────────────────────▶",
            "    40.0 ms ◀────────────────────────────── SYN FIN ACK seq 0 ack 28 len 43  mss 1460 ─┤",
            "    40.0 ms ├─ FIN ACK seq 28 ack 45 ──────────────────────────────────────────────────▶",
            "    80.0 ms ◀────────────────────────────────────────────────── ACK     seq 45 ack 29 ─┤",
        ]
    );
    let elsewhere = "198.51.100.9:80".parse().unwrap();
    assert!(Ladder::at_client("t", elsewhere, &packets).rungs.is_empty());
}

#[test]
fn colour_is_only_paint() {
    let exchange = exchanges(&four_packets(), CLIENT).remove(0);
    let text = |color| {
        let mut page = Page::new(PageStyle { width: 100, color });
        page.ladder(&Ladder::of("t", &exchange));
        page.into_text()
    };
    let mut stripped = text(true);
    while let Some(start) = stripped.find('\x1b') {
        let end = start + stripped[start..].find('m').unwrap();
        stripped.replace_range(start..=end, "");
    }
    assert!(text(true).contains("\x1b[32m"));
    assert_eq!(stripped, text(false));
}
