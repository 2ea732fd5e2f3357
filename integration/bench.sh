#!/usr/bin/env bash
# Measures asof beside its peers, each in a process of its own, over tables made here. What is measured: integration/bench/cases.py.
#
#   CASE="P3 P4"     only these cases            QUICK=1   one round of each, within minutes
#   PEERS="duckdb"   only these peers (spark: only when it is named here)            SF=10     TPC-H's scale (default 1)
#   BENCH_DATA=…     where tables are kept (default: ~/.cache/asof-integration/bench-data)     LOGS=1   show the engines' logs
#
# A whole run writes server/docs/benchmarks.{md,json,svg}. Exits with 1 when engines answer differently.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=python-venv.sh
source "$here/python-venv.sh"
# shellcheck source=spark-jars.sh
source "$here/spark-jars.sh"
if [[ ${PEERS:-} == *spark* ]]; then
    spark "$here"
    export BENCH_SPARK_PYTHON=$venv/bin/python
fi
venv bench "$here/bench/requirements.txt"

target=${CARGO_TARGET_DIR:-$here/../target}
cargo build --release --locked --workspace --bins
cargo build --release --locked -p asof-storage --example delete_rows
export ASOFD=$target/release/asofd DELETE_ROWS=$target/release/examples/delete_rows
export BENCH_DATA=${BENCH_DATA:-$cache/bench-data} BENCH_DOCS=$here/../server/docs PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" "$here/bench/run.py"
