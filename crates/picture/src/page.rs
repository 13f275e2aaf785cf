//! The page: one HTML file with its style and script.

use crate::document::{Block, Document, Place, Run, Table, Verdict};
use crate::frame::{Frame, trimmed};
use crate::graph::{Ends, Graph};
use crate::ladder::Ladder;
use crate::markup::{escape, prose};
use crate::series::{Series, Style};
use std::fmt::Write as _;

/// Style of pages and of the book's index.
pub(crate) const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
/// Most points of a quantity whose value is shown for the slider's time; more cannot be
/// distinguished there.
const READ_OUT: usize = 300;

/// Returns the page up to the body.
pub(crate) fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\">\
         <title>{}</title><style>\n{STYLE}</style></head>",
        escape(title)
    )
}

impl Document {
    /// Formats the document as one self-contained HTML file.
    pub fn to_html(&self) -> String {
        html(self)
    }
}

fn html(document: &Document) -> String {
    let end = document.end();
    let mut page = head(&document.title);
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<body data-end=\"{end}\"><header>{}<p class=\"name\">{}</p><h1>{}</h1></header><main>",
        document.place.as_ref().map_or(String::new(), around),
        escape(&document.title),
        escape(&document.question)
    );
    page.push_str("<section class=\"answer\">");
    document.answer.iter().for_each(|block| page.push_str(&self::block(block)));
    page.push_str("</section>");
    if !document.summary.is_empty() {
        page.push_str("<section class=\"summary\">");
        for graph in &document.summary {
            page.push_str(&figure(graph, graph.ends()));
        }
        page.push_str("</section>");
    }
    if end > 0.0 {
        page.push_str(CONTROLS);
        let single = if document.runs.len() == 1 { " single" } else { "" };
        let _ = write!(page, "<section class=\"runs{single}\">");
        document.runs.iter().for_each(|run| page.push_str(&self::run(document, run)));
        page.push_str("</section>");
    }
    let _ = write!(page, "</main><script>\n{SCRIPT}</script></body></html>\n");
    page
}

/// Returns links to the index and the neighbouring pages.
fn around(place: &Place) -> String {
    let mut html =
        String::from("<nav class=\"around\" aria-label=\"Pages\"><a href=\"index.html\">All questions</a>");
    for (page, rel, word) in [(&place.previous, "prev", "Previous"), (&place.next, "next", "Next")] {
        if let Some((file, question)) = page {
            let _ = write!(
                html,
                "<a rel=\"{rel}\" href=\"{}\"><b>{word}:</b> {}</a>",
                escape(file),
                escape(question)
            );
        }
    }
    html + "</nav>"
}

/// The slider and the buttons; hidden without a script.
const CONTROLS: &str = "<nav class=\"controls\" aria-label=\"Time\" hidden>\
    <button type=\"button\" id=\"play\" aria-label=\"Play or pause\">▶</button>\
    <label class=\"slider\"><span>Time</span><input id=\"time\" type=\"range\" min=\"0\" max=\"1000\" value=\"1000\"></label>\
    <output id=\"moment\" for=\"time\"></output>\
    <span class=\"zoom\"><button type=\"button\" id=\"in\" aria-label=\"Zoom in\">+</button>\
    <button type=\"button\" id=\"out\" aria-label=\"Zoom out\">−</button>\
    <button type=\"button\" id=\"back\" aria-label=\"Earlier\">←</button>\
    <button type=\"button\" id=\"on\" aria-label=\"Later\">→</button>\
    <button type=\"button\" id=\"all\">whole</button></span>\
    <p class=\"hint\">Drag a graph to move all of them, Ctrl and the wheel or + and − to zoom, 0 for the whole; click a packet to go to its time.</p></nav>";

fn block(block: &Block) -> String {
    match block {
        Block::Heading(text) => format!("<h2>{}</h2>", prose(text)),
        Block::Text(text) => format!("<p>{}</p>", prose(text)),
        Block::Line(text) => format!("<p class=\"line\">{}</p>", escape(text)),
        Block::Table(table) => self::table(table, &[]),
        Block::Judged(table, held) => judged(table, held),
        Block::Answer(yes, text) => {
            let (class, sign) = if *yes { ("holds", "✓") } else { ("fails", "✗") };
            format!("<p class=\"verdict {class}\"><b>{sign}</b> {}</p>", prose(text))
        }
        Block::Verdict(Verdict { holds, text }) => {
            let (class, word) =
                if *holds { ("holds", "✓ as expected") } else { ("fails", "✗ not as expected") };
            format!("<p class=\"verdict {class}\"><b>{word}</b> {}</p>", prose(text))
        }
    }
}

/// Formats a table, and above it the number of passed rows.
fn judged(table: &Table, held: &[bool]) -> String {
    let (count, missed) = (held.len(), held.iter().filter(|holds| !**holds).count());
    let text = match (count, missed) {
        (1, 0) => "the check passed".to_owned(),
        (2, 0) => "both checks passed".to_owned(),
        (_, 0) => format!("all {count} checks passed"),
        _ => format!("{missed} of {count} checks failed"),
    };
    let verdict = block(&Block::Verdict(Verdict { holds: missed == 0, text }));
    verdict + &self::table(table, held)
}

/// Longest number with its unit, characters.
const NUMBER_MAX: usize = 20;

/// Formats a table, with a verdict per row if `held` has as many.
fn table(table: &Table, held: &[bool]) -> String {
    // A long answer in a column of numbers is text: left-aligned, and wrapped if necessary.
    let fits = |row: &Vec<String>, column: usize| {
        row.get(column).is_none_or(|cell| cell.chars().count() <= NUMBER_MAX)
    };
    let class = |column: usize| match table.columns.get(column) {
        Some((_, true)) if table.rows.iter().all(|row| fits(row, column)) => " class=\"number\"",
        _ => "",
    };
    let is_judged = !held.is_empty();
    // Two columns fit on any page.
    let is_stacked = is_judged || table.columns.len() > 2;
    let kind = match (is_judged, is_stacked) {
        (true, _) => "table judged stacked",
        (false, true) => "table stacked",
        (false, false) => "table",
    };
    let mut html = format!("<div class=\"{kind}\" tabindex=\"0\"><table><thead><tr>");
    if is_judged {
        html.push_str("<th scope=\"col\"><span class=\"unseen\">as expected</span></th>");
    }
    for (column, (name, _)) in table.columns.iter().enumerate() {
        let _ = write!(html, "<th scope=\"col\"{}>{}</th>", class(column), prose(name));
    }
    html.push_str("</tr></thead><tbody>");
    for (number, row) in table.rows.iter().enumerate() {
        html.push_str("<tr>");
        html.push_str(match held.get(number) {
            Some(true) => "<td class=\"holds\"><b title=\"as expected\">✓</b></td>",
            Some(false) => "<td class=\"fails\"><b title=\"not as expected\">✗</b></td>",
            None => "",
        });
        for (column, (name, _)) in table.columns.iter().enumerate() {
            let cell = row.get(column).map_or("", String::as_str);
            // On a page too narrow for columns, each cell except a title starts with the name of
            // its column.
            let is_title = column == 0 && class(column).is_empty();
            let is_named = is_stacked && !is_title && !name.is_empty();
            let named = if is_named { format!(" data-name=\"{}\"", escape(name)) } else { String::new() };
            let _ = write!(html, "<td{}{named}>{}</td>", class(column), prose(cell));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    html
}

fn run(document: &Document, run: &Run) -> String {
    let heading = if run.name.is_empty() { String::new() } else { format!("<h2>{}</h2>", prose(&run.name)) };
    let mut html = format!("<section class=\"run\">{heading}");
    if !document.is_whole(run) && !run.graphs.is_empty() {
        html.push_str("<p class=\"hint\">This run is so short that it has its own time axis.</p>");
    }
    html.push_str("<div class=\"figures\">");
    for graph in &run.graphs {
        html.push_str(&figure(graph, document.ends(run, graph)));
    }
    if let Some(ladder) = &run.ladder {
        html.push_str(&ladder_figure(ladder));
    }
    html.push_str("</div></section>");
    html
}

fn figure(graph: &Graph, ends: Ends) -> String {
    let end = ends.right;
    let mut html = format!("<figure class=\"graph\"><figcaption><b>{}</b>", escape(&graph.title));
    if !graph.note.is_empty() {
        let _ = write!(html, " <span>{}</span>", escape(&graph.note));
    }
    html.push_str("</figcaption>");
    let over_time = if graph.over_time { format!(" data-end=\"{end}\"") } else { String::new() };
    let _ = write!(
        html,
        "<svg class=\"chart\" height=\"{}\" role=\"img\" tabindex=\"0\" aria-label=\"{}\"{over_time}>{}</svg>",
        graph.height(),
        escape(&spoken(graph, end)),
        graph.draw(Frame::Fluid, ends)
    );
    html.push_str("<ul class=\"legend\">");
    for series in &graph.series {
        let _ = write!(html, "<li>{}{}<output></output></li>", swatch(series), escape(&graph.legend(series)));
    }
    html.push_str("</ul>");
    if graph.over_time {
        html.push_str(&values(graph, ends));
    }
    html.push_str("</figure>");
    html
}

fn spoken(graph: &Graph, end: f64) -> String {
    let names: Vec<&str> = graph.series.iter().map(|series| series.name.as_str()).collect();
    format!("{}: {} over {}", graph.title, names.join(", "), graph.x_axis(end).1)
}

/// Draws a small sample of the series for the legend.
fn swatch(series: &Series) -> String {
    let (kind, d) = match series.style {
        Style::Step | Style::Line => ("line", "M1 6H21"),
        Style::Dots => ("dots", "M11 6h0.01"),
        Style::Crosses => ("crosses", "M11 6h0.01"),
        Style::Bars => ("bars", "M11 1V11"),
        Style::Spans => ("spans", "M3 6H19"),
    };
    let dashed = if series.dashed { " dashed" } else { "" };
    format!(
        "<svg class=\"swatch\" width=\"22\" height=\"12\" aria-hidden=\"true\"><path class=\"{kind}{dashed} {}\" d=\"{d}\"/></svg>",
        series.tone.class()
    )
}

/// Returns the data that the script shows for the slider's time: the points of each series with at
/// most one value at a time.
fn values(graph: &Graph, ends: Ends) -> String {
    let one = graph.y_unit(ends.top).0;
    let series = graph.series.iter().map(|series| {
        if !matches!(series.style, Style::Step | Style::Line) || !series.is_one_line() {
            return "[]".to_owned();
        }
        let thin = series.thinned(ends.right, READ_OUT);
        let value = |y: f64| if y.is_nan() { "null".to_owned() } else { trimmed(y / one) };
        let points = thin.points.iter().map(|(x, y)| format!("[{},{}]", trimmed(*x), value(*y)));
        format!("[{}]", points.collect::<Vec<_>>().join(","))
    });
    format!("<script type=\"application/json\">[{}]</script>", series.collect::<Vec<_>>().join(","))
}

fn ladder_figure(ladder: &Ladder) -> String {
    let mut html = format!(
        "<figure class=\"ladder\"><figcaption><b>{}</b></figcaption><ul class=\"legend\">",
        escape(&ladder.title)
    );
    for kind in ladder.kinds() {
        let _ = write!(
            html,
            "<li><svg class=\"swatch\" width=\"22\" height=\"12\" aria-hidden=\"true\"><g class=\"rung {}\">\
             <line class=\"arrow\" x1=\"1\" x2=\"21\" y1=\"6\" y2=\"6\"/></g></svg>{}</li>",
            kind.class(),
            kind.name()
        );
    }
    let _ = write!(
        html,
        "<li>times in ms</li></ul><div class=\"rungs\"><svg class=\"packets\" height=\"{}\">{}</svg></div>",
        ladder.height(),
        ladder.draw(Frame::Fluid)
    );
    if let Some(words) = ladder.left_out_words() {
        let _ = write!(html, "<p class=\"more\">{words}</p>");
    }
    html.push_str("<p class=\"detail\" aria-live=\"polite\"></p></figure>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tone;

    #[test]
    fn a_page_stands_alone() {
        let series = Series::new("a<b", Style::Step, Tone::Blue, vec![(0.0, 1.0), (5.0, 2.0)]);
        let mut document = Document::new("name", "Why?");
        document.runs.push(Run { graphs: vec![Graph::new("g", "y", "kB").with(series)], ..Run::new("r") });
        document.answer.push(Block::Verdict(Verdict { holds: true, text: "it is so".into() }));
        let html = document.to_html();
        for part in ["<h1>Why?</h1>", "a&lt;b", "[[[0,1],[5,2]]]", "✓ as expected", "data-end=\"5\""] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("http://") && !html.contains("https://"), "nothing is fetched");
    }

    #[test]
    fn an_answer_says_nothing_of_expectations() {
        let mut document = Document::new("name", "Does it work?");
        document.answer.push(Block::Answer(false, "no: nobody answers".into()));
        let html = document.to_html();
        assert!(html.contains("<b>✗</b> no: nobody answers"), "{html}");
        assert!(!html.contains("as expected"), "{html}");
    }

    #[test]
    fn a_column_with_a_long_answer_is_no_column_of_numbers() {
        let html = |cell: &str| {
            let columns = vec![("what".to_owned(), false), ("here".to_owned(), true)];
            table(&Table { columns, rows: vec![vec!["time".into(), cell.into()]] }, &[])
        };
        assert!(html("340 ms").contains("<td class=\"number\">340 ms"));
        assert!(html("80.0 ms, 80.0 ms, 80.0 ms").contains("<td>80.0 ms, 80.0 ms"));
    }

    #[test]
    fn each_figure_has_its_verdict_and_the_table_their_sum() {
        let columns = ["what", "here"].map(|name| (name.to_owned(), false)).to_vec();
        let rows = vec![vec!["one".into(), "1".into()], vec!["two".into(), "3".into()]];
        let html = block(&Block::Judged(Table { columns, rows }, vec![true, false]));
        for part in [
            "✗ not as expected</b> 1 of 2 checks failed",
            "title=\"as expected\">✓",
            "title=\"not as expected\">✗",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn a_page_of_a_book_leads_to_its_neighbours() {
        let next = Some(("two.html".to_owned(), "And then?".to_owned()));
        let place = Some(Place { previous: None, next });
        let html = Document { place, ..Document::new("one", "Why?") }.to_html();
        assert!(
            html.contains("href=\"index.html\"") && html.contains("href=\"two.html\"><b>Next:</b> And then?")
        );
        assert!(
            !html.contains("rel=\"prev\"") && !Document::new("one", "Why?").to_html().contains("index.html")
        );
    }

    #[test]
    fn a_page_without_times_has_no_slider() {
        assert!(!Document::new("name", "Why?").to_html().contains("id=\"time\""));
    }
}
