# corral: everything a newcomer needs. `make help` lists it.
SHELL := /bin/bash
PYTHON ?= $(shell scripts/find-python)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# npm with a Node.js that is new enough: the system's, else one from a Python package.
NODE := $(BIN)/python scripts/console_build.py
PACKAGES := console/node_modules/.installed
CONSOLE := src/corral/server/console/index.html
# Folders too: they change when a file goes.
CONSOLE_SOURCES := $(shell find console -mindepth 1 -path console/node_modules -prune -o -print 2>/dev/null)

# Servers are started hundreds of times by the tests: they must not be compiled anew each time.
unexport PYTHONDONTWRITEBYTECODE

# The plugin schemathesis takes half a second to load in each process, and no unit test uses it. Processes that are done
# take over tests of the others (worksteal): the files differ too much in duration to be distributed whole.
UNIT := $(BIN)/pytest -q -n auto --dist worksteal -p no:schemathesis tests/unit tests/scenarios

# Which tests were skipped and why: tests/conftest.py adds to it, scripts/skipped-tests prints it at the end.
SKIPPED := .pytest_cache/skipped
test: export CORRAL_SKIPPED_TESTS = $(SKIPPED)

.DEFAULT_GOAL := help
.PHONY: help setup console up demo test unit check bench bench-compare format lock runtime-lock dist release-check openapi docs screenshots clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(STAMP) ## install everything into .venv

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "corral needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	@# Debian keeps this part of Python in a package of its own.
	@test -x $(BIN)/python || $(PYTHON) -c 'import ensurepip' 2>/dev/null || scripts/install-packages python3-venv
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) …"
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock && \
	  CORRAL_BUILD_CONSOLE=never uv pip install --quiet --python $(BIN)/python --no-deps -e .; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && \
	  CORRAL_BUILD_CONSOLE=never $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .; \
	fi
	@touch $@

console: $(CONSOLE) ## build the console, if something changed

$(PACKAGES): console/package-lock.json | $(STAMP)
	@$(NODE) install

$(CONSOLE): $(PACKAGES) $(CONSOLE_SOURCES) scripts/compress.mjs | $(STAMP)
	@$(NODE) build || { echo "the console could not be built; the server runs without it: $(BIN)/corral up" >&2; exit 1; }

up: setup console ## run corral at http://127.0.0.1:8470
	@exec $(BIN)/corral up $(ARGS)

demo: setup console ## run a demo fleet: 11 nodes, 44 virtual GPUs, users and arriving jobs
	@exec $(BIN)/corral up --demo $(ARGS)

test: setup check console ## all checks and all tests
	@$(NODE) npm test --silent
	@scripts/install-test-servers
	@rm -f $(SKIPPED)
	@$(UNIT)
	@$(BIN)/python scripts/system-tests
	@$(BIN)/python scripts/skipped-tests $(SKIPPED)

unit: setup ## the quick tests only
	@$(UNIT)

check: setup $(PACKAGES) ## lint, format, types, layers, layout, words
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/check_job_paths.py
	@$(BIN)/python scripts/check_layout.py
	@$(BIN)/python scripts/check_words.py
	@$(BIN)/python scripts/check_api.py
	@$(NODE) npm run --silent check

bench: setup ## measure, and print one page: target, value, ratio, verdict (30 minutes)
	@$(BIN)/python -m benchmarks

bench-compare: setup ## measure another commit and this tree in turns: make bench-compare REV=v0.1 ARGS=jobs
	@test -n "$(REV)" || { echo "say which commit: make bench-compare REV=…" >&2; exit 2; }
	@$(BIN)/python -m benchmarks.compare $(REV) $(ARGS)

format: setup $(PACKAGES) ## put the code in shape
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(NODE) npm run --silent format

openapi: setup $(PACKAGES) ## write the OpenAPI file, the client's and the console's types, the CLI reference and the requirements anew
	@$(BIN)/python -m corral.server.http.openapi > docs/reference/openapi.json
	@$(BIN)/python scripts/client_views.py
	@$(BIN)/python scripts/console_names.py
	@$(BIN)/python scripts/console_limits.py
	@$(BIN)/python scripts/command_summaries.py
	@$(BIN)/python -m corral.cli.terminal.reference > docs/reference/cli.md
	@$(BIN)/python scripts/configuration_page.py
	@$(BIN)/python scripts/seeds_page.py
	@$(BIN)/python scripts/habits_page.py
	@$(BIN)/python scripts/reference_pages.py
	@$(NODE) npm run --silent types

docs: setup ## the documentation as a site, in site/; broken links fail
	@NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --quiet --strict

screenshots: setup console ## pictures of every page of the console for the documentation (Chromium, 10 minutes)
	@$(BIN)/python scripts/screenshots

lock: setup ## resolve dependencies anew into requirements.lock
	@command -v uv >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet uv
	@PATH="$(BIN):$$PATH" uv lock --quiet --upgrade && PATH="$(BIN):$$PATH" uv export --quiet --no-emit-project --no-annotate --no-header \
	  --all-extras --all-groups --format requirements-txt -o requirements.lock
	@$(MAKE) --no-print-directory runtime-lock

runtime-lock: setup ## what a server needs and no more, with the versions of requirements.lock
	@PATH="$(BIN):$$PATH" uv pip compile --quiet pyproject.toml --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --extra server --extra postgres --extra reports --extra s3 --extra gcs -c requirements.lock -o requirements-runtime.lock

dist: setup console ## a wheel with the console inside, in dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

release-check: setup ## is everything of a release in place: version, changelog, generated files, locks, a first job from the wheel
	@$(BIN)/python scripts/release_check.py
	@rm -rf dist && $(MAKE) --no-print-directory dist && scripts/first-job dist/*.whl

clean: ## remove what was built
	@rm -rf $(VENV) dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache console/node_modules $(dir $(CONSOLE))
