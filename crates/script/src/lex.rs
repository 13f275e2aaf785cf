//! Splits text into tokens.
//!
//! Comments are those of C and C++. A run of letters, digits and `_` is one word, whether it is a
//! number, a name or the hexadecimal digits of a cookie. Its position decides.

use crate::problem::{Place, Problem};

/// What may stand around a snippet.
const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// Letters, digits and `_`; a sign or a decimal point only in numbers.
    Word(String),
    /// Between double quotes, as written.
    Text(String),
    /// Between backticks, as written.
    Command(String),
    /// Between `%{` and `}%`, without blanks and empty lines at the ends; a first line below `%{` keeps its indentation.
    Code(String),
    /// `--name` and what follows its `=`.
    Option(String, Option<String>),
    /// `...`
    Ellipsis,
    /// Any other character.
    Sign(char),
}

#[derive(Clone, Debug)]
pub(crate) struct Spanned {
    pub(crate) token: Token,
    pub(crate) at: Place,
}

/// All tokens of a script.
pub(crate) fn tokens(source: &str) -> Result<Vec<Spanned>, Problem> {
    let mut lexer = Lexer { source, rest: source, at: Place { line: 1, column: 1 } };
    let mut tokens = Vec::new();
    while lexer.skip_blank()? {
        let at = lexer.at;
        tokens.push(Spanned { token: lexer.token()?, at });
    }
    Ok(tokens)
}

struct Lexer<'a> {
    source: &'a str,
    rest: &'a str,
    at: Place,
}

impl<'a> Lexer<'a> {
    fn token(&mut self) -> Result<Token, Problem> {
        if self.rest.starts_with("...") {
            self.take(3);
            return Ok(Token::Ellipsis);
        }
        if self.rest.starts_with("%{") {
            return Ok(Token::Code(snippet(self.enclosed("%{", "}%", "a code snippet")?).to_owned()));
        }
        if self.rest.starts_with("--") && self.rest[2..].starts_with(is_word) {
            return self.option();
        }
        if let Some(len) = number_len(self.rest) {
            return Ok(Token::Word(self.take(len).to_owned()));
        }
        match self.rest.chars().next() {
            Some('"') => Ok(Token::Text(self.quoted('"', "a text")?)),
            Some('`') => Ok(Token::Command(self.quoted('`', "a command")?)),
            Some(c) if is_word(c) => Ok(Token::Word(self.take_while(is_word).to_owned())),
            Some(c) => {
                self.take(c.len_utf8());
                Ok(Token::Sign(c))
            }
            None => Err(self.problem("something is missing here")),
        }
    }

    /// `--name`, `--name=value`; a value ends at a blank outside quotes.
    fn option(&mut self) -> Result<Token, Problem> {
        self.take(2);
        let name = self.take_while(is_word).to_owned();
        if !self.rest.starts_with('=') {
            return Ok(Token::Option(name, None));
        }
        self.take(1);
        let mut value = String::new();
        while let Some(c) = self.rest.chars().next().filter(|c| !c.is_whitespace()) {
            match c {
                '"' | '`' => {
                    value.push(c);
                    value.push_str(&self.quoted(c, "a text")?);
                    value.push(c);
                }
                c => value.push_str(self.take(c.len_utf8())),
            }
        }
        if value.is_empty() {
            return Err(self.problem("a value is expected after `=`"));
        }
        Ok(Token::Option(name, Some(value)))
    }

    /// Passes over blanks and comments. False: the text ends.
    fn skip_blank(&mut self) -> Result<bool, Problem> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest.starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if self.rest.starts_with("/*") {
                self.enclosed("/*", "*/", "a comment")?;
            } else {
                return Ok(!self.rest.is_empty());
            }
        }
    }

    /// What stands between two marks.
    fn enclosed(&mut self, open: &str, close: &str, what: &str) -> Result<&'a str, Problem> {
        let inside = &self.rest[open.len()..];
        let Some(end) = inside.find(close) else {
            return Err(self.problem(format!("{what} begins here and never ends: `{close}` is missing")));
        };
        let inside = &inside[..end];
        self.take(open.len() + end + close.len());
        Ok(inside)
    }

    /// What stands between two quotes; a backslash keeps the next character from ending it.
    fn quoted(&mut self, quote: char, what: &str) -> Result<String, Problem> {
        let mut escaped = false;
        let end = self.rest[1..].find(|c| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let Some(end) = end else {
            return Err(self.problem(format!("{what} begins here and never ends: `{quote}` is missing")));
        };
        let inside = self.rest[1..=end].to_owned();
        self.take(end + 2);
        Ok(inside)
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let len = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        self.take(len)
    }

    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        for c in taken.chars() {
            if c == '\n' {
                self.at = Place { line: self.at.line + 1, column: 1 };
            } else {
                self.at.column += 1;
            }
        }
        taken
    }

    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(self.source, self.at, message)
    }
}

/// What a snippet says. How far its first line is indented is the measure of those below it, unless it stands behind `%{`.
fn snippet(code: &str) -> &str {
    let code = code.trim_end_matches(BLANK).trim_start_matches([' ', '\t']);
    let empty = code.len() - code.trim_start_matches(BLANK).len();
    let line = code[..empty].rfind('\n').map_or(0, |end| end + 1);
    &code[line..]
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Length of a number that is no plain word: one with a sign or a decimal point.
fn number_len(text: &str) -> Option<usize> {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len()
    };
    let sign = usize::from(text.starts_with('-'));
    let whole = sign + digits(sign);
    if text[whole..].starts_with('.') {
        let fraction = digits(whole + 1);
        if fraction > 0 {
            return Some(whole + 1 + fraction);
        }
    }
    (sign == 1 && whole > 1).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> String {
        let tokens = tokens(source).unwrap();
        tokens.iter().map(|found| format!("{:?}", found.token)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn times_dots_and_flags_are_told_apart() {
        assert_eq!(
            shown("+0...0.2 .5 -1 S. 1:2"),
            "Sign('+') Word(\"0\") Ellipsis Word(\"0.2\") Word(\".5\") Word(\"-1\") Word(\"S\") Sign('.') \
             Word(\"1\") Sign(':') Word(\"2\")"
        );
    }

    #[test]
    fn comments_and_texts() {
        assert_eq!(
            shown("/* a * b\n */ x // y\n\"q\\\"r\" `a b`"),
            r#"Word("x") Text("q\\\"r") Command("a b")"#
        );
        assert_eq!(shown("%{ assert 1\n }%"), "Code(\"assert 1\")");
        assert_eq!(shown("%{ \n \n  a\n b\n}%"), "Code(\"  a\\n b\")");
        assert_eq!(
            shown("--define=X=\"a b\" --strict"),
            r#"Option("define", Some("X=\"a b\"")) Option("strict", None)"#
        );
    }

    #[test]
    fn what_never_ends_is_shown_where_it_begins() {
        let problem = tokens("+0 x\n\t`true").unwrap_err();
        assert_eq!(
            problem.to_string(),
            "2:2: a command begins here and never ends: ``` is missing\n  2 | \t`true\n    | \t^"
        );
    }
}
