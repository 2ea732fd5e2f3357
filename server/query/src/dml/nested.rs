//! Assignments to fields of structs: `SET s.t.b = 'x'`.
//!
//! The whole struct is made anew from its fields, with the assigned ones in their places. A struct that was NULL becomes one whose other
//! fields are NULL.

use arrow::datatypes::{DataType, Field};
use datafusion::sql::sqlparser::ast;

use super::invalid;
use crate::error::Result;
use crate::write::assign::sql_type;

/// The path below a column, and the value.
pub(super) type Inner<'a> = (&'a [String], &'a ast::Expr);

/// The value of `field`, which is `old` now, with the assigned parts in their places.
pub(super) fn assign(field: &Field, old: &ast::Expr, assignments: &[Inner<'_>]) -> Result<ast::Expr> {
    let DataType::Struct(parts) = field.data_type() else {
        return Err(invalid(format!("{} is {} and has no fields to assign", field.name(), sql_type(field.data_type()))));
    };
    for (path, _) in assignments {
        if let Some(name) = path.first().filter(|name| !parts.iter().any(|part| part.name().eq_ignore_ascii_case(name))) {
            let names: Vec<_> = parts.iter().map(|part| part.name().as_str()).collect();
            return Err(invalid(format!("{} has no field {name}: it has {}", field.name(), names.join(", "))));
        }
    }
    let mut arguments = Vec::with_capacity(parts.len() * 2);
    for part in parts {
        let below = assignments.iter().copied().filter_map(|(path, value)| match path {
            [name, rest @ ..] if part.name().eq_ignore_ascii_case(name) => Some((path, rest.len(), value)),
            _ => None,
        });
        let below: Vec<_> = below.collect();
        let current = access(old, part.name());
        let value = match below.as_slice() {
            [] => current,
            [(_, 0, value)] => ast::Expr::Nested(Box::new((*value).clone())),
            several if several.iter().all(|(_, rest, _)| *rest > 0) => {
                let inner: Vec<Inner<'_>> = several.iter().map(|(path, _, value)| (&path[1..], *value)).collect();
                assign(part, &current, &inner)?
            }
            _ => return Err(invalid(format!("field {} of {} is assigned twice", part.name(), field.name()))),
        };
        arguments.extend([text(part.name()), value]);
    }
    Ok(call("named_struct", arguments))
}

fn text(value: &str) -> ast::Expr {
    ast::Expr::Value(ast::Value::SingleQuotedString(value.to_owned()).with_empty_span())
}

/// `get_field(value, 'name')`.
fn access(value: &ast::Expr, name: &str) -> ast::Expr {
    call("get_field", vec![value.clone(), text(name)])
}

fn call(name: &str, arguments: Vec<ast::Expr>) -> ast::Expr {
    let args = arguments.into_iter().map(|value| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value))).collect();
    ast::Expr::Function(ast::Function {
        name: ast::ObjectName::from(vec![ast::Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(ast::FunctionArgumentList { duplicate_treatment: None, args, clauses: vec![] }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_made_anew() {
        let check = |paths: &[&[&str]], expect: Option<&str>| {
            let t = Field::new("t", DataType::Struct(vec![Field::new("b", DataType::Utf8, true)].into()), true);
            let s = Field::new("s", DataType::Struct(vec![Field::new("a", DataType::Int32, true), t].into()), true);
            let one = ast::Expr::Value(ast::Value::Number("1".into(), false).with_empty_span());
            let paths: Vec<Vec<String>> = paths.iter().map(|p| p.iter().map(|n| (*n).to_owned()).collect()).collect();
            let assignments: Vec<Inner<'_>> = paths.iter().map(|p| (p.as_slice(), &one)).collect();
            let made = assign(&s, &ast::Expr::Identifier("s".into()), &assignments);
            assert_eq!(made.ok().map(|e| e.to_string()).as_deref(), expect, "{paths:?}");
        };
        check(&[&["A"]], Some("named_struct('a', (1), 't', get_field(s, 't'))"));
        check(&[&["t", "b"]], Some("named_struct('a', get_field(s, 'a'), 't', named_struct('b', (1)))"));
        check(&[&["x"]], None);
        check(&[&["a", "b"]], None);
        check(&[&["t"], &["t", "b"]], None);
    }
}
