#!/usr/bin/env bash
# Three stories about tables that changed, told by a server and its client over Flight SQL, each answer compared with the expected one.
#
#   integration/demo/run.sh          KEEP=1 leaves the server running
#
# ASOFD, ASOF   the server and the client (default: target/debug under CARGO_TARGET_DIR or the repository)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${CARGO_TARGET_DIR:-$here/../../target}/debug
asofd=${ASOFD:-$bin/asofd} asof=${ASOF:-$bin/asof}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/asof-demo.XXXXXX")
wrong=0

"$asofd" serve --listen 127.0.0.1:0 --warehouse "$scratch/warehouse" >"$scratch/ready" 2>"$scratch/log" &
server=$!
stop() {
    [ "${KEEP:-}" = 1 ] && [ "$wrong" -eq 0 ] && return
    kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true
    rm -rf "$scratch"
}
trap stop EXIT

until grep -q '^asofd listening on ' "$scratch/ready"; do
    kill -0 "$server" 2>/dev/null || { echo "asofd did not start:" >&2; cat "$scratch/log" >&2; exit 1; }
    read -rt 0.1 <> <(:) || true
done
uri=$(sed -n 's/^asofd listening on //p' "$scratch/ready")

bold() { printf '\n\033[1m%s\033[0m\n' "$*"; }
say() { printf '\n%s\n' "$*"; }

# Runs a statement and shows it with its answer.
run() {
    printf '\nasof> %s;\n' "$1"
    "$asof" "$uri" --width 160 -c "$1"
}

# As run, and compares the answer, as CSV without its header, with what is expected.
ask() {
    run "$1"
    local got
    got=$("$asof" "$uri" --format csv -c "$1" 2>/dev/null | tail -n +2)
    if [ "$got" != "$2" ]; then
        printf '\n!! expected:\n%s\n!! and got:\n%s\n' "$2" "$got" >&2
        wrong=1
    fi
}

# Restores a table, shows Delta's six metrics, and compares how many files there are afterwards, were removed, were restored.
restore() {
    local got row
    printf '\nasof> %s;\n' "$1"
    got=$("$asof" "$uri" -c "$1")
    printf '%s\n' "$got"
    row=$(grep '[0-9] │$' <<<"$got" | tr -d ' ')
    row=${row//│/} row=${row//┆/,}
    if [[ $row != *,"$2",* ]]; then
        printf '\n!! expected the counts of files %s and got: %s\n' "$2" "$row" >&2
        wrong=1
    fi
}

# Events of one type, as rows of a UNION ALL: type, count, day of the event, day of its arrival.
events() {
    printf "SELECT concat('%s-%s-%s-', CAST(n AS STRING)) AS event_id, '%s' AS event_type, timestamp_seconds(%s + n * 60) AS event_time, TIMESTAMP '%s 06:00:00' AS ingestion_time FROM generate_series(1, %s) AS s(n)" \
        "$3" "$4" "$1" "$1" "$(date -u -d "$3" +%s)" "$4" "$2"
}

# A day of events: day, day of arrival, then type=count ...
day() {
    local event=$1 arrival=$2 first=1 item
    shift 2
    for item in "$@"; do
        [ $first = 1 ] || printf ' UNION ALL '
        first=0
        events "${item%=*}" "${item#*=}" "$event" "$arrival"
    done
}

# Sent, not shown: too long to read.
quietly() {
    "$asof" "$uri" -c "$1" >/dev/null
}

bold "1. The late events"
say "A shop keeps its clicks in a Delta table. On the evening of January 7 it holds that day's 613 events."
run "CREATE TABLE retail_clickstream_events (event_id STRING, event_type STRING, event_time TIMESTAMP, ingestion_time TIMESTAMP)"
quietly "INSERT INTO retail_clickstream_events $(day 2026-01-07 2026-01-07 add_to_cart=98 checkout_start=63 page_view=124 product_view=220 purchase=41 remove_from_cart=10 search=57)"
say "The next morning one load appends 739 events. Some of them happened the day before."
quietly "INSERT INTO retail_clickstream_events $(day 2026-01-08 2026-01-08 add_to_cart=92 checkout_start=92 page_view=92 product_view=96 purchase=92 remove_from_cart=92 search=92) UNION ALL $(day 2026-01-07 2026-01-08 add_to_cart=13 checkout_start=19 page_view=8 product_view=15 purchase=32 remove_from_cart=2 search=2)"
ask "SELECT CAST(event_time AS DATE) AS happened, CAST(ingestion_time AS DATE) AS arrived, count(*) AS events FROM retail_clickstream_events WHERE event_id NOT IN (SELECT event_id FROM retail_clickstream_events VERSION AS OF 1) GROUP BY 1, 2 ORDER BY 1" \
    "2026-01-07,2026-01-08,91
2026-01-08,2026-01-08,648"
say "So what did the report of January 7 read, and what would it read now?"
ask "SELECT count(*) AS events FROM retail_clickstream_events VERSION AS OF 1 WHERE CAST(event_time AS DATE) = DATE '2026-01-07'" 613
ask "SELECT count(*) AS events FROM retail_clickstream_events WHERE CAST(event_time AS DATE) = DATE '2026-01-07'" 704
say "By type of event, two moments of one table in one query:"
ask "WITH before AS (SELECT event_type, count(*) AS events FROM retail_clickstream_events VERSION AS OF 1 WHERE CAST(event_time AS DATE) = DATE '2026-01-07' GROUP BY event_type), after AS (SELECT event_type, count(*) AS events FROM retail_clickstream_events WHERE CAST(event_time AS DATE) = DATE '2026-01-07' GROUP BY event_type) SELECT a.event_type, b.events AS before, a.events - b.events AS added, a.events AS after FROM after a JOIN before b ON a.event_type = b.event_type ORDER BY a.event_type" \
    "add_to_cart,98,13,111
checkout_start,63,19,82
page_view,124,8,132
product_view,220,15,235
purchase,41,32,73
remove_from_cart,10,2,12
search,57,2,59"

bold "2. The corrected price"
run "CREATE TABLE prices (product STRING, price DECIMAL(10,2))"
run "INSERT INTO prices VALUES ('green tea', 67.00), ('coffee', 24.90), ('cocoa', 12.50)"
run "UPDATE prices SET price = 72.00 WHERE product = 'green tea'"
say "Which prices are not what they were?"
ask "SELECT now.product, was.price AS before, now.price AS after FROM prices AS now JOIN prices VERSION AS OF 1 AS was ON now.product = was.product WHERE now.price <> was.price" \
    "green tea,67.00,72.00"

bold "3. The bad load"
run "CREATE TABLE gold_sales_orders AS SELECT * FROM (VALUES (DATE '2024-01-01', 'Electronics', 1312750.00), (DATE '2024-01-01', 'Apparel', 2456000.00), (DATE '2024-01-02', 'Electronics', 1250100.00)) AS v(order_date, category, revenue)"
say "A load with a wrong exchange rate multiplies the revenue by ten. Nobody notices until the report."
run "CREATE OR REPLACE TABLE gold_sales_orders AS SELECT order_date, category, revenue * 10 AS revenue FROM gold_sales_orders"
say "What is in the table now that was not there one version earlier?"
ask "SELECT category, CAST(sum(revenue) AS BIGINT) AS revenue FROM (SELECT * FROM gold_sales_orders EXCEPT SELECT * FROM gold_sales_orders VERSION AS OF 0) AS d GROUP BY category ORDER BY category" \
    "Apparel,24560000
Electronics,25628500"
say "Put back what it held, as one commit of its own; the answer is Delta's six metrics:"
restore "RESTORE TABLE gold_sales_orders TO VERSION AS OF 0" 1,1,1
ask "SELECT order_date, category, CAST(revenue AS BIGINT) AS revenue FROM gold_sales_orders ORDER BY order_date, category" \
    "2024-01-01,Apparel,2456000
2024-01-01,Electronics,1312750
2024-01-02,Electronics,1250100"
say "The history keeps all of it:"
run "DESCRIBE HISTORY gold_sales_orders"

if [ "$wrong" -ne 0 ]; then
    echo "an answer was not the expected one" >&2
    exit 1
fi

bold "Connect"
cat <<EOF
JDBC    jdbc:arrow-flight-sql://$uri/?useEncryption=false
        (driver org.apache.arrow:flight-sql-jdbc-driver:18.3.0, JVM option --add-opens=java.base/java.nio=ALL-UNNAMED)

ADBC    import adbc_driver_flightsql.dbapi as flightsql
        connection = flightsql.connect("grpc://$uri", autocommit=True)

asof    $asof $uri
EOF
if [ "${KEEP:-}" = 1 ]; then
    printf '\nThe server goes on as process %s over %s; end it with: kill %s\n' "$server" "$scratch/warehouse" "$server"
else
    printf '\nThe server of this demo ends now; make demo KEEP=1 leaves it running.\n'
fi
