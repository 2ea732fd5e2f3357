#!/usr/bin/env bash
# What deletion vectors cost a scan: at most 1.2 times the same rows without them. Prints medians and ratios.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo run --release --locked -p asof-query --example deletion_vectors -- "${ROWS:-4}"
