//! System calls and their arguments.

use super::Parser;
use crate::ast::{Call, Expr, Field};
use crate::lex::Token;
use crate::problem::Problem;

impl Parser<'_> {
    pub(super) fn call(&mut self) -> Result<Call, Problem> {
        let mut end = None;
        if self.peek() == Some(&Token::Ellipsis) {
            self.next += 1;
            end = Some(self.time()?);
        }
        let name = self.any_word("the name of a system call")?;
        self.expect('(')?;
        let arguments = self.list_until(')')?;
        self.expect('=')?;
        let result = self.expr()?;
        let mut call = Call { end, name, arguments, result, errno: None, note: None };
        if matches!(self.peek(), Some(Token::Word(word)) if word.starts_with(|c: char| c.is_ascii_alphabetic()))
        {
            call.errno = Some(self.any_word("an error's name")?);
        }
        if self.sign('(') {
            let mut words = Vec::new();
            while !self.sign(')') {
                words.push(self.any_word("`)`, or a word of the note")?);
            }
            call.note = Some(words.join(" "));
        }
        Ok(call)
    }

    fn list_until(&mut self, close: char) -> Result<Vec<Expr>, Problem> {
        let mut list = Vec::new();
        if self.sign(close) {
            return Ok(list);
        }
        loop {
            list.push(self.expr()?);
            if self.sign(close) {
                return Ok(list);
            }
            if !self.sign(',') {
                return Err(self.problem(format!("`,` or `{close}` is expected")));
            }
        }
    }

    fn expr(&mut self) -> Result<Expr, Problem> {
        let mut expr = self.term()?;
        while self.sign('|') {
            expr = Expr::Or(Box::new(expr), Box::new(self.term()?));
        }
        Ok(expr)
    }

    fn term(&mut self) -> Result<Expr, Problem> {
        let Some(token) = self.peek().cloned() else {
            return Err(self.problem("the script ends where a value is expected"));
        };
        match token {
            Token::Ellipsis => {
                self.next += 1;
                Ok(Expr::Ellipsis)
            }
            Token::Text(first) => Ok(self.text(first)),
            Token::Sign('[') => {
                self.next += 1;
                Ok(Expr::List(self.list_until(']')?))
            }
            Token::Sign('{') => self.structure(),
            Token::Word(word) => self.named(word),
            _ => Err(self.problem("a value is expected: a number, a name, a text, `...`, `[…]` or `{…}`")),
        }
    }

    fn text(&mut self, first: String) -> Expr {
        self.next += 1;
        let mut text = first;
        while let Some(Token::Text(more)) = self.peek() {
            text.push_str(more);
            self.next += 1;
        }
        if self.peek() == Some(&Token::Ellipsis) {
            self.next += 1;
            return Expr::TextMore(text);
        }
        Expr::Text(text)
    }

    fn named(&mut self, word: String) -> Result<Expr, Problem> {
        let number = word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
        let value = match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(Expr::Hex),
            None if number => word.parse().ok().map(Expr::Int),
            None => Some(Expr::Word(word.clone())),
        };
        let Some(value) = value else { return Err(self.problem(format!("`{word}` is no whole number"))) };
        self.next += 1;
        if matches!(value, Expr::Word(_)) && self.sign('(') {
            return Ok(Expr::Apply(word, self.list_until(')')?));
        }
        Ok(value)
    }

    /// `{name = value, …}`, `{name(count) = value, …}` or `{value, …}`.
    fn structure(&mut self) -> Result<Expr, Problem> {
        self.next += 1;
        let named = matches!(self.peek(), Some(Token::Word(_)))
            && matches!(self.peek_at(1), Some(Token::Sign('=' | '(')));
        if !named {
            return Ok(Expr::Tuple(self.list_until('}')?));
        }
        let mut fields = Vec::new();
        loop {
            let name = self.any_word("the name of a field")?;
            let count = if self.sign('(') {
                let count = self.expr()?;
                self.expect(')')?;
                Some(count)
            } else {
                None
            };
            self.expect('=')?;
            fields.push(Field { name, count, value: self.expr()? });
            if self.sign('}') {
                return Ok(Expr::Fields(fields));
            }
            if !self.sign(',') {
                return Err(self.problem("`,` or `}` is expected"));
            }
        }
    }
}
