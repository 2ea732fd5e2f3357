//! A statement being read: the parser, and what is collected on the way.
//!
//! The statement families read their own words with it (sqlparser knows few of them as we mean them) and leave queries, expressions,
//! names and types to sqlparser. Every query and expression that a family keeps goes through [`Relations`] here.

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, Query, TableVersion, With};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location as Place, Token, TokenWithSpan};

use super::dialect::AsofDialect;
use super::lexer::is_word;
use super::relations::{self, Relations};
use super::selector::{self, Rewritten};
use super::{Selector, TableTarget, nesting, position};
use crate::error::{Error, Location, Result};

/// A statement being read.
pub(super) struct Cursor<'a> {
    parser: Parser<'a>,
    end: Option<Location>,
    /// Table occurrences so far.
    pub(super) relations: Relations,
    /// The text.
    pub(super) sql: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(dialect: &'a AsofDialect, sql: &'a str, rewritten: Rewritten) -> Result<Self> {
        let end = rewritten.tokens.last().and_then(|t| position::at(t.span.end));
        let option = rewritten.option.map(|(tokens, location)| parse_option(dialect, tokens, location)).transpose()?;
        let relations = Relations::new(rewritten.sites, option);
        Ok(Self { parser: parser(dialect, rewritten.tokens), end, relations, sql })
    }

    /// Where the next token stands (or the end).
    pub(super) fn location(&self) -> Option<Location> {
        position::of(self.parser.peek_token_ref().span).or(self.end)
    }

    /// Where the next token starts, as the parser counts.
    pub(super) fn place(&self) -> Place {
        self.parser.peek_token_ref().span.start
    }

    /// Run one of the parser's own methods.
    pub(super) fn read<T>(&mut self, f: impl FnOnce(&mut Parser<'a>) -> Result<T, ParserError>) -> Result<T> {
        f(&mut self.parser).map_err(|error| position::of_parser(error, self.end))
    }

    /// The `n`th token ahead; `EOF` at the end.
    pub(super) fn ahead(&self, n: usize) -> &Token {
        &self.parser.peek_nth_token_ref(n).token
    }

    /// Do these words come next?
    pub(super) fn sees(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| is_word(self.ahead(n), word))
    }

    /// Take these words, if they come next.
    pub(super) fn takes(&mut self, words: &[&str]) -> bool {
        let sees = self.sees(words);
        if sees {
            for _ in words {
                self.parser.next_token();
            }
        }
        sees
    }

    /// Take this token, if it comes next.
    pub(super) fn takes_token(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    /// Take these words, or say what was expected.
    pub(super) fn expect(&mut self, words: &[&str]) -> Result<()> {
        if self.takes(words) { Ok(()) } else { Err(self.unexpected(&words.join(" "))) }
    }

    pub(super) fn expect_token(&mut self, token: &Token) -> Result<()> {
        if self.takes_token(token) { Ok(()) } else { Err(self.unexpected(&token.to_string())) }
    }

    /// "expected X, found Y".
    pub(super) fn unexpected(&self, expected: &str) -> Error {
        let found = match self.ahead(0) {
            Token::EOF => "the end of the statement".to_owned(),
            Token::Placeholder(text) if selector::is_marker(text) => "a selector".to_owned(),
            Token::SingleQuotedString(text) => format!("'{text}'"),
            other => other.to_string(),
        };
        let mut found: String = found.chars().take(60).collect();
        if self.sees(&["FOR", "SYSTEM_TIME", "AS", "OF"]) {
            "a selector".clone_into(&mut found);
        }
        position::syntax(format!("expected {expected}, found {found}"), self.location())
    }

    /// Pass a token.
    pub(super) fn skip(&mut self) {
        self.parser.next_token();
    }

    /// Pass all that is left.
    pub(super) fn skip_rest(&mut self) {
        while !self.is_at_end() {
            self.skip();
        }
    }

    /// Is all read?
    pub(super) fn is_at_end(&self) -> bool {
        *self.ahead(0) == Token::EOF
    }

    /// All must be read.
    pub(super) fn end(&self) -> Result<()> {
        if self.is_at_end() { Ok(()) } else { Err(self.unexpected("the end of the statement")) }
    }

    pub(super) fn name(&mut self) -> Result<ObjectName> {
        self.read(|p| p.parse_object_name(true))
    }

    pub(super) fn identifier(&mut self) -> Result<Ident> {
        self.read(Parser::parse_identifier)
    }

    /// One name part: lower case unless quoted.
    pub(super) fn name_part(&mut self) -> Result<String> {
        Ok(relations::folded(&self.identifier()?))
    }

    /// The parts of a name, at most `most`.
    pub(super) fn parts(&mut self, most: usize, what: &str) -> Result<Vec<String>> {
        let location = self.location();
        let parts = relations::parts_of(&self.name()?)?;
        if parts.len() > most {
            return Err(position::invalid(format!("{} has {} parts; {what} has at most {most}", parts.join("."), parts.len()), location));
        }
        Ok(parts)
    }

    /// A text literal.
    pub(super) fn text(&mut self, what: &str) -> Result<String> {
        if let Token::SingleQuotedString(text) = self.ahead(0) {
            let text = text.clone();
            self.parser.next_token();
            return Ok(text);
        }
        Err(self.unexpected(&format!("{what} in single quotes")))
    }

    /// A whole number.
    pub(super) fn number(&mut self, what: &str) -> Result<u64> {
        if let Token::Number(text, _) = self.ahead(0)
            && let Ok(number) = text.parse()
        {
            self.parser.next_token();
            return Ok(number);
        }
        Err(self.unexpected(what))
    }

    /// A word or a text, as it stands.
    pub(super) fn word_or_text(&mut self) -> Option<String> {
        let text = match self.ahead(0) {
            Token::Word(w) => w.value.clone(),
            Token::SingleQuotedString(text) => text.clone(),
            _ => return None,
        };
        self.parser.next_token();
        Some(text)
    }

    /// `LIKE 'pattern'` or, as Spark has it, just `'pattern'`.
    pub(super) fn like(&mut self) -> Result<Option<String>> {
        if self.takes(&["LIKE"]) || matches!(self.ahead(0), Token::SingleQuotedString(_)) {
            return self.text("a pattern").map(Some);
        }
        Ok(None)
    }

    /// The table that a statement changes: no selector.
    pub(super) fn target(&mut self, statement: &str) -> Result<TableTarget> {
        let location = self.location();
        let (target, suffix) = relations::target(&self.name()?)?;
        let selector = self.location();
        if suffix.is_some() || self.sees(&["FOR", "SYSTEM_TIME", "AS", "OF"]) {
            let what = format!(
                "{statement} changes the current version of {target}, so its target takes no selector; the tables it reads from do"
            );
            return Err(position::invalid(what, if suffix.is_some() { location } else { selector }));
        }
        Ok(target)
    }

    /// A target's alias, which no selector follows.
    pub(super) fn target_alias(&mut self, statement: &str, target: &TableTarget) -> Result<Option<Ident>> {
        let alias = self.read(Parser::maybe_parse_table_alias)?;
        let location = self.location();
        if self.sees(&["FOR", "SYSTEM_TIME", "AS", "OF"]) {
            let what = format!(
                "{statement} changes the current version of {target}, so its target takes no selector; the tables it reads from do"
            );
            return Err(position::invalid(what, location));
        }
        match alias {
            Some(alias) if !alias.columns.is_empty() => Err(position::unsupported(
                format!("column names behind the target of {statement}; name the alias alone"),
                position::of(alias.name.span),
            )),
            other => Ok(other.map(|alias| alias.name)),
        }
    }

    /// A query, its tables taken out. `with` came before it.
    pub(super) fn query(&mut self, with: Option<With>) -> Result<Box<Query>> {
        let mut query = self.read(Parser::parse_query)?;
        if let Some(mut outer) = with {
            if let Some(inner) = query.with.take() {
                outer.recursive |= inner.recursive;
                outer.cte_tables.extend(inner.cte_tables);
            }
            query.with = Some(outer);
        }
        self.relations.walk(&mut query)?;
        Ok(query)
    }

    /// `WITH …` in front of a statement that is no query.
    pub(super) fn with(&mut self) -> Result<With> {
        let with_token = self.parser.next_token();
        let recursive = self.parser.parse_keyword(Keyword::RECURSIVE);
        let cte_tables = self.read(|p| p.parse_comma_separated(Parser::parse_cte))?;
        Ok(With { with_token: with_token.into(), recursive, cte_tables })
    }

    /// An expression, its tables taken out.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        let mut expr = self.read(Parser::parse_expr)?;
        self.relations.walk(&mut expr)?;
        Ok(expr)
    }

    /// The table that stands here, as occurrence 0; with its selector.
    pub(super) fn table(&mut self) -> Result<()> {
        let name = self.name()?;
        let version = self.version()?;
        self.relations.alone(&name, version)
    }

    /// The selector that stands here.
    pub(super) fn selector(&mut self) -> Result<Selector> {
        match self.version()? {
            Some(version) => self.relations.claim(version),
            None => Err(self.unexpected("VERSION AS OF or TIMESTAMP AS OF")),
        }
    }

    fn version(&mut self) -> Result<Option<TableVersion>> {
        self.read(Parser::maybe_parse_table_version)
    }

    /// The text from `start` to the end, without the closing semicolon.
    pub(super) fn rest_of_text(&self, start: Place) -> &'a str {
        let from = byte_offset(self.sql, start);
        let to = self.end.map_or(self.sql.len(), |end| byte_offset(self.sql, Place { line: end.line, column: end.column }));
        self.sql.get(from..to).unwrap_or_default()
    }
}

fn parser<'a>(dialect: &'a AsofDialect, tokens: Vec<TokenWithSpan>) -> Parser<'a> {
    Parser::new(dialect).with_recursion_limit(nesting::PARSER_DEPTH).with_tokens_with_locations(tokens)
}

fn parse_option(dialect: &AsofDialect, tokens: Vec<TokenWithSpan>, location: Option<Location>) -> Result<Selector> {
    let mut parser = parser(dialect, tokens);
    let mut expr = parser.parse_expr().map_err(|error| position::of_parser(error, location))?;
    if parser.peek_token_ref().token != Token::EOF {
        return Err(position::syntax("OPTION (FOR TIMESTAMP AS OF …) takes one expression", position::of(parser.peek_token_ref().span)));
    }
    let mut relations = Relations::new(Vec::new(), None);
    relations.walk(&mut expr)?;
    if !relations.finish()?.is_empty() {
        return Err(position::unsupported("a subquery in OPTION (FOR TIMESTAMP AS OF …); write the moment", location));
    }
    let selector = selector::selector(selector::Spelling::Timestamp, expr);
    relations::reject_columns_of(&selector)?;
    Ok(selector)
}

/// Where a place of the text is, in bytes.
fn byte_offset(sql: &str, place: Place) -> usize {
    let (mut line, mut column) = (1, 1);
    for (offset, ch) in sql.char_indices() {
        if (line, column) == (place.line, place.column) {
            return offset;
        }
        if ch == '\n' {
            line += 1;
            column = 1;
        } else {
            column += 1;
        }
    }
    sql.len()
}
