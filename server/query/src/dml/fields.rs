//! Fields of a table at any depth, by path: names of columns and fields, and `element`, `key`, `value` for what is inside arrays and maps.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};

use super::invalid;
use crate::error::Result;

/// A path as users write it.
pub(super) fn shown(path: &[String]) -> String {
    path.join(".")
}

/// The field of that name: exactly, else in any case.
pub(super) fn position(fields: &[Field], name: &str) -> Option<usize> {
    let any_case = || fields.iter().position(|f| f.name().eq_ignore_ascii_case(name));
    fields.iter().position(|f| f.name() == name).or_else(any_case)
}

/// The field of that name, or an error that says which there are in `what`.
pub(super) fn required(fields: &[Field], name: &str, what: &str) -> Result<usize> {
    position(fields, name).ok_or_else(|| {
        let names: Vec<_> = fields.iter().map(|f| f.name().as_str()).collect();
        invalid(format!("{what} has no column {name}: it has {}", names.join(", ")))
    })
}

/// Changes the fields beside the one that the path names: those of the table, or of the struct that it lies in. `edit` is given them
/// and the name.
pub(super) fn edit(
    fields: &mut Vec<Field>,
    path: &[String],
    what: &str,
    edit_in: &mut dyn FnMut(&mut Vec<Field>, &str) -> Result<()>,
) -> Result<()> {
    match path {
        [] => Err(invalid(format!("{what}: no column is named"))),
        [name] => edit_in(fields, name),
        [name, rest @ ..] => {
            let at = required(fields, name, what)?;
            let what = format!("column {}", fields[at].name());
            let data_type = inside(fields[at].data_type(), rest, &what, edit_in)?;
            fields[at] = fields[at].clone().with_data_type(data_type);
            Ok(())
        }
    }
}

fn inside(
    data_type: &DataType,
    path: &[String],
    what: &str,
    edit_in: &mut dyn FnMut(&mut Vec<Field>, &str) -> Result<()>,
) -> Result<DataType> {
    let is = |name: &str| path[0].eq_ignore_ascii_case(name);
    let mut within = |field: &FieldRef| -> Result<FieldRef> {
        if path.len() == 1 {
            return Err(invalid(format!("{} of {what} has no name of its own: it can be given a wider type, nothing else", path[0])));
        }
        let changed = inside(field.data_type(), &path[1..], what, edit_in)?;
        Ok(Arc::new(field.as_ref().clone().with_data_type(changed)))
    };
    match data_type {
        DataType::Struct(fields) => {
            let mut fields: Vec<Field> = fields.iter().map(|f| f.as_ref().clone()).collect();
            edit(&mut fields, path, what, edit_in)?;
            Ok(DataType::Struct(fields.into()))
        }
        DataType::List(element) if is("element") => Ok(DataType::List(within(element)?)),
        DataType::Map(entries, sorted) if is("key") || is("value") => {
            let DataType::Struct(pair) = entries.data_type() else { return Err(no_field(path, what)) };
            let which = usize::from(is("value"));
            let mut pair: Vec<FieldRef> = pair.iter().cloned().collect();
            let Some(place) = pair.get_mut(which) else { return Err(no_field(path, what)) };
            *place = within(place)?;
            let entries = entries.as_ref().clone().with_data_type(DataType::Struct(Fields::from(pair)));
            Ok(DataType::Map(Arc::new(entries), *sorted))
        }
        _ => Err(no_field(path, what)),
    }
}

fn no_field(path: &[String], what: &str) -> crate::error::Error {
    invalid(format!("{what} has no field {}: fields of a struct have names, an array has element, a map key and value", path[0]))
}

/// Where a path ends: the nearest field with a name of its own, and what is left below it (`element`, `key`, `value`).
pub(super) fn named<'p>(fields: &[Field], path: &'p [String]) -> (&'p [String], &'p [String]) {
    let mut ends = path.len().min(1);
    let mut data_type = path.first().and_then(|name| position(fields, name)).map(|at| fields[at].data_type().clone());
    for (at, name) in path.iter().enumerate().skip(1) {
        data_type = match data_type {
            Some(DataType::Struct(inner)) => {
                ends = at + 1;
                let inner: Vec<Field> = inner.iter().map(|f| f.as_ref().clone()).collect();
                position(&inner, name).map(|at| inner[at].data_type().clone())
            }
            Some(DataType::List(element)) => Some(element.data_type().clone()),
            Some(DataType::Map(entries, _)) => match entries.data_type() {
                DataType::Struct(pair) => pair.get(usize::from(name.eq_ignore_ascii_case("value"))).map(|f| f.data_type().clone()),
                _ => None,
            },
            _ => None,
        };
    }
    path.split_at(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    fn table() -> Vec<Field> {
        let point = Fields::from(vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Int32, true)]);
        let element = Field::new("element", DataType::Struct(point.clone()), true);
        let pair = Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Struct(point.clone()), true)]);
        let entries = Field::new("key_value", DataType::Struct(pair), false);
        vec![
            Field::new("s", DataType::Struct(point), true),
            Field::new("l", DataType::List(Arc::new(element)), true),
            Field::new("m", DataType::Map(Arc::new(entries), false), true),
            Field::new("n", DataType::List(Arc::new(Field::new("element", DataType::Int32, true))), true),
        ]
    }

    #[test]
    fn fields_are_found_at_every_depth() {
        let check = |at: &str, expect: Result<&str, &str>| {
            let mut fields = table();
            let mut found = None;
            let result = edit(&mut fields, &path(at), "table t", &mut |fields, name| {
                let position = required(fields, name, "it")?;
                found = Some(fields.remove(position).name().clone());
                Ok(())
            });
            match (result, expect) {
                (Ok(()), Ok(name)) => assert_eq!((found.as_deref(), fields == table()), (Some(name), false), "{at}"),
                (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{at}: {error}"),
                (result, expect) => panic!("{at}: {result:?}, expected {expect:?}"),
            }
        };
        check("s", Ok("s"));
        check("S.Y", Ok("y"));
        check("l.element.x", Ok("x"));
        check("m.value.y", Ok("y"));
        check("z", Err("s, l, m, n"));
        check("s.z", Err("x, y"));
        check("l.x", Err("element"));
        check("n.element", Err("wider type"));
        check("m.value", Err("wider type"));
        check("n.element.x", Err("no field x"));
    }

    #[test]
    fn what_has_no_name_belongs_to_what_has() {
        let check = |at: &str, expect: (&str, &str)| {
            let at = path(at);
            let (named, below) = named(&table(), &at);
            assert_eq!((shown(named).as_str(), shown(below).as_str()), expect);
        };
        check("s", ("s", ""));
        check("s.x", ("s.x", ""));
        check("n.element", ("n", "element"));
        check("l.element.x", ("l.element.x", ""));
        check("m.key", ("m", "key"));
    }
}
