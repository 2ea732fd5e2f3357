//! Spark's `map(k1, v1, k2, v2, …)`, beside DataFusion's `map([keys], [values])`.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, MapArray, StructArray, UInt64Array, new_empty_array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, concat, take};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::binary::comparison_coercion;

use super::scalar::{Call, Scalar};

pub(super) fn functions() -> Vec<Scalar> {
    vec![Scalar::variadic("map", returns, make)]
}

/// The element types of keys and values that are given as two lists.
fn two_lists(arguments: &[DataType]) -> Option<(&DataType, &DataType)> {
    fn element(data_type: &DataType) -> Option<&DataType> {
        match data_type {
            DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => Some(field.data_type()),
            _ => None,
        }
    }
    match arguments {
        [keys, values] => Some((element(keys)?, element(values)?)),
        _ => None,
    }
}

fn common<'a>(types: impl Iterator<Item = &'a DataType>, what: &str) -> Result<DataType> {
    let mut common = DataType::Null;
    for data_type in types {
        if common.is_null() || common == *data_type {
            common = data_type.clone();
        } else if !data_type.is_null() {
            common = comparison_coercion(&common, data_type)
                .ok_or_else(|| DataFusionError::Plan(format!("the {what} of map(…) have no common type: {common} and {data_type}")))?;
        }
    }
    Ok(common)
}

fn entry_types(arguments: &[DataType]) -> Result<(DataType, DataType)> {
    if let Some((key, value)) = two_lists(arguments) {
        return Ok((key.clone(), value.clone()));
    }
    if arguments.len() % 2 == 1 {
        return Err(DataFusionError::Plan(format!(
            "map(…) takes keys and values in turn, an even number of arguments, not {}",
            arguments.len()
        )));
    }
    let key = common(arguments.iter().step_by(2), "keys")?;
    let value = common(arguments.iter().skip(1).step_by(2), "values")?;
    // An empty map has to have some type.
    Ok((if key.is_null() { DataType::Utf8 } else { key }, if value.is_null() { DataType::Utf8 } else { value }))
}

fn entries_field(key: DataType, value: DataType) -> Field {
    let fields = Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)]);
    Field::new("key_value", DataType::Struct(fields), false)
}

fn returns(arguments: &[DataType]) -> Result<DataType> {
    let (key, value) = entry_types(arguments)?;
    Ok(DataType::Map(Arc::new(entries_field(key, value)), false))
}

fn make(call: &Call) -> Result<ArrayRef> {
    let types: Vec<DataType> = call.arrays.iter().map(|array| array.data_type().clone()).collect();
    let (key, value) = entry_types(&types)?;
    let (keys, values, offsets) =
        if two_lists(&types).is_some() { from_lists(call, &key, &value)? } else { from_pairs(call, &key, &value)? };
    check_keys(&keys, &offsets)?;
    let DataType::Struct(fields) = entries_field(key.clone(), value.clone()).data_type().clone() else {
        return Err(DataFusionError::Internal("a map's entries are a struct".to_owned()));
    };
    let entries = StructArray::try_new(fields, vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(Arc::new(entries_field(key, value)), offsets, entries, None, false)?))
}

type Entries = (ArrayRef, ArrayRef, OffsetBuffer<i32>);

fn from_pairs(call: &Call, key: &DataType, value: &DataType) -> Result<Entries> {
    let rows = call.arrays.first().map_or(1, |array| array.len());
    let pairs = call.arrays.len() / 2;
    // Arguments one after the other, then taken row by row.
    let column = |offset: usize, to: &DataType| -> Result<ArrayRef> {
        let parts = call.arrays.iter().skip(offset).step_by(2).map(|array| cast(array, to)).collect::<Result<Vec<_>, _>>()?;
        if parts.is_empty() {
            return Ok(new_empty_array(to));
        }
        let all = concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?;
        let order = (0..rows).flat_map(|row| (0..pairs).map(move |pair| pair * rows + row));
        let order: UInt64Array = order.map(|n| u64::try_from(n).ok()).collect();
        Ok(take(&all, &order, None)?)
    };
    Ok((column(0, key)?, column(1, value)?, OffsetBuffer::from_lengths(std::iter::repeat_n(pairs, rows))))
}

fn from_lists(call: &Call, key: &DataType, value: &DataType) -> Result<Entries> {
    let list = |array: &ArrayRef, to: &DataType| cast(array, &DataType::List(Arc::new(Field::new("element", to.clone(), true))));
    let (keys, values) = (list(&call.arrays[0], key)?, list(&call.arrays[1], value)?);
    let (keys, values) = (keys.as_list::<i32>(), values.as_list::<i32>());
    let (mut all_keys, mut all_values, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..keys.len() {
        let (k, v) = (keys.value(row), values.value(row));
        if k.len() != v.len() {
            return Err(DataFusionError::Execution(format!("map has {} keys and {} values", k.len(), v.len())));
        }
        lengths.push(k.len());
        all_keys.push(k);
        all_values.push(v);
    }
    let join = |parts: &[ArrayRef], to: &DataType| -> Result<ArrayRef> {
        if parts.is_empty() { Ok(new_empty_array(to)) } else { Ok(concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?) }
    };
    Ok((join(&all_keys, key)?, join(&all_values, value)?, OffsetBuffer::from_lengths(lengths)))
}

/// Keys are there, and once.
fn check_keys(keys: &ArrayRef, offsets: &OffsetBuffer<i32>) -> Result<()> {
    if keys.null_count() > 0 {
        return Err(DataFusionError::Execution("a map's key cannot be NULL".to_owned()));
    }
    for window in offsets.windows(2) {
        let mut seen = HashSet::new();
        for index in window[0]..window[1] {
            let key = ScalarValue::try_from_array(keys, usize::try_from(index).unwrap_or_default())?;
            if !seen.insert(key.clone()) {
                return Err(DataFusionError::Execution(format!("a map has the key {key} twice")));
            }
        }
    }
    Ok(())
}
