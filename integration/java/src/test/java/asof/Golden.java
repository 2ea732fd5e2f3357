package asof;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The golden tables. A table is copied into the server's warehouse, where it is a table at once, and the modification times of its
 * commit files are set as recorded, because Delta dates versions by them.
 */
final class Golden {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path ROOT = Path.of(System.getProperty("asof.golden"));
    private static final Path WAREHOUSE = Path.of(System.getProperty("asof.warehouse"));
    private static final Map<String, String> COPIED = new ConcurrentHashMap<>();

    private Golden() {}

    static JsonNode told(String name) {
        return read(ROOT.resolve(name).resolve("case.json"));
    }

    static JsonNode expect(String name, String file) {
        return read(ROOT.resolve(name).resolve("expect").resolve(file + ".json"));
    }

    /** The whole table, in schema `golden`; its name in SQL. */
    static String table(String name) {
        return COPIED.computeIfAbsent(name, key -> copy(name, "golden", name, Integer.MAX_VALUE));
    }

    /** The table as it was at a version, in schema `past`; its name in SQL. */
    static String tableAt(String name, int version) {
        return COPIED.computeIfAbsent(name + "@" + version, key -> copy(name, "past", name + "_" + version, version));
    }

    private static String copy(String name, String schema, String table, int upto) {
        Path source = ROOT.resolve(name).resolve("table");
        Path target = WAREHOUSE.resolve(schema).resolve(table);
        try (Stream<Path> files = Files.walk(source)) {
            for (Path file : files.collect(Collectors.toList())) {
                Path copied = target.resolve(source.relativize(file).toString());
                if (Files.isDirectory(file)) {
                    Files.createDirectories(copied);
                } else if (versionOf(file) <= upto) {
                    Files.copy(file, copied);
                }
            }
            for (Map.Entry<String, JsonNode> told : told(name).get("mtimes").properties()) {
                Path file = target.resolve(told.getKey());
                if (Files.exists(file)) {
                    Files.setLastModifiedTime(file, FileTime.fromMillis(told.getValue().asLong()));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return schema + "." + table;
    }

    /** The version a file of the log belongs to; hints and data files belong to none and are always taken, hints only with the whole. */
    private static int versionOf(Path file) {
        String name = file.getFileName().toString();
        if (name.equals("_last_checkpoint")) {
            return read(file).path("version").asInt(0);
        }
        return name.matches("\\d{20}\\..*") ? Integer.parseInt(name.substring(0, 20)) : -1;
    }

    private static JsonNode read(Path file) {
        try {
            return JSON.readTree(file.toFile());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static final List<String> SEEDS =
            List.of("seed_000_clickstream", "seed_001a_cities", "seed_001b_recover", "seed_001c_invalid", "seed_003_gold_sales", "seed_004_korean");
}
