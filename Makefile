# Every target does all set-up it needs by itself. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup up down run test test-all check test-fast bench bench-alerts dist clean
SHELL := bash
BIN := .venv/bin
PACKAGES := .venv/.installed
JARS := .slacktide/jars/.fetched
TESTS ?= tests schemas udfs gpu_scorers jobs infra

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(PACKAGES) $(JARS) ## Make .venv from constraints.txt and fetch the jars; checks Python 3.11, Java 17, Maven
	@:

up: setup ## Start the embedded stack (Kafka, Flink) on loopback
	@$(BIN)/slacktide up

down: setup ## End what `make up` or `make run` started
	@$(BIN)/slacktide down

run: setup ## Bring it all up, replay a trace with a drift, show what was found (under 5 minutes)
	@$(BIN)/python -m infra.demo

test: check ## Check the code and run the tests, on real engines (under 25 minutes)
	@$(BIN)/python -m pytest -n 2 -m "not slow" $(TESTS)

test-all: check ## The same with the slow ones, which repeat on further engines what others show
	@$(BIN)/python -m pytest -n 2 $(TESTS)

check: setup ## Lint, formatting, types, and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy schemas udfs gpu_scorers jobs infra
	@$(BIN)/python -m pytest tests/unit/test_imports.py

test-fast: setup ## Run the tests that start no engine
	@$(BIN)/python -m pytest -m "not engine and not end_to_end and not slow" $(TESTS)

bench: setup ## Measure against peers and limits; fails when a goal is missed
	@failed=0; for file in tests/bench/bench_*.py; do \
	  $(BIN)/python -m tests.bench.$$(basename $$file .py) || { echo "FAILED: $$file"; failed=1; }; \
	done; exit $$failed

bench-alerts: setup ## Count false alarms, static thresholds against ours; NAB=DIR takes labelled series as well
	@$(BIN)/slacktide backtest-alerts $(if $(NAB),--nab $(NAB))

dist: setup ## Build dist/: the zip for `flink run -pyfs`, entry points, examples, RUN.md
	@$(BIN)/python -m infra.dist

clean: ## Delete caches and dist/; .venv, jars and the stack's state stay
	@rm -rf dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

$(PACKAGES): constraints.txt pyproject.toml infra/setup.sh
	@infra/setup.sh check
	@infra/setup.sh packages
	@touch $@

$(JARS): infra/pom.xml
	@infra/setup.sh check
	@infra/setup.sh jars
	@touch $@
