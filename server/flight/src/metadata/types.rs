//! GetXdbcTypeInfo: the types a column can have, as ODBC and Power BI ask for them.

use arrow_flight::sql::metadata::{XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder};
use arrow_flight::sql::{Nullable, Searchable, XdbcDataType, XdbcDatetimeSubcode};

use super::built;
use crate::error::Result;

/// All types.
pub(super) fn all() -> Result<XdbcTypeInfoData> {
    let mut all = XdbcTypeInfoDataBuilder::new();
    for info in [
        number("TINYINT", XdbcDataType::XdbcSmallint, 3),
        number("SMALLINT", XdbcDataType::XdbcSmallint, 5),
        number("INT", XdbcDataType::XdbcInteger, 10),
        number("BIGINT", XdbcDataType::XdbcInteger, 19),
        XdbcTypeInfo { num_prec_radix: Some(2), ..number("FLOAT", XdbcDataType::XdbcReal, 24) },
        XdbcTypeInfo { num_prec_radix: Some(2), ..number("DOUBLE", XdbcDataType::XdbcDouble, 53) },
        XdbcTypeInfo {
            create_params: Some(vec!["precision".to_owned(), "scale".to_owned()]),
            minimum_scale: Some(0),
            maximum_scale: Some(38),
            ..number("DECIMAL", XdbcDataType::XdbcDecimal, 38)
        },
        XdbcTypeInfo { case_sensitive: true, ..quoted("STRING", XdbcDataType::XdbcVarchar, i32::MAX) },
        quoted("BINARY", XdbcDataType::XdbcVarchar, i32::MAX),
        plain("BOOLEAN", XdbcDataType::XdbcUnknownType, 1),
        quoted("DATE", XdbcDataType::XdbcDate, 10),
        moment("TIMESTAMP", XdbcDatetimeSubcode::XdbcSubcodeTimestampWithTimezone),
        moment("TIMESTAMP_NTZ", XdbcDatetimeSubcode::XdbcSubcodeTimestamp),
    ] {
        all.append(info);
    }
    all.build().map_err(built)
}

fn plain(name: &str, data_type: XdbcDataType, size: i32) -> XdbcTypeInfo {
    XdbcTypeInfo {
        type_name: name.to_owned(),
        data_type,
        column_size: Some(size),
        nullable: Nullable::NullabilityNullable,
        searchable: Searchable::Full,
        local_type_name: Some(name.to_owned()),
        sql_data_type: data_type,
        ..XdbcTypeInfo::default()
    }
}

fn number(name: &str, data_type: XdbcDataType, digits: i32) -> XdbcTypeInfo {
    XdbcTypeInfo {
        unsigned_attribute: Some(false),
        num_prec_radix: Some(10),
        auto_increment: Some(false),
        ..plain(name, data_type, digits)
    }
}

fn quoted(name: &str, data_type: XdbcDataType, size: i32) -> XdbcTypeInfo {
    XdbcTypeInfo { literal_prefix: Some("'".to_owned()), literal_suffix: Some("'".to_owned()), ..plain(name, data_type, size) }
}

fn moment(name: &str, subcode: XdbcDatetimeSubcode) -> XdbcTypeInfo {
    XdbcTypeInfo {
        datetime_subcode: Some(subcode),
        maximum_scale: Some(6),
        sql_data_type: XdbcDataType::XdbcDatetime,
        ..quoted(name, XdbcDataType::XdbcTimestamp, 26)
    }
}
