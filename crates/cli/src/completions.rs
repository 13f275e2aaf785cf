//! `firstbyte completions`: scripts that complete the command's verbs and options in a shell.
use crate::failure::Failure;
use crate::terminal::print;
use clap::{Args, Command, ValueEnum};
use std::process::ExitCode;

/// Print the completion script of a shell.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
                  firstbyte completions bash > ~/.local/share/bash-completion/completions/firstbyte\n  \
                  firstbyte completions zsh > ~/.zfunc/_firstbyte       with fpath+=~/.zfunc before compinit in ~/.zshrc\n  \
                  firstbyte completions fish > ~/.config/fish/completions/firstbyte.fish\n\n\
                  Start a new shell afterwards. The Debian package installs all three.")]
pub(crate) struct CompletionsArgs {
    /// The shell that reads the script.
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// A shell whose completions a test loads.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script that completes `command`.
pub(crate) fn run(args: &CompletionsArgs, mut command: Command) -> Result<ExitCode, Failure> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    print(&String::from_utf8_lossy(&script))
}
