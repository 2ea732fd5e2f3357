package asof;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.util.Calendar;
import java.util.List;
import java.util.TimeZone;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Every type with its extremes and NULLs, in a JVM whose zone is half an hour off. */
class TypesTest {
    private static final Calendar UTC = Calendar.getInstance(TimeZone.getTimeZone("UTC"));
    private static Connection connection;
    private static String table;

    @BeforeAll
    static void open() throws SQLException {
        assertEquals("Asia/Kolkata", TimeZone.getDefault().getID());
        table = Golden.table("all_types");
        connection = Asof.connect();
    }

    @AfterAll
    static void close() throws SQLException {
        connection.close();
    }

    private interface Check {
        void of(ResultSet row) throws SQLException;
    }

    private static void row(int id, Check check) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery("SELECT * FROM " + table + " WHERE id = " + id)) {
            assertTrue(result.next());
            check.of(result);
        }
    }

    @Test
    void minima() throws SQLException {
        row(1, r -> {
            assertEquals(-128, r.getByte("b"));
            assertEquals(-32768, r.getShort("s"));
            assertEquals(Integer.MIN_VALUE, r.getInt("i"));
            assertEquals(Long.MIN_VALUE, r.getLong("l"));
            assertEquals(Float.NEGATIVE_INFINITY, r.getFloat("f"));
            assertEquals(Double.NEGATIVE_INFINITY, r.getDouble("d"));
            assertEquals(new BigDecimal("-9999999999999999999999999999.9999999999"), r.getBigDecimal("d38"));
            assertEquals(new BigDecimal("-999999999999999999"), r.getBigDecimal("d18"));
            assertEquals(new BigDecimal("-0.999999999"), r.getBigDecimal("d9"));
            assertEquals("", r.getString("str"));
            assertArrayEquals(new byte[0], r.getBytes("bin"));
            assertEquals(false, r.getBoolean("bool"));
            assertEquals(LocalDate.of(1, 1, 1), r.getObject("dt", LocalDate.class));
            assertEquals(Instant.parse("0001-01-01T00:00:00Z"), r.getObject("ts", Instant.class));
            assertEquals(LocalDateTime.of(1, 1, 1, 0, 0), r.getObject("tn", LocalDateTime.class));
        });
    }

    @Test
    void maxima() throws SQLException {
        row(2, r -> {
            assertEquals(127, r.getByte("b"));
            assertEquals(Long.MAX_VALUE, r.getLong("l"));
            assertEquals(new BigDecimal("9999999999999999999999999999.9999999999"), r.getBigDecimal("d38"));
            assertArrayEquals(new byte[] {0, (byte) 0xff, 0}, r.getBytes("bin"));
            assertEquals(true, r.getBoolean("bool"));
            assertEquals("ab   ", r.getString("ch"));
            assertEquals(LocalDate.of(9999, 12, 31), r.getObject("dt", LocalDate.class));
            assertEquals(Instant.parse("9999-12-31T23:59:59.999999Z"), r.getObject("ts", Instant.class));
        });
    }

    @Test
    void notNumbers() throws SQLException {
        row(3, r -> {
            assertTrue(Float.isNaN(r.getFloat("f")));
            assertTrue(Double.isNaN(r.getDouble("d")));
        });
    }

    @Test
    void nulls() throws SQLException {
        row(6, r -> {
            int columns = r.getMetaData().getColumnCount();
            assertEquals(20, columns);
            for (int i = 2; i <= columns; i++) {
                assertNull(r.getString(i), r.getMetaData().getColumnName(i));
                assertTrue(r.wasNull());
            }
            assertEquals(0, r.getInt("i"));
            assertTrue(r.wasNull());
            assertNull(r.getBigDecimal("d38"));
            assertNull(r.getTimestamp("ts", UTC));
            assertNull(r.getDate("dt"));
        });
    }

    @Test
    void zonedTimestampsAreInstants() throws SQLException {
        row(7, r -> {
            Instant moment = Instant.parse("2026-06-15T12:00:00.123456Z");
            assertEquals(moment, r.getObject("ts", Instant.class));
            assertEquals(moment, r.getObject("ts", OffsetDateTime.class).toInstant());
            // getTimestamp shifts by the zone of the JVM, whatever calendar it is given: the README says what to use.
        });
    }

    @Test
    void naiveTimestampsStayAsWritten() throws SQLException {
        // The driver goes through milliseconds and fills the microseconds with what it finds.
        row(7, r -> assertEquals(LocalDateTime.parse("2026-06-15T12:00:00.123"), r.getObject("tn", LocalDateTime.class).truncatedTo(java.time.temporal.ChronoUnit.MILLIS)));
    }

    @Test
    void datesDoNotShift() throws SQLException {
        assertEquals("2026-03-01", Asof.one(connection, "SELECT DATE '2026-03-01'"));
        try (Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery("SELECT DATE '2026-03-01' AS d")) {
            assertTrue(result.next());
            assertEquals(Date.valueOf("2026-03-01"), result.getDate(1));
        }
    }

    @Test
    void metadataOfAResult() throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery("SELECT id, l AS big, d38, str FROM " + table + " LIMIT 1")) {
            assertEquals(List.of("id", "big", "d38", "str"), Asof.columnNames(result));
            assertEquals(java.sql.Types.INTEGER, result.getMetaData().getColumnType(1));
            assertEquals(java.sql.Types.BIGINT, result.getMetaData().getColumnType(2));
            assertEquals(java.sql.Types.DECIMAL, result.getMetaData().getColumnType(3));
            assertEquals(java.sql.Types.VARCHAR, result.getMetaData().getColumnType(4));
        }
    }

    @Test
    void nestedTypes() throws SQLException {
        Golden.table("nested");
        List<List<String>> rows = Asof.rows(connection, "SELECT id, s, arr, m, aa FROM golden.nested ORDER BY id");
        assertEquals(5, rows.size());
        assertTrue(rows.get(0).get(1).contains("changed"), rows.get(0).toString());
    }

    @Test
    void everyTypeWrittenAndRead() throws SQLException {
        Asof.newSchema(connection);
        Asof.update(connection, "CREATE TABLE t (k INT, l BIGINT, d DOUBLE, m DECIMAL(10,2), s STRING, x BINARY, b BOOLEAN, dt DATE, ts TIMESTAMP)");
        Asof.update(connection, "INSERT INTO t VALUES (1, 2, 1.5, 3.25, 'é', X'01', true, DATE'2026-01-02', TIMESTAMP'2026-01-02 03:04:05.678901'), "
                + "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)");
        try (Statement statement = connection.createStatement();
                ResultSet r = statement.executeQuery("SELECT * FROM t ORDER BY k")) {
            assertTrue(r.next());
            assertEquals(2L, r.getObject("l"));
            assertEquals(1.5, r.getObject("d"));
            assertEquals(new BigDecimal("3.25"), r.getObject("m"));
            assertEquals("é", r.getObject("s"));
            assertArrayEquals(new byte[] {1}, (byte[]) r.getObject("x"));
            assertEquals(true, r.getObject("b"));
            assertEquals(Instant.parse("2026-01-02T03:04:05.678901Z"), r.getObject("ts", Instant.class));
            assertTrue(r.next());
            for (int i = 2; i <= 8; i++) {
                assertNull(r.getObject(i));
            }
            assertNull(r.getTimestamp("ts", UTC));
        }
    }

    @Test
    void columnsTellTheirTypes() throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet r = statement.executeQuery("SELECT d38, d9, d38 * 2 AS twice, CAST(1 AS BIGINT) AS l, 'x' AS s FROM " + table
                        + " WHERE d38 IS NULL")) { // twice the largest overflows
            var columns = r.getMetaData();
            assertEquals(38, columns.getPrecision(1));
            assertEquals(10, columns.getScale(1));
            assertEquals(9, columns.getPrecision(2));
            assertEquals(9, columns.getScale(2));
            assertEquals(10, columns.getScale(3));
            assertEquals(19, columns.getPrecision(4));
            assertEquals("DECIMAL", columns.getColumnTypeName(1)); // the driver's word, whatever it is told
        }
        try (var prepared = connection.prepareStatement("SELECT d9 FROM " + table + " WHERE d9 > ?")) {
            assertEquals(9, prepared.getMetaData().getPrecision(1));
        }
    }
}
