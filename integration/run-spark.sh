#!/usr/bin/env bash
# Spark as referee: it reads what asof wrote. Takes minutes and downloads a gigabyte the first time, so it is not part of `make test`.
#
#   integration/run-spark.sh [pytest arguments]
#
# ASOFD, ASOF_CACHE: as in run-python.sh. A missing tool ends it with "SKIPPED spark: <tool> missing" and exit code 77.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
suite=$here/spark

skip() {
    echo "SKIPPED spark: $1 missing"
    exit 77
}

python=
for candidate in python3.13 python3.12 python3.11 python3; do
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || skip "python3 (3.11 or newer)"
"$python" -c 'import ensurepip, venv' 2>/dev/null || skip "python3 venv"
command -v java >/dev/null || skip "java (17 or newer)"
command -v mvn >/dev/null || skip "mvn"

export ASOFD=${ASOFD:-${CARGO_TARGET_DIR:-$here/../target}/debug/asofd}
if [ ! -x "$ASOFD" ]; then
    echo "no server at $ASOFD: build it (cargo build -p asof-flight --bin asofd) or set ASOFD" >&2
    exit 2
fi

tag=$( (cat "$suite/requirements.txt" "$suite/pom.xml"; "$python" -c 'import sys; print(sys.version)') | sha256sum | cut -c1-12)
cache=${ASOF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/asof-integration}/spark-$tag
if [ ! -e "$cache/complete" ]; then
    rm -rf "$cache"
    mkdir -p "$cache"
    "$python" -m venv "$cache/venv"
    "$cache/venv/bin/pip" install --quiet --disable-pip-version-check -r "$suite/requirements.txt"
    (cd "$suite" && mvn -B -q -ntp dependency:copy-dependencies -DoutputDirectory="$cache/jars")
    touch "$cache/complete"
fi

export DELTA_JARS=$cache/jars PYSPARK_PYTHON=$cache/venv/bin/python PYTHONDONTWRITEBYTECODE=1 TZ=UTC
cd "$suite"
exec "$cache/venv/bin/python" -m pytest "$@"
