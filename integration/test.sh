#!/usr/bin/env bash
# Runs the suites, each with a budget in seconds, and prints what each used.
#
#   integration/test.sh [suite ...]          all of them when none is named
#
# A suite that exits with 77 lacks a tool: it is counted as skipped, or as failed under ASOF_REQUIRE=all.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Name, budget in seconds (running, not building), command. The Rust tests run as one suite: testing the crates one by one would choose
# other features of shared crates, and compile those again.
suites=(
    "rust 600 cargo test --locked --workspace --no-fail-fast"
    "demo 90 bash integration/demo/run.sh"
    "python 600 bash integration/run-python.sh"
    "java 240 bash integration/run-java.sh"
)
wanted=("$@")
passed=0 failed=0 skipped=0 report=()

build() { # once, outside the budgets
    cargo build --locked --workspace --all-targets
}

chosen() {
    [ ${#wanted[@]} -eq 0 ] && return 0
    local name
    for name in "${wanted[@]}"; do [ "$name" = "$1" ] && return 0; done
    return 1
}

names=" $(printf '%s\n' "${suites[@]}" | cut -d' ' -f1 | xargs) "
for name in "${wanted[@]}"; do
    [[ $names == *" $name "* ]] || { echo "no suite $name: there are$names" >&2; exit 2; }
done

start=$SECONDS
build || exit 1
report+=("$(printf '%-10s %5d s' build $((SECONDS - start)))")

for suite in "${suites[@]}"; do
    read -r name budget command <<<"$suite"
    chosen "$name" || continue
    printf '\n=== %s\n' "$name"
    start=$SECONDS
    $command
    code=$?
    used=$((SECONDS - start))
    case $code in
        0) verdict=passed; passed=$((passed + 1)) ;;
        77)
            if [ "${ASOF_REQUIRE:-}" = all ]; then
                verdict="failed (its tool is required)"; failed=$((failed + 1))
            else
                verdict=skipped; skipped=$((skipped + 1))
            fi ;;
        *) verdict=failed; failed=$((failed + 1)) ;;
    esac
    [ "$used" -gt "$budget" ] && verdict="$verdict, over its budget"
    report+=("$(printf '%-10s %5d s of %4d s  %s' "$name" "$used" "$budget" "$verdict")")
done

printf '\n=== suites\n'
printf '%s\n' "${report[@]}"
printf '\nsuites: %d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
