//! Expressions of snippets, with Python's precedence: from tokens to a tree. What one is worth is in `evaluate`.

use super::Value;
use super::function::Function;
use super::tokens::Token;

/// What is chained is a list: a long sum is no deep tree.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Value(Value),
    Name(String),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Or(Vec<Expr>),
    And(Vec<Expr>),
    Not(Box<Expr>),
    /// `a < b <= c`
    Comparison(Box<Expr>, Vec<(Comparison, Expr)>),
    /// `a + b - c`
    Arithmetic(Box<Expr>, Vec<(&'static str, Expr)>),
    Negative(Box<Expr>),
    Inverted(Box<Expr>),
    /// `then if condition else otherwise`
    Choice {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    /// `a[0].format(b)`
    Behind(Box<Expr>, Vec<Suffix>),
    Call(Function, Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Sign(&'static str),
    In,
    NotIn,
}

#[derive(Clone, Debug)]
pub(super) enum Suffix {
    At(Expr),
    Format(Vec<Expr>),
}

pub(super) struct Parser<'a> {
    tokens: &'a [Token],
    next: usize,
}

/// Operators that take two values, from the weakest.
const LEVELS: [&[&str]; 6] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "//", "/", "%"]];
const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
/// Words that stand between values.
const BETWEEN: [&str; 7] = ["if", "elif", "else", "and", "or", "not", "in"];
/// Parentheses and signs within each other.
const DEPTH_MAX: u32 = 100;

impl<'a> Parser<'a> {
    pub(super) fn new(tokens: &'a [Token]) -> Parser<'a> {
        Parser { tokens, next: 0 }
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
    pub(super) fn tuple(&mut self) -> Result<Expr, String> {
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
        Ok(Expr::Tuple(values))
    }

    /// `a if b else c`
    pub(super) fn test(&mut self) -> Result<Expr, String> {
        self.choice(0)
    }

    fn choice(&mut self, depth: u32) -> Result<Expr, String> {
        let value = self.or(depth)?;
        if !self.name("if") {
            return Ok(value);
        }
        let condition = self.or(depth)?;
        if !self.name("else") {
            return Err("`else` is expected".into());
        }
        let otherwise = self.choice(depth + 1)?;
        let [condition, then, otherwise] = [condition, value, otherwise].map(Box::new);
        Ok(Expr::Choice { condition, then, otherwise })
    }

    fn or(&mut self, depth: u32) -> Result<Expr, String> {
        if depth > DEPTH_MAX {
            return Err("the snippet is nested too deep".into());
        }
        let mut all = vec![self.and(depth)?];
        while self.name("or") {
            all.push(self.and(depth)?);
        }
        Ok(one_or(all, Expr::Or))
    }

    fn and(&mut self, depth: u32) -> Result<Expr, String> {
        let mut all = vec![self.not(depth)?];
        while self.name("and") {
            all.push(self.not(depth)?);
        }
        Ok(one_or(all, Expr::And))
    }

    fn not(&mut self, depth: u32) -> Result<Expr, String> {
        let mut times = 0_u32;
        while self.name("not") {
            times += 1;
        }
        let value = self.comparison(depth)?;
        Ok(match times {
            0 => value,
            odd if odd % 2 == 1 => Expr::Not(Box::new(value)),
            _ => Expr::Not(Box::new(Expr::Not(Box::new(value)))),
        })
    }

    /// `a < b <= c` is `a < b and b <= c`.
    fn comparison(&mut self, depth: u32) -> Result<Expr, String> {
        let first = self.level(0, depth)?;
        let mut rest = Vec::new();
        while let Some(comparison) = self.comparison_sign()? {
            rest.push((comparison, self.level(0, depth)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Comparison(Box::new(first), rest) })
    }

    fn comparison_sign(&mut self) -> Result<Option<Comparison>, String> {
        if let Some(sign) = COMPARISONS.into_iter().find(|sign| self.sign(sign)) {
            return Ok(Some(Comparison::Sign(sign)));
        }
        if self.name("in") {
            return Ok(Some(Comparison::In));
        }
        if !self.name("not") {
            return Ok(None);
        }
        if self.name("in") {
            Ok(Some(Comparison::NotIn))
        } else {
            Err("`in` is expected behind `not`".into())
        }
    }

    fn level(&mut self, level: usize, depth: u32) -> Result<Expr, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary(depth) };
        let first = self.level(level + 1, depth)?;
        let mut rest = Vec::new();
        while let Some(operator) = operators.iter().find(|sign| self.sign(sign)) {
            rest.push((*operator, self.level(level + 1, depth)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Arithmetic(Box::new(first), rest) })
    }

    fn unary(&mut self, depth: u32) -> Result<Expr, String> {
        if depth > DEPTH_MAX {
            return Err("the snippet is nested too deep".into());
        }
        if self.sign("-") {
            return Ok(Expr::Negative(Box::new(self.unary(depth + 1)?)));
        }
        if self.sign("~") {
            return Ok(Expr::Inverted(Box::new(self.unary(depth + 1)?)));
        }
        let value = self.atom(depth)?;
        let mut behind = Vec::new();
        loop {
            if self.sign("[") {
                behind.push(Suffix::At(self.choice(depth + 1)?));
                if !self.sign("]") {
                    return Err("`]` is expected".into());
                }
            } else if self.sign(".") {
                behind.push(Suffix::Format(self.method(depth)?));
            } else if behind.is_empty() {
                return Ok(value);
            } else {
                return Ok(Expr::Behind(Box::new(value), behind));
            }
        }
    }

    /// What stands behind a point.
    fn method(&mut self, depth: u32) -> Result<Vec<Expr>, String> {
        if !self.name("format") {
            let shown = self.peek().map_or(String::new(), ToString::to_string);
            return Err(format!("`.{shown}` is not understood in snippets"));
        }
        if !self.sign("(") {
            return Err("`(` is expected".into());
        }
        Ok(self.arguments(")", depth)?.0)
    }

    fn atom(&mut self, depth: u32) -> Result<Expr, String> {
        let Some(token) = self.peek().cloned() else { return Err("a value is expected at the end".into()) };
        self.next += 1;
        match token {
            Token::Int(value) => Ok(Expr::Value(Value::Int(value))),
            Token::Float(value) => Ok(Expr::Value(Value::Float(value))),
            Token::Text(text) => Ok(Expr::Value(Value::Text(text))),
            Token::Sign("[") => Ok(Expr::List(self.arguments("]", depth)?.0)),
            Token::Sign("(") => {
                let (mut values, commas) = self.arguments(")", depth)?;
                Ok(if values.len() == 1 && !commas { values.remove(0) } else { Expr::Tuple(values) })
            }
            Token::Name(name) if BETWEEN.contains(&name.as_str()) => {
                Err(format!("`{name}` is not expected where a value is"))
            }
            Token::Name(name) if self.sign("(") => {
                let (values, _) = self.arguments(")", depth)?;
                Ok(Expr::Call(Function::named(&name, values.len())?, values))
            }
            Token::Name(name) => Ok(match name.as_str() {
                "True" => Expr::Value(Value::Int(1)),
                "False" => Expr::Value(Value::Int(0)),
                _ => Expr::Name(name),
            }),
            token @ Token::Sign(_) => Err(format!("`{token}` is not expected where a value is")),
        }
    }

    /// Values up to the sign that closes them, and whether a comma stood among them.
    fn arguments(&mut self, close: &'static str, depth: u32) -> Result<(Vec<Expr>, bool), String> {
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

/// Two or more are joined.
fn one_or(mut all: Vec<Expr>, joined: fn(Vec<Expr>) -> Expr) -> Expr {
    if all.len() == 1 { all.remove(0) } else { joined(all) }
}
