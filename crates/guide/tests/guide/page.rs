//! Parses a page of the guide into blocks, and a console block into commands with their output.

use std::ops::Range;
use std::path::Path;

/// One Markdown file.
pub(crate) struct Page {
    /// Path from the root of the project.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
}

/// A fenced block.
pub(crate) struct Block {
    /// The first word after the fence.
    pub(crate) language: String,
    /// Line of the fence, counted from 1.
    pub(crate) line: usize,
    pub(crate) needs: Needs,
    pub(crate) lines: Vec<String>,
}

/// Directives in comments before a block: `<!-- test: root, exit 1 -->`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Needs {
    /// Privileges of root, which commands after `# ` need anyway.
    pub(crate) is_root: bool,
    /// A network namespace of its own.
    pub(crate) is_namespaced: bool,
    /// Programs.
    pub(crate) programs: Vec<String>,
    /// Files of `tests/setups` to start first.
    pub(crate) setups: Vec<String>,
    /// Reason not to run it.
    pub(crate) shown: Option<String>,
    /// Exit code of its last command.
    pub(crate) exit: i32,
    /// Name of the file to write the block into.
    pub(crate) file: Option<String>,
    /// Keeps running until the page ends; ready once the expected output has appeared.
    pub(crate) is_background: bool,
    /// Port that a background program listens on once it is ready.
    pub(crate) port: Option<u16>,
    /// Begins in a namespace of its own, without what earlier blocks started.
    pub(crate) is_fresh: bool,
    /// Ends the background programs first.
    pub(crate) is_stop: bool,
    /// File of the project that the block must equal.
    pub(crate) example: Option<String>,
    /// Skips the checks of its language; it is an excerpt.
    pub(crate) is_excerpt: bool,
}

/// A command of a console block.
pub(crate) struct Step {
    /// Line of the command, counted from 1.
    pub(crate) line: usize,
    pub(crate) is_root: bool,
    pub(crate) command: String,
    pub(crate) expected: Vec<String>,
    /// Expected lines within the block's.
    pub(crate) range: Range<usize>,
}

impl Page {
    pub(crate) fn read(root: &Path, name: &str) -> Result<Page, String> {
        let text = std::fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))?;
        Page::parse(name, text)
    }

    pub(crate) fn parse(name: &str, text: String) -> Result<Page, String> {
        let mut blocks = Vec::new();
        let mut needs = Needs::default();
        let mut open: Option<Block> = None;
        for (at, line) in text.lines().enumerate() {
            let here = |problem: String| format!("{name}:{}: {problem}", at + 1);
            if let Some(block) = &mut open {
                if line.starts_with("```") {
                    blocks.extend(open.take());
                } else {
                    block.lines.push(line.to_owned());
                }
            } else if let Some(info) = line.strip_prefix("```") {
                let language = info.split([',', ' ']).next().unwrap_or_default().to_owned();
                let needs = std::mem::take(&mut needs);
                open = Some(Block { language, line: at + 1, needs, lines: Vec::new() });
            } else if line.trim_start().starts_with("```") {
                return Err(here("a fence must begin in the first column".to_owned()));
            } else if let Some(words) = line.trim().strip_prefix("<!-- test:") {
                let words =
                    words.strip_suffix("-->").ok_or_else(|| here("a directive is one line".to_owned()))?;
                words.split(',').try_for_each(|word| needs.add(word.trim())).map_err(here)?;
            } else if !line.trim().is_empty() && needs != Needs::default() {
                return Err(here("a directive must stand before a block".to_owned()));
            }
        }
        match open {
            Some(block) => Err(format!("{name}:{}: the block does not end", block.line)),
            None => Ok(Page { name: name.to_owned(), text, blocks }),
        }
    }
}

impl Needs {
    fn add(&mut self, directive: &str) -> Result<(), String> {
        let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        let words = || rest.split_whitespace().map(str::to_owned);
        match word {
            "root" => (self.is_root, self.is_namespaced) = (true, true),
            "netns" => self.is_namespaced = true,
            "needs" => self.programs.extend(words()),
            "setup" => {
                self.setups.extend(words());
                self.is_namespaced = true;
            }
            "show" if !rest.is_empty() => self.shown = Some(rest.to_owned()),
            "show" => return Err("`show` needs a reason".to_owned()),
            "exit" => self.exit = rest.parse().map_err(|_| format!("`exit {rest}`: expected a number"))?,
            "file" if !rest.is_empty() && !rest.contains('/') => self.file = Some(rest.to_owned()),
            "background" => self.is_background = true,
            "port" => self.port = Some(rest.parse().map_err(|_| format!("`port {rest}`: expected a port"))?),
            "stop" => self.is_stop = true,
            "fresh" => (self.is_fresh, self.is_namespaced) = (true, true),
            "example" if !rest.is_empty() => self.example = Some(rest.to_owned()),
            "excerpt" => self.is_excerpt = true,
            _ => return Err(format!("unknown directive `{directive}`")),
        }
        Ok(())
    }
}

impl Block {
    /// Commands of a console block. A line that ends in `\` continues on the next.
    pub(crate) fn steps(&self) -> Result<Vec<Step>, String> {
        let mut steps: Vec<Step> = Vec::new();
        let mut lines = self.lines.iter().enumerate();
        while let Some((at, line)) = lines.next() {
            let prompt = line.strip_prefix("$ ").map(|rest| (rest, false));
            let Some((rest, is_root)) = prompt.or(line.strip_prefix("# ").map(|rest| (rest, true))) else {
                let step = steps.last_mut().ok_or("a console block must begin with `$ ` or `# `")?;
                step.expected.push(line.clone());
                step.range.end = at + 1;
                continue;
            };
            let (mut command, mut end) = (rest.to_owned(), at + 1);
            while command.ends_with('\\') {
                let (next, line) = lines.next().ok_or("the command continues beyond the block")?;
                command = format!("{command}\n{line}");
                end = next + 1;
            }
            let line = self.line + 1 + at;
            steps.push(Step { line, is_root, command, expected: Vec::new(), range: end..end });
        }
        Ok(steps)
    }

    pub(crate) fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line, "\n"]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read() {
        let text = "# Title\n\n<!-- test: root, exit 2 -->\n<!-- test: needs curl ip -->\n\n```console\n$ a \\\n  b\nout\n…\n# c\n```\n\
                    ```rust,no_run\nfn main() {}\n```\n";
        let page = Page::parse("page.md", text.to_owned()).unwrap();
        let [console, rust] = &page.blocks[..] else { panic!("two blocks") };
        assert_eq!((console.line, console.language.as_str(), rust.language.as_str()), (6, "console", "rust"));
        assert!(console.needs.is_root && console.needs.exit == 2 && console.needs.programs == ["curl", "ip"]);
        assert_eq!(rust.needs, Needs::default());
        let steps = console.steps().unwrap();
        let [first, second] = &steps[..] else { panic!("two commands") };
        assert_eq!((first.line, first.command.as_str(), first.is_root), (7, "a \\\n  b", false));
        assert_eq!((first.expected.join("|"), first.range.clone()), ("out|…".to_owned(), 2..4));
        assert_eq!((second.line, second.command.as_str(), second.is_root), (11, "c", true));
    }

    #[test]
    fn mistakes_are_found() {
        for (text, problem) in [
            ("<!-- test: roott -->\n", "page.md:1: unknown directive `roott`"),
            ("<!-- test: show -->\n", "page.md:1: `show` needs a reason"),
            ("<!-- test: root -->\nText\n", "page.md:2: a directive must stand before a block"),
            ("```console\n", "page.md:1: the block does not end"),
            ("- a\n  ```console\n", "page.md:2: a fence must begin in the first column"),
        ] {
            assert_eq!(Page::parse("page.md", text.to_owned()).err().unwrap(), problem);
        }
        let page = Page::parse("page.md", "```console\nout\n```\n".to_owned()).unwrap();
        assert!(page.blocks[0].steps().is_err());
    }
}
