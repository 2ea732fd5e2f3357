//! Selectors in the text: every spelling becomes one that the parser reads.
//!
//! sqlparser knows `FOR SYSTEM_TIME AS OF <expr>` between a table's name and its alias, and little else. So each spelling is rewritten,
//! on the tokens, to `FOR SYSTEM_TIME AS OF <marker> <expr>`, where the marker is a token that no text can hold. It numbers the
//! [`Site`], which keeps how the selector was spelled, where it stands, and the alias when that came first (`t AS x VERSION AS OF 3`).
//! The parser turns marker and expression into `Expr::Prefixed` (see [`super::dialect`]), and [`super::relations`] claims each site for
//! one table occurrence. A site that nothing claims is an error: a selector is never ignored.
//!
//! A selector is recognised only behind something that can be a table's name, so `SELECT version AS of` stays what it is.

use datafusion::sql::sqlparser::ast::{self, DataType, Expr, TimezoneInfo, Value};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

use super::lexer::{is_reserved, is_word};
use super::{Selector, position};
use crate::error::{Location, Result};

/// Starts a marker's text. The tokenizer's placeholders start with `?` or `$`.
const MARKER: char = '\u{0}';

pub(super) fn is_marker(text: &str) -> bool {
    text.starts_with(MARKER)
}

/// The number of the site a marker stands for.
pub(super) fn site_of(text: &str) -> Option<usize> {
    text.strip_prefix(MARKER)?.parse().ok()
}

/// How a selector was spelled, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// `VERSION AS OF`, `AT (VERSION => …)`, `AT SNAPSHOT`, `@v3`.
    Version,
    /// `TIMESTAMP AS OF`, `SYSTEM_TIME AS OF`, `AT (TIMESTAMP => …)`.
    Timestamp,
    /// `@20240626123453000`.
    Compact,
    /// `AT TAG x`, `AT BRANCH x`.
    Ref,
}

/// A selector in the text.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) spelling: Spelling,
    pub(super) location: Option<Location>,
    /// The alias that stood before the selector.
    pub(super) alias: Option<ast::TableAlias>,
}

/// The rewritten statement.
#[derive(Debug)]
pub(super) struct Rewritten {
    pub(super) tokens: Vec<TokenWithSpan>,
    pub(super) sites: Vec<Site>,
    /// The expression of `OPTION (FOR TIMESTAMP AS OF …)`, for every table of the statement.
    pub(super) option: Option<(Vec<TokenWithSpan>, Option<Location>)>,
}

/// Rewrite all selectors.
pub(super) fn rewrite(mut tokens: Vec<TokenWithSpan>) -> Result<Rewritten> {
    let option = take_option(&mut tokens)?;
    let mut writer = Writer { out: Vec::with_capacity(tokens.len()), sites: Vec::new() };
    let mut at = 0;
    while at < tokens.len() {
        match found(&tokens, at)? {
            Some(found) if writer.is_after_table() => {
                writer.put(&found, tokens[at].span)?;
                at += found.length;
            }
            _ => {
                writer.out.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    Ok(Rewritten { tokens: writer.out, sites: writer.sites, option })
}

/// `OPTION (FOR TIMESTAMP AS OF …)` at the end of a statement.
fn take_option(tokens: &mut Vec<TokenWithSpan>) -> Result<Option<(Vec<TokenWithSpan>, Option<Location>)>> {
    if tokens.last().map(|t| &t.token) != Some(&Token::RParen) {
        return Ok(None);
    }
    let is_option = |n: &usize| {
        is_word(&tokens[*n].token, "OPTION")
            && tokens.get(n + 1).is_some_and(|t| t.token == Token::LParen)
            && matches_words(tokens, n + 2, &["FOR"])
    };
    let Some(start) = (1..tokens.len().saturating_sub(3)).rev().find(is_option) else { return Ok(None) };
    let location = position::of(tokens[start].span);
    if close_of(tokens, start + 1) != Some(tokens.len() - 1) {
        return Ok(None);
    }
    let words = [["FOR", "TIMESTAMP", "AS", "OF"], ["FOR", "SYSTEM_TIME", "AS", "OF"]];
    if !words.iter().any(|words| matches_words(tokens, start + 2, words)) {
        return Err(position::unsupported("of OPTION, only OPTION (FOR TIMESTAMP AS OF '…') is understood", location));
    }
    let mut expression = tokens.split_off(start);
    expression.pop();
    Ok(Some((expression.split_off(6), location)))
}

/// A selector's head at a place of the text.
struct Found {
    spelling: Spelling,
    /// Tokens that the head takes.
    length: usize,
    /// Tokens that stand for the expression, when the head holds it.
    value: Vec<TokenWithSpan>,
    /// Glued to the name (`@v3`): what stands before is never an alias.
    glued: bool,
}

impl Found {
    fn head(spelling: Spelling, length: usize) -> Self {
        Self { spelling, length, value: Vec::new(), glued: false }
    }
}

/// The selector that starts at token `at`.
fn found(tokens: &[TokenWithSpan], at: usize) -> Result<Option<Found>> {
    let Some(before) = at.checked_sub(1).map(|n| &tokens[n]) else { return Ok(None) };
    match &tokens[at].token {
        Token::AtSign => suffix(before, &tokens[at..]),
        Token::Word(w) if w.quote_style.is_none() => match w.keyword {
            Keyword::FOR => after_for(tokens, at),
            Keyword::AT => after_at(tokens, at),
            Keyword::BEFORE => before_clause(tokens, at),
            _ => Ok(as_of(tokens, at).filter(|_| can_start_expression(tokens.get(at + 3))).map(|spelling| Found::head(spelling, 3))),
        },
        _ => Ok(None),
    }
}

/// `VERSION AS OF`, `TIMESTAMP AS OF`, `SYSTEM_VERSION AS OF`, `SYSTEM_TIME AS OF`.
fn as_of(tokens: &[TokenWithSpan], at: usize) -> Option<Spelling> {
    let spelling =
        ["VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"].iter().position(|word| matches_words(tokens, at, &[word, "AS", "OF"]))?;
    Some(if spelling < 2 { Spelling::Version } else { Spelling::Timestamp })
}

/// What can follow `AS OF`? Not the end, and no clause: `SELECT version AS of FROM t` names a column.
fn can_start_expression(token: Option<&TokenWithSpan>) -> bool {
    match token.map(|t| &t.token) {
        None | Some(Token::Comma | Token::RParen | Token::Eq) => false,
        Some(Token::Word(w)) => !is_reserved(w) || matches!(w.keyword, Keyword::CASE | Keyword::ARRAY | Keyword::NOT),
        Some(_) => true,
    }
}

fn after_for(tokens: &[TokenWithSpan], at: usize) -> Result<Option<Found>> {
    if let Some(spelling) = as_of(tokens, at + 1) {
        return Ok(Some(Found::head(spelling, 4)));
    }
    let range = ["FROM", "BETWEEN", "ALL", "CONTAINED"].iter().any(|word| {
        ["SYSTEM_TIME", "SYSTEM_VERSION", "VERSION", "TIMESTAMP"].iter().any(|kind| matches_words(tokens, at + 1, &[kind, word]))
    });
    if range {
        let what = "a range of versions (FOR SYSTEM_TIME FROM … TO, BETWEEN, ALL); read one moment with FOR SYSTEM_TIME AS OF";
        return Err(position::unsupported(what, position::of(tokens[at].span)));
    }
    Ok(None)
}

/// `AT (VERSION => …)`, `AT SNAPSHOT '…'`, `AT TAG x`, `AT BRANCH x`.
fn after_at(tokens: &[TokenWithSpan], at: usize) -> Result<Option<Found>> {
    let location = position::of(tokens[at].span);
    let Some(next) = tokens.get(at + 1) else { return Ok(None) };
    if next.token == Token::LParen {
        let (Some(Token::Word(kind)), Some(Token::RArrow)) = (tokens.get(at + 2).map(|t| &t.token), tokens.get(at + 3).map(|t| &t.token))
        else {
            return Ok(None);
        };
        let spelling = match kind.value.to_ascii_uppercase().as_str() {
            "VERSION" | "SNAPSHOT" => Spelling::Version,
            "TIMESTAMP" => Spelling::Timestamp,
            other => {
                let what = format!("AT ({other} => …); asof knows AT (VERSION => n), AT (TIMESTAMP => moment) and AT (SNAPSHOT => 'name')");
                return Err(position::unsupported(what, location));
            }
        };
        // The parenthesis stays: it ends the expression.
        return Ok(Some(Found { spelling, length: 4, value: vec![next.clone()], glued: false }));
    }
    let named = ["SNAPSHOT", "TAG", "BRANCH", "REF", "REFERENCE", "VERSION"].iter().find(|word| is_word(&next.token, word));
    match (named, tokens.get(at + 2)) {
        (Some(kind), Some(value)) if matches!(value.token, Token::Word(_) | Token::SingleQuotedString(_) | Token::Number(..)) => {
            let number_or_name = matches!(*kind, "SNAPSHOT" | "VERSION");
            let text = match &value.token {
                Token::Word(w) => TokenWithSpan::new(Token::SingleQuotedString(w.value.clone()), value.span),
                Token::Number(n, _) if !number_or_name => TokenWithSpan::new(Token::SingleQuotedString(n.clone()), value.span),
                _ => value.clone(),
            };
            let spelling = if number_or_name { Spelling::Version } else { Spelling::Ref };
            Ok(Some(Found { spelling, length: 3, value: vec![text], glued: false }))
        }
        (None, Some(_)) if is_word(&next.token, "TIMESTAMP") => Ok(Some(Found::head(Spelling::Timestamp, 1))),
        _ => Ok(None),
    }
}

/// Snowflake's `BEFORE (STATEMENT => '…')`: understood as far as to say no.
fn before_clause(tokens: &[TokenWithSpan], at: usize) -> Result<Option<Found>> {
    let is_clause =
        tokens.get(at + 1).is_some_and(|t| t.token == Token::LParen) && tokens.get(at + 3).is_some_and(|t| t.token == Token::RArrow);
    if !is_clause {
        return Ok(None);
    }
    let what = "BEFORE (…): find the version with DESCRIBE HISTORY, and read the one before it with VERSION AS OF";
    Err(position::unsupported(what, position::of(tokens[at].span)))
}

/// `@v3`, `@20240626123453000`.
fn suffix(before: &TokenWithSpan, tokens: &[TokenWithSpan]) -> Result<Option<Found>> {
    if before.span.end != tokens[0].span.start || !matches!(&before.token, Token::Word(w) if !is_reserved(w)) {
        return Ok(None);
    }
    let text = match tokens.get(1).map(|t| &t.token) {
        Some(Token::Word(w)) if w.quote_style.is_none() => w.value.clone(),
        Some(Token::Number(n, false)) => n.clone(),
        _ => String::new(),
    };
    let Some((spelling, value)) = read_suffix(&text) else {
        let what = format!("@{text} selects nothing: write @v<version> or @yyyyMMddHHmmssSSS");
        return Err(position::syntax(what, position::of(tokens[0].span)));
    };
    let token = match spelling {
        Spelling::Version => Token::Number(value, false),
        _ => Token::SingleQuotedString(value),
    };
    let span = tokens[1].span;
    Ok(Some(Found { spelling, length: 2, value: vec![TokenWithSpan::new(token, span)], glued: true }))
}

/// `v3` or 17 digits, as they stand behind `@`.
pub(super) fn read_suffix(text: &str) -> Option<(Spelling, String)> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some(version) = text.strip_prefix(['v', 'V']).filter(|t| digits(t)) {
        return Some((Spelling::Version, version.to_owned()));
    }
    (text.len() == 17 && digits(text)).then(|| (Spelling::Compact, text.to_owned()))
}

struct Writer {
    out: Vec<TokenWithSpan>,
    sites: Vec<Site>,
}

impl Writer {
    /// Does what has been written end in something that can be a table's name (or in `RESTORE … TO`)?
    fn is_after_table(&self) -> bool {
        match self.out.last().map(|t| &t.token) {
            Some(Token::Word(w)) => !is_reserved(w) || (w.keyword == Keyword::TO && is_word(&self.out[0].token, "RESTORE")),
            // A subquery or a function, which is an error, or an alias with columns.
            Some(Token::RParen) => true,
            _ => false,
        }
    }

    /// Write the canonical form, with the alias taken out of the text.
    fn put(&mut self, found: &Found, span: Span) -> Result<()> {
        let location = position::of(span);
        let alias = if found.glued { None } else { self.take_alias(location)? };
        let marker = format!("{MARKER}{}", self.sites.len());
        self.sites.push(Site { spelling: found.spelling, location, alias });
        for word in ["FOR", "SYSTEM_TIME", "AS", "OF"] {
            self.out.push(TokenWithSpan::new(Token::make_word(word, None), span));
        }
        self.out.push(TokenWithSpan::new(Token::Placeholder(marker), span));
        self.out.extend(found.value.iter().cloned());
        Ok(())
    }

    /// The alias (`[AS] x`, `[AS] x (a, b)`) that ends what has been written.
    fn take_alias(&mut self, selector: Option<Location>) -> Result<Option<ast::TableAlias>> {
        let nothing = || {
            position::invalid(
                "a selector stands behind a table's name; a subquery, VALUES or a function has no versions: put the selector on the tables inside",
                selector,
            )
        };
        let end = self.out.len();
        let columns_start = match self.out.last().map(|t| &t.token) {
            Some(Token::RParen) => Some(open_of(&self.out).ok_or_else(nothing)?),
            _ => None,
        };
        let name = columns_start.unwrap_or(end).checked_sub(1).ok_or_else(nothing)?;
        let before = name.checked_sub(1).map(|n| &self.out[n].token);
        let is_name = |n: usize| matches!(&self.out[n].token, Token::Word(w) if !is_reserved(w));
        let start = match before {
            Some(Token::Word(w)) if w.keyword == Keyword::AS && w.quote_style.is_none() && name >= 2 => name - 1,
            Some(Token::Word(w)) if is_name(name) && !is_reserved(w) && !self.starts_command(name - 1, w) => name,
            Some(Token::RParen) => return Err(nothing()),
            _ if columns_start.is_some() => return Err(nothing()),
            _ => return Ok(None),
        };
        if !is_name(name) || self.out.get(start.wrapping_sub(1)).is_none_or(|t| t.token == Token::RParen) {
            return Err(nothing());
        }
        let columns = columns_start.map_or(Ok(Vec::new()), |from| column_names(&self.out[from + 1..end - 1]).ok_or_else(nothing))?;
        let Token::Word(word) = self.out[name].token.clone() else { return Err(nothing()) };
        let alias = ast::TableAlias { explicit: true, name: word.into_ident(self.out[name].span), columns, at: None };
        self.out.truncate(start);
        Ok(Some(alias))
    }

    /// `DESCRIBE t`, `DESC EXTENDED t`, `TABLE t`: words before a name that are no name.
    fn starts_command(&self, at: usize, word: &Word) -> bool {
        if word.quote_style.is_some() {
            return false;
        }
        let one_of = |words: &[&str], token: &Token| words.iter().any(|word| is_word(token, word));
        let command = one_of(
            &["DESCRIBE", "DESC", "RESTORE", "CREATE", "DROP", "TRUNCATE", "ALTER", "OPTIMIZE", "VACUUM", "SHOW"],
            &self.out[0].token,
        );
        command
            && (at == 0
                || (at <= 2 && one_of(&["TABLE", "EXTENDED", "FORMATTED", "HISTORY", "DETAIL", "TBLPROPERTIES"], &self.out[at].token)))
    }
}

/// `a, b, c`.
fn column_names(tokens: &[TokenWithSpan]) -> Option<Vec<ast::TableAliasColumnDef>> {
    let mut names = Vec::new();
    for (n, token) in tokens.iter().enumerate() {
        match (&token.token, n % 2) {
            (Token::Word(w), 0) => names.push(ast::TableAliasColumnDef { name: w.clone().into_ident(token.span), data_type: None }),
            (Token::Comma, 1) => {}
            _ => return None,
        }
    }
    (tokens.len() % 2 == 1).then_some(names)
}

/// Do the tokens from `at` on read these words?
pub(super) fn matches_words(tokens: &[TokenWithSpan], at: usize, words: &[&str]) -> bool {
    words.iter().enumerate().all(|(n, word)| tokens.get(at + n).is_some_and(|t| is_word(&t.token, word)))
}

/// Where the parenthesis that opens at `open` closes.
fn close_of(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (n, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(n);
                }
            }
            _ => {}
        }
    }
    None
}

/// Where the parenthesis that closes at the end opens; an alias's list is short.
fn open_of(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0_usize;
    for (n, token) in tokens.iter().enumerate().rev() {
        match token.token {
            Token::RParen => depth += 1,
            Token::LParen => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(n);
                }
            }
            _ => {}
        }
    }
    None
}

/// What a selector says, from its spelling and its expression.
pub(super) fn selector(spelling: Spelling, value: Expr) -> Selector {
    let value = match value {
        Expr::Nested(inner) => *inner,
        other => other,
    };
    match (spelling, text_of(&value)) {
        (Spelling::Compact, Some(digits)) => Selector::CompactTimestamp(digits),
        (Spelling::Ref, Some(name)) => Selector::Ref(name),
        (Spelling::Version, _) if is_moment(&value) => Selector::Timestamp(value),
        (Spelling::Version | Spelling::Ref, _) => Selector::Version(value),
        (Spelling::Timestamp | Spelling::Compact, _) => Selector::Timestamp(value),
    }
}

fn text_of(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Is the expression a moment by its form: `VERSION AS OF timestamp '…'`?
fn is_moment(value: &Expr) -> bool {
    let temporal = |data_type: &DataType| {
        matches!(
            data_type,
            DataType::Date
                | DataType::Timestamp(
                    _,
                    TimezoneInfo::None | TimezoneInfo::WithTimeZone | TimezoneInfo::WithoutTimeZone | TimezoneInfo::Tz
                )
                | DataType::TimestampNtz(_)
        )
    };
    match value {
        Expr::TypedString(typed) => temporal(&typed.data_type),
        Expr::Cast { data_type, .. } => temporal(data_type),
        _ => false,
    }
}
