# `make demo` and `make test` do all the set-up on a fresh machine.
BIN := .venv/bin

# Packages are installed without bytecode. Tests start hundreds of Python processes, and each would
# compile all it imports where the environment forbids to keep the result; empty means allowed.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-long lint bench lock clean

help:
	@echo "make demo        a real Spark query that scales while it runs (about 4 minutes)"
	@echo "make test        linters, types and all tests, real Spark among them"
	@echo "make test-long   faults, the bench on Spark, examples: minutes each"
	@echo "make bench       every budget, measured (over an hour; let nothing else run)"
	@echo "make setup       only install into .venv"
	@echo "make lint        only linters, types and the direction of imports"
	@echo "make lock        write requirements.lock anew"

setup: .venv/installed

.venv/installed: requirements.lock pyproject.toml scripts/setup.sh
	sh scripts/setup.sh
	@touch $@

demo: setup
	$(BIN)/penstock demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: lint
	$(BIN)/python -m pytest -m 'not (spark or alone or long)' -n auto --dist worksteal --doctest-modules src tests
	$(BIN)/python -m pytest -m 'spark and not long' -n 3 --dist loadscope tests/live
	$(BIN)/python -m pytest -m 'alone and not long' tests/lab

test-long: setup
	$(BIN)/python -m pytest -m long tests

bench: setup
	$(BIN)/python -m benchmarks.install
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.speed spread
	$(BIN)/python -m benchmarks.mead
	$(BIN)/python -m benchmarks.mead_exactness
	$(BIN)/python -m benchmarks.geo
	$(BIN)/python -m benchmarks.observation
	$(BIN)/python -m benchmarks.event_log
	$(BIN)/python -m penstock.decentralized.check
	$(BIN)/python -m benchmarks.replay
	$(BIN)/penstock lab prove all

lock: setup
	$(BIN)/pip-compile --quiet --all-extras --allow-unsafe --generate-hashes --strip-extras \
		--no-emit-index-url --no-emit-find-links --output-file requirements.lock pyproject.toml

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
