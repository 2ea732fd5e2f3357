//! Depth, kept finite.
//!
//! A statement is somebody else's text: ten thousand parentheses, or a sum of a million terms, must end in an answer or an error and
//! never in an overflowing stack. Three things bound it:
//! * redundant parentheses (`((((x))))`) are taken out, and what stays nested is limited to [`MAX_DEPTH`];
//! * chains of operators grow the tree to the left, one level per operator: the parse runs on a stack sized by their number
//!   ([`stack_size`]), long AND/OR chains are rebuilt balanced by [`balance`], and no other chain may be longer than [`MAX_CHAIN`];
//! * the parser's tries are counted ([`fuel`]).

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::lexer::is_word;
use super::position;
use crate::error::Result;

/// Levels of parentheses, brackets and type parameters.
pub(super) const MAX_DEPTH: usize = 128;
/// What the parser may recurse: a level of parentheses costs it up to three.
pub(super) const PARSER_DEPTH: usize = 3 * MAX_DEPTH + 16;
/// Operators in one expression, AND and OR aside.
pub(super) const MAX_CHAIN: usize = 1_000;
/// Operators in a statement.
const MAX_OPERATORS: usize = 200_000;
/// UNION, EXCEPT, INTERSECT in a statement.
const MAX_SET_OPERATIONS: usize = 1_000;

/// How many expressions the parser may begin.
pub(super) fn fuel(tokens: &[TokenWithSpan]) -> usize {
    100_000 + 64 * tokens.len()
}

/// Check parentheses and depth, and take redundant parentheses out.
///
/// Gives the tokens and their depth.
pub(super) fn flatten(tokens: Vec<TokenWithSpan>) -> Result<(Vec<TokenWithSpan>, usize)> {
    let pairs = pairs(&tokens)?;
    // In `(((x)))` the middle pair says nothing. The outer one may belong to a function or an IN list, the inner one may be a tuple.
    let redundant = |n: usize| {
        let Some(close) = pairs[n] else { return false };
        n > 0 && pairs[n - 1] == Some(close + 1) && pairs.get(n + 1).is_some_and(|inner| inner.is_some_and(|c| c + 1 == close))
    };
    let mut drop = vec![false; tokens.len()];
    for n in (0..tokens.len()).filter(|n| redundant(*n)) {
        drop[n] = true;
        if let Some(close) = pairs[n] {
            drop[close] = true;
        }
    }
    let kept: Vec<_> = tokens.into_iter().zip(drop).filter_map(|(token, drop)| (!drop).then_some(token)).collect();
    let depth = check_depth(&kept)?;
    Ok((kept, depth))
}

/// For each `(`, where its `)` stands.
fn pairs(tokens: &[TokenWithSpan]) -> Result<Vec<Option<usize>>> {
    let mut pairs = vec![None; tokens.len()];
    let mut open = Vec::new();
    for (n, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen => open.push(n),
            Token::RParen => match open.pop() {
                Some(start) => pairs[start] = Some(n),
                None => return Err(position::syntax("this ) closes nothing", position::of(token.span))),
            },
            _ => {}
        }
    }
    match open.last() {
        Some(n) => Err(position::syntax("this ( is never closed", position::of(tokens[*n].span))),
        None => Ok(pairs),
    }
}

fn check_depth(tokens: &[TokenWithSpan]) -> Result<usize> {
    let mut deepest = 0;
    let (mut depth, mut types, mut sets, mut empty_brackets) = (0_usize, 0_usize, 0_usize, 0_usize);
    for (n, token) in tokens.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| &tokens[n].token);
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBrace => depth = depth.saturating_sub(1),
            Token::RBracket => {
                depth = depth.saturating_sub(1);
                empty_brackets = if before == Some(&Token::LBracket) { empty_brackets + 1 } else { 0 };
            }
            Token::Lt if before.is_some_and(|t| ["ARRAY", "MAP", "STRUCT"].iter().any(|name| is_word(t, name))) => types += 1,
            Token::Gt => types = types.saturating_sub(1),
            Token::ShiftRight => types = types.saturating_sub(2),
            Token::Word(w) if matches!(w.keyword, Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS) => sets += 1,
            Token::Word(w) if w.keyword == Keyword::INTERVAL && before.is_some_and(|t| is_word(t, "INTERVAL")) => {
                return Err(position::syntax("INTERVAL takes a number or a text", position::of(token.span)));
            }
            _ => {}
        }
        deepest = deepest.max(depth + types + empty_brackets);
        let location = position::of(token.span);
        if depth > MAX_DEPTH || types > MAX_DEPTH || empty_brackets > MAX_DEPTH {
            let what = format!("nested too deep: at most {MAX_DEPTH} levels of parentheses, brackets and types; split the statement");
            return Err(position::syntax(what, location));
        }
        if sets > MAX_SET_OPERATIONS {
            let what = format!("at most {MAX_SET_OPERATIONS} UNION, EXCEPT and INTERSECT in a statement; use VALUES or a table");
            return Err(position::syntax(what, location));
        }
    }
    Ok(deepest)
}

/// Bytes of stack that parsing, walking and dropping this statement may need.
pub(super) fn stack_size(tokens: &[TokenWithSpan], depth: usize) -> Result<usize> {
    const PER_OPERATOR: usize = 2 << 10;
    // The parser grows its stack itself, but between two of its checks a level may need more than it leaves free.
    const PER_LEVEL: usize = 256 << 10;
    let mut operators = 0;
    for (n, token) in tokens.iter().enumerate() {
        let infix = n > 0 && ends_operand(&tokens[n - 1].token);
        if infix && is_operator(&token.token) {
            operators += 1;
            if operators > MAX_OPERATORS {
                let what = format!("at most {MAX_OPERATORS} operators in a statement; use IN (…), VALUES or a table");
                return Err(position::syntax(what, position::of(token.span)));
            }
        }
    }
    Ok((1 << 20) + operators * PER_OPERATOR + depth * PER_LEVEL)
}

fn ends_operand(token: &Token) -> bool {
    matches!(
        token,
        Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::HexStringLiteral(_)
            | Token::Placeholder(_)
            | Token::RParen
            | Token::RBracket
            | Token::RBrace
    )
}

fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(w) => matches!(
            w.keyword,
            Keyword::AND
                | Keyword::OR
                | Keyword::XOR
                | Keyword::NOT
                | Keyword::IS
                | Keyword::IN
                | Keyword::BETWEEN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::RLIKE
                | Keyword::REGEXP
                | Keyword::MATCH
                | Keyword::SIMILAR
                | Keyword::MEMBER
                | Keyword::OPERATOR
                | Keyword::OVERLAPS
                | Keyword::DIV
                | Keyword::COLLATE
                | Keyword::NOTNULL
                | Keyword::AT
                | Keyword::PIVOT
                | Keyword::UNPIVOT
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::MINUS
        ),
        Token::Comma | Token::Period | Token::RParen | Token::LParen | Token::RBracket | Token::RBrace | Token::EOF => false,
        Token::Number(..) | Token::SingleQuotedString(_) | Token::HexStringLiteral(_) | Token::Placeholder(_) => false,
        _ => true,
    }
}

/// Rebuild a long left-deep chain of one of AND, OR as a balanced tree; the order of its terms stays.
pub(super) fn balance(expr: &mut Expr) {
    const LONG: usize = 16;
    let op = match expr {
        Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } => op.clone(),
        _ => return,
    };
    let (mut length, mut at) = (0, &*expr);
    while let Expr::BinaryOp { left, op: other, .. } = at {
        if *other != op {
            break;
        }
        length += 1;
        at = left;
    }
    if length < LONG {
        return;
    }
    let mut terms = Vec::with_capacity(length + 1);
    let mut rest = std::mem::replace(expr, Expr::value(datafusion::sql::sqlparser::ast::Value::Null));
    loop {
        match rest {
            Expr::BinaryOp { left, op: other, right } if other == op => {
                terms.push(*right);
                rest = *left;
            }
            first => {
                terms.push(first);
                break;
            }
        }
    }
    terms.reverse();
    *expr = joined(terms, &op);
}

fn joined(mut terms: Vec<Expr>, op: &BinaryOperator) -> Expr {
    let right = terms.split_off(terms.len() / 2);
    match (terms.is_empty(), right.len()) {
        (true, 1) => right.into_iter().next().unwrap_or_else(|| Expr::value(datafusion::sql::sqlparser::ast::Value::Null)),
        _ => Expr::BinaryOp { left: Box::new(joined(terms, op)), op: op.clone(), right: Box::new(joined(right, op)) },
    }
}
