//! `firstbyte man`: the manual pages, one for the command and one for each verb.
//!
//! - `man/page.rs`: from the definition of a verb to its page;
//! - `man/sections.rs`: files, environment and privileges of each verb, which no help text has.
mod page;
mod sections;

use crate::failure::Failure;
use crate::output::write_whole;
use crate::terminal::print;
use clap::{Args, Command};
use page::Page;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write the manual pages into a folder.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  firstbyte man ~/.local/share/man/man1\n  man firstbyte-get\n\n\
                  The folder is created if it is missing. The Debian package installs the same pages.")]
pub(crate) struct ManArgs {
    /// The folder. man(1) finds pages in folders named man1.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the pages of `command` and of its verbs.
pub(crate) fn run(args: &ManArgs, command: Command) -> Result<ExitCode, Failure> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("create", folder, &error))?;
    let pages = pages(command);
    for page in &pages {
        write_whole(&folder.join(page.file_name()), page.text())?;
    }
    print(&format!("{} pages written to {}\n", pages.len(), folder.display()))
}

/// Returns the page of `command` and of every verb below it, in the order of `--help`.
fn pages(mut command: Command) -> Vec<Page> {
    command.build();
    let mut pages = Vec::new();
    add(&command, &mut pages);
    pages
}

fn add(command: &Command, pages: &mut Vec<Page>) {
    pages.push(Page::of(command));
    command.get_subcommands().filter(|verb| !verb.is_hide_set()).for_each(|verb| add(verb, pages));
}
