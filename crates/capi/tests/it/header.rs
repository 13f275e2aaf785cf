//! The header declares the exported calls, in C and in C++.

use crate::compile::{folder, library, succeed};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Command;

fn header() -> String {
    std::fs::read_to_string(folder().join("include/firstbyte.h")).unwrap()
}

/// Returns the text without comments.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").expect("comments end").1;
    }
    code + rest
}

/// Returns the declared names, without the functions that the header defines.
fn declared(code: &str) -> BTreeSet<String> {
    let inline: Vec<&str> =
        code.split("static inline int ").skip(1).filter_map(|at| at.split('(').next()).collect();
    let names = code.split("fb_").skip(1).filter_map(|at| {
        let (name, _) = at.split_once('(')?;
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then(|| format!("fb_{name}"))
    });
    names.filter(|name| !inline.contains(&name.as_str())).collect()
}

#[test]
fn the_header_declares_what_the_library_exports_and_nothing_else() {
    let listed =
        succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(library().join("libfirstbyte.so")));
    let exported: BTreeSet<String> =
        listed.lines().filter_map(|line| Some(line.split_whitespace().nth(2)?.to_owned())).collect();
    let declared = declared(&code(&header()));
    assert!(declared.len() > 30, "{declared:?}");
    assert_eq!(declared, exported);
}

/// A program that is linked now finds the library of each later version with the same interface.
#[test]
fn the_shared_library_has_a_soname() {
    let dynamic = succeed(Command::new("readelf").arg("-d").arg(library().join("libfirstbyte.so")));
    assert!(dynamic.contains("Library soname: [libfirstbyte.so.0]"), "{dynamic}");
}

#[test]
fn the_header_stands_alone_in_c_and_in_cpp() {
    let compile = |compiler: &str, language: &[&str]| {
        let mut command = Command::new(compiler);
        command.args(language).args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]);
        succeed(command.arg("-include").arg(folder().join("include/firstbyte.h")).arg("/dev/null"));
    };
    compile("cc", &["-xc", "-std=c11"]);
    compile("cc", &["-xc", "-std=c99"]);
    if testnet::has_program("g++") {
        compile("g++", &["-xc++", "-std=c++11"]);
        compile("g++", &["-xc++", "-std=c++20"]);
    } else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs g++: the header in C++");
    }
}
