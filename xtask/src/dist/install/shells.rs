//! Completions, as the shells load them.

use super::super::output;
use super::expect;
use super::root::Root;
use crate::{packages, skipped};
use std::process::Command;

/// Completes `firstbyte fle` and an option of a verb.
const BASH: &str = r#"
. "$1"
complete_words() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
    _firstbyte firstbyte "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[@]}"
}
complete_words firstbyte fle
complete_words firstbyte doctor --lis
"#;

const FISH: &str = "source $argv[1]; complete -C 'firstbyte fle'; complete -C 'firstbyte doctor --lis'";

/// zsh completes only on a terminal: one that another zsh holds.
const ZSH: &str = r#"
zmodload zsh/zpty
zpty shell zsh -f -i
for line in "PS1='> '; unsetopt beep" "fpath=(${1:h} \$fpath); autoload -Uz compinit; compinit -u -D; echo rea''dy"; do
    zpty -w shell $line
done
zpty -r shell text '*ready*'
zpty -w -n shell $'firstbyte fle\t'
zpty -r shell text '*fleet*' && echo fleet
zpty -w -n shell $'\C-ufirstbyte doctor --lis\t'
zpty -r shell text '*--listen*' && echo --listen
zpty -d shell
"#;

/// Loads the completions in each shell that is here, and completes a verb and an option.
pub(super) fn complete(root: &Root) -> Result<(), String> {
    let shells = [
        ("bash", vec!["--norc", "-c", BASH, "bash"], "usr/share/bash-completion/completions/firstbyte"),
        ("fish", vec!["--no-config", "-c", FISH], "usr/share/fish/vendor_completions.d/firstbyte.fish"),
        ("zsh", vec!["-f", "-c", ZSH, "zsh"], "usr/share/zsh/vendor-completions/_firstbyte"),
    ];
    for (shell, arguments, script) in shells {
        if !packages::installed(shell) {
            skipped::say(&format!("completions of {shell}: it is not installed (apt-get install {shell})"));
            continue;
        }
        // A shell that waits for a terminal would wait forever.
        let mut command = Command::new("timeout");
        command.args(["60", shell]).args(arguments).arg(root.path(script)).env("TERM", "dumb");
        let said = output(&mut command)?;
        expect(
            said.contains("fleet") && said.contains("--listen"),
            &format!("completions of {shell}"),
            &said,
        )?;
        println!("completions of {shell}: loaded");
    }
    Ok(())
}
