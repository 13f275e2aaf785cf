//! Statements of snippets: from tokens to a tree, in which what an `if` governs is below it.

use super::Value;
use super::expression::{Expr, Parser};
use super::tokens::{Line, Token, lines, shown};

/// `if` within `if`.
const DEPTH_MAX: u32 = 100;

#[derive(Clone, Debug)]
pub(super) enum Statement {
    Assert(Assert),
    Assign {
        name: String,
        /// That of `+=`.
        operator: Option<&'static str>,
        value: Expr,
    },
    Value(Expr),
    /// `if`, `elif` and `else`: conditions, and what they govern.
    If(Vec<(Option<Expr>, Vec<Statement>)>),
}

#[derive(Clone, Debug)]
pub(super) struct Assert {
    pub(super) condition: Expr,
    /// It as it was written, and the names in it.
    pub(super) text: String,
    pub(super) names: Vec<String>,
    pub(super) message: Option<Expr>,
}

/// All statements of a snippet.
pub(super) fn statements(code: &str) -> Result<Vec<Statement>, String> {
    block(&lines(code)?, 0)
}

fn block(lines: &[Line], depth: u32) -> Result<Vec<Statement>, String> {
    if depth > DEPTH_MAX {
        return Err("the snippet is nested too deep".into());
    }
    let mut statements = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let statement;
        (statement, at) =
            if line.begins_with("if") { choice(lines, at, depth)? } else { (single(&line.tokens)?, at + 1) };
        statements.push(statement);
    }
    Ok(statements)
}

/// An `if` with all its `elif` and its `else`, and what follows them.
fn choice(lines: &[Line], mut at: usize, depth: u32) -> Result<(Statement, usize), String> {
    let mut branches = Vec::new();
    loop {
        let head = &lines[at];
        let is_else = head.begins_with("else");
        let (condition, inline) = halves(head).ok_or("`:` is expected behind the condition")?;
        let condition = match (is_else, condition) {
            (true, []) => None,
            (true, more) => {
                return Err(format!("`:` is expected behind `else`, and not `{}`", shown(more)));
            }
            (false, condition) => Some(expression(condition)?),
        };
        let governed = |line: &&Line| !line.begins_line || (inline.is_empty() && line.indent > head.indent);
        let end = at + 1 + lines[at + 1..].iter().take_while(governed).count();
        if inline.is_empty() && end == at + 1 {
            return Err("indented lines are expected behind `:`".into());
        }
        let first = Line { tokens: inline.to_vec(), ..head.clone() };
        let first = (!inline.is_empty()).then_some(first);
        let suite: Vec<Line> = first.into_iter().chain(lines[at + 1..end].iter().cloned()).collect();
        branches.push((condition, block(&suite, depth + 1)?));
        let goes_on = lines.get(end).is_some_and(|next| {
            next.begins_line
                && next.indent == head.indent
                && (next.begins_with("elif") || next.begins_with("else"))
        });
        if is_else || !goes_on {
            return Ok((Statement::If(branches), end));
        }
        at = end;
    }
}

/// Before and behind the colon, without the first word.
fn halves(head: &Line) -> Option<(&[Token], &[Token])> {
    let colon = head.tokens.iter().position(|token| *token == Token::Sign(":"))?;
    Some((&head.tokens[1..colon], &head.tokens[colon + 1..]))
}

fn single(tokens: &[Token]) -> Result<Statement, String> {
    match tokens {
        [Token::Name(word), ..] if ["import", "from", "for", "while", "def"].contains(&word.as_str()) => {
            Err(format!("`{word}` is not understood in snippets: only assertions, assignments and `if` are"))
        }
        [Token::Name(word), ..] if word == "elif" || word == "else" => {
            Err(format!("`{word}` has no `if` before it that is indented as it is"))
        }
        [Token::Name(word), rest @ ..] if word == "assert" => asserted(rest).map(Statement::Assert),
        [Token::Name(name), Token::Sign(sign), rest @ ..] if is_assignment(sign) => {
            let operator = sign.strip_suffix('=').filter(|operator| !operator.is_empty());
            Ok(Statement::Assign { name: name.clone(), operator, value: expression(rest)? })
        }
        _ => expression(tokens).map(Statement::Value),
    }
}

fn asserted(tokens: &[Token]) -> Result<Assert, String> {
    let mut parser = Parser::new(tokens);
    let condition = parser.test()?;
    let used = &tokens[..parser.position()];
    let message = if parser.sign(",") { Some(parser.tuple()?) } else { None };
    parser.finish()?;
    if matches!(condition, Expr::Tuple(_) | Expr::List(_) | Expr::Value(Value::Text(_))) {
        return Err(format!(
            "`{}` always holds: assert a condition, without parentheses around it and its message",
            shown(used)
        ));
    }
    let names = used.iter().filter_map(|token| match token {
        Token::Name(name) => Some(name.clone()),
        _ => None,
    });
    Ok(Assert { condition, text: shown(used), names: names.collect(), message })
}

fn expression(tokens: &[Token]) -> Result<Expr, String> {
    let mut parser = Parser::new(tokens);
    let value = parser.tuple()?;
    parser.finish()?;
    Ok(value)
}

fn is_assignment(sign: &str) -> bool {
    matches!(sign, "=" | "+=" | "-=" | "*=" | "//=" | "%=" | "|=" | "&=")
}
