//! What expressions of snippets are worth, as in Python: what is not asked for is not worked out.

use super::Value;
use super::expression::{Comparison, Expr, Suffix};
use super::function::Function;

/// Gives the value of a name.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<Value>;

/// Places behind the point that a format may ask for.
const PLACES_MAX: usize = 30;

impl Expr {
    pub(super) fn value(&self, lookup: Lookup<'_>) -> Result<Value, String> {
        match self {
            Expr::Value(value) => Ok(value.clone()),
            Expr::Name(name) => lookup(name).ok_or_else(|| format!("`{name}` has no value")),
            Expr::Tuple(all) => values(all, lookup).map(Value::Tuple),
            Expr::List(all) => values(all, lookup).map(Value::List),
            Expr::Or(all) => first_that(true, all, lookup),
            Expr::And(all) => first_that(false, all, lookup),
            Expr::Not(value) => Ok(truth(!value.value(lookup)?.is_true())),
            Expr::Comparison(first, rest) => compared(first, rest, lookup),
            Expr::Arithmetic(first, rest) => {
                rest.iter().try_fold(first.value(lookup)?, |left, (operator, right)| {
                    binary(operator, &left, &right.value(lookup)?)
                })
            }
            Expr::Negative(value) => Ok(match value.value(lookup)? {
                Value::Float(value) => Value::Float(-value),
                value => Value::Int(value.int()?.wrapping_neg()),
            }),
            Expr::Inverted(value) => Ok(Value::Int(!value.value(lookup)?.int()?)),
            Expr::Choice { condition, then, otherwise } => {
                let chosen = if condition.value(lookup)?.is_true() { then } else { otherwise };
                chosen.value(lookup)
            }
            Expr::Behind(value, all) => {
                all.iter().try_fold(value.value(lookup)?, |value, suffix| behind(&value, suffix, lookup))
            }
            Expr::Call(function, all) => function.of(&values(all, lookup)?),
        }
    }
}

fn values(all: &[Expr], lookup: Lookup<'_>) -> Result<Vec<Value>, String> {
    all.iter().map(|one| one.value(lookup)).collect()
}

/// The first value whose truth is this one, or else the last.
fn first_that(wanted: bool, all: &[Expr], lookup: Lookup<'_>) -> Result<Value, String> {
    let mut last = truth(!wanted);
    for one in all {
        last = one.value(lookup)?;
        if last.is_true() == wanted {
            break;
        }
    }
    Ok(last)
}

fn compared(first: &Expr, rest: &[(Comparison, Expr)], lookup: Lookup<'_>) -> Result<Value, String> {
    let mut left = first.value(lookup)?;
    for (comparison, right) in rest {
        let right = right.value(lookup)?;
        if !holds(*comparison, &left, &right)? {
            return Ok(truth(false));
        }
        left = right;
    }
    Ok(truth(true))
}

fn holds(comparison: Comparison, left: &Value, right: &Value) -> Result<bool, String> {
    match (comparison, right) {
        (Comparison::Sign("=="), right) => Ok(left == right),
        (Comparison::Sign("!="), right) => Ok(left != right),
        (Comparison::Sign(operator), right) => compare(operator, left, right),
        (found, Value::Tuple(all) | Value::List(all)) => Ok(all.contains(left) == (found == Comparison::In)),
        (_, other) => Err(format!("`in` looks into a tuple or a list, and {other} is none")),
    }
}

fn behind(value: &Value, suffix: &Suffix, lookup: Lookup<'_>) -> Result<Value, String> {
    match (suffix, value) {
        (Suffix::At(at), value) => at_place(value, at.value(lookup)?.int()?),
        (Suffix::Format(all), Value::Text(text)) => fill_in(text, &values(all, lookup)?).map(Value::Text),
        (Suffix::Format(_), other) => Err(format!("`.format` needs a text before it, and {other} is none")),
    }
}

fn truth(holds: bool) -> Value {
    Value::Int(holds.into())
}

fn compare(operator: &str, left: &Value, right: &Value) -> Result<bool, String> {
    let order = match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        _ => left.float()?.partial_cmp(&right.float()?),
    };
    // What is no number is neither less nor more.
    Ok(order.is_some_and(|order| match operator {
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }))
}

/// Where one of two numbers is no whole one, or the quotient is none.
fn binary_float(operator: &str, left: f64, right: f64) -> Result<Value, String> {
    let value = match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" | "//" | "%" if right == 0.0 => return Err("division by 0".into()),
        "/" => left / right,
        "//" => ((left - modulo(left, right)) / right).round(),
        "%" => modulo(left, right),
        _ => {
            let wrong = if left.fract() == 0.0 { right } else { left };
            return Err(format!("{wrong:?} is no whole number, which `{operator}` needs"));
        }
    };
    Ok(Value::Float(value))
}

/// What Python's `%` leaves has the sign of what it divides by.
fn modulo(left: f64, right: f64) -> f64 {
    let left = left % right;
    if left != 0.0 && (left < 0.0) != (right < 0.0) { left + right } else { left }
}

/// Python's `//` and `%`: the quotient is rounded down, whatever the signs.
fn divided(left: i128, right: i128) -> Option<(i128, i128)> {
    let (quotient, rest) = (left.checked_div(right)?, left.checked_rem(right)?);
    Some(if rest != 0 && (rest < 0) != (right < 0) { (quotient - 1, rest + right) } else { (quotient, rest) })
}

/// The value of an operator between two values.
pub(super) fn binary(operator: &str, left: &Value, right: &Value) -> Result<Value, String> {
    if let (Value::Text(text), "%") = (left, operator) {
        return format_text(text, right).map(Value::Text);
    }
    if matches!(left, Value::Float(_)) || matches!(right, Value::Float(_)) {
        return binary_float(operator, left.float()?, right.float()?);
    }
    let (left, right) = (left.int()?, right.int()?);
    let shift = u32::try_from(right).ok().filter(|by| *by < 100);
    let value = match operator {
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        "&" => Some(left & right),
        "<<" => shift.and_then(|by| left.checked_mul(1_i128.checked_shl(by)?)),
        ">>" => shift.map(|by| left >> by),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        _ if right == 0 => return Err("division by 0".into()),
        "%" => divided(left, right).map(|(_, rest)| rest),
        "/" if left.checked_rem(right) != Some(0) => {
            return binary_float(operator, left as f64, right as f64);
        }
        _ => divided(left, right).map(|(quotient, _)| quotient),
    };
    value.map(Value::Int).ok_or_else(|| format!("{left} {operator} {right} is out of range"))
}

impl Function {
    fn of(self, values: &[Value]) -> Result<Value, String> {
        match (self, values) {
            // As in Python, nothing comes of it.
            (Function::Print, _) => Ok(Value::Tuple(Vec::new())),
            (Function::Max | Function::Min, [Value::Tuple(all) | Value::List(all)]) => self.best(all),
            (Function::Max | Function::Min, [one]) => Err(format!("{one} is no tuple or list of numbers")),
            (Function::Max | Function::Min, all) => self.best(all),
            (Function::Len, [Value::Tuple(all) | Value::List(all)]) => Ok(Value::Int(all.len() as i128)),
            (Function::Len, [Value::Text(text)]) => Ok(Value::Int(text.chars().count() as i128)),
            (Function::Len, _) => Err("len needs a text, a tuple or a list".into()),
            (Function::Float, [value, ..]) => Ok(Value::Float(value.float()?)),
            (Function::Abs, [Value::Float(value), ..]) => Ok(Value::Float(value.abs())),
            (Function::Abs, [value, ..]) => Ok(Value::Int(value.int()?.wrapping_abs())),
            (Function::Int | Function::Round, [Value::Float(value), ..]) if !value.is_finite() => {
                Err(format!("{value:?} is no whole number, nor near one"))
            }
            (Function::Int, [Value::Float(value), ..]) => Ok(Value::Int(value.trunc() as i128)),
            (Function::Round, [Value::Float(value), ..]) => Ok(Value::Int(value.round_ties_even() as i128)),
            (Function::Int | Function::Round, [value, ..]) => Ok(Value::Int(value.int()?)),
            (_, []) => Err("a value is missing".into()),
        }
    }

    fn best(self, values: &[Value]) -> Result<Value, String> {
        let is_better = if self == Function::Max { ">" } else { "<" };
        let (first, rest) = values.split_first().ok_or("there is no number among none")?;
        rest.iter().try_fold(first.clone(), |best, value| {
            Ok(if compare(is_better, value, &best)? { value.clone() } else { best })
        })
    }
}

/// What a tuple or a list has there; negative places count from the end.
fn at_place(value: &Value, at: i128) -> Result<Value, String> {
    let (Value::Tuple(values) | Value::List(values)) = value else {
        return Err(format!("`[` needs a tuple or a list before it, and {value} is none"));
    };
    let place = if at < 0 { at + values.len() as i128 } else { at };
    let found = usize::try_from(place).ok().and_then(|place| values.get(place));
    found.cloned().ok_or_else(|| format!("there is no {at} in {value}"))
}

/// `'{} of {1}'.format(1, 2)`: each `{}` takes the next value, or the one whose place it says.
fn fill_in(text: &str, values: &[Value]) -> Result<String, String> {
    let mut out = String::new();
    let mut next = 0..;
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let doubled = ["{{", "}}"].into_iter().find(|doubled| rest[at..].starts_with(doubled));
        if let Some(doubled) = doubled {
            out.push_str(&doubled[..1]);
            rest = &rest[at + 2..];
            continue;
        }
        let inside = rest[at..].strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let (field, behind) = inside.ok_or_else(|| format!("'{text}' ends in the middle of a format"))?;
        let place = match field {
            "" => next.next(),
            number => number.parse().ok(),
        };
        let place = place.ok_or_else(|| format!("`{{{field}}}` of a format is not understood"))?;
        out.push_str(&values.get(place).ok_or("a value is missing")?.to_string());
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// `'%d of %s' % (1, 2)`: each `%` and its letter take the next value.
fn format_text(text: &str, values: &Value) -> Result<String, String> {
    let values = match values {
        Value::Tuple(values) => values.clone(),
        one => vec![one.clone()],
    };
    let mut values = values.into_iter();
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let said: String =
            rest.as_str().chars().take_while(|c| !c.is_ascii_alphabetic() && *c != '%').collect();
        match rest.find(|c| c.is_ascii_alphabetic() || *c == '%') {
            Some('%') => out.push('%'),
            Some('f') => {
                let value = values.next().ok_or("a value is missing")?.float()?;
                let places = said.split_once('.').and_then(|(_, places)| places.parse().ok()).unwrap_or(6);
                out.push_str(&format!("{value:.0$}", places.min(PLACES_MAX)));
            }
            Some('x') => out.push_str(&format!("{:x}", values.next().ok_or("a value is missing")?.int()?)),
            Some(_) => out.push_str(&values.next().ok_or("a value is missing")?.to_string()),
            None => return Err(format!("'{text}' ends in the middle of a format")),
        }
    }
    Ok(out)
}
