//! Literals, types and functions as their users spell them, in the form DataFusion plans.
//!
//! | written | planned |
//! |---|---|
//! | `TIMESTAMP '…'`, `CAST(x AS TIMESTAMP)` | `timestamp(x)`: an instant; text without a zone counts in the session's |
//! | `TIMESTAMP_NTZ '…'`, `CAST(x AS TIMESTAMP_NTZ)`, `DATETIME` | a cast to microseconds without a zone |
//! | `CAST(x AS DATE)` | `date(x)`: an instant's day in the session's zone |
//! | `1e300` | a DOUBLE (DataFusion may read it as DECIMAL, and fail) |
//! | `a DIV b` · `!a` · `a RLIKE b` | `CAST(a / b AS BIGINT)` · `NOT a` · `a ~ b` |
//! | `decode(b, 'UTF-8')` | `decode_text`; `decode(t, 'hex')` is DataFusion's |
//! | `dateadd(day, -1, x)`, `getdate()`, `isnull(a, b)`, `len(a)` | `x + INTERVAL '-1 day'`, `now()`, `coalesce(a, b)`, `length(a)` |
//!
//! Type names that DataFusion's planner does not know (BINARY, BYTE, LONG, CHARACTER VARYING …) become ones that it does.

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, Interval, ObjectName, TimezoneInfo, TypedString, UnaryOperator, Value,
};

/// A number literal.
pub(super) fn number(digits: String) -> Expr {
    Expr::value(Value::Number(digits, false))
}

fn text(text: impl Into<String>) -> Expr {
    Expr::value(Value::SingleQuotedString(text.into()))
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args = arguments.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// A placeholder while an expression is rebuilt.
fn taken(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::value(Value::Null))
}

/// Rewrite one expression; its children follow.
pub(super) fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::Value(value) => {
            if let Value::Number(digits, _) = &value.value
                && digits.contains(['e', 'E'])
                && !digits.starts_with("0x")
            {
                *expr = cast(text(digits.clone()), DataType::Double(ExactNumberInfo::None));
            }
        }
        Expr::TypedString(typed) => {
            if let Some(literal) = typed_literal(typed) {
                *expr = literal;
            }
        }
        Expr::Cast { .. } => rewrite_cast(expr),
        Expr::BinaryOp { op, .. } if *op == BinaryOperator::MyIntegerDivide => {
            *op = BinaryOperator::Divide;
            *expr = cast(taken(expr), DataType::BigInt(None));
        }
        Expr::UnaryOp { op, .. } if *op == UnaryOperator::BangNot => *op = UnaryOperator::Not,
        Expr::RLike { negated, expr: subject, pattern, .. } => {
            let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
            *expr = Expr::BinaryOp { left: Box::new(taken(subject)), op, right: Box::new(taken(pattern)) };
        }
        Expr::Function(function) => {
            if let Some(rewritten) = rewrite_function(function) {
                *expr = rewritten;
            }
        }
        _ => {}
    }
}

fn is_instant(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(_, zone) => *zone != TimezoneInfo::WithoutTimeZone,
        DataType::Custom(name, _) => name.to_string().eq_ignore_ascii_case("timestamp_ltz"),
        _ => false,
    }
}

fn typed_literal(typed: &mut TypedString) -> Option<Expr> {
    let value = typed.value.clone().into_string()?;
    if is_instant(&typed.data_type) {
        return Some(call("timestamp", vec![text(value)]));
    }
    plain(&mut typed.data_type);
    Some(cast(text(value), typed.data_type.clone()))
}

fn rewrite_cast(expr: &mut Expr) {
    let Expr::Cast { kind, expr: inner, data_type, format: None, .. } = expr else { return };
    let tries = matches!(kind, CastKind::TryCast | CastKind::SafeCast);
    let is_literal = matches!(inner.as_ref(), Expr::Value(_));
    let name = match data_type {
        _ if is_instant(data_type) => Some(if tries { "try_to_timestamp" } else { "timestamp" }),
        DataType::Date if !is_literal => Some(if tries { "try_to_date" } else { "date" }),
        _ => None,
    };
    match name {
        Some(name) => *expr = call(name, vec![taken(inner)]),
        None => plain(data_type),
    }
}

/// A type that DataFusion's planner knows.
fn plain(data_type: &mut DataType) {
    let zoneless = DataType::Timestamp(Some(6), TimezoneInfo::WithoutTimeZone);
    let known = match data_type {
        DataType::Int16 => DataType::SmallInt(None),
        DataType::Int32 | DataType::MediumInt(_) | DataType::SignedInteger => DataType::Int(None),
        DataType::Int64 => DataType::BigInt(None),
        DataType::Float32 => DataType::Real,
        DataType::Float64 => DataType::Double(ExactNumberInfo::None),
        DataType::Decimal(ExactNumberInfo::None) | DataType::Numeric(ExactNumberInfo::None) => {
            DataType::Decimal(ExactNumberInfo::PrecisionAndScale(10, 0))
        }
        DataType::Dec(info) => DataType::Decimal(*info),
        DataType::Binary(_) | DataType::Varbinary(_) | DataType::Blob(_) | DataType::Bytes(_) => DataType::Bytea,
        DataType::Character(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) | DataType::Nvarchar(_) | DataType::Clob(_) => {
            DataType::Varchar(None)
        }
        DataType::TimestampNtz(_) | DataType::Datetime(_) | DataType::Timestamp(_, TimezoneInfo::WithoutTimeZone) => zoneless,
        DataType::Timestamp(_, zone) if *zone != TimezoneInfo::WithoutTimeZone => DataType::Timestamp(Some(6), TimezoneInfo::WithTimeZone),
        DataType::Array(ArrayElemTypeDef::AngleBracket(inner) | ArrayElemTypeDef::SquareBracket(inner, _)) => return plain(inner),
        DataType::Struct(fields, _) => return fields.iter_mut().for_each(|field| plain(&mut field.field_type)),
        DataType::Custom(name, _) => match name.to_string().to_ascii_uppercase().as_str() {
            "BYTE" => DataType::TinyInt(None),
            "SHORT" => DataType::SmallInt(None),
            "LONG" => DataType::BigInt(None),
            "DATETIME2" => zoneless,
            _ => return,
        },
        _ => return,
    };
    *data_type = known;
}

/// The arguments of a plain call: no DISTINCT, no names, no window.
fn arguments(function: &mut Function) -> Option<Vec<&mut Expr>> {
    if function.over.is_some() || function.filter.is_some() || !function.within_group.is_empty() {
        return None;
    }
    let FunctionArguments::List(list) = &mut function.args else { return None };
    if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return None;
    }
    list.args.iter_mut().map(plain_argument).collect()
}

fn plain_argument(argument: &mut FunctionArg) -> Option<&mut Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

fn rewrite_function(function: &mut Function) -> Option<Expr> {
    let name = match function.name.0.as_slice() {
        [part] => part.as_ident().filter(|ident| ident.quote_style.is_none())?.value.to_ascii_lowercase(),
        _ => return None,
    };
    if !["decode", "getdate", "sysdatetime", "sysutcdatetime", "isnull", "len", "dateadd", "timestampadd", "unix_timestamp"]
        .contains(&name.as_str())
    {
        return None;
    }
    let mut given = arguments(function)?;
    match (name.as_str(), given.as_mut_slice()) {
        ("decode", [bytes, Expr::Value(set)]) => {
            let set = set.value.clone().into_string()?;
            let is_encoding = ["hex", "base64", "base64pad"].iter().any(|known| set.eq_ignore_ascii_case(known));
            (!is_encoding).then(|| call("decode_text", vec![taken(bytes), text(set)]))
        }
        ("getdate" | "sysdatetime" | "sysutcdatetime", []) => Some(call("now", Vec::new())),
        ("unix_timestamp", []) => Some(call("unix_timestamp", vec![call("now", Vec::new())])),
        ("isnull", [a, b]) => Some(call("coalesce", vec![taken(a), taken(b)])),
        ("len", [a]) => Some(call("length", vec![taken(a)])),
        ("dateadd" | "timestampadd", [Expr::Identifier(unit), count, moment]) => {
            let count = whole_number(count)?;
            let interval = Interval {
                value: Box::new(text(format!("{count} {}", unit.value.to_ascii_lowercase()))),
                leading_field: None,
                leading_precision: None,
                last_field: None,
                fractional_seconds_precision: None,
            };
            Some(Expr::BinaryOp { left: Box::new(taken(moment)), op: BinaryOperator::Plus, right: Box::new(Expr::Interval(interval)) })
        }
        _ => None,
    }
}

/// A whole number literal, with its sign.
fn whole_number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => whole_number(expr).map(std::ops::Neg::neg),
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}
