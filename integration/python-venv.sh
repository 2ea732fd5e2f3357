# Sourced by the scripts that need Python: a virtual environment for each list of pinned packages and each Python, made once.
#
#   venv NAME REQUIREMENTS      sets `venv` to its folder and `cache` to where everything of the kind is kept
#
# ASOF_CACHE  where that is (default: ~/.cache/asof-integration)
#
# A missing tool ends the script with "SKIPPED NAME: <tool> missing" and exit code 77; the caller decides what that means.

cache=${ASOF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/asof-integration}

skip() {
    echo "SKIPPED $suite_name: $1 missing"
    exit 77
}

venv() {
    suite_name=$1
    local requirements=$2 python='' candidate tag
    for candidate in python3.13 python3.12 python3.11 python3; do
        if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$candidate
            break
        fi
    done
    [ -n "$python" ] || skip "python3 (3.11 or newer)"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || skip "python3 venv"
    tag=$( (cat "$requirements"; "$python" -c 'import sys; print(sys.version)') | sha256sum | cut -c1-12)
    venv=$cache/venv-$tag
    [ -e "$venv/complete" ] && return
    rm -rf "$venv"
    mkdir -p "$cache"
    "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
    touch "$venv/complete"
}

# The debug server, built before.
need_server() {
    export ASOFD=${ASOFD:-${CARGO_TARGET_DIR:-$(dirname "${BASH_SOURCE[0]}")/../target}/debug/asofd}
    if [ ! -x "$ASOFD" ]; then
        echo "no server at $ASOFD: build it (cargo build -p asof-flight --bin asofd) or set ASOFD" >&2
        exit 2
    fi
}
