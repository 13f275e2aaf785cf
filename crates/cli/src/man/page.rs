//! One manual page, from the definition of a verb.
//!
//! clap_mangen writes names, descriptions and options. The rest is arranged here: the synopsis of
//! `--help`, and the text below its options, in the sections that man(7) names for it.
use super::sections::{Extra, extra};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::io;

/// A page of section 1.
pub(super) struct Page {
    file_name: String,
    text: String,
}

impl Page {
    /// Returns the page of `command`, which was built.
    pub(super) fn of(command: &Command) -> Page {
        let man = Man::new(titled(command)).manual("Firstbyte Manual").source(SOURCE);
        let file_name = man.get_filename();
        let mut text = Vec::new();
        // Writing into memory cannot fail.
        let _ = write(&man, command, &mut text);
        Page { file_name, text: String::from_utf8_lossy(&text).into_owned() }
    }

    /// The name of its file, such as `firstbyte-get.1`.
    pub(super) fn file_name(&self) -> &str {
        &self.file_name
    }

    /// The page in the language of man(7).
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

const SOURCE: &str = concat!("firstbyte ", env!("CARGO_PKG_VERSION"));

/// Gives a command the synopsis of its `--help`, and its arguments a section of their own. By
/// default the synopsis would list every option a second time.
fn titled(command: &Command) -> Command {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    let forms: Vec<&str> = usage.trim_start_matches("Usage:").lines().map(str::trim).collect();
    command.override_usage(forms.join("\n")).mut_args(|argument| {
        let is_bare = argument.is_positional() && argument.get_help_heading().is_none();
        if is_bare { argument.help_heading("Arguments") } else { argument }
    })
}

fn write(man: &Man, command: &Command, out: &mut Vec<u8>) -> io::Result<()> {
    man.render_title(out)?;
    // No hyphens and no wide gaps: readers copy names and options from the page.
    let mut layout = Roff::default();
    layout.control("nh", []).control("ad", ["l"]);
    layout.to_writer(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    let has_options = command.get_arguments().any(|argument| !argument.is_hide_set());
    if has_options {
        man.render_options_section(out)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    let help = command.get_after_long_help().or(command.get_after_help());
    let below = Below::of(&help.map(ToString::to_string).unwrap_or_default());
    let extra = extra(name);
    let mut rest = Roff::default();
    verbs(&mut rest, command);
    section(&mut rest, "NOTES", &below.notes);
    exit_status(&mut rest, &below.exit);
    privileges(&mut rest, &extra);
    items(&mut rest, "ENVIRONMENT", extra.environment);
    items(&mut rest, "FILES", extra.files);
    section(&mut rest, "EXAMPLES", &below.examples);
    see_also(&mut rest, name);
    rest.to_writer(out)
}

/// The text below the options of `--help`, by section. A block ends at an empty line.
#[derive(Default)]
struct Below {
    examples: Vec<String>,
    exit: Vec<String>,
    notes: Vec<String>,
}

impl Below {
    fn of(help: &str) -> Below {
        let mut below = Below::default();
        for block in help.split("\n\n").map(str::trim_end).filter(|block| !block.trim().is_empty()) {
            let is_example = block.lines().any(|line| line.starts_with(INDENT));
            let section = match block {
                block if block.starts_with(EXIT) => &mut below.exit,
                _ if is_example => &mut below.examples,
                _ => &mut below.notes,
            };
            section.push(block.to_owned());
        }
        below
    }
}

/// The begin of a line that is typed or printed.
const INDENT: &str = "  ";

/// The begin of the block about exit codes.
const EXIT: &str = "Exit codes: ";

/// Exit codes of a verb whose help lists none.
const EXIT_STATUS: &str = "0 if the job was done, 1 if it failed, 2 if the arguments are wrong.";

/// Writes one item for each exit code of `1 the job failed, 2 wrong arguments`.
fn exit_status(roff: &mut Roff, blocks: &[String]) {
    let stated: Vec<&str> = blocks.iter().filter_map(|block| block.strip_prefix(EXIT)).collect();
    let stated = if stated.is_empty() { EXIT_STATUS.to_owned() } else { stated.join(" ") };
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in codes(&stated) {
        roff.control("TP", ["4"]);
        roff.text([bold(code)]);
        roff.text([roman(meaning)]);
    }
}

/// Splits the text where a digit follows a comma or a semicolon.
fn codes(stated: &str) -> Vec<(String, String)> {
    let mut codes: Vec<(String, String)> = Vec::new();
    for part in stated.split_inclusive([',', ';']) {
        match part.trim_start().split_once(' ') {
            Some((code, meaning)) if code.chars().all(|c| c.is_ascii_digit()) => {
                codes.push((code.to_owned(), meaning.to_owned()));
            }
            _ => match codes.last_mut() {
                Some((_, meaning)) => meaning.push_str(part),
                None => codes.push((String::new(), part.to_owned())),
            },
        }
    }
    for (_, meaning) in &mut codes {
        let text = meaning.trim().trim_end_matches([',', ';', '.']).split_whitespace();
        *meaning = text.collect::<Vec<_>>().join(" ") + ".";
    }
    codes
}

/// Writes blocks of text. Indented lines keep their form.
fn section(roff: &mut Roff, title: &str, blocks: &[String]) {
    if blocks.is_empty() {
        return;
    }
    roff.control("SH", [title]);
    for (number, block) in blocks.iter().enumerate() {
        if number > 0 {
            roff.control("PP", []);
        }
        let mut is_literal = false;
        for line in block.lines() {
            let indented = line.strip_prefix(INDENT);
            if indented.is_some() != is_literal {
                is_literal = !is_literal;
                let calls: &[&str] = if is_literal { &["PP", "RS", "nf"] } else { &["fi", "RE", "PP"] };
                calls.iter().for_each(|call| _ = literal(roff, call));
            }
            // A heading such as "Example:" repeats the section's title.
            if HEADINGS.contains(&line) {
                continue;
            }
            roff.text([roman(indented.unwrap_or(line))]);
        }
        if is_literal {
            ["fi", "RE"].iter().for_each(|call| _ = literal(roff, call));
        }
    }
}

const HEADINGS: [&str; 2] = ["Example:", "Examples:"];

fn literal<'a>(roff: &'a mut Roff, call: &str) -> &'a mut Roff {
    match call {
        "RS" => roff.control("RS", ["4"]),
        call => roff.control(call, []),
    }
}

fn verbs(roff: &mut Roff, command: &Command) {
    let mut verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).peekable();
    if verbs.peek().is_none() {
        return;
    }
    roff.control("SH", ["COMMANDS"]);
    for verb in verbs {
        roff.control("TP", []);
        roff.text(page_name(verb));
        roff.text([roman(verb.get_about().map(ToString::to_string).unwrap_or_default())]);
    }
}

/// The name of a page as other pages write it.
fn page_name(command: &Command) -> Vec<Inline> {
    vec![bold(command.get_display_name().unwrap_or(command.get_name())), roman("(1)")]
}

fn privileges(roff: &mut Roff, extra: &Extra) {
    if let Some(text) = extra.privileges {
        section(roff, "PRIVILEGES", &[text.to_owned()]);
    }
}

fn items(roff: &mut Roff, title: &str, items: &[(&str, &str)]) {
    if items.is_empty() {
        return;
    }
    roff.control("SH", [title]);
    for (name, text) in items {
        roff.control("TP", []);
        roff.text([bold(*name)]);
        roff.text([roman(*text)]);
    }
}

/// Names the page above and the pages beside this one that help its reader.
fn see_also(roff: &mut Roff, name: &str) {
    let mut names: Vec<String> = Vec::new();
    if let Some((above, _)) = name.rsplit_once('-') {
        names.push(above.to_owned());
    }
    names.extend(extra(name).see_also.iter().map(|name| (*name).to_owned()));
    if names.is_empty() {
        return;
    }
    roff.control("SH", ["SEE ALSO"]);
    let last = names.len().saturating_sub(1);
    let mut line = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        let (name, section) = match name.split_once('(') {
            Some((name, section)) => (name.to_owned(), format!("({section}")),
            None => (name, "(1)".to_owned()),
        };
        line.push(bold(name));
        line.push(roman(if number == last { section } else { section + ", " }));
    }
    roff.text(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_become_items() {
        let item = |code: &str, meaning: &str| (code.to_owned(), meaning.to_owned());
        assert_eq!(
            codes("0 nothing above info, 1 a warning, 2 something\ncritical; 3 no report, wrong arguments."),
            [
                item("0", "nothing above info."),
                item("1", "a warning."),
                item("2", "something critical."),
                item("3", "no report, wrong arguments."),
            ]
        );
        assert_eq!(codes("as of curl"), [item("", "as of curl.")]);
    }

    #[test]
    fn text_below_the_options_is_sorted_into_sections() {
        let below = Below::of("Example:\n  firstbyte bdp 1gbit 20ms\n\nA note.\n\nExit codes: 0 done.");
        assert_eq!(below.examples, ["Example:\n  firstbyte bdp 1gbit 20ms"]);
        assert_eq!(
            (below.notes, below.exit),
            (vec!["A note.".to_owned()], vec!["Exit codes: 0 done.".to_owned()])
        );
    }
}
