# The commands of this repository; `make help` lists them. Each works from a fresh clone.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
BIN := .venv/bin
HAVE := sh gpubox/lab/system_packages.sh

.PHONY: help venv demo test test-faults test-faults-box lint unit explore acceptance bench docs lab-up lab-down

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

# One after the other, also under `make -j`: what a command needs of the system comes before anything long.
.NOTPARALLEL:

.PHONY: have-venv have-unit have-demo have-test
have-venv have-unit have-demo have-test: have-%:
	@PYTHON=$(PYTHON) $(HAVE) $*

venv: $(BIN)/.synced ## make .venv/ with gpubox and everything it needs

$(BIN)/.synced: pyproject.toml uv.lock requirements-uv.txt
	@PYTHON=$(PYTHON) $(HAVE) venv
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpubox needs Python 3.11 or newer: found " + sys.version.split()[0] + " (set PYTHON=...)")'
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --require-hashes --disable-pip-version-check -r requirements-uv.txt
	UV_PROJECT_ENVIRONMENT=.venv $(BIN)/uv sync --frozen --inexact --compile-bytecode
	touch $@

lab-up: have-demo venv ## bring the practice machine up (needs root)
	$(BIN)/gpubox lab up

lab-down: venv ## take the practice machine away again
	$(BIN)/gpubox lab down

demo: have-demo lab-up ## from nothing to an answering SGLang on the practice machine
	$(BIN)/pyinfra -y inventory/lxc.py deploy.py
	$(BIN)/gpubox ask gpu01

lint: venv ## ruff, mypy --strict, templates, the oldest Python of a box
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/vermin --quiet --no-tips --violations --target=3.9- gpubox/remote

unit: have-unit venv ## tests that need no host
	$(BIN)/pytest tests/unit --no-skips

explore: have-unit venv ## thousands of random settings, other ones each time (`make unit` takes the same few hundred)
	$(BIN)/pytest tests/unit/test_properties.py tests/unit/test_systemd.py --hypothesis-profile=explore

acceptance: have-test lab-up ## converge the practice machine and ask it whether it is so
	$(BIN)/pyinfra -y inventory/lxc.py deploy.py
	$(BIN)/pytest tests/acceptance --hosts=gpu01 --no-skips
	$(BIN)/pytest tests/faults/test_drift.py --hosts=gpu01 --practice --no-skips
	$(BIN)/pytest tests/faults -m ci -v --hosts=gpu01 --practice --no-skips

test: have-test lint unit acceptance ## everything CI runs

SERVER_FAULTS := $(addprefix tests/faults/test_,drift.py releases.py interrupted.py first_release.py api_key.py hub.py)

test-faults: lab-up ## the slow ones about the server: broken releases, killed switches, secrets, the hub
	$(BIN)/pytest $(SERVER_FAULTS) -v --durations=0 --hosts=gpu01 --practice --no-skips

test-faults-box: lab-up ## the slow ones about the box: hypervisor, driver, CUDA, apt, source builds, onboarding
	$(BIN)/gpubox lab up --boxes 3
	$(BIN)/pytest tests/faults $(addprefix --ignore=,$(SERVER_FAULTS)) -v --durations=0 --hosts=gpu01 --practice --no-skips

bench: lab-up ## time the deploy itself: seconds, round trips, remote CPU
	$(BIN)/python -m gpubox.lab.bench

docs: venv ## build the documentation into site/; links that lead nowhere end it
	$(BIN)/gpubox docs --check
	UV_PROJECT_ENVIRONMENT=.cache/docs $(BIN)/uv sync --frozen --only-group docs
	NO_MKDOCS_2_WARNING=1 .cache/docs/bin/mkdocs build --quiet --site-dir site
