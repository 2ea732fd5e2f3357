#!/usr/bin/env bash
# Runs the Python suites against a real asofd.
#
#   integration/run-python.sh [pytest arguments]
#
# ASOFD  the server to test (default: target/debug/asofd under CARGO_TARGET_DIR or the repository). More settings: python-venv.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=python-venv.sh
source "$here/python-venv.sh"
venv python "$here/python/requirements.txt"
need_server

cd "$here/python"
export PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" -m pytest "$@"
