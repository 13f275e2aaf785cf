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

    /// `a and b or c`
    pub(super) fn test(&mut self) -> Result<Value, String> {
        self.or(0)
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
                (None, Value::Tuple(values)) => values.contains(&left),
                (None, other) => return Err(format!("`in` looks into a tuple, and {other} is none")),
                (Some("=="), right) => left == *right,
                (Some("!="), right) => left != *right,
                (Some(operator), right) => compare(operator, left.int()?, right.int()?),
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
            return Ok(Value::Int(self.unary(depth + 1)?.int()?.wrapping_neg()));
        }
        if self.sign("~") {
            return Ok(Value::Int(!self.unary(depth + 1)?.int()?));
        }
        self.atom(depth)
    }

    fn atom(&mut self, depth: u32) -> Result<Value, String> {
        let Some(token) = self.peek().cloned() else { return Err("a value is expected at the end".into()) };
        self.next += 1;
        match token {
            Token::Int(value) => Ok(Value::Int(value)),
            Token::Text(text) => Ok(Value::Text(text)),
            Token::Sign("(") => {
                let (mut values, commas) = self.arguments(depth)?;
                Ok(if values.len() == 1 && !commas { values.remove(0) } else { Value::Tuple(values) })
            }
            Token::Name(name) if self.sign("(") => {
                let (values, _) = self.arguments(depth)?;
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

    /// Values up to `)`, and whether a comma stood among them.
    fn arguments(&mut self, depth: u32) -> Result<(Vec<Value>, bool), String> {
        let mut values = Vec::new();
        let mut commas = false;
        while !self.sign(")") {
            values.push(self.or(depth + 1)?);
            if self.sign(",") {
                commas = true;
            } else if self.peek() != Some(&Token::Sign(")")) {
                return Err("`)` is expected".into());
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

fn compare(operator: &str, left: i128, right: i128) -> bool {
    match operator {
        "<" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        _ => left >= right,
    }
}

/// The value of an operator between two values.
pub(super) fn binary(operator: &str, left: &Value, right: &Value) -> Result<Value, String> {
    if let (Value::Text(text), "%") = (left, operator) {
        return format_text(text, right).map(Value::Text);
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
            return Err(format!("{left} / {right} is no whole number: `//` cuts off"));
        }
        _ => left.checked_div_euclid(right),
    };
    value.map(Value::Int).ok_or_else(|| format!("{left} {operator} {right} is out of range"))
}

fn function(name: &str, values: &[Value]) -> Result<Value, String> {
    let ints = || values.iter().map(Value::int).collect::<Result<Vec<i128>, String>>();
    let none = || format!("{name} needs a number");
    match name {
        "print" => Ok(Value::Tuple(values.to_vec())),
        "abs" => Ok(Value::Int(ints()?.first().ok_or_else(none)?.wrapping_abs())),
        "min" => ints()?.into_iter().min().map(Value::Int).ok_or_else(none),
        "max" => ints()?.into_iter().max().map(Value::Int).ok_or_else(none),
        _ => Err(format!("`{name}` is no function that snippets know: abs, max, min, print")),
    }
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
        match rest.find(|c| c.is_ascii_alphabetic() || *c == '%') {
            Some('%') => out.push('%'),
            Some('x') => out.push_str(&format!("{:x}", values.next().ok_or("a value is missing")?.int()?)),
            Some(_) => out.push_str(&values.next().ok_or("a value is missing")?.to_string()),
            None => return Err(format!("'{text}' ends in the middle of a format")),
        }
    }
    Ok(out)
}
