//! A book: an index of pages, by chapter.

use crate::markup::{escape, prose};
use crate::page::head;
use std::fmt::Write as _;

/// Pages about one subject.
#[derive(Clone, Debug, Default)]
pub struct Chapter {
    /// The subject.
    pub title: String,
    /// Pages in reading order.
    pub leaves: Vec<Leaf>,
}

/// A page of the book.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// File name of the page, beside the index.
    pub file: String,
    /// Its name.
    pub name: String,
    /// The question that the page answers.
    pub question: String,
    /// Whether all checks passed; `None` without checks.
    pub holds: Option<bool>,
    /// The answer in one line.
    pub answer: String,
}

/// Formats the index as HTML.
pub fn book(title: &str, preface: &str, chapters: &[Chapter]) -> String {
    let mut html = head(title);
    // Writing to a string cannot fail.
    let _ = write!(
        html,
        "<body><header><h1>{}</h1><p>{}</p></header><main class=\"book\">",
        escape(title),
        escape(preface)
    );
    html.push_str("<nav aria-label=\"Chapters\"><ul class=\"chapters\">");
    for (number, chapter) in chapters.iter().enumerate() {
        let count = chapter.leaves.len();
        let _ = write!(html, "<li><a href=\"#c{number}\">{}</a> ({count})</li>", escape(&chapter.title));
    }
    html.push_str("</ul></nav>");
    for (number, chapter) in chapters.iter().enumerate() {
        let _ = write!(html, "<section id=\"c{number}\"><h2>{}</h2><ol>", escape(&chapter.title));
        for leaf in &chapter.leaves {
            let mark = match leaf.holds {
                Some(true) => "<b class=\"holds\" title=\"as expected\">✓</b> ",
                Some(false) => "<b class=\"fails\" title=\"not as expected\">✗</b> ",
                None => "",
            };
            let _ = write!(
                html,
                "<li><a href=\"{}\">{}</a> <span class=\"name\">{}</span><p>{mark}{}</p></li>",
                escape(&leaf.file),
                escape(&leaf.question),
                escape(&leaf.name),
                prose(&leaf.answer)
            );
        }
        html.push_str("</ol></section>");
    }
    html.push_str("</main></body></html>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_links_its_pages() {
        let leaf = Leaf {
            file: "packets.html".into(),
            name: "packets".into(),
            question: "How many?".into(),
            holds: Some(true),
            answer: "four".into(),
        };
        let html = book("Lab", "Read me.", &[Chapter { title: "One".into(), leaves: vec![leaf] }]);
        assert!(html.contains("<a href=\"packets.html\">How many?</a>") && html.contains("✓"));
        assert!(html.contains("<a href=\"#c0\">One</a> (1)") && html.contains("<section id=\"c0\">"));
    }
}
