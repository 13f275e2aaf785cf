//! Formulas in files: `goodput(plain)`, `time(cached) / time(clean)`.

use core::str::FromStr;

/// A measure, or numbers and measures joined by `+ - * /` and parentheses.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Formula {
    Number(f64),
    Measure { name: String, arguments: Vec<String> },
    Joined(Box<Formula>, char, Box<Formula>),
}

impl Formula {
    /// Evaluates the formula; `measure` returns the values of measures.
    pub(super) fn value(
        &self,
        measure: &impl Fn(&str, &[String]) -> Result<f64, String>,
    ) -> Result<f64, String> {
        Ok(match self {
            Formula::Number(number) => *number,
            Formula::Measure { name, arguments } => measure(name, arguments)?,
            Formula::Joined(left, sign, right) => {
                let (left, right) = (left.value(measure)?, right.value(measure)?);
                match sign {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ => left / right,
                }
            }
        })
    }

    /// Returns the unit of the value; `unit_of` returns the units of measures. A plain number, such
    /// as a quotient of two times, has the unit `""`. A product of units has none.
    pub(super) fn unit(&self, unit_of: &impl Fn(&str, &[String]) -> &'static str) -> Option<&'static str> {
        let (left, sign, right) = match self {
            Formula::Number(_) => return Some(""),
            Formula::Measure { name, arguments } => return Some(unit_of(name, arguments)),
            Formula::Joined(left, sign, right) => (left.unit(unit_of)?, sign, right.unit(unit_of)?),
        };
        match (left, sign, right) {
            (left, '/', right) if left == right => Some(""),
            (left, _, "") => Some(left),
            ("", '+' | '-' | '*', right) => Some(right),
            (left, '+' | '-', right) if left == right => Some(left),
            _ => None,
        }
    }

    /// Returns every measure in the formula.
    pub(super) fn measures(&self) -> Vec<(&str, &[String])> {
        match self {
            Formula::Number(_) => Vec::new(),
            Formula::Measure { name, arguments } => vec![(name, arguments)],
            Formula::Joined(left, _, right) => [left.measures(), right.measures()].concat(),
        }
    }
}

/// Maximum signs and parentheses: parsing and evaluation recurse on the stack.
const SIGNS_MAX: usize = 200;

impl FromStr for Formula {
    type Err = String;

    fn from_str(text: &str) -> Result<Formula, String> {
        if text.matches(['(', '+', '-', '*', '/']).count() > SIGNS_MAX {
            return Err(format!("a formula has at most {SIGNS_MAX} signs and parentheses"));
        }
        let mut rest = text;
        let formula = sum(&mut rest)?;
        match rest.trim() {
            "" => Ok(formula),
            rest => Err(format!("unexpected `{rest}` at the end of `{text}`")),
        }
    }
}

fn sum(rest: &mut &str) -> Result<Formula, String> {
    joined(rest, &['+', '-'], |rest| joined(rest, &['*', '/'], term))
}

fn joined(
    rest: &mut &str,
    signs: &[char],
    part: impl Fn(&mut &str) -> Result<Formula, String>,
) -> Result<Formula, String> {
    let mut left = part(rest)?;
    loop {
        *rest = rest.trim_start();
        let Some(sign) = rest.chars().next().filter(|sign| signs.contains(sign)) else { return Ok(left) };
        *rest = &rest[1..];
        left = Formula::Joined(Box::new(left), sign, Box::new(part(rest)?));
    }
}

fn term(rest: &mut &str) -> Result<Formula, String> {
    *rest = rest.trim_start();
    if let Some(inside) = rest.strip_prefix('(') {
        *rest = inside;
        let formula = sum(rest)?;
        *rest = rest.trim_start().strip_prefix(')').ok_or("missing `)`")?;
        return Ok(formula);
    }
    // A minus needs a space before it; otherwise it belongs to a name, as in `syn-ack data`.
    let ends = [rest.find(['(', ')', '+', '*', '/']), rest.find(" -")];
    let end = ends.into_iter().flatten().min().unwrap_or(rest.len());
    let word = rest[..end].trim();
    if let Ok(number) = word.parse() {
        *rest = &rest[end..];
        return Ok(Formula::Number(number));
    }
    let inside = rest[end..]
        .strip_prefix('(')
        .ok_or_else(|| format!("expected a number or a measure with its `(run)`, found `{word}`"))?;
    let (arguments, after) = inside.split_once(')').ok_or_else(|| format!("missing `)` after `{word}(`"))?;
    *rest = after;
    let arguments = arguments.split(',').map(str::trim).filter(|word| !word.is_empty());
    Ok(Formula::Measure { name: word.to_owned(), arguments: arguments.map(str::to_owned).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_joined_as_in_arithmetic() {
        let formula: Formula = "7 - 6 + time(a, 2) / (time(b) + 1) * 2".parse().unwrap();
        let value = formula.value(&|name, arguments| {
            assert_eq!(name, "time");
            Ok(if arguments == ["a", "2"] { 6.0 } else { 2.0 })
        });
        assert_eq!(value, Ok(5.0));
    }

    #[test]
    fn a_quotient_of_two_times_is_a_plain_number() {
        let unit_of = |name: &str, _: &[String]| if name == "time" { "ms" } else { "B" };
        for (text, unit) in [
            ("time(a)", Some("ms")),
            ("time(a) / time(b)", Some("")),
            ("1 - time(a) / time(b)", Some("")),
            ("(time(a) + time(b)) / 2", Some("ms")),
            ("2 * read(a)", Some("B")),
            ("read(a) / time(a)", None),
            ("read(a) + time(a)", None),
        ] {
            assert_eq!(text.parse::<Formula>().unwrap().unit(&unit_of), unit, "{text}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        let (deep, long) = (format!("{}1", "(".repeat(100_000)), format!("1{}", "+1".repeat(100_000)));
        for (text, told) in [
            ("time", "expected a number or a measure"),
            ("time(a", "missing `)`"),
            ("time(a) b", "unexpected `b`"),
            (&deep, "at most 200 signs"),
            (&long, "at most 200 signs"),
        ] {
            assert!(text.parse::<Formula>().is_err_and(|error| error.contains(told)), "{text}");
        }
    }
}
