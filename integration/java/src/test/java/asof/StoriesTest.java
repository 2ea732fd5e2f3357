package asof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** The seeds' stories through JDBC: the recorded questions with their recorded answers, and two stories told from the start. */
class StoriesTest {
    private static Connection connection;

    @BeforeAll
    static void open() throws SQLException {
        connection = Asof.connect();
    }

    @AfterAll
    static void close() throws SQLException {
        connection.close();
    }

    private static final Pattern QUESTION = Pattern.compile("\\s*(SELECT|WITH)\\b(?!.*\\bMERGE\\b).*\\{t\\}.*", Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

    @TestFactory
    Collection<DynamicTest> recordedQuestions() {
        List<DynamicTest> tests = new ArrayList<>();
        for (String seed : Golden.SEEDS) {
            int number = 0;
            for (JsonNode told : Golden.told(seed).get("session")) {
                String sql = told.get("ran").asText();
                number++;
                if (QUESTION.matcher(sql).matches() && !sql.contains("FORMAT(") && told.get("result").isArray() && told.get("version_after").isInt()) {
                    int version = told.get("version_after").asInt();
                    tests.add(DynamicTest.dynamicTest(seed + ":" + number, () -> ask(sql.replace("{t}", Golden.tableAt(seed, version)), told.get("result"))));
                }
            }
        }
        assertTrue(tests.size() > 25, "only " + tests.size() + " questions");
        return tests;
    }

    private static void ask(String sql, JsonNode expected) throws SQLException {
        List<Map<String, Object>> want = new ArrayList<>();
        expected.forEach(row -> want.add(plain(row)));
        List<Map<String, Object>> have = records(sql);
        if (!sql.toUpperCase().contains("ORDER BY")) {
            have.sort((a, b) -> a.toString().compareTo(b.toString()));
            want.sort((a, b) -> a.toString().compareTo(b.toString()));
        }
        assertEquals(want, have);
    }

    private static Map<String, Object> plain(JsonNode row) {
        Map<String, Object> values = new TreeMap<>();
        row.properties().forEach(field -> values.put(field.getKey(), comparable(field.getValue().isNull() ? null : field.getValue().asText())));
        return values;
    }

    private static List<Map<String, Object>> records(String sql) throws SQLException {
        List<Map<String, Object>> records = new ArrayList<>();
        try (Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery(sql)) {
            List<String> names = Asof.columnNames(result);
            for (List<String> row : Asof.strings(result)) {
                Map<String, Object> record = new TreeMap<>();
                for (int i = 0; i < names.size(); i++) {
                    record.put(names.get(i), comparable(row.get(i)));
                }
                records.add(record);
            }
        }
        return records;
    }

    /** Numbers are compared as numbers, whatever their spelling. */
    private static Object comparable(String text) {
        if (text == null) {
            return "NULL";
        }
        try {
            return new BigDecimal(text).stripTrailingZeros();
        } catch (NumberFormatException e) {
            return text;
        }
    }

    @Test
    void aPriceCorrected() throws SQLException {
        Asof.newSchema(connection);
        Asof.update(connection, "CREATE OR REPLACE TABLE sales_demo USING DELTA AS SELECT * FROM (VALUES "
                + "(1000000, 'Golden Gate Ginger', 5, CAST(20.00 AS DECIMAL(10,2))), (1000001, 'Austin Almond Biscotti', 9, 27.00), "
                + "(1000002, 'Tokyo Tidbits', 2, 20.00)) AS v(transaction_id, product, quantity, sales_amount)");
        assertEquals(1, Asof.update(connection, "UPDATE sales_demo SET sales_amount = 25.00 WHERE transaction_id = 1000000"));
        ask("SELECT b.transaction_id, b.product, b.sales_amount AS before_amount, a.sales_amount AS after_amount, "
                + "a.sales_amount - b.sales_amount AS amount_difference FROM sales_demo VERSION AS OF 0 b JOIN sales_demo a "
                + "ON b.transaction_id = a.transaction_id WHERE b.sales_amount <> a.sales_amount",
                Golden.expect("seed_004_korean", "answers").get("changed"));
        assertEquals("67.00", Asof.one(connection, "SELECT SUM(sales_amount) FROM sales_demo VERSION AS OF 0"));
        assertEquals("72.00", Asof.one(connection, "SELECT SUM(sales_amount) FROM sales_demo"));
    }

    @Test
    void rowsDeletedByAccidentComeBack() throws SQLException {
        Asof.newSchema(connection);
        String recorded = Golden.tableAt("seed_001b_recover", 0);
        Asof.update(connection, "CREATE TABLE cities AS SELECT * FROM " + recorded);
        assertEquals(2, Asof.update(connection, "DELETE FROM cities WHERE city = 'Mumbai'"));
        assertEquals(3, Asof.update(connection, "INSERT INTO cities VALUES ('London', 'UK', 8900000, DATE'2023-01-01'), "
                + "('New York', 'USA', 8400000, DATE'2023-01-01'), ('Edinburgh', 'UK', 500000, DATE'2023-01-01')"));
        Asof.update(connection, "CREATE OR REPLACE TEMPORARY VIEW pre_deletion_view AS SELECT * FROM cities VERSION AS OF 0");
        assertEquals(2, Asof.update(connection, "INSERT INTO cities SELECT * FROM pre_deletion_view WHERE city = 'Mumbai'"));
        ask("SELECT * FROM cities ORDER BY city, census_date", Golden.expect("seed_001b_recover", "recovered"));
        assertEquals(Collections.nCopies(1, "9"), Asof.rows(connection, "SELECT count(*) FROM cities").get(0));
    }
}
