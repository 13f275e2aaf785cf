//! Checks the examples that are not commands: TOML, C, Python, JSON and YAML.

use crate::page::{Block, Page};
use std::path::Path;
use std::process::Command;

/// Languages of blocks. Rust is compiled as documentation tests; the last ones are only shown.
const LANGUAGES: [&str; 12] =
    ["console", "rust", "toml", "c", "python", "json", "text", "nginx", "yaml", "ini", "haproxy", "sh"];

/// Problems of a page's examples.
pub(crate) fn check(page: &Page, programs: &Path) -> Vec<String> {
    let checked = page.blocks.iter().filter(|block| block.needs.shown.is_none() && !block.needs.is_excerpt);
    let problems = checked.filter_map(|block| {
        let problem = check_block(block, programs).err()?;
        Some(format!("{}:{}: {problem}", page.name, block.line))
    });
    problems.collect()
}

fn check_block(block: &Block, programs: &Path) -> Result<(), String> {
    let text = block.text();
    if let Some(name) = &block.needs.example {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join(name);
        let example = std::fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        if example != text {
            return Err(format!("the block differs from {name}: copy the file into the page"));
        }
    }
    match block.language.as_str() {
        "toml" => check_toml(&text, programs),
        "c" => compile(&text),
        "python" => {
            given(Command::new("python3").args(["-c", "import ast, sys; ast.parse(sys.stdin.read())"]), &text)
        }
        "json" => {
            serde_json::from_str::<serde_json::Value>(&text).map(drop).map_err(|error| error.to_string())
        }
        "sh" if block.needs.file.is_none() => {
            Err("commands belong into a `console` block; a script needs `<!-- test: file NAME -->`"
                .to_owned())
        }
        language if LANGUAGES.contains(&language) => Ok(()),
        language => Err(format!("unknown language `{language}`: expected one of {}", LANGUAGES.join(", "))),
    }
}

/// A scenario runs, and its checks pass; any other file parses.
fn check_toml(text: &str, programs: &Path) -> Result<(), String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    if !table.contains_key("run") && !table.contains_key("path") {
        return Ok(());
    }
    let file = tempfile::Builder::new().suffix(".toml").tempfile().map_err(|error| error.to_string())?;
    std::fs::write(file.path(), text).map_err(|error| error.to_string())?;
    given(Command::new(programs.join("firstbyte")).args(["lab", "run"]).arg(file.path()), "")
}

/// Statements without a `main` are compiled as the body of one.
fn compile(text: &str) -> Result<(), String> {
    let text = match text.contains("main(") {
        true => text.to_owned(),
        false => {
            let (includes, body): (Vec<&str>, Vec<&str>) =
                text.lines().partition(|line| line.starts_with("#include"));
            let usual = "#define _GNU_SOURCE\n#include <firstbyte.h>\n#include <arpa/inet.h>\n#include <netinet/in.h>\n\
                         #include <netinet/tcp.h>\n#include <string.h>\n#include <unistd.h>\n";
            format!("{usual}{}\nint main(void) {{\n{}\nreturn 0;\n}}\n", includes.join("\n"), body.join("\n"))
        }
    };
    if !testnet::has_program("cc") {
        eprintln!("SKIPPED: needs cc");
        return Ok(());
    }
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../capi/include");
    let options =
        ["-std=gnu11", "-Wall", "-Werror", "-Wno-unused", "-fsyntax-only", "-x", "c", "-I", include, "-"];
    given(Command::new("cc").args(options), &text)
}

/// Runs a program with this input; an error is what it printed.
fn given(command: &mut Command, input: &str) -> Result<(), String> {
    let mut file = tempfile::tempfile().map_err(|error| error.to_string())?;
    std::io::Write::write_all(&mut file, input.as_bytes()).map_err(|error| error.to_string())?;
    std::io::Seek::rewind(&mut file).map_err(|error| error.to_string())?;
    let output = command.stdin(file).output().map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err([output.stdout, output.stderr]
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .concat()),
    }
}
