//! Parses tokens into a [`Script`]: options, events and their times. `packet` parses packets,
//! `call` parses system calls.

mod call;
mod packet;

use crate::ast::{Action, Direction, Event, Line, Script, ScriptOption, When};
use crate::lex::{self, Spanned, Token};
use crate::problem::{Place, Problem};

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// The first place that cannot be understood.
    pub fn parse(source: &str) -> Result<Script, Problem> {
        Script::parse_with(source, &[])
    }

    /// Parses a script like [`parse`](Self::parse), with names defined as if it started with
    /// `--define=NAME=value`.
    ///
    /// # Errors
    /// Returns the first place that is invalid.
    pub fn parse_with(source: &str, definitions: &[(String, String)]) -> Result<Script, Problem> {
        Parser::new(source, definitions)?.script()
    }
}

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Spanned>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn new(source: &'a str, definitions: &[(String, String)]) -> Result<Parser<'a>, Problem> {
        let mut tokens = lex::tokens(source)?;
        replace_defined(source, &mut tokens, definitions)?;
        Ok(Parser { source, tokens, next: 0 })
    }

    fn script(mut self) -> Result<Script, Problem> {
        let mut script = Script::default();
        while let Some(Token::Option(name, value)) = self.peek().cloned() {
            let name = Line { line: self.place().line, value: name };
            script.options.push(ScriptOption { name, value });
            self.next += 1;
        }
        script.init = self.command();
        while self.peek().is_some() {
            if let Some(cleanup) = self.command() {
                script.cleanup = Some(cleanup);
                break;
            }
            script.events.push(self.event()?);
        }
        match self.peek() {
            None if script.events.is_empty() => Err(self.problem("a script needs at least one event")),
            None => Ok(script),
            Some(_) => {
                Err(self.problem("nothing may follow the command that cleans up; events begin with a time"))
            }
        }
    }

    fn command(&mut self) -> Option<Line<String>> {
        let line = self.place().line;
        let Some(Token::Command(text)) = self.peek() else { return None };
        let value = text.clone();
        self.next += 1;
        Some(Line { line, value })
    }

    fn event(&mut self) -> Result<Event, Problem> {
        let time = self.when()?;
        let line = self.place().line;
        let value = match self.peek() {
            Some(Token::Sign('<')) => Action::Packet(self.packet(Direction::In)?),
            Some(Token::Sign('>')) => Action::Packet(self.packet(Direction::Out)?),
            Some(Token::Word(_) | Token::Ellipsis) => Action::Call(self.call()?),
            Some(Token::Command(text)) => Action::Command(text.clone()),
            Some(Token::Code(text)) => Action::Code(text.clone()),
            _ => {
                return Err(self.problem(
                    "after the time a packet (`<`, `>`), a system call, a `command` or %{ code }% is expected",
                ));
            }
        };
        if matches!(value, Action::Command(_) | Action::Code(_)) {
            self.next += 1;
        }
        Ok(Event { time, action: Line { line, value } })
    }

    fn when(&mut self) -> Result<When, Problem> {
        if self.sign('*') {
            return Ok(When::Any);
        }
        let relative = self.sign('+');
        let from = self.time()?;
        if !self.sign('~') {
            return Ok(if relative { When::Relative(from) } else { When::Absolute(from) });
        }
        if relative {
            self.expect('+')?;
        }
        let place = self.place();
        let to = self.time()?;
        if to < from {
            return Err(Problem::new(self.source, place, "a range of times ends before it begins"));
        }
        Ok(if relative { When::RelativeRange(from, to) } else { When::AbsoluteRange(from, to) })
    }

    /// Seconds, with at most six digits behind the point.
    fn time(&mut self) -> Result<i64, Problem> {
        let micros = match self.peek() {
            Some(Token::Word(text)) => micros(text),
            _ => None,
        };
        let Some(micros) = micros else {
            return Err(self.problem(
                "a time is expected: seconds, at most 1000000000, as `0.1`, `+.1`, `0~0.2` or `*`",
            ));
        };
        self.next += 1;
        Ok(micros)
    }

    fn peek(&self) -> Option<&Token> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.next + ahead).map(|found| &found.token)
    }

    /// Where the next token stands, or the text ends.
    fn place(&self) -> Place {
        match self.tokens.get(self.next) {
            Some(found) => found.at,
            None => {
                let line = self.source.lines().count().max(1);
                let column = self.source.lines().last().map_or(0, |text| text.chars().count());
                Place { line, column: column + 1 }
            }
        }
    }

    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(self.source, self.place(), message)
    }

    fn sign(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Token::Sign(sign));
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: char) -> Result<(), Problem> {
        if self.sign(sign) { Ok(()) } else { Err(self.problem(format!("`{sign}` is expected"))) }
    }

    fn word(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(text)) if text == wanted);
        self.next += usize::from(found);
        found
    }

    fn any_word(&mut self, what: &str) -> Result<String, Problem> {
        match self.peek() {
            Some(Token::Word(text)) => {
                let text = text.clone();
                self.next += 1;
                Ok(text)
            }
            _ => Err(self.problem(format!("{what} is expected"))),
        }
    }

    /// A decimal number that fits.
    fn number<T: TryFrom<i64>>(&mut self, what: &str) -> Result<T, Problem> {
        let value = match self.peek() {
            Some(Token::Word(text)) => text.parse::<i64>().ok(),
            _ => None,
        };
        let Some(value) = value else { return Err(self.problem(format!("{what} is expected"))) };
        let Ok(value) = T::try_from(value) else {
            return Err(self.problem(format!("{value} is out of range for {what}")));
        };
        self.next += 1;
        Ok(value)
    }

    fn hex(&mut self, what: &str, most: u64) -> Result<u64, Problem> {
        let value = match self.peek() {
            Some(Token::Word(text)) => {
                text.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok())
            }
            _ => None,
        };
        let Some(value) = value.filter(|value| *value <= most) else {
            return Err(self.problem(format!("{what} is expected: 0x0 to {most:#x}")));
        };
        self.next += 1;
        Ok(value)
    }
}

/// `--define=NAME=value`: the name means the value in all that follows.
fn replace_defined(
    source: &str,
    tokens: &mut [Spanned],
    definitions: &[(String, String)],
) -> Result<(), Problem> {
    let mut defined: Vec<(String, Token)> = Vec::new();
    for (name, value) in definitions {
        let start = Place { line: 1, column: 1 };
        defined.push(definition(name, value).map_err(|message| Problem::new(source, start, message))?);
    }
    for found in tokens {
        match &found.token {
            Token::Option(option, text) if option == "define" => {
                let both = text.as_deref().and_then(|text| text.split_once('='));
                let defines = both
                    .ok_or_else(|| "`--define=NAME=value` is expected".to_owned())
                    .and_then(|(name, value)| definition(name, value));
                defined.push(defines.map_err(|message| Problem::new(source, found.at, message))?);
            }
            Token::Word(word) => {
                if let Some((_, value)) = defined.iter().rev().find(|(name, _)| name == word) {
                    found.token = value.clone();
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A name, and the one token it stands for.
fn definition(name: &str, value: &str) -> Result<(String, Token), String> {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err(format!("--define: `{name}` is no name: letters, digits and `_` are expected"));
    }
    let mut tokens = lex::tokens(value).unwrap_or_default();
    match (tokens.pop(), tokens.is_empty()) {
        (Some(only), true) => Ok((name.to_owned(), only.token)),
        _ => Err(format!(
            "--define: `{name}` stands for one number, name, text or command, and not for `{value}`"
        )),
    }
}

/// The longest time of a script, microseconds: sums of a few are times too.
pub(crate) const TIME_MAX: i64 = 1_000_000_000_000_000;

/// `0.1`, `.1` or `1`, in microseconds; further digits are cut off.
fn micros(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if (whole.is_empty() && fraction.is_empty())
        || !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let micros = whole.checked_mul(1_000_000)?.checked_add(digits.parse().ok()?)?;
    (micros <= TIME_MAX).then_some(micros)
}
