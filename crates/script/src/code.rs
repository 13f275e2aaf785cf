//! The snippets between `%{` and `}%`: assertions about numbers.
//!
//! They support a part of Python: `assert condition, message`, assignments, `print`, `if`, `elif`
//! and `else` with indented blocks, (chained) comparisons, `and or not in`, arithmetic and bit
//! operations, `a if condition else b`, `%` and `.format` for texts, `abs float int len max min
//! round`, tuples and lists and their elements. Anything else is an error that names it. Numbers
//! are integers, or doubles after a decimal point or a division.

mod evaluate;
mod expression;
mod function;
mod statement;
mod tokens;

use expression::Expr;
use statement::{Assert, Statement, statements};
use std::collections::BTreeMap;
use std::fmt;

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

/// Checks that all code of a snippet is supported.
///
/// # Errors
/// Returns a message that names the unsupported code.
pub fn check(code: &str) -> Result<(), String> {
    statements(code).map(drop)
}

fn shown(values: &[Value]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    values.join(", ")
}

/// Variables that snippets have assigned. They persist from one snippet to the next.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    values: BTreeMap<String, Value>,
}

/// Returns the value of a name that was not assigned.
pub type Known<'a> = &'a dyn Fn(&str) -> Option<i128>;

impl Variables {
    /// Runs a snippet.
    ///
    /// # Errors
    /// Returns a message: the assertion that failed with the values of its names, or the code that
    /// is not supported.
    pub fn run(&mut self, code: &str, known: Known<'_>) -> Result<(), String> {
        self.block(&statements(code)?, known)
    }

    /// The value of one expression.
    ///
    /// # Errors
    /// A sentence.
    pub fn evaluate(&self, code: &str, known: Known<'_>) -> Result<Value, String> {
        match statements(code)?.as_slice() {
            [Statement::Value(value)] => value.value(&|name| self.get(name, known)),
            _ => Err(format!("`{code}` is not one expression")),
        }
    }

    fn block(&mut self, block: &[Statement], known: Known<'_>) -> Result<(), String> {
        block.iter().try_for_each(|statement| self.statement(statement, known))
    }

    fn statement(&mut self, statement: &Statement, known: Known<'_>) -> Result<(), String> {
        let value = |expr: &Expr| expr.value(&|name| self.get(name, known));
        match statement {
            Statement::Assert(assert) => self.assert(assert, known),
            Statement::Value(expr) => value(expr).map(drop),
            Statement::Assign { name, operator, value: expr } => {
                let mut value = value(expr)?;
                if let Some(operator) = operator {
                    let old = self.get(name, known).ok_or(format!("`{name}` has no value"))?;
                    value = evaluate::binary(operator, &old, &value)?;
                }
                self.values.insert(name.clone(), value);
                Ok(())
            }
            Statement::If(branches) => {
                for (condition, suite) in branches {
                    let holds = match condition {
                        Some(condition) => value(condition)?.is_true(),
                        None => true,
                    };
                    if holds {
                        return self.block(suite, known);
                    }
                }
                Ok(())
            }
        }
    }

    fn assert(&self, assert: &Assert, known: Known<'_>) -> Result<(), String> {
        let lookup = |name: &str| self.get(name, known);
        if assert.condition.value(&lookup)?.is_true() {
            return Ok(());
        }
        let named = assert.names.iter().filter_map(|name| Some(format!("{name} = {}", lookup(name)?)));
        let mut named: Vec<String> = named.collect();
        named.dedup();
        let message = match &assert.message {
            Some(message) => format!(" (it says: {})", message.value(&lookup)?),
            None => String::new(),
        };
        Err(format!("`{}` does not hold: {}{message}", assert.text, named.join(", ")))
    }

    fn get(&self, name: &str, known: Known<'_>) -> Option<Value> {
        self.values.get(name).cloned().or_else(|| known(name).map(Value::Int))
    }
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
            "assert -7 // 2 == -4 and 7 // -2 == -4 and -7 // -2 == 3 and -7 % 2 == 1 and 7 % -2 == -1 and -7 % -2 == -1",
            "assert -7.5 // 2 == -4 and 7.5 // -2 == -4 and -7.5 % 2 == 0.5 and 7.5 % -2 == -0.5 and 7.5 % 2 == 1.5",
            "assert 1 or nonsense; assert not (0 and nonsense); assert 1 if 1 else nonsense; assert nonsense if 0 else 2",
            "assert not 2 < 1 < nonsense; assert 3 not in (1, 2) and not 1 not in [1] and not not 1",
            "assert max((1, 2)) == 2 and min([3, 1.5]) == 1.5",
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
            ("else: assert 1", "`else` has no `if` before it"),
            ("assert (tcpi_snd_cwnd == 99, 'cwnd')", "`( tcpi_snd_cwnd == 99 , 'cwnd' )` always holds"),
            ("assert [0]", "`[ 0 ]` always holds"),
            ("assert 'no'", "`'no'` always holds"),
            ("assert print(0)", "`print ( 0 )` does not hold"),
            ("assert 1 not 2", "`in` is expected behind `not`"),
            ("assert 2 not in (1, 2)", "`2 not in ( 1 , 2 )` does not hold"),
            ("assert abs(1, 2)", "abs takes one value, and 2 are given"),
            ("assert len()", "len takes one value, and 0 are given"),
            ("assert round(1.25, 1)", "round takes one value, and 2 are given"),
            ("assert max()", "max needs a number"),
            ("assert max(1)", "1 is no tuple or list of numbers"),
            ("assert int(1e308 * 10)", "inf is no whole number"),
            ("if 0: assert 1 +", "a value is expected at the end"),
            ("assert 1 or open('x')", "`open` is no function"),
            ("assert 1 and tcpi_wnd", "`tcpi_wnd` has no value"),
            ("assert 1 + if", "`if` is not expected where a value is"),
            ("assert 1.0 / 0", "division by 0"),
        ] {
            let message = run(code).unwrap_err();
            assert!(message.starts_with(said), "{code}: {message}");
        }
    }
}
