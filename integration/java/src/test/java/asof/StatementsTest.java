package asof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.Instant;
import java.util.Calendar;
import java.util.List;
import java.util.TimeZone;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Parameters, counts, DDL, RESTORE, errors, sessions. */
class StatementsTest {
    private static final Calendar UTC = Calendar.getInstance(TimeZone.getTimeZone("UTC"));
    private static Connection connection;

    @BeforeAll
    static void open() throws SQLException {
        Golden.table("selectors");
        Golden.table("seed_001a_cities");
        connection = Asof.connect();
    }

    @AfterAll
    static void close() throws SQLException {
        connection.close();
    }

    private static final Timestamp AT_VERSION_2 = Timestamp.from(Instant.parse("2026-05-06T12:30:15.250Z"));

    @ParameterizedTest
    @CsvSource({"TIMESTAMP AS OF ?", "FOR TIMESTAMP AS OF ?", "FOR SYSTEM_TIME AS OF ?", "AT (TIMESTAMP => ?)"})
    void aMomentAsParameter(String selector) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT d FROM golden.selectors " + selector + " ORDER BY d")) {
            assertEquals(1, statement.getParameterMetaData().getParameterCount());
            statement.setTimestamp(1, AT_VERSION_2, UTC);
            assertEquals(List.of(List.of("mon"), List.of("tue")), Asof.rows(statement));
            statement.setTimestamp(1, new Timestamp(AT_VERSION_2.getTime() - 1), UTC);
            assertEquals(List.of(List.of("mon")), Asof.rows(statement));
        }
    }

    @Test
    void aMomentAsText() throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT count(*) FROM golden.selectors TIMESTAMP AS OF CAST(? AS STRING)")) {
            statement.setString(1, "2026-05-06 12:30:15.250");
            assertEquals(List.of(List.of("2")), Asof.rows(statement));
        }
    }

    @Test
    void aMomentBeforeTheFirst() throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT d FROM golden.selectors TIMESTAMP AS OF ?")) {
            statement.setTimestamp(1, Timestamp.from(Instant.parse("2026-01-01T00:00:00Z")), UTC);
            // A prepared statement's refusal comes out of the driver unwrapped.
            Exception error = assertThrows(Exception.class, () -> Asof.rows(statement));
            assertTrue(error.getMessage().contains("2026-05-04"), error.getMessage());
            statement.setTimestamp(1, AT_VERSION_2, UTC);
            assertEquals(2, Asof.rows(statement).size());
        }
    }

    @Test
    void aVersionAsParameter() throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT count(*) FROM golden.selectors VERSION AS OF ?")) {
            for (int version = 0; version <= 3; version++) {
                statement.setLong(1, version);
                assertEquals(List.of(List.of(Integer.toString(version))), Asof.rows(statement));
            }
        }
    }

    @Test
    void parametersOfAPredicate() throws SQLException {
        String sql = "SELECT city, population FROM golden.seed_001a_cities VERSION AS OF 2 WHERE city = ? AND population > ? AND census_date < ? ORDER BY 2";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, "Mumbai");
            statement.setLong(2, 20000000L);
            statement.setDate(3, Date.valueOf("2024-01-01"));
            assertEquals(List.of(List.of("Mumbai", "21000000")), Asof.rows(statement));
            statement.setString(1, "Tokyo");
            statement.setLong(2, 0L);
            assertEquals(2, Asof.rows(statement).size());
        }
    }

    @Test
    void countsOfDml() throws SQLException {
        Asof.newSchema(connection);
        Asof.update(connection, "CREATE TABLE t (id INT, name STRING, price DECIMAL(10,2), at TIMESTAMP)");
        assertEquals(2, Asof.update(connection, "INSERT INTO t VALUES (1, 'one', 1.10, NULL), (2, 'two', 2.20, NULL)"));
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO t VALUES (?, ?, ?, ?)")) {
            insert.setInt(1, 3);
            insert.setString(2, "three");
            insert.setBigDecimal(3, new BigDecimal("3.30"));
            insert.setTimestamp(4, AT_VERSION_2, UTC);
            assertEquals(1, insert.executeUpdate());
            insert.setInt(1, 4);
            insert.setNull(2, Types.VARCHAR);
            insert.setNull(3, Types.DECIMAL);
            insert.setNull(4, Types.TIMESTAMP);
            assertEquals(1, insert.executeUpdate());
        }
        assertEquals(AT_VERSION_2.toInstant().toString(), instant("SELECT at FROM t WHERE id = 3").toString());
        assertEquals("1", Asof.one(connection, "SELECT count(*) FROM t WHERE name IS NULL AND price IS NULL AND at IS NULL"));
        try (PreparedStatement update = connection.prepareStatement("UPDATE t SET name = ? WHERE id >= ?")) {
            update.setString(1, "more");
            update.setInt(2, 3);
            assertEquals(2, update.executeUpdate());
        }
        assertEquals(3, Asof.update(connection, "DELETE FROM t WHERE id <> 1"));
        assertEquals(0, Asof.update(connection, "DELETE FROM t WHERE id = 77"));
        assertEquals(List.of(List.of("1", "one")), Asof.rows(connection, "SELECT id, name FROM t"));
        // Each ran once: CREATE, three INSERTs, UPDATE, DELETE.
        assertEquals("5", Asof.rows(connection, "DESCRIBE HISTORY t LIMIT 1").get(0).get(0));
    }

    private static Instant instant(String sql) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery(sql)) {
            assertTrue(result.next());
            return result.getObject(1, Instant.class);
        }
    }

    @Test
    void updatesAreNotResultSets() throws SQLException {
        Asof.newSchema(connection);
        try (Statement statement = connection.createStatement()) {
            assertFalse(statement.execute("CREATE TABLE t (a INT)"));
            assertFalse(statement.execute("INSERT INTO t VALUES (1), (2)"));
            assertEquals(2, statement.getUpdateCount());
            assertTrue(statement.execute("SELECT * FROM t"));
            assertEquals(2, Asof.strings(statement.getResultSet()).size());
        }
        assertEquals("1", Asof.rows(connection, "DESCRIBE HISTORY t LIMIT 1").get(0).get(0));
    }

    @Test
    void ddl() throws SQLException {
        String schema = Asof.newSchema(connection);
        Asof.update(connection, "CREATE TABLE t (a INT NOT NULL, p STRING) USING delta PARTITIONED BY (p)");
        Asof.update(connection, "CREATE TABLE IF NOT EXISTS t (b STRING)");
        SQLException error = assertThrows(SQLException.class, () -> Asof.update(connection, "CREATE TABLE t (b STRING)"));
        assertTrue(error.getMessage().contains("exist"), error.getMessage());
        Asof.update(connection, "INSERT INTO t VALUES (1, 'x')");
        Asof.update(connection, "CREATE OR REPLACE TABLE t AS SELECT p FROM t");
        assertEquals(List.of(List.of("x")), Asof.rows(connection, "SELECT * FROM t"));
        assertEquals(List.of(List.of("1", "x")), Asof.rows(connection, "SELECT * FROM " + schema + ".t VERSION AS OF 1"));
        Asof.update(connection, "DROP TABLE t");
        assertThrows(SQLException.class, () -> Asof.rows(connection, "SELECT * FROM t"));
    }

    @Test
    void restoreGivesItsSixMetrics() throws SQLException {
        Asof.newSchema(connection);
        Asof.update(connection, "CREATE TABLE t AS SELECT 1 AS a");
        Asof.update(connection, "INSERT INTO t VALUES (2)");
        List<String> names = List.of("table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files",
                "removed_files_size", "restored_files_size");
        try (Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery("RESTORE TABLE t TO VERSION AS OF 0")) {
            assertEquals(names, Asof.columnNames(result));
            assertTrue(result.next());
            assertTrue(result.getLong("table_size_after_restore") > 0);
            assertEquals(1, result.getLong("num_of_files_after_restore"));
            assertEquals(1, result.getLong("num_removed_files"));
            assertEquals(0, result.getLong("num_restored_files"));
            assertTrue(result.getLong("removed_files_size") > 0);
            assertFalse(result.next());
        }
        assertEquals(List.of(List.of("1")), Asof.rows(connection, "SELECT * FROM t"));
        try (PreparedStatement statement = connection.prepareStatement("RESTORE TABLE t TO VERSION AS OF 1")) {
            assertTrue(statement.execute());
            try (ResultSet result = statement.getResultSet()) {
                assertEquals(names, Asof.columnNames(result));
                assertTrue(result.next());
                assertEquals(1, result.getLong("num_restored_files"));
            }
        }
        assertEquals("2", Asof.one(connection, "SELECT count(*) FROM t"));
        // Two commits, not four: preparing restores nothing.
        assertEquals("3", Asof.rows(connection, "DESCRIBE HISTORY t LIMIT 1").get(0).get(0));
    }

    @Test
    void history() throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery("DESCRIBE HISTORY golden.seed_001a_cities")) {
            assertEquals(List.of("version", "timestamp", "userId", "userName", "operation", "operationParameters", "job", "notebook", "clusterId",
                    "readVersion", "isolationLevel", "isBlindAppend", "operationMetrics", "userMetadata", "engineInfo", "readable"), Asof.columnNames(result));
            assertTrue(result.next());
            assertEquals(5, result.getLong("version"));
            assertEquals(Instant.parse("2024-06-26T12:42:00Z"), result.getObject("timestamp", Instant.class));
            assertEquals("RESTORE", result.getString("operation"));
            assertTrue(result.getString("operationMetrics").contains("numRemovedFiles"));
            assertTrue(result.getBoolean("readable"));
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "SELECT * FROM golden.selector | selectors",
        "SELECT * FROM golden.selectors VERSION AS OF 9 | \\b9\\b.*\\b3\\b",
        "SELECT * FROM golden.selectors TIMESTAMP AS OF '2026-01-01' | 2026-05-04",
        "SELECT nope FROM golden.selectors | nope",
        "SELEC 1 | (?i)line 1",
        "SELECT * FROM golden.selectors VERSION AS OF 1 WHERE | (?i)line 1",
        "INSERT INTO golden.selectors VALUES (1, 2, 3) | \\b3\\b",
    })
    void errorsAreReadableAndTheConnectionGoesOn(String sql, String words) throws SQLException {
        SQLException error = assertThrows(SQLException.class, () -> Asof.rows(connection, sql));
        assertTrue(Pattern.compile(words, Pattern.DOTALL).matcher(error.getMessage()).find(), error.getMessage());
        assertFalse(error.getMessage().contains("DataFusionError"), error.getMessage());
        assertEquals("1", Asof.one(connection, "SELECT 1"));
        assertTrue(connection.isValid(5));
    }

    @Test
    void twoConnectionsAreTwoSessions() throws SQLException {
        try (Connection other = Asof.connect()) {
            Asof.update(connection, "SET TIME ZONE 'Asia/Tokyo'");
            Asof.update(connection, "CREATE OR REPLACE TEMPORARY VIEW mine AS SELECT 7 AS n");
            assertEquals("7", Asof.one(connection, "SELECT n FROM mine"));
            assertThrows(SQLException.class, () -> Asof.rows(other, "SELECT n FROM mine"));
            List<String> zone = Asof.rows(other, "SHOW timezone").get(0);
            assertEquals("UTC", zone.get(zone.size() - 1));
        } finally {
            Asof.update(connection, "RESET timezone");
        }
    }

    @Test
    void catalogInTheUrl() throws SQLException {
        try (Connection other = java.sql.DriverManager.getConnection(Asof.url() + "&catalog=lake")) {
            assertEquals("3", Asof.one(other, "SELECT count(*) FROM golden.selectors"));
            try {
                other.close();
            } catch (SQLException | RuntimeException e) {
                // The driver closes its channel before it waits for the answer to CloseSession.
                assertTrue(String.valueOf(e.getMessage() + e.getCause()).contains("shutdown") || e.getSuppressed().length > 0, e.toString());
            }
        } catch (SQLException | RuntimeException e) {
            assertTrue(e.toString().contains("shutdown") || String.valueOf(e.getCause()).contains("shutdown"), e.toString());
        }
    }

    /** Without compression or a fetch size, a million rows go through a heap of 256 MB. */
    @Test
    void aMillionRowsInASmallHeap() throws SQLException {
        assertTrue(Runtime.getRuntime().maxMemory() <= 260L << 20, "run with -Xmx256m");
        String sql = "SELECT id AS n, id * 2 AS twice, concat('a text of some length for row number ', id) AS s FROM range(0, 1000000)";
        try (Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery(sql)) {
            long count = 0;
            long sum = 0;
            while (result.next()) {
                sum += result.getLong(1);
                if (count % 100_000 == 0) {
                    assertTrue(result.getString(3).startsWith("a text"));
                }
                count++;
            }
            assertEquals(1_000_000, count);
            assertEquals(499_999_500_000L, sum);
        }
    }

    @Test
    void aResultClosedEarly() throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (int i = 0; i < 3; i++) {
                try (ResultSet result = statement.executeQuery("SELECT a.id FROM range(0, 100000) a CROSS JOIN range(0, 100000) b")) {
                    assertTrue(result.next());
                }
            }
        }
        assertEquals("1", Asof.one(connection, "SELECT 1"));
    }
}
