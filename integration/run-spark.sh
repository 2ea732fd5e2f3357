#!/usr/bin/env bash
# Spark as referee: it reads what asof wrote. Takes minutes and downloads a gigabyte the first time, so it is not part of `make test`.
#
#   integration/run-spark.sh [pytest arguments]
#
# ASOFD  as in run-python.sh. A missing tool ends it with "SKIPPED spark: <tool> missing" and exit code 77.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=python-venv.sh
source "$here/python-venv.sh"
venv spark "$here/spark/requirements.txt"
command -v java >/dev/null || skip "java (17 or newer)"
command -v mvn >/dev/null || skip "mvn"
need_server

jars=$cache/spark-jars-$(sha256sum "$here/spark/pom.xml" | cut -c1-12)
if [ ! -e "$jars/complete" ]; then
    rm -rf "$jars"
    (cd "$here/spark" && mvn -B -q -ntp dependency:copy-dependencies -DoutputDirectory="$jars")
    touch "$jars/complete"
fi

export DELTA_JARS=$jars PYSPARK_PYTHON=$venv/bin/python PYTHONDONTWRITEBYTECODE=1 TZ=UTC
cd "$here/spark"
exec "$venv/bin/python" -m pytest "$@"
