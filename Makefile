# asof: the commands of the README.
#
#   make demo         build, start a server, tell three stories through the client   (needs Rust)
#   make test         every suite                                                     (also Python 3.11+, JDK 17+, Maven)
#   make lint         rustfmt, clippy
#   make bench        asof beside its peers (CASE=P3, QUICK=1, PEERS=duckdb; see integration/bench.sh)  (release build, Python 3.11+)
#   make run          a server over ./warehouse
#   make test-spark   Spark reads what asof wrote (long)
#
# A suite whose tool is missing is skipped by name and counted; ASOF_REQUIRE=all makes that a failure.
# SUITES="rust java" runs some of them.

SHELL := /bin/bash
TARGET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
export ASOFD ?= $(TARGET)/debug/asofd
export ASOF ?= $(TARGET)/debug/asof

.PHONY: demo test lint bench run build test-spark

build:
	cargo build --workspace --bins --locked

demo: build
	bash integration/demo/run.sh

test:
	bash integration/test.sh $(SUITES)

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

bench:
	bash integration/bench.sh

run: build
	$(ASOFD) serve

test-spark: build
	bash integration/run-spark.sh
