//! Runs the commands of a page and compares their output.

use crate::clone;
use crate::compare::{blessed, diff, is_exact, lines, matches};
use crate::page::{Block, Needs, Page, Step};
use crate::parallel::each;
use crate::session::{Place, Session};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Sections of a page that run at the same time: most of them wait for network paths.
const SECTIONS_AT_ONCE: usize = 3;

/// Result of running a page.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Commands that ran.
    pub(crate) ran: usize,
    /// A message for each failure: page, line, reason.
    pub(crate) failures: Vec<String>,
    /// Lines of the page to replace, for `BLESS=1`.
    pub(crate) changes: Vec<(Range<usize>, Vec<String>)>,
}

/// Runs a page: sections between `fresh` at the same time, each in a folder of its own below
/// `folder`; the blocks of a section in their order.
pub(crate) fn run(page: &Page, folder: &Path, programs: &Path, tries: usize) -> Outcome {
    let sections: Vec<&[Block]> = page.blocks.chunk_by(|_, next| !next.needs.is_fresh).collect();
    let outcomes = each(SECTIONS_AT_ONCE, &sections, |section| {
        let mut outcome = Outcome::default();
        for number in 1..=tries {
            let line = section.first().map_or(0, |block| block.line);
            let folder = folder.join(format!("{line}-{number}"));
            outcome = attempt(page, section, &folder, programs);
            if outcome.failures.is_empty() || number == tries {
                break;
            }
            // Straight to the descriptor: the harness swallows eprintln! of a test that passes.
            let _ = writeln!(std::io::stderr(), "runs again: {}", outcome.failures[0]);
        }
        outcome
    });
    outcomes.into_iter().fold(Outcome::default(), Outcome::with)
}

/// Runs a section once, in a namespace if it needs one.
fn attempt(page: &Page, section: &[Block], folder: &Path, programs: &Path) -> Outcome {
    std::fs::create_dir(folder).expect("a folder");
    // The ordinary user writes files here, too.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder, permissions).expect("the folder is ours");
    let play = |is_namespaced: bool| {
        let mut runner = Runner {
            page,
            folder,
            programs,
            is_namespaced,
            shells: [None, None],
            background: Vec::new(),
            started: Vec::new(),
            outcome: Outcome::default(),
        };
        section.iter().for_each(|block| runner.block(block));
        runner.outcome
    };
    let is_namespaced = section.iter().any(|block| block.needs.is_namespaced);
    match is_namespaced && testnet::can().is_ok() {
        true => testnet::in_namespace(|| {
            testnet::hide_namespace_names();
            play(true)
        })
        .unwrap_or_default(),
        false => play(false),
    }
}

impl Outcome {
    fn with(mut self, other: Outcome) -> Outcome {
        self.ran += other.ran;
        self.failures.extend(other.failures);
        self.changes.extend(other.changes);
        self
    }
}

struct Runner<'a> {
    page: &'a Page,
    folder: &'a Path,
    programs: &'a Path,
    is_namespaced: bool,
    /// Shells of the ordinary user and of root, started when first needed.
    shells: [Option<Session>; 2],
    background: Vec<Session>,
    /// Names of the setups that run.
    started: Vec<String>,
    outcome: Outcome,
}

impl Runner<'_> {
    fn block(&mut self, block: &Block) {
        let at = format!("{}:{}", self.page.name, block.line);
        if let Some(reason) = self.skipped(&block.needs) {
            // Straight to the descriptor: the harness swallows eprintln! of a test that passes.
            let _ = writeln!(std::io::stderr(), "SKIPPED: {at}: {reason}");
            return;
        }
        if block.needs.shown.is_some() {
            return;
        }
        if let Err(problem) = self.prepare(block) {
            self.outcome.failures.push(format!("{at}: {problem}"));
            return;
        }
        if block.language != "console" {
            return;
        }
        match block.steps() {
            Ok(steps) => self.steps(block, &steps),
            Err(problem) => self.outcome.failures.push(format!("{at}: {problem}")),
        }
    }

    /// The reason to skip a block on this machine.
    fn skipped(&self, needs: &Needs) -> Option<String> {
        let is_missing = |program: &&String| {
            !["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
                .iter()
                .any(|folder| Path::new(folder).join(program).is_file())
        };
        match needs.programs.iter().find(is_missing) {
            Some(program) => Some(format!("needs {program}")),
            None if needs.is_namespaced && !self.is_namespaced => {
                Some("needs root and network namespaces".to_owned())
            }
            None => None,
        }
    }

    /// Stops, writes and starts what the block's directives ask for.
    fn prepare(&mut self, block: &Block) -> Result<(), String> {
        if block.needs.is_stop {
            self.background.drain(..).rev().try_for_each(Session::interrupt)?;
        }
        if let Some(name) = &block.needs.file {
            let path = self.folder.join(name);
            std::fs::write(&path, block.text()).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        for name in &block.needs.setups {
            if self.started.contains(name) {
                continue;
            }
            let script = setup(name)?;
            let command = format!("exec bash {}", script.display());
            let is_ready = |text: &str| text.lines().any(|line| line == "ready");
            let session = Session::background(self.place(true), &command, is_ready);
            self.background
                .push(session.map_err(|text| format!("setup {name}: printed no `ready`:\n{text}"))?);
            self.started.push(name.clone());
        }
        Ok(())
    }

    fn place(&self, is_root: bool) -> Place<'_> {
        Place { folder: self.folder, programs: self.programs, is_root }
    }

    fn steps(&mut self, block: &Block, steps: &[Step]) {
        for (at, step) in steps.iter().enumerate() {
            if step.is_root && !block.needs.is_namespaced {
                let at = format!("{}:{}", self.page.name, step.line);
                self.outcome.failures.push(format!("{at}: a command of root needs `<!-- test: root -->`"));
                continue;
            }
            let is_last = at + 1 == steps.len();
            self.outcome.ran += 1;
            if block.needs.is_background && is_last {
                self.start(block, step);
            } else {
                let exit = if is_last { block.needs.exit } else { 0 };
                self.run(block, step, exit);
            }
        }
    }

    fn run(&mut self, block: &Block, step: &Step, exit: i32) {
        let place = Place { folder: self.folder, programs: self.programs, is_root: step.is_root };
        let shell = self.shells[usize::from(step.is_root)].get_or_insert_with(|| Session::shell(place));
        let command = clone::as_run(&step.command, place);
        match shell.run(&command) {
            Ok((text, status)) => {
                if status != exit {
                    let problem = format!("exit code {status}, expected {exit}; printed:\n{text}");
                    self.failure(step, &problem);
                }
                self.compare(block, step, &text);
            }
            Err(problem) => {
                self.shells[usize::from(step.is_root)] = None;
                self.failure(step, &problem);
            }
        }
    }

    fn start(&mut self, block: &Block, step: &Step) {
        let expected = lines(step.expected.iter().map(String::as_str), false);
        let is_ready = |text: &str| {
            matches(&expected, &lines(text.lines(), false)) && block.needs.port.is_none_or(listens)
        };
        match Session::background(
            self.place(step.is_root),
            &clone::as_run(&step.command, self.place(step.is_root)),
            is_ready,
        ) {
            Ok(session) => self.background.push(session),
            Err(text) => {
                self.failure(step, "the background program is not ready");
                self.compare(block, step, &text);
            }
        }
    }

    fn compare(&mut self, block: &Block, step: &Step, text: &str) {
        let is_exact = is_exact(&step.command.replace("cargo run --release -- ", "firstbyte "));
        let expected = lines(step.expected.iter().map(String::as_str), is_exact);
        let actual = lines(text.lines(), is_exact);
        if matches(&expected, &actual) {
            return;
        }
        self.failure(step, &format!("other output:\n{}", diff(&expected, &actual)));
        let new = blessed(&step.expected, &lines(text.lines(), true));
        // The block's first line follows its fence; lines of the page are counted from 0 here.
        let range = step.range.start + block.line..step.range.end + block.line;
        self.outcome.changes.extend(new.map(|new| (range, new)));
    }

    fn failure(&mut self, step: &Step, problem: &str) {
        self.outcome
            .failures
            .push(format!("{}:{}: `{}`: {problem}", self.page.name, step.line, step.command));
    }
}

fn setup(name: &str) -> Result<PathBuf, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/setups").join(name).with_extension("sh");
    if path.is_file() { Ok(path) } else { Err(format!("no setup `{name}`: expected {}", path.display())) }
}

/// Whether a TCP socket listens on this port in this thread's namespace.
fn listens(port: u16) -> bool {
    ["tcp", "tcp6"].iter().any(|name| {
        let table = std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
        let suffix = format!(":{port:04X}");
        table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .any(|words| words.len() > 3 && words[1].ends_with(&suffix) && words[3] == "0A")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The failures of a page with these lines, and what a blessed page would contain.
    fn run_text(text: &str) -> (Vec<String>, Vec<String>) {
        let page = Page::parse("page.md", text.to_owned()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), permissions).unwrap();
        let outcome = run(&page, folder.path(), folder.path(), 1);
        (outcome.failures, outcome.changes.into_iter().flat_map(|(_, new)| new).collect())
    }

    #[test]
    fn a_page_that_tells_the_truth_passes() {
        let text = "```console\n$ printf 'a\\nb\\nc\\n'\na\n…\n$ cd / && pwd\n/\n$ pwd\n/\n```\n\
                    <!-- test: exit 3 -->\n```console\n$ (exit 3)\n```\n";
        assert_eq!(run_text(text), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_wrong_output_is_found_and_blessed() {
        let (failures, new) = run_text("# Title\n```console\n$ echo right\nwrong\n```\n");
        let [failure] = &failures[..] else { panic!("{failures:?}") };
        assert!(failure.starts_with("page.md:3: `echo right`: other output:"), "{failure}");
        assert!(failure.contains("- wrong\n") && failure.contains("+ right\n"), "{failure}");
        assert_eq!(new, ["right"]);
    }

    #[test]
    fn a_wrong_command_is_found() {
        for (command, problem) in [
            ("no-such-program", "exit code 127, expected 0"),
            ("false", "exit code 1, expected 0"),
            ("echo 'open", "exit code 2, expected 0"),
        ] {
            let (failures, _) = run_text(&format!("```console\n$ {command}\n…\n```\n"));
            assert!(failures.iter().any(|failure| failure.contains(problem)), "{command}: {failures:?}");
        }
        let (failures, _) = run_text("```console\n# true\n```\n");
        assert!(failures[0].contains("needs `<!-- test: root -->`"), "{failures:?}");
    }

    #[test]
    fn a_background_program_is_ready_with_its_output_and_ends_on_stop() {
        let text = "<!-- test: background -->\n```console\n$ touch mark; echo up; exec sleep 100\nup\n```\n\
                    ```console\n$ ls\nmark\n```\n<!-- test: stop -->\n```console\n$ echo over\nover\n```\n";
        assert_eq!(run_text(text), (Vec::new(), Vec::new()));
        let (failures, _) = run_text("<!-- test: background -->\n```console\n$ echo down\nup\n```\n");
        assert!(failures[0].contains("is not ready") && failures[1].contains("+ down"), "{failures:?}");
    }
}
