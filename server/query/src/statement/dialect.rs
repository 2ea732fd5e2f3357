//! What sqlparser is told about our SQL.
//!
//! The base is sqlparser's generic dialect (the one DataFusion's planner is written against), with three changes: `@` is never part of
//! a word (so that `t@v3` splits), table versions are on, and two hooks. One hook reads the marker that [`super::selector`] puts in
//! place of every selector; the other spends fuel, so that a text which makes the parser try over and over ends in an error and not
//! in hours.

use std::any::TypeId;
use std::cell::Cell;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Ident};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::selector;

/// Our dialect; one per statement, since it counts.
#[derive(Debug)]
pub(super) struct AsofDialect {
    backslash_escapes: bool,
    fuel: Cell<usize>,
}

impl AsofDialect {
    /// `fuel`: expressions the parser may begin, all its second tries included.
    pub(super) fn new(backslash_escapes: bool, fuel: usize) -> Self {
        Self { backslash_escapes, fuel: Cell::new(fuel) }
    }
}

impl Dialect for AsofDialect {
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"' || ch == '`'
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '$' || ch == '_'
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        let left = self.fuel.get();
        if left == 0 {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        self.fuel.set(left - 1);
        let marker = match &parser.peek_token_ref().token {
            Token::Placeholder(text) if selector::is_marker(text) => text.clone(),
            _ => return None,
        };
        let span = parser.next_token().span;
        let value = parser.parse_expr();
        Some(value.map(|value| Expr::Prefixed { prefix: Ident::with_span(span, marker), value: Box::new(value) }))
    }

    /// Spark's and MySQL's `a DIV b`; and `IS [NOT] DISTINCT FROM`, whose right side the parser would take to reach over AND and OR.
    fn parse_infix(&self, parser: &mut Parser, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        use Keyword::{DISTINCT, DIV, FROM, IS, NOT};
        let make: fn(Box<Expr>, Box<Expr>) -> Expr = if parser.parse_keyword(DIV) {
            |left, right| Expr::BinaryOp { left, op: BinaryOperator::MyIntegerDivide, right }
        } else if parser.parse_keywords(&[IS, DISTINCT, FROM]) {
            Expr::IsDistinctFrom
        } else if parser.parse_keywords(&[IS, NOT, DISTINCT, FROM]) {
            Expr::IsNotDistinctFrom
        } else {
            return None;
        };
        let left = Box::new(left.clone());
        Some(parser.parse_subexpr(precedence).map(|right| make(left, Box::new(right))))
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        self.backslash_escapes
    }

    fn supports_table_versioning(&self) -> bool {
        true
    }
    fn supports_unicode_string_literal(&self) -> bool {
        true
    }
    fn supports_string_escape_constant(&self) -> bool {
        true
    }
    fn supports_nested_comments(&self) -> bool {
        true
    }
    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }
    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }
    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }
    fn supports_within_after_array_aggregation(&self) -> bool {
        true
    }
    fn supports_group_by_expr(&self) -> bool {
        true
    }
    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }
    fn supports_order_by_all(&self) -> bool {
        true
    }
    fn supports_left_associative_joins_without_parens(&self) -> bool {
        true
    }
    fn supports_array_join_syntax(&self) -> bool {
        true
    }
    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }
    fn supports_values_as_table_factor(&self) -> bool {
        true
    }
    fn supports_cte_without_as(&self) -> bool {
        true
    }
    fn supports_from_first_select(&self) -> bool {
        true
    }
    fn supports_empty_projections(&self) -> bool {
        true
    }
    fn supports_projection_trailing_commas(&self) -> bool {
        true
    }
    fn supports_select_wildcard_except(&self) -> bool {
        true
    }
    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }
    fn supports_select_wildcard_replace(&self) -> bool {
        true
    }
    fn supports_select_wildcard_rename(&self) -> bool {
        true
    }
    fn supports_select_wildcard_ilike(&self) -> bool {
        true
    }
    fn supports_pipe_operator(&self) -> bool {
        true
    }
    fn supports_limit_comma(&self) -> bool {
        true
    }
    fn supports_struct_literal(&self) -> bool {
        true
    }
    fn supports_dictionary_syntax(&self) -> bool {
        true
    }
    fn support_map_literal_syntax(&self) -> bool {
        true
    }
    fn supports_map_literal_with_angle_brackets(&self) -> bool {
        true
    }
    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }
    fn supports_long_type_as_bigint(&self) -> bool {
        true
    }
    fn supports_lambda_functions(&self) -> bool {
        true
    }
    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }
    fn supports_subquery_as_function_arg(&self) -> bool {
        true
    }
    fn supports_try_convert(&self) -> bool {
        true
    }
    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }
    fn supports_bang_not_operator(&self) -> bool {
        true
    }
    fn allow_extract_custom(&self) -> bool {
        true
    }
    fn allow_extract_single_quotes(&self) -> bool {
        true
    }
    fn supports_extract_comma_syntax(&self) -> bool {
        true
    }
    fn supports_comma_separated_trim(&self) -> bool {
        true
    }
    fn supports_interval_options(&self) -> bool {
        true
    }
}
