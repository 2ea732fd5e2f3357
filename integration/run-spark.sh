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
# shellcheck source=spark-jars.sh
source "$here/spark-jars.sh"
spark "$here"
need_server

export PYSPARK_PYTHON=$venv/bin/python PYTHONDONTWRITEBYTECODE=1 TZ=UTC
cd "$here/spark"
exec "$venv/bin/python" -m pytest "$@"
