//! Planted violations, and texts that only look like some.

use super::prose::Language;
use super::*;

/// The violations of a file, as `LINE: MESSAGE [AREA]`.
fn found(name: &str, text: &str) -> Vec<String> {
    let language = Language::of(name).unwrap();
    let found = check_text(name, language, text);
    found.iter().map(|found| format!("{}: {} [{}]", found.place, found.message, found.area)).collect()
}

#[test]
fn a_banned_word_in_a_message_is_found() {
    let text = "//! A verb.\nfn a() {\n    println!(\"it is sent \\\n         in vain\");\n}\n";
    assert_eq!(
        found("crates/cli/src/a.rs", text),
        ["crates/cli/src/a.rs:4: `in vain`: without success [crates/cli texts]"]
    );
}

#[test]
fn a_doc_comment_that_starts_with_what_is_found() {
    let public = "/// What is sent.\n#[derive(Debug)]\npub struct A;\n";
    let internal = "/// What is sent.\nstruct A;\n";
    let message = "doc comment starts with `What`: name the thing, or start with a verb";
    let name = "crates/wire/src/a/b.rs";
    assert_eq!(found(name, public), [format!("{name}:1: {message} [crates/wire public]")]);
    assert_eq!(found(name, internal), [format!("{name}:1: {message} [crates/wire internal]")]);
}

#[test]
fn a_line_of_101_columns_is_found() {
    let line = |columns: usize| format!("{}\n", "word ".repeat(30).get(..columns).unwrap().replace(' ', "-"));
    assert_eq!(found("docs/a.md", &line(101)), ["docs/a.md:1: 101 columns, at most 100 [docs/a.md pages]"]);
    assert_eq!(found("docs/a.md", &line(100)), [""; 0]);
    let comment = |columns: usize| format!("fn a() {{\n    // {}", line(columns));
    assert_eq!(found("bare/src/main.rs", &comment(94)).len(), 1);
    assert_eq!(found("bare/src/main.rs", &comment(93)).len(), 0);
}

#[test]
fn a_long_cell_of_a_table_is_found() {
    let row = |length: usize| format!("| a | {} |\n", "b".repeat(length));
    let message = "docs/a.md:1: table cell of 201 characters, at most 200 [docs/a.md pages]";
    assert_eq!(found("docs/a.md", &row(201)), [message]);
    assert_eq!(found("docs/a.md", &row(200)), [""; 0]);
}

#[test]
fn phrases_are_found_across_lines() {
    let text = "//! A part, most of\n//! which is code.\n";
    assert_eq!(
        found("crates/wire/src/a/b.rs", text),
        ["crates/wire/src/a/b.rs:1: `of which`: name the thing, or whose [crates/wire internal]"]
    );
}

#[test]
fn variants_of_public_enums_are_public() {
    let text = "pub enum A {\n    /// As sent.\n    B,\n}\nenum C {\n    /// As sent.\n    D,\n}\n";
    let areas: Vec<String> = check_text("crates/wire/src/a/b.rs", Language::Rust, text)
        .into_iter()
        .map(|found| found.area)
        .collect();
    assert_eq!(areas, ["crates/wire public", "crates/wire internal"]);
}

#[test]
fn clean_texts_are_not_found() {
    let rust = "/// Asks the peer; commends and recommends nothing.\npub fn a() {\n    \
                // See `mended` and `of which`, mended.txt, --mend, fix_mended, https://a.org/mend.\n    \
                println!(\"`mend` {}\", \"mended\");\n}\n\n/// Official `What`.\npub struct B;\n\
                //# The sender for whom the segment is meant.\n";
    assert_eq!(found("crates/cli/src/a.rs", rust), [""; 0]);
    let page = format!(
        "A page.\n\n```\nmend this line of the code, {0}\n```\n\n> For whom the bell tolls\n\n    indented {0}\n\n\
         See <https://example.org/{1}>\n| cell | cell |\n",
        "long ".repeat(30),
        "x".repeat(100)
    );
    assert_eq!(found("docs/a.md", &page), [""; 0]);
    assert_eq!(found("crates/lab/src/a.rs", "fn a() { b(\"one\") }\n// said, \"sent\"\n"), [""; 0]);
}

#[test]
fn comments_of_toml_scripts_and_c_are_read() {
    assert_eq!(found("crates/lab/scenarios/a.toml", "question = \"In vain?\"\n").len(), 1);
    assert_eq!(found("crates/lab/scenarios/a.toml", "a = 1 # in vain\n").len(), 1);
    assert_eq!(found("crates/script/scripts/a.pkt", "// In vain.\n0 socket() = 3\n").len(), 1);
    assert_eq!(found("crates/capi/include/a.h", "/* A\n * lone line. */\nint mend;\n").len(), 1);
}
