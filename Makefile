# The commands of the project; `make help` lists them. PYTHON names another interpreter for the virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
.DEFAULT_GOAL := help

.PHONY: help setup run test check format generate bench bench-gateway bench-detect train clean setup-test setup-dev

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# A stamp per set of dependencies: installed again only when pyproject.toml or the protos change.
$(VENV)/.serve: $(BIN)/python pyproject.toml hatch_build.py protos/truthlens/extproc/v1/ext_proc.proto
	$(BIN)/python -m pip install --quiet -e '.[up]'
	@touch $@

# torch is named with its version: a bare `torch` pulls gigabytes of GPU packages.
$(VENV)/.test: $(VENV)/.serve
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet -e '.[test]'
	@touch $@

$(VENV)/.dev: $(VENV)/.test
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

setup: $(VENV)/.serve ## Make .venv and install what serving needs

setup-test: $(VENV)/.test ## Install what the tests need

setup-dev: $(VENV)/.dev ## Install what development needs

run: $(VENV)/.serve ## Start everything (Envoy, sidecar, console, demo backend) and stay up; ARGS are passed on
	$(BIN)/truthlens up $(ARGS)

test: $(VENV)/.test ## Install what the tests need and run them all, a real Envoy included
	$(BIN)/python -m pytest $(ARGS)

check: $(VENV)/.dev ## Format, lint, types, import borders, tests, generated files: what CI and reviewers run
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --cov=truthlens --cov-report=term:skip-covered $(ARGS)

format: $(VENV)/.dev ## Format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: $(VENV)/.serve ## Write the generated files again (JSON Schema, Envoy configurations)
	$(BIN)/python -m truthlens.generate

bench: bench-detect bench-gateway ## All benchmarks; results go to bench/results/

bench-detect: $(VENV)/.test ## Latency of one scoring on one core
	$(BIN)/python bench/detect.py $(ARGS)

bench-gateway: $(VENV)/.test ## Added latency, CPU a request and throughput through Envoy
	$(BIN)/python bench/gateway.py $(ARGS)

train: $(VENV)/.dev ## Train the bundled model again: make train DATA=folder-of-jsonl.gz
	$(BIN)/truthlens train --data $(DATA) $(ARGS)

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
