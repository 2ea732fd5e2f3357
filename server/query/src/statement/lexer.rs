//! Text to tokens, with what sqlparser's tokenizer does not do.
//!
//! * comments and blanks go (positions stay in the spans);
//! * `?` becomes `$1`, `$2` … from left to right;
//! * T-SQL's `[name]` becomes a quoted identifier where neither an index nor an array can stand: `a[1]`, `a[b]`, `ARRAY[b]`, `[1, 2]` stay;
//! * `1.5D`, `1F`, `7L` (Spark's typed numbers) become casts or plain numbers;
//! * every kind of string literal (`N'…'`, `E'…'`, `R'…'`, `U&'…'`, `$$…$$`) becomes a plain one.
//!
//! `'a''b'` reads a'b. A backslash is a backslash, as in the standard: clients that escape by doubling quotes would be open to injection
//! otherwise. [`Options::backslash_escapes`] turns Spark's reading on (`\n`, `\t`, `\\`, `\'`, `\uXXXX`; `\%` and `\_` stay for LIKE).

use datafusion::sql::sqlparser::keywords::{self, Keyword};
use datafusion::sql::sqlparser::tokenizer::{Location as Place, Span, Token, TokenWithSpan, Tokenizer, Word};

use super::dialect::AsofDialect;
use super::{Options, position};
use crate::error::{Location, Result};

/// The longest statement, in bytes.
pub(super) const MAX_LENGTH: usize = 64 << 20;

/// A statement's tokens, without blanks and without the closing semicolon.
#[derive(Debug)]
pub(super) struct Lexed {
    pub(super) tokens: Vec<TokenWithSpan>,
    /// Number of parameters.
    pub(super) parameters: usize,
}

/// Split a statement into tokens.
pub(super) fn lex(sql: &str, options: Options) -> Result<Lexed> {
    if sql.len() > MAX_LENGTH {
        let (size, limit) = (sql.len() >> 20, MAX_LENGTH >> 20);
        return Err(position::invalid(
            format!("the statement has {size} MiB; at most {limit} are read. Insert rows by bulk ingest instead"),
            None,
        ));
    }
    let dialect = AsofDialect::new(options.backslash_escapes, 0);
    let raw = Tokenizer::new(&dialect, sql).with_unescape(false).tokenize_with_location().map_err(position::of_tokenizer)?;
    let mut tokens: Vec<_> = raw.into_iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).collect();
    one_statement(&mut tokens)?;
    for token in &mut tokens {
        literal(&mut token.token, options)?;
    }
    let parameters = number_parameters(&mut tokens)?;
    let tokens = typed_numbers(bracketed_names(tokens));
    Ok(Lexed { tokens, parameters })
}

/// Drop closing semicolons; anything after one is a second statement.
fn one_statement(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    if let Some(end) = tokens.iter().position(|t| t.token == Token::SemiColon) {
        if let Some(second) = tokens[end..].iter().find(|t| t.token != Token::SemiColon) {
            return Err(position::syntax("one statement at a time: send what follows the semicolon on its own", position::of(second.span)));
        }
        tokens.truncate(end);
    }
    if tokens.is_empty() {
        return Err(position::syntax("the statement is empty", Some(Location { line: 1, column: 1 })));
    }
    Ok(())
}

/// Make every string literal a plain one, and undo doubled quotes.
fn literal(token: &mut Token, options: Options) -> Result<()> {
    let text = match token {
        Token::SingleQuotedString(s) | Token::NationalStringLiteral(s) => {
            if options.backslash_escapes {
                unescape(s)
            } else {
                s.replace("''", "'")
            }
        }
        Token::EscapedStringLiteral(s) | Token::SingleQuotedRawStringLiteral(s) | Token::UnicodeStringLiteral(s) => std::mem::take(s),
        Token::DollarQuotedString(s) => std::mem::take(&mut s.value),
        Token::Word(Word { value, quote_style: Some(quote), .. }) => {
            let doubled = format!("{quote}{quote}");
            if value.contains(&doubled) {
                *value = value.replace(&doubled, &quote.to_string());
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    *token = Token::SingleQuotedString(text);
    Ok(())
}

/// Spark's reading of a string literal. `text` is what stands between the quotes.
fn unescape(text: &str) -> String {
    if !text.contains('\\') && !text.contains('\'') {
        return text.to_owned();
    }
    let mut out: Vec<u16> = Vec::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut buffer = [0; 2];
    while let Some(ch) = chars.next() {
        let read = match ch {
            '\'' => {
                chars.next_if_eq(&'\'');
                '\''
            }
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('b') => '\u{8}',
                Some('0') => '\0',
                Some('Z') => '\u{1a}',
                Some(wild @ ('%' | '_')) => {
                    out.extend_from_slice('\\'.encode_utf16(&mut buffer));
                    wild
                }
                Some('u') => {
                    let digits: String = chars.clone().take(4).collect();
                    match (digits.len(), u16::from_str_radix(&digits, 16)) {
                        (4, Ok(unit)) => {
                            chars.nth(3);
                            out.push(unit);
                            continue;
                        }
                        _ => 'u',
                    }
                }
                Some(other) => other,
                None => '\\',
            },
            other => other,
        };
        out.extend_from_slice(read.encode_utf16(&mut buffer));
    }
    String::from_utf16_lossy(&out)
}

/// `?` → `$n`; the number of parameters.
fn number_parameters(tokens: &mut [TokenWithSpan]) -> Result<usize> {
    let (mut marks, mut highest, mut first_numbered) = (0_usize, 0_usize, None);
    for token in tokens {
        let location = position::of(token.span);
        let Token::Placeholder(text) = &mut token.token else { continue };
        if text == "?" {
            marks += 1;
            *text = format!("${marks}");
        } else if let Some(number) = text.strip_prefix('$').and_then(|n| n.parse::<u16>().ok()).filter(|n| *n > 0) {
            highest = highest.max(usize::from(number));
            first_numbered = first_numbered.or(location);
        } else {
            return Err(position::syntax(format!("{text} is no parameter: write ? or $1, $2 …"), location));
        }
    }
    if marks > 0 && highest > 0 {
        return Err(position::invalid("parameters are either all ? or all $1, $2 …, not both", first_numbered));
    }
    Ok(marks.max(highest))
}

/// T-SQL's `[name]`.
fn bracketed_names(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|t| t.token == Token::LBracket) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let name = (tokens[at].token == Token::LBracket && !is_indexed(out.last(), tokens[at].span.start))
            .then(|| bracketed(&tokens[at..]))
            .flatten();
        if let Some((word, length)) = name {
            let span = Span::new(tokens[at].span.start, tokens[at + length - 1].span.end);
            out.push(TokenWithSpan::new(word, span));
            at += length;
        } else {
            out.push(tokens[at].clone());
            at += 1;
        }
    }
    out
}

/// Is `[` at `place` an index into (or an array of) what stands before it?
fn is_indexed(before: Option<&TokenWithSpan>, place: Place) -> bool {
    let Some(before) = before else { return false };
    match &before.token {
        Token::Word(w) if w.keyword == Keyword::ARRAY && w.quote_style.is_none() => true,
        Token::Word(w) => before.span.end == place && !is_reserved(w),
        Token::RParen | Token::RBracket | Token::SingleQuotedString(_) => before.span.end == place,
        _ => false,
    }
}

/// A bracketed name has fewer tokens than this (or it is no name; a bound keeps the search linear).
const MAX_NAME_TOKENS: usize = 18;

/// `[a b]` at the start of `tokens`: the identifier, and how many tokens it takes.
fn bracketed(tokens: &[TokenWithSpan]) -> Option<(Token, usize)> {
    let close = tokens.iter().take(MAX_NAME_TOKENS).position(|t| t.token == Token::RBracket)?;
    let inner = &tokens[1..close];
    if !matches!(inner.first()?.token, Token::Word(_)) || !inner.iter().all(|t| matches!(t.token, Token::Word(_) | Token::Number(..))) {
        return None;
    }
    let mut text = String::new();
    for (n, token) in inner.iter().enumerate() {
        if n > 0 {
            let gap = token.span.start.column.saturating_sub(inner[n - 1].span.end.column);
            text.extend(std::iter::repeat_n(' ', usize::try_from(gap.min(64)).unwrap_or(1)));
        }
        text.push_str(&token.token.to_string());
    }
    Some((Token::make_word(&text, Some('"')), close + 1))
}

/// Spark's `1.5D`, `1F`, `2BD`, `7S`, `7Y` (`7L` is the tokenizer's).
fn typed_numbers(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let suffixed = |n: usize| n + 1 < tokens.len() && number_type(&tokens[n], &tokens[n + 1]).is_some();
    if !(0..tokens.len()).any(suffixed) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 16);
    let mut at = 0;
    while at < tokens.len() {
        let number = tokens[at].clone();
        match tokens.get(at + 1).and_then(|next| number_type(&number, next)) {
            Some(NumberType::Plain) => {
                out.push(number);
                at += 2;
            }
            Some(NumberType::Cast(name)) => {
                let span = number.span;
                let word = |text| TokenWithSpan::new(Token::make_word(text, None), span);
                let mark = |token| TokenWithSpan::new(token, span);
                out.extend([word("CAST"), mark(Token::LParen), number, word("AS"), word(name), mark(Token::RParen)]);
                at += 2;
            }
            None => {
                out.push(number);
                at += 1;
            }
        }
    }
    out
}

enum NumberType {
    Cast(&'static str),
    Plain,
}

fn number_type(number: &TokenWithSpan, suffix: &TokenWithSpan) -> Option<NumberType> {
    let (Token::Number(..), Token::Word(word)) = (&number.token, &suffix.token) else { return None };
    if number.span.end != suffix.span.start || word.quote_style.is_some() {
        return None;
    }
    Some(match word.value.to_ascii_uppercase().as_str() {
        "D" => NumberType::Cast("DOUBLE"),
        "F" => NumberType::Cast("REAL"),
        "S" => NumberType::Cast("SMALLINT"),
        "Y" => NumberType::Cast("TINYINT"),
        "BD" => NumberType::Plain,
        _ => return None,
    })
}

/// May this word not name a table, a column or an alias when unquoted?
pub(super) fn is_reserved(word: &Word) -> bool {
    const ALSO: &[Keyword] = &[
        Keyword::AS,
        Keyword::AND,
        Keyword::OR,
        Keyword::NOT,
        Keyword::IN,
        Keyword::IS,
        Keyword::LIKE,
        Keyword::BETWEEN,
        Keyword::BY,
        Keyword::CASE,
        Keyword::WHEN,
        Keyword::THEN,
        Keyword::ELSE,
        Keyword::DISTINCT,
        Keyword::ALL,
        Keyword::INTO,
        Keyword::VALUES,
        Keyword::UPDATE,
        Keyword::DELETE,
        Keyword::INSERT,
        Keyword::MERGE,
        Keyword::OVERWRITE,
        Keyword::ONLY,
        Keyword::EXISTS,
        Keyword::TO,
    ];
    word.quote_style.is_none() && (keywords::RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword) || ALSO.contains(&word.keyword))
}

/// Is the token this unquoted word, in any case?
pub(super) fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str, options: Options) -> String {
        match lex(sql, options) {
            Ok(lexed) => lexed.tokens.iter().map(|t| t.token.to_string()).collect::<Vec<_>>().join(" "),
            Err(error) => format!("! {error}"),
        }
    }

    #[test]
    fn tokens() {
        let check = |sql: &str, expect: &str| assert_eq!(shown(sql, Options::default()), expect, "{sql}");
        check("SELECT 1 ;;", "SELECT 1");
        check("SELECT 1; SELECT 2", "! syntax: one statement at a time: send what follows the semicolon on its own (line 1, column 11)");
        check(" -- nothing\n", "! syntax: the statement is empty (line 1, column 1)");
        check(
            "SELECT [a b], t.[c], x[1], x[b], ARRAY[b], [1, 2] FROM [dbo].[t]",
            r#"SELECT "a b" , t . "c" , x [ 1 ] , x [ b ] , ARRAY [ b ] , [ 1 , 2 ] FROM "dbo" . "t""#,
        );
        check("SELECT a [Total]", r#"SELECT a "Total""#);
        check("SELECT 1312750.00D, 7bd, 3 d", "SELECT CAST ( 1312750.00 AS DOUBLE ) , 7 , 3 d");
        check("SELECT ? + ? -- ?\n", "SELECT $1 + $2");
        check("SELECT ?, $1", "! parameters are either all ? or all $1, $2 …, not both (line 1, column 11)");
        check("SELECT $x", "! syntax: $x is no parameter: write ? or $1, $2 … (line 1, column 8)");
        check("SELECT /* a /* b */ c */ 'a''b', \"c\"\"d\", `e``f`", "SELECT 'a'b' , \"c\"d\" , `e`f`");
        check(r"SELECT 'a\nb', E'a\nb', R'a\nb', N'x'", "SELECT 'a\\nb' , 'a\nb' , 'a\\nb' , 'x'");
    }

    #[test]
    fn spark_escapes() {
        let check = |sql: &str, expect: &str| {
            let tokens = lex(sql, Options { backslash_escapes: true }).map(|l| l.tokens).unwrap_or_default();
            assert_eq!(tokens.first().map(|t| &t.token), Some(&Token::SingleQuotedString(expect.to_owned())), "{sql}");
        };
        check(r"'new\nline'", "new\nline");
        check(r"'back\\slash'", r"back\slash");
        check(r"'it\'s'", "it's");
        check(r"'it''s'", "it's");
        check(r"'50\%'", r"50\%");
        check(r"'\uDBFF\uDFFF'", "\u{10FFFF}");
        check(r"'\u12'", "u12");
    }
}
