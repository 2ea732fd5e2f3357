package asof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What a database tool asks before it shows a tree of tables. */
class MetadataTest {
    private static Connection connection;
    private static DatabaseMetaData metadata;

    @BeforeAll
    static void open() throws SQLException {
        Golden.table("selectors");
        Golden.table("seed_001a_cities");
        Golden.table("all_types");
        Golden.table("mapping_name");
        connection = Asof.connect();
        metadata = connection.getMetaData();
    }

    @AfterAll
    static void close() throws SQLException {
        connection.close();
    }

    /** Each getter casts one SqlInfo value: a value of the wrong type is a ClassCastException, a missing one a null pointer. */
    @Test
    void everyGetterAnswers() throws Exception {
        List<String> failures = new ArrayList<>();
        int answered = 0;
        for (Method method : DatabaseMetaData.class.getMethods()) {
            if (method.getParameterCount() != 0 || method.getDeclaringClass() == Object.class) {
                continue;
            }
            try {
                Object value = method.invoke(metadata);
                if (value instanceof ResultSet) {
                    ((ResultSet) value).close();
                }
                answered++;
            } catch (InvocationTargetException e) {
                if (!(e.getCause() instanceof SQLFeatureNotSupportedException)) {
                    failures.add(method.getName() + ": " + e.getCause());
                }
            }
        }
        assertTrue(failures.isEmpty(), String.join("\n", failures));
        assertTrue(answered > 100, "only " + answered + " getters answered");
    }

    @Test
    void product() throws SQLException {
        assertEquals("asof", metadata.getDatabaseProductName());
        assertFalse(metadata.getDatabaseProductVersion().isEmpty());
        assertEquals("\"", metadata.getIdentifierQuoteString());
        assertEquals("\\", metadata.getSearchStringEscape());
        assertFalse(metadata.getSQLKeywords().isEmpty());
        assertTrue(metadata.supportsGroupBy());
        assertTrue(metadata.supportsUnionAll());
    }

    @Test
    void gettersWithArgumentsAnswer() throws SQLException {
        assertTrue(metadata.supportsResultSetType(ResultSet.TYPE_FORWARD_ONLY));
        for (int type : new int[] {Types.INTEGER, Types.VARCHAR, Types.TIMESTAMP, Types.BINARY, Types.DECIMAL}) {
            metadata.supportsConvert(type, Types.VARCHAR);
        }
        for (int level : new int[] {Connection.TRANSACTION_NONE, Connection.TRANSACTION_SERIALIZABLE, Connection.TRANSACTION_REPEATABLE_READ}) {
            metadata.supportsTransactionIsolationLevel(level);
        }
        metadata.supportsResultSetConcurrency(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY);
    }

    private static List<String> column(ResultSet result, String name) throws SQLException {
        List<String> values = new ArrayList<>();
        try (result) {
            while (result.next()) {
                values.add(result.getString(name));
            }
        }
        return values;
    }

    @Test
    void catalogsSchemasTableTypes() throws SQLException {
        assertEquals(List.of("lake"), column(metadata.getCatalogs(), "TABLE_CAT"));
        assertTrue(column(metadata.getSchemas(), "TABLE_SCHEM").containsAll(Set.of("golden", "main")));
        assertEquals(List.of("golden"), column(metadata.getSchemas("lake", "gold%"), "TABLE_SCHEM"));
        assertEquals(List.of("golden"), column(metadata.getSchemas(null, "golden"), "TABLE_SCHEM"));
        assertTrue(column(metadata.getTableTypes(), "TABLE_TYPE").contains("TABLE"));
    }

    @Test
    void tables() throws SQLException {
        assertEquals(List.of("selectors"), column(metadata.getTables("lake", "golden", "selectors", null), "TABLE_NAME"));
        assertEquals(List.of("seed_001a_cities"), column(metadata.getTables(null, "golden", "seed%", null), "TABLE_NAME"));
        assertEquals(List.of("seed_001a_cities"), column(metadata.getTables(null, "golden", "seed\\_001a\\_cities", null), "TABLE_NAME"));
        assertEquals(List.of(), column(metadata.getTables(null, "golden", "seed\\%", null), "TABLE_NAME"));
        assertEquals(List.of(), column(metadata.getTables("nowhere", null, "%", null), "TABLE_NAME"));
        assertEquals(List.of(), column(metadata.getTables(null, "golden", "%", new String[] {"SYSTEM TABLE"}), "TABLE_NAME"));
        List<String> names = column(metadata.getTables("lake", "golden", "%", new String[] {"TABLE"}), "TABLE_NAME");
        assertTrue(names.containsAll(Set.of("selectors", "seed_001a_cities", "all_types")), names.toString());
        assertEquals(names.stream().sorted().collect(Collectors.toList()), names, "in order");
    }

    @Test
    void columns() throws SQLException {
        try (ResultSet result = metadata.getColumns("lake", "golden", "seed\\_001a\\_cities", "%")) {
            List<String> told = new ArrayList<>();
            while (result.next()) {
                assertEquals("lake", result.getString("TABLE_CAT"));
                assertEquals("golden", result.getString("TABLE_SCHEM"));
                told.add(result.getString("COLUMN_NAME") + ":" + result.getInt("DATA_TYPE") + ":" + result.getInt("ORDINAL_POSITION"));
            }
            assertEquals(
                    List.of("city:" + Types.VARCHAR + ":1", "country:" + Types.VARCHAR + ":2", "population:" + Types.BIGINT + ":3", "census_date:" + Types.DATE + ":4"),
                    told);
        }
        assertEquals(20, column(metadata.getColumns("lake", "golden", "all\\_types", "%"), "COLUMN_NAME").size());
        assertEquals(List.of("odd name, (x)="), column(metadata.getColumns("lake", "golden", "mapping\\_name", "odd%"), "COLUMN_NAME"));
    }

    @Test
    void keysOfTablesWithoutKeys() throws SQLException {
        assertEquals(List.of(), column(metadata.getPrimaryKeys("lake", "golden", "selectors"), "COLUMN_NAME"));
        assertEquals(List.of(), column(metadata.getImportedKeys("lake", "golden", "selectors"), "FKCOLUMN_NAME"));
        assertEquals(List.of(), column(metadata.getExportedKeys("lake", "golden", "selectors"), "FKCOLUMN_NAME"));
        assertEquals(List.of(), column(metadata.getCrossReference("lake", "golden", "selectors", "lake", "golden", "all_types"), "FKCOLUMN_NAME"));
        column(metadata.getTypeInfo(), "TYPE_NAME");
        column(metadata.getIndexInfo("lake", "golden", "selectors", false, true), "INDEX_NAME");
    }
}
