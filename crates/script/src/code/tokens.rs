//! From a snippet's text to statements of tokens.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Int(i128),
    Name(String),
    Text(String),
    Sign(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Int(value) => write!(f, "{value}"),
            Token::Name(name) => f.write_str(name),
            Token::Text(text) => write!(f, "'{text}'"),
            Token::Sign(sign) => f.write_str(sign),
        }
    }
}

/// Longer ones first.
const SIGNS: [&str; 34] = [
    "//=", "<<", ">>", "==", "!=", "<=", ">=", "+=", "-=", "*=", "%=", "|=", "&=", "//", "+", "-", "*", "/",
    "%", "&", "|", "^", "~", "<", ">", "=", "(", ")", "[", "]", ".", ",", ";", "\n",
];

/// Statements end at `;` and at the end of a line, unless a parenthesis is open or a backslash ends the line.
pub(super) fn statements(code: &str) -> Result<Vec<Vec<Token>>, String> {
    let mut statements = vec![Vec::new()];
    let mut depth = 0_i32;
    for token in tokens(code)? {
        match token {
            Token::Sign("(" | "[") => depth += 1,
            Token::Sign(")" | "]") => depth -= 1,
            Token::Sign("\n") if depth > 0 => continue,
            Token::Sign(";" | "\n") => {
                statements.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if let Some(statement) = statements.last_mut() {
            statement.push(token);
        }
    }
    statements.retain(|statement| !statement.is_empty());
    Ok(statements)
}

fn tokens(code: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = code;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r']);
        if let Some(more) = rest.strip_prefix("\\\n") {
            rest = more;
            continue;
        }
        // The line that a backslash goes on to may be the empty one before `}%`.
        let Some(first) = rest.chars().next().filter(|_| rest != "\\") else { return Ok(tokens) };
        if first == '#' {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if first == '\'' || first == '"' {
            let inside = &rest[1..];
            let end = inside.find(first).ok_or("a text never ends")?;
            tokens.push(Token::Text(inside[..end].to_owned()));
            rest = &inside[end + 1..];
        } else if first.is_ascii_alphanumeric() || first == '_' {
            let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(word(&rest[..len])?);
            rest = &rest[len..];
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| format!("`{first}` is not understood in snippets"))?;
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        }
    }
}

fn word(text: &str) -> Result<Token, String> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(Token::Name(text.to_owned()));
    }
    let value = match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16),
        None => text.parse(),
    };
    value.map(Token::Int).map_err(|_| format!("`{text}` is no number"))
}
