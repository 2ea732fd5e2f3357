//! Text and bytes.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};

use super::scalar::{Call, Scalar};

pub(super) fn functions() -> Vec<Scalar> {
    vec![Scalar::new("decode_text", &[2], |_| Ok(DataType::Utf8), decode)]
}

/// `decode(bytes, 'UTF-8')`: bytes in a character set as text. DataFusion's `decode(text, 'hex' | 'base64')` stays; which of the two is
/// meant, the statement's parser tells by the second argument.
fn decode(call: &Call) -> Result<ArrayRef> {
    let (bytes, sets) = (cast(&call.arrays[0], &DataType::Binary)?, cast(&call.arrays[1], &DataType::Utf8)?);
    let texts = bytes.as_binary::<i32>().iter().zip(sets.as_string::<i32>()).map(|pair| {
        let (Some(bytes), Some(set)) = pair else { return Ok(None) };
        characters(bytes, set).map(Some)
    });
    Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
}

fn characters(bytes: &[u8], set: &str) -> Result<String> {
    let wide = |big: bool| {
        let units = bytes.chunks(2).map(|pair| match (pair, big) {
            ([a, b], true) => u16::from_be_bytes([*a, *b]),
            ([a, b], false) => u16::from_le_bytes([*a, *b]),
            _ => 0xFFFD,
        });
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    Ok(match set.to_ascii_uppercase().as_str() {
        "UTF-8" | "UTF8" => String::from_utf8_lossy(bytes).into_owned(),
        "US-ASCII" => bytes.iter().map(|b| if b.is_ascii() { char::from(*b) } else { char::REPLACEMENT_CHARACTER }).collect(),
        "ISO-8859-1" => bytes.iter().copied().map(char::from).collect(),
        "UTF-16BE" | "UTF-16" => wide(true),
        "UTF-16LE" => wide(false),
        other => {
            return Err(DataFusionError::Execution(format!(
                "the character set '{other}' is not known; there are UTF-8, US-ASCII, ISO-8859-1, UTF-16BE, UTF-16LE"
            )));
        }
    })
}
