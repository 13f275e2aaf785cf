//! The shell's own part of commands: words, quotes, what joins commands, where output goes. What a command does is `commands`' business.

use crate::code::{Value, Variables};

/// What joins a command to the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// `;` or a new line.
    Then,
    /// `&&`: only if what was before succeeded.
    And,
    /// `||`: only if it failed.
    Or,
}

/// Commands with `|` between them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pipeline {
    pub(super) joined: Joined,
    pub(super) commands: Vec<Simple>,
}

/// One command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) words: Vec<String>,
    /// The file its output goes to, unless that is thrown away.
    pub(super) output: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(&'static str),
}

/// Longer ones first. `2>` is one only where a word may begin.
const SIGNS: [&str; 13] = ["2>&1", "2>", "&>", ">>", "&&", "||", ">", "<", "|", "&", ";", "(", ")"];

/// The commands of a text.
pub(super) fn pipelines(text: &str) -> Result<Vec<Pipeline>, String> {
    let text = worked_out(&text.replace("\\\n", " "))?;
    let mut done = Vec::new();
    let mut joined = Joined::Then;
    let mut commands = vec![Simple::default()];
    let mut tokens = tokens(&text)?.into_iter();
    let mut end = |joined: Joined, commands: &mut Vec<Simple>| {
        let commands = std::mem::replace(commands, vec![Simple::default()]);
        match commands.iter().all(|command| command.words.is_empty()) {
            true if joined == Joined::Then && commands.len() == 1 => Ok(()),
            _ if commands.iter().any(|command| command.words.is_empty()) => {
                Err("a command is missing beside `&&`, `||` or `|`".to_owned())
            }
            _ => {
                done.push(Pipeline { joined, commands });
                Ok(())
            }
        }
    };
    while let Some(token) = tokens.next() {
        let last = commands.len() - 1;
        match token {
            Token::Word(word) => commands[last].words.push(word),
            Token::Sign("|") => commands.push(Simple::default()),
            Token::Sign("2>&1") => {}
            Token::Sign(sign @ (">" | ">>" | "2>" | "&>")) => {
                let Some(Token::Word(file)) = tokens.next() else {
                    return Err(format!("a file is missing behind `{sign}`"));
                };
                match (sign, file.as_str()) {
                    (_, "/dev/null") => {}
                    (">", _) => commands[last].output = Some(file),
                    _ => return Err(format!("`{sign} {file}`: such output can only go to /dev/null here")),
                }
            }
            Token::Sign("\n") if joined != Joined::Then && commands[last].words.is_empty() => {}
            Token::Sign(sign @ (";" | "\n" | "&&" | "||")) => {
                end(joined, &mut commands)?;
                joined = match sign {
                    "&&" => Joined::And,
                    "||" => Joined::Or,
                    _ => Joined::Then,
                };
            }
            Token::Sign(sign) => return Err(format!("`{sign}` is not understood in commands")),
        }
    }
    end(joined, &mut commands)?;
    Ok(done)
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r']);
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        if first == '\n' {
            tokens.push(Token::Sign("\n"));
            rest = &rest[1..];
        } else if first == '#' {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            let (word, len) = word(rest)?;
            tokens.push(Token::Word(word));
            rest = &rest[len..];
        }
    }
}

/// The word that begins here, without its quotes, and how much of the text it is.
fn word(text: &str) -> Result<(String, usize), String> {
    let mut word = String::new();
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match quote {
            None if c.is_whitespace() || ";|&<>()".contains(c) => return Ok((word, at)),
            None if c == '"' || c == '\'' => quote = Some(c),
            Some(open) if open == c => quote = None,
            None | Some('"') if c == '$' || c == '`' || c == '\\' => {
                return Err(format!("`{}` is not understood in commands", text.trim_end()));
            }
            _ => word.push(c),
        }
    }
    match quote {
        None => Ok((word, text.len())),
        Some(open) => Err(format!("`{open}` never ends in a command")),
    }
}

/// With `$((…))` as numbers.
fn worked_out(text: &str) -> Result<String, String> {
    let mut text = text.to_owned();
    while let Some(from) = text.find("$((") {
        let inside = &text[from + 3..];
        let len = inside.find("))").ok_or("`$((` never ends")?;
        let Value::Int(value) = Variables::default().evaluate(&inside[..len], &|_| None)? else {
            return Err("`$((…))` is no number".into());
        };
        text.replace_range(from..from + 3 + len + 2, &value.to_string());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(Joined, Vec<Vec<String>>, Option<String>)> {
        let of = |pipeline: Pipeline| {
            let output = pipeline.commands.last().and_then(|last| last.output.clone());
            (pipeline.joined, pipeline.commands.into_iter().map(|command| command.words).collect(), output)
        };
        pipelines(text).unwrap().into_iter().map(of).collect()
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn what_joins_commands_is_told_apart_from_what_is_in_them() {
        assert_eq!(
            read("a -x \"b ; c\" &> /dev/null ||\\\n d 'e && f'; # not this; nor | that\n g | h"),
            [
                (Joined::Then, vec![vec!["a".into(), "-x".into(), "b ; c".into()]], None),
                (Joined::Or, vec![vec!["d".into(), "e && f".into()]], None),
                (Joined::Then, vec![words("g"), words("h")], None),
            ]
        );
        assert_eq!(
            read("echo 3 > /proc/sys/x 2>&1 &&\ntrue x=\"$((15*1024))\""),
            [
                (Joined::Then, vec![words("echo 3")], Some("/proc/sys/x".into())),
                (Joined::And, vec![words("true x=15360")], None),
            ]
        );
        assert_eq!(read("\n ; # nothing\n"), []);
    }

    #[test]
    fn what_a_shell_would_do_more_is_refused() {
        for text in ["a &", "(a)", "a < b", "a >> b", "a 2> b", "a $HOME", "a 'b", "a && ; b", "| a", "a ||"]
        {
            assert!(pipelines(text).is_err(), "{text}");
        }
    }
}
