//! The snippets between `%{` and `}%`: assertions about numbers.
//!
//! The part of Python that they use: `assert condition, message`, assignments, `print`, `if`, `elif` and `else` with what is indented below
//! them, comparison (chained too), `and or not in`, arithmetic and bits, `a if condition else b`, `%` and `.format` for texts, `abs float
//! int len max min round`, tuples and lists and what they have at a place. Everything else is refused by name. Numbers are whole, or
//! doubles where a point or a division makes them so.

mod expression;
mod tokens;

use expression::Parser;
use std::collections::BTreeMap;
use std::fmt;
use tokens::{Statement, Token, statements};

/// `if` within `if`.
const DEPTH_MAX: u32 = 100;

/// A value of a snippet.
#[derive(Clone, Debug)]
pub enum Value {
    /// A whole number; truth is 1 and 0.
    Int(i128),
    /// Another one.
    Float(f64),
    /// A text.
    Text(String),
    /// `(a, b)`
    Tuple(Vec<Value>),
    /// `[a, b]`
    List(Vec<Value>),
}

impl Value {
    fn is_true(&self) -> bool {
        match self {
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::Tuple(values) | Value::List(values) => !values.is_empty(),
        }
    }

    fn int(&self) -> Result<i128, String> {
        match self {
            Value::Int(value) => Ok(*value),
            Value::Float(value) => Err(format!("{value:?} is no whole number")),
            other => Err(format!("{other} is no number")),
        }
    }

    fn float(&self) -> Result<f64, String> {
        match self {
            Value::Int(value) => Ok(*value as f64),
            Value::Float(value) => Ok(*value),
            other => Err(format!("{other} is no number")),
        }
    }
}

/// Numbers are the same whatever they are written as: 2 is 2.0.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Int(left), Value::Int(right)) => left == right,
            (Value::Text(left), Value::Text(right)) => left == right,
            (Value::Tuple(left), Value::Tuple(right)) | (Value::List(left), Value::List(right)) => {
                left == right
            }
            _ => matches!((self.float(), other.float()), (Ok(left), Ok(right)) if left == right),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Text(text) => f.write_str(text),
            Value::Tuple(values) => write!(f, "({})", shown(values)),
            Value::List(values) => write!(f, "[{}]", shown(values)),
        }
    }
}

/// Is there nothing in a snippet that could never be understood?
///
/// # Errors
/// A sentence that says what.
pub fn check(code: &str) -> Result<(), String> {
    statements(code)?.iter().try_for_each(|statement| refused(&statement.tokens))
}

/// Statements of Python's that have no meaning here.
fn refused(tokens: &[Token]) -> Result<(), String> {
    match tokens {
        [Token::Name(word), ..] if ["import", "from", "for", "while", "def"].contains(&word.as_str()) => {
            Err(format!("`{word}` is not understood in snippets: only assertions, assignments and `if` are"))
        }
        _ => Ok(()),
    }
}

fn shown(values: &[Value]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    values.join(", ")
}

/// What snippets have assigned: it lasts from one to the next.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    values: BTreeMap<String, Value>,
}

/// Gives the value of a name that was not assigned.
pub type Known<'a> = &'a dyn Fn(&str) -> Option<i128>;

impl Variables {
    /// Runs a snippet.
    ///
    /// # Errors
    /// A sentence: the assertion that does not hold, with the values of the names in it, or what cannot be understood.
    pub fn run(&mut self, code: &str, known: Known<'_>) -> Result<(), String> {
        self.block(&statements(code)?, known, 0)
    }

    fn block(&mut self, block: &[Statement], known: Known<'_>, depth: u32) -> Result<(), String> {
        let mut at = 0;
        while let Some(statement) = block.get(at) {
            if is_word(statement, "if") {
                at = self.choice(block, at, known, depth)?;
            } else {
                self.statement(&statement.tokens, known)?;
                at += 1;
            }
        }
        Ok(())
    }

    /// An `if` with all its `elif` and its `else`; gives what follows them.
    fn choice(
        &mut self,
        block: &[Statement],
        mut at: usize,
        known: Known<'_>,
        depth: u32,
    ) -> Result<usize, String> {
        if depth > DEPTH_MAX {
            return Err("the snippet is nested too deep".into());
        }
        let mut decided = false;
        loop {
            let head = &block[at];
            let colon = colon(&head.tokens).ok_or("`:` is expected behind the condition")?;
            let (condition, behind) = (&head.tokens[1..colon], &head.tokens[colon + 1..]);
            if is_word(head, "else") && !condition.is_empty() {
                return Err(format!("`:` is expected behind `else`, and not `{}`", tokens::shown(condition)));
            }
            let holds = !decided && (is_word(head, "else") || self.value(condition, known)?.is_true());
            let governed = |statement: &&Statement| {
                !statement.begins_line || (behind.is_empty() && statement.indent > head.indent)
            };
            let end = at + 1 + block[at + 1..].iter().take_while(governed).count();
            if behind.is_empty() && end == at + 1 {
                return Err("indented lines are expected behind `:`".into());
            }
            if holds {
                decided = true;
                let first = Statement { tokens: behind.to_vec(), ..head.clone() };
                let inline = (!behind.is_empty()).then_some(first);
                let suite: Vec<Statement> =
                    inline.into_iter().chain(block[at + 1..end].iter().cloned()).collect();
                self.block(&suite, known, depth + 1)?;
            }
            let goes_on = |next: &Statement| {
                next.begins_line
                    && next.indent == head.indent
                    && (is_word(next, "elif") || is_word(next, "else"))
            };
            if is_word(head, "else") || !block.get(end).is_some_and(goes_on) {
                return Ok(end);
            }
            at = end;
        }
    }

    /// The value of one expression.
    ///
    /// # Errors
    /// A sentence.
    pub fn evaluate(&self, code: &str, known: Known<'_>) -> Result<Value, String> {
        match statements(code)?.as_slice() {
            [only] => self.value(&only.tokens, known),
            _ => Err(format!("`{code}` is not one expression")),
        }
    }

    fn statement(&mut self, tokens: &[Token], known: Known<'_>) -> Result<(), String> {
        refused(tokens)?;
        match tokens {
            [Token::Name(word), rest @ ..] if word == "assert" => self.assert(rest, known),
            [Token::Name(name), Token::Sign(sign), rest @ ..] if is_assignment(sign) => {
                let mut value = self.value(rest, known)?;
                if let Some(operator) = sign.strip_suffix('=').filter(|operator| !operator.is_empty()) {
                    let old = self.get(name, known).ok_or(format!("`{name}` has no value"))?;
                    value = expression::binary(operator, &old, &value)?;
                }
                self.values.insert(name.clone(), value);
                Ok(())
            }
            _ => self.value(tokens, known).map(|_| ()),
        }
    }

    fn assert(&self, tokens: &[Token], known: Known<'_>) -> Result<(), String> {
        let lookup = |name: &str| self.get(name, known);
        let mut parser = Parser::new(tokens, &lookup);
        let condition = parser.test()?;
        let used = &tokens[..parser.position()];
        let message = if parser.sign(",") { Some(parser.tuple()?) } else { None };
        parser.finish()?;
        if condition.is_true() {
            return Ok(());
        }
        let named = used.iter().filter_map(|token| match token {
            Token::Name(name) => Some(format!("{name} = {}", self.get(name, known)?)),
            _ => None,
        });
        let mut named: Vec<String> = named.collect();
        named.dedup();
        let message = message.map_or(String::new(), |message| format!(" (it says: {message})"));
        Err(format!("`{}` does not hold: {}{message}", tokens::shown(used), named.join(", ")))
    }

    fn value(&self, tokens: &[Token], known: Known<'_>) -> Result<Value, String> {
        let lookup = |name: &str| self.get(name, known);
        let mut parser = Parser::new(tokens, &lookup);
        let value = parser.tuple()?;
        parser.finish()?;
        Ok(value)
    }

    fn get(&self, name: &str, known: Known<'_>) -> Option<Value> {
        self.values.get(name).cloned().or_else(|| known(name).map(Value::Int))
    }
}

fn is_word(statement: &Statement, wanted: &str) -> bool {
    matches!(statement.tokens.first(), Some(Token::Name(word)) if word == wanted)
}

/// Where the condition ends.
fn colon(tokens: &[Token]) -> Option<usize> {
    tokens.iter().position(|token| *token == Token::Sign(":"))
}

fn is_assignment(sign: &str) -> bool {
    matches!(sign, "=" | "+=" | "-=" | "*=" | "//=" | "%=" | "|=" | "&=")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(code: &str) -> Result<(), String> {
        let known = |name: &str| match name {
            "tcpi_snd_cwnd" => Some(10),
            "tcpi_rtt" => Some(100_123),
            _ => None,
        };
        Variables::default().run(code, &known)
    }

    #[test]
    fn what_holds() {
        for code in [
            "assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd",
            "assert 100000 <= tcpi_rtt <= 101000, 'rtt=%d us' % tcpi_rtt",
            "assert (tcpi_snd_cwnd & 2) != 0 and not tcpi_snd_cwnd == 3 # why",
            "cwnd = 4; cwnd += 6\nassert tcpi_snd_cwnd == cwnd; \\\n  assert cwnd // 3 == 3",
            "print(tcpi_snd_cwnd, 'a'); assert -1 < 0x10 | 1 and 1 << 4 == 2 * 8",
            "assert abs(3 - 5) == 2 and max(1, 2) == 2 and 3 in (1, 2, 3)",
            "assert '%d of %s' % (1, 'two') == '1 of two'",
            "assert (1 if tcpi_snd_cwnd else 2) == 1 and (1 if tcpi_snd_cwnd > 10 else 2) == 2",
            "x = [1, 2, (3, 4)]; assert x[0] == 1 and x[-1][1] == 4 and 2 in x and len(x) == 3",
            "assert '{} of {}: {1}{{}}'.format(1, 'two') == '1 of two: two{}'",
            "assert [tcpi_snd_cwnd,\n 2] == [10, 2] and [1] != (1, 1)",
            "assert 1.5 < tcpi_snd_cwnd * .5 <= 5. and 7 / 2 == 3.5 and 4 / 2 == 2 and 7.5 // 2 == 3",
            "assert 1e3 == 1000 and 2.5e-1 == 0.25 and -1.5 == 0 - 1.5 and abs(-2.5) == 2.5 and max(1, 1.5) == 1.5",
            "assert int(2.9) == 2 and float(2) == 2.0 and round(2.6) == 3 and 7.5 % 2 == 1.5 and '%.1f' % 2.25 == '2.2'",
            "if tcpi_snd_cwnd == 10: x = 1; y = 2\nelse: x = 3; y = 4\nassert (x, y) == (1, 2)",
            "if tcpi_snd_cwnd > 10:\n  x = 1\nelif tcpi_snd_cwnd == 10:\n  x = 2\n  if tcpi_rtt < 5:\n    x = 3\n  else:\n    x += 5\nelse:\n  x = 4\nassert x == 7",
            "x = 0\nif 0:\n  assert nonsense\nif 0: assert nonsense; x = 9\nassert x == 0",
            "",
        ] {
            assert_eq!(run(code), Ok(()), "{code}");
        }
    }

    #[test]
    fn what_does_not_hold_is_told_with_its_values() {
        assert_eq!(
            run("assert tcpi_snd_cwnd == 11, 'cwnd=%d' % tcpi_snd_cwnd").unwrap_err(),
            "`tcpi_snd_cwnd == 11` does not hold: tcpi_snd_cwnd = 10 (it says: cwnd=10)"
        );
    }

    #[test]
    fn what_is_not_understood() {
        for (code, said) in [
            ("assert tcpi_wnd == 1", "`tcpi_wnd` has no value"),
            ("import os", "`import` is not understood"),
            ("assert 1 +", "a value is expected at the end"),
            ("assert (1", "`)` is expected"),
            ("assert 1 2", "`2` is not expected"),
            ("assert 'a", "a text never ends"),
            ("assert open('x')", "`open` is no function"),
            ("assert 1 // 0", "division by 0"),
            ("assert 1 if 2", "`else` is expected"),
            ("assert [1][1]", "there is no 1 in [1]"),
            ("assert '{}'.format()", "a value is missing"),
            ("assert 'a'.upper()", "`.upper` is not understood"),
            ("assert 1.5 | 2", "1.5 is no whole number"),
            ("if 1", "`:` is expected"),
            (
                "if 1\n  assert 1",
                "`assert 1` is indented further than the line above, which does not end in `:`",
            ),
            ("if 1:\nassert 1", "indented lines are expected"),
            ("   if 0:\n     assert 1\n   else:\n     assert 1\n   assert 0", "`0` does not hold"),
            ("if 1:\n    assert 1\n  assert 1", "`assert 1` is indented by 2, as no line before it"),
            ("  assert 1\nassert 1", "`assert 1` is indented by 0, as no line before it"),
            ("assert 1\n  assert 1", "`assert 1` is indented further than the line above"),
            ("if 0: assert 1\n  assert 0", "`assert 0` is indented further than the line above"),
            ("if 0: assert 1\nelse 0: assert 0", "`:` is expected behind `else`, and not `0`"),
            ("else: assert 1", "`else` has no value"),
            ("assert 1.0 / 0", "division by 0"),
        ] {
            let message = run(code).unwrap_err();
            assert!(message.starts_with(said), "{code}: {message}");
        }
    }
}
