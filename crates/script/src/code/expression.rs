//! Expressions of snippets, with Python's precedence.

use super::Value;
use super::tokens::Token;

pub(super) struct Parser<'a> {
    tokens: &'a [Token],
    next: usize,
    lookup: &'a dyn Fn(&str) -> Option<Value>,
}

/// Operators that take two values, from the weakest.
const LEVELS: [&[&str]; 6] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "//", "/", "%"]];
const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
/// Places behind the point that a format may ask for.
const PLACES_MAX: usize = 30;
/// Parentheses and signs within each other.
const DEPTH_MAX: u32 = 100;

impl<'a> Parser<'a> {
    pub(super) fn new(tokens: &'a [Token], lookup: &'a dyn Fn(&str) -> Option<Value>) -> Parser<'a> {
        Parser { tokens, next: 0, lookup }
    }

    pub(super) fn position(&self) -> usize {
        self.next
    }

    pub(super) fn finish(&self) -> Result<(), String> {
        match self.peek() {
            None => Ok(()),
            Some(token) => Err(format!("`{token}` is not expected here")),
        }
    }

    /// One value, or several with commas.
    pub(super) fn tuple(&mut self) -> Result<Value, String> {
        let first = self.test()?;
        if !self.sign(",") {
            return Ok(first);
        }
        let mut values = vec![first];
        while self.peek().is_some() {
            values.push(self.test()?);
            if !self.sign(",") {
                break;
            }
        }
        Ok(Value::Tuple(values))
    }

    /// `a if b else c`
    pub(super) fn test(&mut self) -> Result<Value, String> {
        self.choice(0)
    }

    fn choice(&mut self, depth: u32) -> Result<Value, String> {
        let value = self.or(depth)?;
        if !self.name("if") {
            return Ok(value);
        }
        let condition = self.or(depth)?;
        if !self.name("else") {
            return Err("`else` is expected".into());
        }
        let otherwise = self.choice(depth + 1)?;
        Ok(if condition.is_true() { value } else { otherwise })
    }

    fn or(&mut self, depth: u32) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err("the snippet is nested too deep".into());
        }
        let mut left = self.and(depth)?;
        while self.name("or") {
            let right = self.and(depth)?;
            left = if left.is_true() { left } else { right };
        }
        Ok(left)
    }

    fn and(&mut self, depth: u32) -> Result<Value, String> {
        let mut left = self.not(depth)?;
        while self.name("and") {
            let right = self.not(depth)?;
            left = if left.is_true() { right } else { left };
        }
        Ok(left)
    }

    fn not(&mut self, depth: u32) -> Result<Value, String> {
        let mut turned = None;
        while self.name("not") {
            turned = Some(!turned.unwrap_or(false));
        }
        let value = self.comparison(depth)?;
        Ok(turned.map_or(value.clone(), |turned| truth(value.is_true() != turned)))
    }

    /// `a < b <= c` is `a < b and b <= c`.
    fn comparison(&mut self, depth: u32) -> Result<Value, String> {
        let mut left = self.level(0, depth)?;
        let mut holds = None;
        loop {
            let operator = COMPARISONS.into_iter().find(|sign| self.sign(sign));
            if operator.is_none() && !self.name("in") {
                return Ok(holds.map_or(left, truth));
            }
            let right = self.level(0, depth)?;
            let result = match (operator, &right) {
                (None, Value::Tuple(values) | Value::List(values)) => values.contains(&left),
                (None, other) => {
                    return Err(format!("`in` looks into a tuple or a list, and {other} is none"));
                }
                (Some("=="), right) => left == *right,
                (Some("!="), right) => left != *right,
                (Some(operator), right) => compare(operator, &left, right)?,
            };
            holds = Some(holds.unwrap_or(true) && result);
            left = right;
        }
    }

    fn level(&mut self, level: usize, depth: u32) -> Result<Value, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary(depth) };
        let mut left = self.level(level + 1, depth)?;
        while let Some(operator) = operators.iter().find(|sign| self.sign(sign)) {
            let right = self.level(level + 1, depth)?;
            left = binary(operator, &left, &right)?;
        }
        Ok(left)
    }

    fn unary(&mut self, depth: u32) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err("the snippet is nested too deep".into());
        }
        if self.sign("-") {
            return Ok(match self.unary(depth + 1)? {
                Value::Float(value) => Value::Float(-value),
                value => Value::Int(value.int()?.wrapping_neg()),
            });
        }
        if self.sign("~") {
            return Ok(Value::Int(!self.unary(depth + 1)?.int()?));
        }
        let mut value = self.atom(depth)?;
        loop {
            if self.sign("[") {
                let at = self.choice(depth + 1)?.int()?;
                if !self.sign("]") {
                    return Err("`]` is expected".into());
                }
                value = at_place(&value, at)?;
            } else if self.sign(".") {
                value = self.method(&value, depth)?;
            } else {
                return Ok(value);
            }
        }
    }

    /// What stands behind a point.
    fn method(&mut self, value: &Value, depth: u32) -> Result<Value, String> {
        match (self.peek().cloned(), value) {
            (Some(Token::Name(name)), Value::Text(text)) if name == "format" => {
                self.next += 1;
                if !self.sign("(") {
                    return Err("`(` is expected".into());
                }
                let (values, _) = self.arguments(")", depth)?;
                fill_in(text, &values).map(Value::Text)
            }
            (Some(token), _) => Err(format!("`.{token}` is not understood in snippets")),
            (None, _) => Err("`.` is not understood in snippets".into()),
        }
    }

    fn atom(&mut self, depth: u32) -> Result<Value, String> {
        let Some(token) = self.peek().cloned() else { return Err("a value is expected at the end".into()) };
        self.next += 1;
        match token {
            Token::Int(value) => Ok(Value::Int(value)),
            Token::Float(value) => Ok(Value::Float(value)),
            Token::Text(text) => Ok(Value::Text(text)),
            Token::Sign("[") => Ok(Value::List(self.arguments("]", depth)?.0)),
            Token::Sign("(") => {
                let (mut values, commas) = self.arguments(")", depth)?;
                Ok(if values.len() == 1 && !commas { values.remove(0) } else { Value::Tuple(values) })
            }
            Token::Name(name) if self.sign("(") => {
                let (values, _) = self.arguments(")", depth)?;
                function(&name, &values)
            }
            Token::Name(name) => match name.as_str() {
                "True" => Ok(truth(true)),
                "False" => Ok(truth(false)),
                _ => (self.lookup)(&name).ok_or_else(|| format!("`{name}` has no value")),
            },
            token @ Token::Sign(_) => Err(format!("`{token}` is not expected where a value is")),
        }
    }

    /// Values up to the sign that closes them, and whether a comma stood among them.
    fn arguments(&mut self, close: &'static str, depth: u32) -> Result<(Vec<Value>, bool), String> {
        let mut values = Vec::new();
        let mut commas = false;
        while !self.sign(close) {
            values.push(self.choice(depth + 1)?);
            if self.sign(",") {
                commas = true;
            } else if self.peek() != Some(&Token::Sign(close)) {
                return Err(format!("`{close}` is expected"));
            }
        }
        Ok((values, commas))
    }

    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.next)
    }

    pub(super) fn sign(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(sign)) if *sign == wanted);
        self.next += usize::from(found);
        found
    }

    fn name(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Name(name)) if name == wanted);
        self.next += usize::from(found);
        found
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
        "//" => (left / right).floor(),
        "%" => left - right * (left / right).floor(),
        _ => {
            let wrong = if left.fract() == 0.0 { right } else { left };
            return Err(format!("{wrong:?} is no whole number, which `{operator}` needs"));
        }
    };
    Ok(Value::Float(value))
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
        "%" => left.checked_rem_euclid(right),
        "/" if left.checked_rem(right) != Some(0) => {
            return binary_float(operator, left as f64, right as f64);
        }
        _ => left.checked_div_euclid(right),
    };
    value.map(Value::Int).ok_or_else(|| format!("{left} {operator} {right} is out of range"))
}

fn function(name: &str, values: &[Value]) -> Result<Value, String> {
    let none = || format!("{name} needs a number");
    let best = |is_better: &str| {
        let (first, rest) = values.split_first().ok_or_else(none)?;
        rest.iter().try_fold(first.clone(), |best, value| {
            Ok(if compare(is_better, value, &best)? { value.clone() } else { best })
        })
    };
    let one = || values.first().ok_or_else(none);
    match name {
        "print" => Ok(Value::Tuple(values.to_vec())),
        "abs" => Ok(match one()? {
            Value::Float(value) => Value::Float(value.abs()),
            value => Value::Int(value.int()?.wrapping_abs()),
        }),
        "min" => best("<"),
        "max" => best(">"),
        "float" => Ok(Value::Float(one()?.float()?)),
        "int" => Ok(match one()? {
            Value::Float(value) => Value::Int(value.trunc() as i128),
            value => Value::Int(value.int()?),
        }),
        "round" => Ok(match one()? {
            Value::Float(value) => Value::Int(value.round_ties_even() as i128),
            value => Value::Int(value.int()?),
        }),
        "len" => match values {
            [Value::Tuple(values) | Value::List(values)] => Ok(Value::Int(values.len() as i128)),
            [Value::Text(text)] => Ok(Value::Int(text.chars().count() as i128)),
            _ => Err("len needs a text, a tuple or a list".into()),
        },
        _ => Err(format!(
            "`{name}` is no function that snippets know: abs, float, int, len, max, min, print, round"
        )),
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
