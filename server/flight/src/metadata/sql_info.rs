//! GetSqlInfo: what the server can do.
//!
//! All codes of the standard that JDBC, ODBC and ADBC know, each with the type that their getters cast to, and no others: an unknown code is a
//! null pointer in JDBC, and a wrong type a ClassCastException in the getter of a tool.

use std::collections::BTreeMap;

use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{
    SqlInfo, SqlNullOrdering, SqlSupportedCaseSensitivity, SqlSupportedGroupBy, SqlSupportedResultSetConcurrency,
    SqlSupportedResultSetType, SqlSupportedSubqueries, SqlSupportedTransaction, SqlSupportedUnions, SqlSupportsConvert,
    SqlTransactionIsolationLevel, SupportedSqlGrammar,
};

use super::built;
use crate::error::Result;

/// Version of the Arrow columnar format on the wire.
const ARROW_FORMAT: &str = "1.5.0";
/// A limit that is none.
const UNLIMITED: i64 = 0;
/// ANSI92 entry level, the first bit of `SqlSupportsAnsi92Level`.
const ANSI92_ENTRY: i32 = 1;
/// Full outer joins, the second bit after limited ones.
const OUTER_JOINS: i32 = 0b110;

/// Words that mean something to asof and are not reserved by SQL-92, which tools know already.
const KEYWORDS: &[&str] = &[
    "AT",
    "BEFORE",
    "CLONE",
    "DELTA",
    "DETAIL",
    "DRY",
    "EXPLAIN",
    "HISTORY",
    "ICEBERG",
    "LATEST",
    "OF",
    "OFFSET",
    "OPTIMIZE",
    "OVERWRITE",
    "PARTITIONED",
    "PIVOT",
    "QUALIFY",
    "RESET",
    "RESTORE",
    "RETAIN",
    "SHALLOW",
    "SHOW",
    "SNAPSHOT",
    "SYSTEM_TIME",
    "SYSTEM_VERSION",
    "TBLPROPERTIES",
    "TRUNCATE",
    "UNDROP",
    "USE",
    "VACUUM",
    "VERSION",
    "WINDOW",
    "ZORDER",
];
const NUMERIC: &[&str] = &[
    "ABS", "ACOS", "ASIN", "ATAN", "ATAN2", "CEILING", "COS", "COT", "DEGREES", "EXP", "FLOOR", "LOG", "LOG10", "MOD", "PI", "POWER",
    "RADIANS", "RAND", "ROUND", "SIGN", "SIN", "SQRT", "TAN", "TRUNCATE",
];
const STRINGS: &[&str] = &[
    "ASCII",
    "CHAR",
    "CHAR_LENGTH",
    "CHARACTER_LENGTH",
    "CONCAT",
    "LEFT",
    "LENGTH",
    "LOWER",
    "LTRIM",
    "OCTET_LENGTH",
    "POSITION",
    "REPEAT",
    "REPLACE",
    "RIGHT",
    "RTRIM",
    "SPACE",
    "SUBSTRING",
    "UPPER",
];
const SYSTEM: &[&str] = &["COALESCE", "NULLIF"];
const DATETIME: &[&str] = &["CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "DATE_PART", "DATE_TRUNC", "EXTRACT", "NOW"];

/// Bits of the numbered choices.
fn bits<T: Into<i32>>(choices: impl IntoIterator<Item = T>) -> i32 {
    choices.into_iter().fold(0, |mask, choice| mask | (1 << choice.into()))
}

/// The whole table.
pub(super) fn all() -> Result<SqlInfoData> {
    let mut info = SqlInfoDataBuilder::new();
    server(&mut info);
    names(&mut info);
    language(&mut info);
    limits(&mut info);
    transactions(&mut info);
    info.build().map_err(built)
}

fn server(info: &mut SqlInfoDataBuilder) {
    info.append(SqlInfo::FlightSqlServerName, "asof");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, ARROW_FORMAT);
    info.append(SqlInfo::FlightSqlServerReadOnly, false);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerSubstraitMinVersion, "");
    info.append(SqlInfo::FlightSqlServerSubstraitMaxVersion, "");
    // Anything but none makes Python's dbapi begin a transaction at connect, and freeze.
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    info.append(SqlInfo::FlightSqlServerCancel, true);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, false);
    info.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    info.append(SqlInfo::FlightSqlServerStatementTimeout, 0_i32);
    info.append(SqlInfo::FlightSqlServerTransactionTimeout, 0_i32);
}

fn names(info: &mut SqlInfoDataBuilder) {
    info.append(SqlInfo::SqlDdlCatalog, false);
    info.append(SqlInfo::SqlDdlSchema, true);
    info.append(SqlInfo::SqlDdlTable, true);
    // Choices, not masks: JDBC reads these as bigint.
    info.append(SqlInfo::SqlIdentifierCase, SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i64);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(SqlInfo::SqlQuotedIdentifierCase, SqlSupportedCaseSensitivity::SqlCaseSensitivityCaseInsensitive as i64);
    info.append(SqlInfo::SqlAllTablesAreSelectable, true);
    info.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedHigh as i64);
    info.append(SqlInfo::SqlKeywords, KEYWORDS);
    info.append(SqlInfo::SqlNumericFunctions, NUMERIC);
    info.append(SqlInfo::SqlStringFunctions, STRINGS);
    info.append(SqlInfo::SqlSystemFunctions, SYSTEM);
    info.append(SqlInfo::SqlDatetimeFunctions, DATETIME);
    info.append(SqlInfo::SqlSearchStringEscape, "\\");
    info.append(SqlInfo::SqlExtraNameCharacters, "");
    info.append(SqlInfo::SqlSchemaTerm, "schema");
    info.append(SqlInfo::SqlProcedureTerm, "procedure");
    info.append(SqlInfo::SqlCatalogTerm, "catalog");
    info.append(SqlInfo::SqlCatalogAtStart, true);
    // In procedure calls, index and privilege definitions: none of them.
    info.append(SqlInfo::SqlSchemasSupportedActions, 0_i32);
    info.append(SqlInfo::SqlCatalogsSupportedActions, 0_i32);
}

fn language(info: &mut SqlInfoDataBuilder) {
    use SqlSupportedSubqueries as Sub;
    info.append(SqlInfo::SqlSupportsColumnAliasing, true);
    info.append(SqlInfo::SqlNullPlusNullIsNull, true);
    info.append(SqlInfo::SqlSupportsConvert, conversions());
    info.append(SqlInfo::SqlSupportsTableCorrelationNames, true);
    info.append(SqlInfo::SqlSupportsDifferentTableCorrelationNames, false);
    info.append(SqlInfo::SqlSupportsExpressionsInOrderBy, true);
    info.append(SqlInfo::SqlSupportsOrderByUnrelated, true);
    let group_by = bits([SqlSupportedGroupBy::SqlGroupByUnrelated, SqlSupportedGroupBy::SqlGroupByBeyondSelect].map(i32::from));
    info.append(SqlInfo::SqlSupportedGroupBy, group_by);
    info.append(SqlInfo::SqlSupportsLikeEscapeClause, true);
    info.append(SqlInfo::SqlSupportsNonNullableColumns, true);
    info.append(
        SqlInfo::SqlSupportedGrammar,
        bits([SupportedSqlGrammar::SqlMinimumGrammar, SupportedSqlGrammar::SqlCoreGrammar].map(i32::from)),
    );
    info.append(SqlInfo::SqlAnsi92SupportedLevel, ANSI92_ENTRY);
    info.append(SqlInfo::SqlSupportsIntegrityEnhancementFacility, false);
    info.append(SqlInfo::SqlOuterJoinsSupportLevel, OUTER_JOINS);
    info.append(SqlInfo::SqlSupportedPositionedCommands, 0_i32);
    info.append(SqlInfo::SqlSelectForUpdateSupported, false);
    info.append(SqlInfo::SqlStoredProceduresSupported, false);
    let subqueries =
        [Sub::SqlSubqueriesInComparisons, Sub::SqlSubqueriesInExists, Sub::SqlSubqueriesInIns, Sub::SqlSubqueriesInQuantifieds];
    info.append(SqlInfo::SqlSupportedSubqueries, bits(subqueries.map(i32::from)));
    info.append(SqlInfo::SqlCorrelatedSubqueriesSupported, true);
    info.append(SqlInfo::SqlSupportedUnions, bits([SqlSupportedUnions::SqlUnion, SqlSupportedUnions::SqlUnionAll].map(i32::from)));
}

fn limits(info: &mut SqlInfoDataBuilder) {
    for unlimited in [
        SqlInfo::SqlMaxBinaryLiteralLength,
        SqlInfo::SqlMaxCharLiteralLength,
        SqlInfo::SqlMaxColumnNameLength,
        SqlInfo::SqlMaxColumnsInGroupBy,
        SqlInfo::SqlMaxColumnsInIndex,
        SqlInfo::SqlMaxColumnsInOrderBy,
        SqlInfo::SqlMaxColumnsInSelect,
        SqlInfo::SqlMaxColumnsInTable,
        SqlInfo::SqlMaxConnections,
        SqlInfo::SqlMaxCursorNameLength,
        SqlInfo::SqlMaxIndexLength,
        SqlInfo::SqlMaxProcedureNameLength,
        SqlInfo::SqlMaxRowSize,
        SqlInfo::SqlMaxStatements,
        SqlInfo::SqlMaxTablesInSelect,
    ] {
        info.append(unlimited, UNLIMITED);
    }
    for name in [SqlInfo::SqlDbSchemaNameLength, SqlInfo::SqlMaxCatalogNameLength, SqlInfo::SqlMaxTableNameLength] {
        info.append(name, 255_i64);
    }
    info.append(SqlInfo::SqlMaxUsernameLength, 256_i64);
    info.append(SqlInfo::SqlMaxStatementLength, UNLIMITED);
    info.append(SqlInfo::SqlMaxRowSizeIncludesBlobs, true);
}

fn transactions(info: &mut SqlInfoDataBuilder) {
    use SqlSupportedResultSetConcurrency as Concurrency;
    let none = bits([i32::from(SqlTransactionIsolationLevel::SqlTransactionNone)]);
    info.append(SqlInfo::SqlDefaultTransactionIsolation, SqlTransactionIsolationLevel::SqlTransactionNone as i64);
    info.append(SqlInfo::SqlTransactionsSupported, false);
    info.append(SqlInfo::SqlSupportedTransactionsIsolationLevels, none);
    info.append(SqlInfo::SqlDataDefinitionCausesTransactionCommit, true);
    info.append(SqlInfo::SqlDataDefinitionsInTransactionsIgnored, false);
    info.append(SqlInfo::SqlSupportedResultSetTypes, bits([i32::from(SqlSupportedResultSetType::SqlResultSetTypeForwardOnly)]));
    info.append(SqlInfo::SqlSupportedConcurrenciesForResultSetUnspecified, 0_i32);
    let read_only = bits([i32::from(Concurrency::SqlResultSetConcurrencyReadOnly)]);
    info.append(SqlInfo::SqlSupportedConcurrenciesForResultSetForwardOnly, read_only);
    info.append(SqlInfo::SqlSupportedConcurrenciesForResultSetScrollSensitive, 0_i32);
    info.append(SqlInfo::SqlSupportedConcurrenciesForResultSetScrollInsensitive, 0_i32);
    info.append(SqlInfo::SqlBatchUpdatesSupported, true);
    info.append(SqlInfo::SqlSavepointsSupported, false);
    info.append(SqlInfo::SqlNamedParametersSupported, false);
    info.append(SqlInfo::SqlLocatorsUpdateCopy, false);
    info.append(SqlInfo::SqlStoredFunctionsUsingCallSyntaxSupported, false);
}

/// CAST between the types that differ in more than their length.
fn conversions() -> BTreeMap<i32, Vec<i32>> {
    use SqlSupportsConvert as C;
    let numbers = [
        C::SqlConvertBigint,
        C::SqlConvertDecimal,
        C::SqlConvertFloat,
        C::SqlConvertInteger,
        C::SqlConvertReal,
        C::SqlConvertSmallint,
        C::SqlConvertTinyint,
    ];
    let moments = [C::SqlConvertDate, C::SqlConvertTimestamp];
    let to = |targets: &[C]| targets.iter().map(|&c| c as i32).chain([C::SqlConvertVarchar as i32]).collect::<Vec<i32>>();
    let mut all: BTreeMap<i32, Vec<i32>> = numbers.iter().map(|&from| (from as i32, to(&numbers))).collect();
    all.extend(moments.iter().map(|&from| (from as i32, to(&moments))));
    let from_text: Vec<C> = numbers.into_iter().chain(moments).collect();
    all.insert(C::SqlConvertVarchar as i32, to(&from_text));
    all
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::UInt32Type;

    use super::*;

    #[test]
    fn every_code_is_there_once_and_no_other() {
        let batch = all().unwrap().record_batch([]).unwrap();
        let codes: Vec<u32> = batch.column(0).as_primitive::<UInt32Type>().values().to_vec();
        let expect: Vec<u32> = (0..=11).chain(100..=101).chain(500..=576).collect();
        assert_eq!(codes, expect);
    }

    #[test]
    fn values_have_the_types_that_drivers_cast_to() {
        fn check(code: SqlInfo, kind: i8) {
            let batch = all().unwrap().record_batch([code as u32]).unwrap();
            assert_eq!(batch.num_rows(), 1, "{code:?}");
            assert_eq!(batch.column(1).as_any().downcast_ref::<arrow::array::UnionArray>().unwrap().type_id(0), kind, "{code:?}");
        }
        check(SqlInfo::FlightSqlServerName, 0);
        check(SqlInfo::FlightSqlServerReadOnly, 1);
        check(SqlInfo::FlightSqlServerTransaction, 3);
        for bigint in [503, 505, 507, 562] {
            check(SqlInfo::try_from(bigint).unwrap(), 2);
        }
        check(SqlInfo::SqlMaxConnections, 2);
        check(SqlInfo::SqlSupportedGroupBy, 3);
        check(SqlInfo::SqlKeywords, 4);
        check(SqlInfo::SqlSupportsConvert, 5);
        assert_eq!(all().unwrap().record_batch([99_999]).unwrap().num_rows(), 0, "an unknown code has no row");
    }
}
