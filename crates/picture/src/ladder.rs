//! A ladder diagram: the packets between two ends, one below the other, with the time at each end.

use crate::frame::{Frame, trimmed};
use crate::markup::escape;
use crate::scale::number;
use std::fmt::Write as _;

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the left end to the right end.
    Right,
    /// From the right end to the left end.
    Left,
}

/// The most important property of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Opens or closes the connection.
    Control,
    /// Requests, brings or uses a Fast Open cookie.
    Cookie,
    /// Carries data.
    Data,
    /// A retransmission.
    Again,
    /// An ACK.
    Ack,
    /// Closes or opens the receive window.
    Window,
    /// A reset.
    Reset,
}

/// One packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// Direction.
    pub way: Way,
    /// Kind of packet.
    pub kind: Kind,
    /// Time at the left end, ms; `None` if it was not seen there.
    pub left_ms: Option<f64>,
    /// Time at the right end, ms; `None` if it was not seen there.
    pub right_ms: Option<f64>,
    /// Short label above the arrow.
    pub label: String,
    /// Numbers below the arrow; omitted if there is not enough room for them and `said`.
    pub numbers: String,
    /// Special remarks behind the numbers; may be empty.
    pub said: String,
    /// All details, shown on demand.
    pub detail: String,
    /// Device that lost the packet.
    pub lost_by: Option<String>,
}

/// Packets between two ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ladder {
    /// Title.
    pub title: String,
    /// Name of the left end.
    pub left: String,
    /// Name of the right end.
    pub right: String,
    /// The packets in the order of sending.
    pub rungs: Vec<Rung>,
    /// Number of further packets that are not shown.
    pub left_out: usize,
}

/// Width of the time column on each side.
pub(crate) const SIDE: f64 = 54.0;
/// Width of both columns.
const MARGINS: f64 = 2.0 * SIDE;
/// Height of one packet.
const ROW: f64 = 42.0;
/// Space above the first packet, for the names of the ends.
const HEAD: f64 = 24.0;

impl Kind {
    /// All kinds, in the order of the legend.
    pub(crate) const ALL: [Kind; 7] =
        [Kind::Control, Kind::Cookie, Kind::Data, Kind::Again, Kind::Ack, Kind::Window, Kind::Reset];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Control => "opens or closes",
            Kind::Cookie => "Fast Open",
            Kind::Data => "data",
            Kind::Again => "sent again",
            Kind::Ack => "acknowledgement",
            Kind::Window => "window closed or opened",
            Kind::Reset => "reset",
        }
    }

    pub(crate) fn class(self) -> &'static str {
        match self {
            Kind::Control => "grey",
            Kind::Cookie => "green",
            Kind::Data => "blue",
            Kind::Again => "orange",
            Kind::Ack => "teal",
            Kind::Window => "purple",
            Kind::Reset => "red",
        }
    }
}

impl Rung {
    /// Returns the time at which the packet was sent.
    pub(crate) fn sent_ms(&self) -> Option<f64> {
        match self.way {
            Way::Right => self.left_ms.or(self.right_ms),
            Way::Left => self.right_ms.or(self.left_ms),
        }
    }
}

impl Ladder {
    /// Returns the ladder with at most `most` packets.
    pub(crate) fn cut(&self, most: usize) -> Ladder {
        let mut ladder = self.clone();
        ladder.rungs.truncate(most);
        ladder.left_out += self.rungs.len() - ladder.rungs.len();
        ladder
    }

    /// Returns the note below the last packet, if there are more.
    pub(crate) fn left_out_words(&self) -> Option<String> {
        match self.left_out {
            0 => None,
            1 => Some("… and one more packet.".to_owned()),
            count => Some(format!("… and {count} more packets.")),
        }
    }

    pub(crate) fn last_time(&self) -> f64 {
        let times = self.rungs.iter().flat_map(|rung| [rung.left_ms, rung.right_ms]);
        times.flatten().fold(0.0, f64::max)
    }

    pub(crate) fn height(&self) -> f64 {
        HEAD + ROW * self.rungs.len() as f64 + 8.0
    }

    /// Returns the kinds that occur.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(|kind| self.rungs.iter().any(|rung| rung.kind == *kind))
    }

    /// Draws the ladder without its title.
    pub(crate) fn draw(&self, frame: Frame) -> String {
        let mut svg = String::new();
        let (right, bottom) = (frame.across(1.0, MARGINS), self.height());
        for (x, name, anchor) in [("0", &self.left, "start"), (right.as_str(), &self.right, "end")] {
            let _ = write!(
                svg,
                "<line class=\"axis\" x1=\"{x}\" x2=\"{x}\" y1=\"{HEAD}\" y2=\"{bottom}\"/>\
                 <text class=\"end\" x=\"{x}\" y=\"15\" text-anchor=\"{anchor}\">{}</text>",
                escape(name)
            );
        }
        for (row, rung) in self.rungs.iter().enumerate() {
            rung.draw(&mut svg, frame, HEAD + ROW * row as f64);
        }
        svg
    }
}

impl Rung {
    fn draw(&self, svg: &mut String, frame: Frame, y: f64) {
        let interactive = match frame {
            Frame::Fluid => format!(
                " tabindex=\"0\" data-at=\"{}\" data-detail=\"{}\"",
                trimmed(self.sent_ms().unwrap_or(0.0) * 1000.0),
                escape(&self.detail)
            ),
            Frame::Fixed(_) => String::new(),
        };
        let _ = write!(svg, "<g class=\"rung {}\"{interactive}>", self.kind.class());
        let _ = write!(
            svg,
            "<rect class=\"back\" x=\"0\" y=\"{y}\" width=\"{}\" height=\"{ROW}\"/>",
            frame.across(1.0, MARGINS)
        );
        self.draw_times(svg, frame, y);
        self.draw_arrow(svg, frame, y + 23.0);
        let mut text = |class: &str, y: f64, markup: &str| {
            let x = frame.across(0.5, MARGINS);
            let _ = write!(
                svg,
                "<text class=\"{class}\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{markup}</text>",
                trimmed(y),
            );
        };
        text("label", y + 14.0, &escape(&self.label));
        let (numbers, said) = (escape(&self.numbers), escape(&self.said));
        match said.is_empty() {
            true => text("numbers", y + 37.0, &numbers),
            false => text("numbers", y + 37.0, &format!("<tspan class=\"exact\">{numbers} · </tspan>{said}")),
        }
        svg.push_str("</g>");
    }

    fn draw_times(&self, svg: &mut String, frame: Frame, y: f64) {
        let (early, late) = (y + 20.0, y + 30.0);
        let (left, right) = if self.way == Way::Right { (early, late) } else { (late, early) };
        let mut time = |at: Option<f64>, x: &str, dx: f64, y: f64, anchor: &str| {
            let Some(at) = at else { return };
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{x}\" dx=\"{dx}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
                trimmed(y),
                time_text(at)
            );
        };
        time(self.left_ms, "0", -6.0, left, "end");
        time(self.right_ms, &frame.across(1.0, MARGINS), 6.0, right, "start");
    }

    /// Draws an arrow from end to end, or to a cross in the middle if the packet was lost.
    fn draw_arrow(&self, svg: &mut String, frame: Frame, y: f64) {
        let x = |share: f64| frame.across(share, MARGINS);
        let (from, full) = if self.way == Way::Right { (0.0, 1.0) } else { (1.0, 0.0) };
        let to = if self.lost_by.is_some() { 0.5 + (full - 0.5) * 0.5 } else { full };
        let _ =
            write!(svg, "<line class=\"arrow\" x1=\"{}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/>", x(from), x(to));
        // The arrowhead is a separate drawing, so that it keeps its size on a line of any length.
        let (d, class) = match (&self.lost_by, self.way) {
            (Some(_), _) => ("M-5 -5L5 5M-5 5L5 -5", "lost"),
            (None, Way::Right) => ("M0 0L-9 -4V4Z", "head"),
            (None, Way::Left) => ("M0 0L9 -4V4Z", "head"),
        };
        let _ = write!(
            svg,
            "<svg x=\"{}\" y=\"{y}\" width=\"1\" height=\"1\" overflow=\"visible\"><path class=\"{class}\" d=\"{d}\"/></svg>",
            x(to)
        );
    }
}

/// Formats a time with significant decimals.
fn time_text(ms: f64) -> String {
    if ms >= 10_000.0 {
        format!("{} s", number((ms / 10.0).round() / 100.0))
    } else if ms >= 100.0 {
        trimmed((ms * 10.0).round() / 10.0)
    } else if ms >= 1.0 {
        trimmed(ms)
    } else {
        number(ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(lost_by: Option<&str>) -> Rung {
        Rung {
            way: Way::Right,
            kind: Kind::Cookie,
            left_ms: Some(0.0),
            right_ms: lost_by.is_none().then_some(20.0),
            label: "SYN 200 B".into(),
            numbers: "seq 0".into(),
            said: String::new(),
            detail: "a <SYN>".into(),
            lost_by: lost_by.map(str::to_owned),
        }
    }

    #[test]
    fn a_packet_has_its_times_and_can_be_reached_by_keyboard() {
        let ladder = Ladder { rungs: vec![rung(None)], ..Ladder::default() };
        let svg = ladder.draw(Frame::Fluid);
        for part in ["tabindex=\"0\"", ">20<", "a &lt;SYN&gt;", "class=\"head\""] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert_eq!(ladder.last_time(), 20.0);
    }

    #[test]
    fn times_have_as_many_digits_as_say_something() {
        let times = [0.0, 0.0154, 43.734, 1080.04, 365_123.0].map(time_text);
        assert_eq!(times, ["0", "0.015", "43.73", "1080", "365 s"]);
    }

    #[test]
    fn a_lost_packet_ends_in_a_cross() {
        let svg =
            Ladder { rungs: vec![rung(Some("firewall"))], ..Ladder::default() }.draw(Frame::Fixed(600.0));
        assert!(svg.contains("class=\"lost\"") && !svg.contains("tabindex"), "{svg}");
    }
}
