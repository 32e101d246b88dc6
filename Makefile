# Written for GNU make 3.81, which macOS ships. `make help` lists the targets; docs/setup.md explains them.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
AWM := $(BIN)/awm-factory
INSTALLED := .venv/.installed

PYTHON ?=
ENVS ?=
SOURCE ?=
JOBS ?=
ALLOW_PROBLEMS ?=
BASE_OS ?=
PLATFORM ?=
REGISTRY ?=
TAG ?=
PYTEST_ARGS ?=

# Where the choice is the user's, it reaches every command, tests included, by the environment (see config.py).
ifneq ($(strip $(BASE_OS)),)
export AWM_BASE_OS := $(BASE_OS)
endif
ifneq ($(strip $(PLATFORM)),)
export AWM_PLATFORM := $(PLATFORM)
endif

BUILD_FLAGS := $(if $(strip $(JOBS)),--jobs $(JOBS)) $(if $(strip $(SOURCE)),--source '$(SOURCE)') \
  $(if $(filter-out 0,$(strip $(ALLOW_PROBLEMS))),--allow-problems)

# Ten scenarios of ten categories, or the packs' own hundred, where they are not there yet: by the offline author, whatever model is set.
STARTERS := $(if $(strip $(SOURCE)),,$(if $(filter all,$(ENVS)),100,$(if $(strip $(ENVS)),,10)))
WRITTEN_FIRST := $(if $(STARTERS),AWM_SYN_OVERRIDE_MODEL= $(AWM) synth --missing --count $(STARTERS) $(if $(strip $(JOBS)),--jobs $(JOBS)); made=$$?;)

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z.][a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name text; do printf '%-12s %s\n' "$$name" "$$text"; done
	@printf '\nVariables: PYTHON, ENVS, SOURCE, JOBS, ALLOW_PROBLEMS=1, BASE_OS=hub|debian, PLATFORM, REGISTRY, TAG, PYTEST_ARGS\n'

.PHONY: .venv
.venv: $(INSTALLED) ## Make .venv and install the locked packages and the project

# A candidate is tried by running it: Debian's python3 may come without venv, and pyenv has shims for versions not selected.
CANDIDATES := $(if $(strip $(PYTHON)),$(PYTHON),python3 python3.13 python3.12 python3.11 python3.14)
SUITABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))

$(INSTALLED): pyproject.toml requirements.lock
	@set -e; if $(BIN)/python -c '' 2>/dev/null; then exit 0; fi; \
	find() { for python in $(CANDIDATES); do if "$$python" -c '$(SUITABLE)' 2>/dev/null; then echo "$$python"; return; fi; done; }; \
	found=$$(find); \
	if test -z "$$found" -a -z '$(strip $(PYTHON))' -a "$$(id -u)" = 0 && command -v apt-get >/dev/null; then \
	  echo 'no Python >= 3.11 with venv found: installing python3-venv' >&2; \
	  { apt-get update -q && apt-get install -qy --no-install-recommends python3 python3-venv; } >&2; found=$$(find); fi; \
	if test -z "$$found"; then \
	  echo 'None of these is a Python >= 3.11 with venv: $(CANDIDATES).' >&2; \
	  echo 'Install one (macOS: brew install python@3.13; Debian, Ubuntu: apt-get install python3.11-venv or newer;' >&2; \
	  echo 'Fedora: dnf install python3), or say where it is: make PYTHON=/path/to/python3' >&2; exit 1; fi; \
	rm -rf .venv; "$$found" -m venv .venv
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: engine
engine: .venv ## Find a Docker engine; as root on Debian or Ubuntu install and start one
	@$(AWM) engine

.PHONY: base
base: .venv ## Build the base image that every environment stands on (unchanged: does nothing)
	@$(AWM) base

.PHONY: build-envs
build-envs: base ## Verify, build, smoke-test and tag environments; ten are written first (ENVS='a b' or all, SOURCE=an AWM run's directory)
	@$(WRITTEN_FIRST) $(AWM) build $(BUILD_FLAGS) $(filter-out all,$(ENVS)) $(if $(WRITTEN_FIRST),&& exit $$made)

.PHONY: push
push: .venv ## Push built images (REGISTRY=ghcr.io/acme, TAG=v1, ENVS='a b')
	@test -n '$(strip $(REGISTRY))' || { echo 'say where to: make push REGISTRY=ghcr.io/acme' >&2; exit 2; }
	@$(AWM) push --registry '$(REGISTRY)' $(if $(strip $(TAG)),--tag '$(TAG)') $(ENVS)

.PHONY: test
test: lint types base ## Lint, types, unit, integration and engine tests
	$(BIN)/pytest $(PYTEST_ARGS)

.PHONY: test-unit
test-unit: .venv ## Unit tests only: no engine, seconds
	$(BIN)/pytest tests/unit $(PYTEST_ARGS)

.PHONY: test-swarm
test-swarm: base ## A fleet on a real swarm of private engines, one of which dies: root on Linux, minutes
	$(BIN)/pytest tests/swarm -m swarm $(PYTEST_ARGS)

.PHONY: test-clients
test-clients: base ## Stock MCP and OpenEnv clients, each in a venv of its own, against a built image
	$(BIN)/python tests/clients/run.py

# torch is no part of the lock: which build fits depends on the machine, and no other target needs it.
TRAIN := .venv-train/bin
TRAIN_PACKAGES := trl==1.16.0 transformers==5.24.0 pytest pytest-timeout uvloop httptools

.venv-train/.installed: | $(INSTALLED)
	$(BIN)/python -m venv --clear .venv-train
	$(TRAIN)/python -m pip install -qq --disable-pip-version-check torch==2.13.0
	$(TRAIN)/python -m pip install -qq --disable-pip-version-check $(TRAIN_PACKAGES) --editable '.[factory]'
	@touch $@

.PHONY: test-train
test-train: .venv-train/.installed ## Train a tiny model by the recipe of examples/, with torch and TRL in a venv of their own (1.5 GB)
	$(TRAIN)/pytest tests/train $(PYTEST_ARGS)

.PHONY: bench-runtime
bench-runtime: .venv ## The runtime against the way AWM serves the same app; fails where a ratio falls short
	$(BIN)/python benchmarks/bench_runtime.py

.PHONY: lint
lint: .venv ## ruff and the import layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

.PHONY: types
types: .venv ## mypy --strict
	$(BIN)/mypy

# Wheels for images are chosen for the engine's platform, so each platform has a lock without markers.
COMPILE := $(BIN)/uv pip compile --quiet --no-annotate --generate-hashes --custom-compile-command 'make lock' \
  $(if $(filter-out 0,$(strip $(UPGRADE))),--upgrade)
COMPILE_BASE := $(COMPILE) --python-version 3.13 --only-binary :all: images/base/requirements.in
COMPILE_LEASE := $(COMPILE) --python-version 3.13 --only-binary :all: images/lease/requirements.in

.PHONY: lock
lock: .venv ## Write the locks from pyproject.toml and images/base/requirements.in (UPGRADE=1: to newest versions)
	$(COMPILE_BASE) --python-platform x86_64-manylinux_2_28 --output-file images/base/requirements.linux-amd64.lock
	$(COMPILE_BASE) --python-platform aarch64-manylinux_2_28 --output-file images/base/requirements.linux-arm64.lock
	$(COMPILE_LEASE) --python-platform x86_64-manylinux_2_28 --constraint images/base/requirements.linux-amd64.lock \
	  --output-file images/lease/requirements.linux-amd64.lock
	$(COMPILE_LEASE) --python-platform aarch64-manylinux_2_28 --constraint images/base/requirements.linux-arm64.lock \
	  --output-file images/lease/requirements.linux-arm64.lock
	$(COMPILE) --universal --python-version 3.11 --constraint images/base/requirements.linux-amd64.lock --extra factory \
	  --group dev pyproject.toml --output-file requirements.lock
	@$(MAKE) --no-print-directory .venv

.PHONY: clean
clean: ## Remove what was generated here (.venv, .venv-train, .build, caches); images and registry/ stay
	rm -rf .venv .venv-train .build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .benchmarks
	find factory tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
