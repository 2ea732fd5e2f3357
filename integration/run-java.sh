#!/usr/bin/env bash
# Runs the JDBC suites against a real asofd, which it starts over a temporary warehouse and ends afterwards.
#
#   integration/run-java.sh [Maven arguments, such as -Dtest=TypesTest]
#
# ASOFD       the server to test (default: target/debug/asofd under CARGO_TARGET_DIR or the repository)
# ASOF_CACHE  where compiled tests are kept between runs (default: ~/.cache/asof-integration)
#
# A missing tool ends it with "SKIPPED java: <tool> missing" and exit code 77; the Makefile decides what that means.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

skip() {
    echo "SKIPPED java: $1 missing"
    exit 77
}

java=${JAVA_HOME:+$JAVA_HOME/bin/}java
command -v "$java" >/dev/null || skip "java (17 or newer)"
major=$("$java" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java.specification.version = //p')
[ "${major%%.*}" -ge 17 ] || skip "java (17 or newer; this is $major)"
command -v javac >/dev/null || [ -x "${JAVA_HOME:-/nowhere}/bin/javac" ] || skip "javac (a JDK, not a JRE)"
command -v mvn >/dev/null || skip "mvn"

asofd=${ASOFD:-${CARGO_TARGET_DIR:-$here/../target}/debug/asofd}
if [ ! -x "$asofd" ]; then
    echo "no server at $asofd: build it (cargo build -p asof-flight --bin asofd) or set ASOFD" >&2
    exit 2
fi
cache=${ASOF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/asof-integration}

work=$(mktemp -d)
server=
finish() {
    code=$?
    if [ -n "$server" ]; then
        kill -TERM "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || { echo "asofd did not end cleanly; its log ends:" >&2; tail -n 40 "$work/asofd.log" >&2; [ $code -ne 0 ] || code=1; }
    fi
    if [ $code -ne 0 ]; then
        echo "asofd's log ends:" >&2
        tail -n 20 "$work/asofd.log" >&2 || true
    fi
    rm -rf "$work"
    exit $code
}
trap finish EXIT

mkfifo "$work/stdout"
env -u ASOF_LISTEN -u ASOF_WAREHOUSE "$asofd" serve --listen 127.0.0.1:0 --warehouse "$work/warehouse" \
    >"$work/stdout" 2>"$work/asofd.log" &
server=$!
line=
read -r -t 60 line <"$work/stdout" || true
case $line in
    "asofd listening on "*) ;;
    *)
        echo "asofd did not say that it listens, but '$line'" >&2
        exit 1
        ;;
esac
port=${line##*:}

cd "$here/java"
mvn -B -ntp test -Dasof.build="$cache/java" -Dasof.port="$port" -Dasof.warehouse="$work/warehouse" "$@"
