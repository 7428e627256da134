# headrace: `make demo` and `make test` are all a fresh machine needs.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup java browser prometheus demo test check lint types imports unit integration bench clean

VENV := .venv
BIN  := $(VENV)/bin
STAMP := $(VENV)/.installed

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml infra/constraints.txt infra/setup.sh
	@bash infra/setup.sh python $(VENV)
	@touch $@

setup: $(STAMP)  ## the virtual environment with everything installed

java: $(STAMP)  ## Java 17 and Maven are here, and Kafka's jars are resolved
	@bash infra/setup.sh java
	@$(BIN)/headrace broker fetch --kind apache

prometheus: $(STAMP)
	@bash infra/setup.sh prometheus $(VENV)

browser: $(STAMP)
	@bash infra/setup.sh browser

demo: setup  ## the whole path on the embedded broker with real data
	@$(BIN)/headrace demo $(DEMO)

test: setup java check integration  ## everything: the gate, then the tests on both brokers

check: setup lint types imports unit  ## the gate: lint, types, layering, purity, unit tests, coverage of the cores

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy schemas streams solver infra
	$(BIN)/pyright --warnings

imports: setup
	$(BIN)/lint-imports

unit: setup prometheus
	$(BIN)/pytest tests -m "not embedded and not apache and not browser and not wheel" -n auto --dist worksteal --cov --cov-report=term

integration: setup java prometheus browser
	$(BIN)/pytest tests -m "embedded or apache or browser or wheel" -n 2 --dist loadfile

bench: setup  ## peers beside us in one run
	@for b in tests/bench/bench_*.py; do $(BIN)/python $$b; done

clean:  ## remove what the targets made
	rm -rf $(VENV) .headrace dist build .coverage* htmlcov .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
