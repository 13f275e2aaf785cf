//! All drawings of a document in one SVG file.

use crate::document::Document;
use crate::frame::Frame;
use crate::graph::{Ends, Graph, LEFT};
use crate::ladder::{Ladder, SIDE};
use crate::markup::escape;
use std::fmt::Write as _;

/// Width of the sheet.
const WIDTH: f64 = 760.0;
/// Margin of the sheet.
const PAD: f64 = 16.0;
/// Height of a heading.
const LINE: f64 = 24.0;
/// Width of a legend's swatch, and of a letter.
const SWATCH: f64 = 30.0;
const LETTER: f64 = 6.6;
/// Height of a further legend line.
const LEGEND: f64 = 16.0;
/// Most packets of a ladder: unlike a page, a sheet cannot be scrolled.
const RUNGS_MAX: usize = 40;

impl Document {
    /// Formats all drawings as one SVG file, for a paper or a slide.
    pub fn to_svg(&self) -> String {
        svg(self)
    }
}

fn svg(document: &Document) -> String {
    let mut sheet = Sheet { body: String::new(), y: PAD };
    sheet.heading("title", &document.question);
    for graph in &document.summary {
        sheet.graph(graph, graph.ends());
    }
    for run in &document.runs {
        if !run.name.is_empty() {
            sheet.heading("run", &run.name);
        }
        run.graphs.iter().for_each(|graph| sheet.graph(graph, document.ends(run, graph)));
        run.ladder.iter().for_each(|ladder| sheet.ladder(ladder));
    }
    let (width, height) = (WIDTH + 2.0 * PAD, sheet.y + PAD);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\
         <style>{}</style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>{}</svg>\n",
        include_str!("../assets/sheet.css"),
        sheet.body
    )
}

struct Sheet {
    body: String,
    y: f64,
}

impl Sheet {
    fn heading(&mut self, class: &str, text: &str) {
        self.y += LINE;
        // Writing to a string cannot fail.
        let _ =
            write!(self.body, "<text class=\"{class}\" x=\"{PAD}\" y=\"{}\">{}</text>", self.y, escape(text));
        self.y += 8.0;
    }

    fn put(&mut self, drawing: &str, left: f64, height: f64) {
        let _ = write!(self.body, "<g transform=\"translate({} {})\">{drawing}</g>", PAD + left, self.y);
        self.y += height;
    }

    fn graph(&mut self, graph: &Graph, ends: Ends) {
        self.heading("figure", &graph.title);
        self.put(&graph.draw(Frame::Fixed(WIDTH), ends), LEFT, graph.height());
        let mut x = PAD;
        for series in &graph.series {
            let name = graph.legend(series);
            let width = SWATCH + LETTER * name.chars().count() as f64 + 8.0;
            if x > PAD && x + width > PAD + WIDTH {
                (x, self.y) = (PAD, self.y + LEGEND);
            }
            let _ = write!(
                self.body,
                "<rect class=\"{} key\" x=\"{x}\" y=\"{}\" width=\"18\" height=\"4\"/><text class=\"tick\" x=\"{}\" y=\"{}\">{}</text>",
                series.tone.class(),
                self.y + 4.0,
                x + SWATCH - 6.0,
                self.y + 10.0,
                escape(&name)
            );
            x += width;
        }
        self.y += LINE;
    }

    fn ladder(&mut self, ladder: &Ladder) {
        let shown = ladder.cut(RUNGS_MAX);
        self.heading("figure", &shown.title);
        self.put(&shown.draw(Frame::Fixed(WIDTH)), SIDE, shown.height());
        if let Some(words) = shown.left_out_words() {
            self.heading("tick", &words);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Document, Graph, Kind, Ladder, Run, Rung, Series, Style, Tone, Way};

    #[test]
    fn a_sheet_has_every_figure_and_its_legend() {
        let series = Series::new("cwnd", Style::Line, Tone::Blue, vec![(0.0, 1.0), (5.0, 2.0)]);
        let mut document = Document::new("name", "Why?");
        document
            .runs
            .push(Run { graphs: vec![Graph::new("Window", "y", "kB").with(series)], ..Run::new("r") });
        let svg = document.to_svg();
        for part in [">Why?<", ">Window<", ">cwnd<", ">y, kB<", "<svg xmlns"] {
            assert!(svg.contains(part), "{part}");
        }
    }

    #[test]
    fn a_long_ladder_is_cut() {
        let rung = Rung {
            way: Way::Right,
            kind: Kind::Data,
            left_ms: Some(1.0),
            right_ms: Some(2.0),
            label: "DATA".into(),
            numbers: String::new(),
            said: String::new(),
            detail: String::new(),
            lost_by: None,
        };
        let ladder = Ladder { rungs: vec![rung; 100], left_out: 7, ..Ladder::default() };
        let mut document = Document::new("name", "Why?");
        document.runs.push(Run { ladder: Some(ladder), ..Run::new("r") });
        let svg = document.to_svg();
        assert_eq!(svg.matches(">DATA<").count(), 40);
        assert!(svg.contains(">… and 67 more packets.<"), "{svg}");
    }
}
