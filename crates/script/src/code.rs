//! The snippets between `%{` and `}%`: assertions about numbers.
//!
//! The part of Python that they use: `assert condition, message`, assignments, `print`, comparison (chained too), `and or not in`,
//! arithmetic and bits, `a if condition else b`, `%` and `.format` for texts, `abs len max min`, tuples and lists and what they have at a
//! place. Everything else is refused by name. Numbers are whole.

mod expression;
mod tokens;

use expression::Parser;
use std::collections::BTreeMap;
use std::fmt;
use tokens::{Token, statements};

/// A value of a snippet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number; truth is 1 and 0.
    Int(i128),
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
            Value::Text(text) => !text.is_empty(),
            Value::Tuple(values) | Value::List(values) => !values.is_empty(),
        }
    }

    fn int(&self) -> Result<i128, String> {
        match self {
            Value::Int(value) => Ok(*value),
            other => Err(format!("{other} is no number")),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(value) => write!(f, "{value}"),
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
    statements(code)?.iter().try_for_each(|statement| refused(statement))
}

/// Statements of Python's that have no meaning here.
fn refused(tokens: &[Token]) -> Result<(), String> {
    match tokens {
        [Token::Name(word), ..]
            if ["import", "from", "if", "for", "while", "def"].contains(&word.as_str()) =>
        {
            Err(format!("`{word}` is not understood in snippets: only assertions and assignments are"))
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
        for statement in statements(code)? {
            self.statement(&statement, known)?;
        }
        Ok(())
    }

    /// The value of one expression.
    ///
    /// # Errors
    /// A sentence.
    pub fn evaluate(&self, code: &str, known: Known<'_>) -> Result<Value, String> {
        match statements(code)?.as_slice() {
            [only] => self.value(only, known),
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
        let shown: Vec<String> = used.iter().map(ToString::to_string).collect();
        let named = used.iter().filter_map(|token| match token {
            Token::Name(name) => Some(format!("{name} = {}", self.get(name, known)?)),
            _ => None,
        });
        let mut named: Vec<String> = named.collect();
        named.dedup();
        let message = message.map_or(String::new(), |message| format!(" (it says: {message})"));
        Err(format!("`{}` does not hold: {}{message}", shown.join(" "), named.join(", ")))
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
            ("assert 1.5", "`.5` is not understood"),
        ] {
            let message = run(code).unwrap_err();
            assert!(message.starts_with(said), "{code}: {message}");
        }
    }
}
