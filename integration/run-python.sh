#!/usr/bin/env bash
# Runs the Python suites against a real asofd.
#
#   integration/run-python.sh [pytest arguments]
#
# ASOFD       the server to test (default: target/debug/asofd under CARGO_TARGET_DIR or the repository)
# ASOF_CACHE  where the virtual environment is kept between runs (default: ~/.cache/asof-integration)
#
# A missing tool ends it with "SKIPPED python: <tool> missing" and exit code 77; the Makefile decides what that means.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
suite=$here/python

skip() {
    echo "SKIPPED python: $1 missing"
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

export ASOFD=${ASOFD:-${CARGO_TARGET_DIR:-$here/../target}/debug/asofd}
if [ ! -x "$ASOFD" ]; then
    echo "no server at $ASOFD: build it (cargo build -p asof-flight --bin asofd) or set ASOFD" >&2
    exit 2
fi

# One environment for each list of pinned packages and each Python, made once.
tag=$( (cat "$suite/requirements.txt"; "$python" -c 'import sys; print(sys.version)') | sha256sum | cut -c1-12)
cache=${ASOF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/asof-integration}
venv=$cache/venv-$tag
if [ ! -e "$venv/complete" ]; then
    rm -rf "$venv"
    mkdir -p "$cache"
    "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$suite/requirements.txt"
    touch "$venv/complete"
fi

cd "$suite"
export PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" -m pytest "$@"
