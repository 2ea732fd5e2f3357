package asof;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;

/** The server under test, which the runner script has started: connections to it, and short ways to ask it. */
final class Asof {
    private static final AtomicInteger SCHEMAS = new AtomicInteger();

    private Asof() {}

    static String url() {
        return "jdbc:arrow-flight-sql://" + System.getProperty("asof.host") + ":" + System.getProperty("asof.port") + "/?useEncryption=false";
    }

    static Connection connect() throws SQLException {
        return DriverManager.getConnection(url(), new Properties());
    }

    /** A new schema, in use by the connection. */
    static String newSchema(Connection connection) throws SQLException {
        String schema = "j" + ProcessHandle.current().pid() + "_" + SCHEMAS.incrementAndGet();
        update(connection, "CREATE SCHEMA " + schema);
        update(connection, "USE " + schema);
        return schema;
    }

    static long update(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return statement.executeUpdate(sql);
        }
    }

    /** The rows, every value as getString gives it. */
    static List<List<String>> rows(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery(sql)) {
            return strings(result);
        }
    }

    static List<List<String>> rows(PreparedStatement statement) throws SQLException {
        try (ResultSet result = statement.executeQuery()) {
            return strings(result);
        }
    }

    static List<List<String>> strings(ResultSet result) throws SQLException {
        int columns = result.getMetaData().getColumnCount();
        List<List<String>> rows = new ArrayList<>();
        while (result.next()) {
            List<String> row = new ArrayList<>();
            for (int i = 1; i <= columns; i++) {
                row.add(result.getString(i));
            }
            rows.add(row);
        }
        return rows;
    }

    static List<String> columnNames(ResultSet result) throws SQLException {
        ResultSetMetaData told = result.getMetaData();
        List<String> names = new ArrayList<>();
        for (int i = 1; i <= told.getColumnCount(); i++) {
            names.add(told.getColumnLabel(i));
        }
        return names;
    }

    /** The single value of a statement. */
    static String one(Connection connection, String sql) throws SQLException {
        List<List<String>> rows = rows(connection, sql);
        if (rows.size() != 1 || rows.get(0).size() != 1) {
            throw new AssertionError(sql + ": expected one value, got " + rows);
        }
        return rows.get(0).get(0);
    }
}
