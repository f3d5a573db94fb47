# Every command of the project. `make help` lists them.

VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
AGENTS := .venv-agents
INSTALLED := $(VENV)/.installed-
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
PACKAGES := nanovm_core nanovm_client stripe_sandbox engine gate reader pipeline sabotage dashboard config samples bench mutations examples docs
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3.14 python3; do \
	command -v $$name && break; done 2>/dev/null)

# Without byte code each process compiles again what it imports, and pytest what it rewrites.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install tools demo test soak lint lock clean browser postgres proxy python bench agents

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

install: ## make .venv with what running needs
	@cmp -s requirements.txt $(INSTALLED)requirements.txt || $(MAKE) --no-print-directory $(VENV)

# Byte code is made for what the application imports alone: the environment is a fifth smaller.
.PHONY: $(VENV)
$(VENV): python
	@echo "Making $(VENV) with $(PYTHON) ..."
	@"$(PYTHON)" -m venv --clear $(VENV)
	@$(PIP) install --quiet --no-compile --require-hashes -r requirements.txt
	@$(PIP) check
	@data=$$(mktemp -d) && trap 'rm -rf "$$data"' EXIT && NANOVM_DATA="$$data" \
		DJANGO_SETTINGS_MODULE=config.settings $(BIN)/python -c \
		"import celery.bin.celery, config.web, django; django.setup(); import config.urls"
	@cp requirements.txt $(INSTALLED)requirements.txt

tools: install # what testing needs, in the same .venv
	@cmp -s requirements-test.txt $(INSTALLED)requirements-test.txt || { \
		echo "Adding what testing needs to $(VENV) ..." && \
		$(PIP) install --quiet --require-hashes -r requirements-test.txt && $(PIP) check && \
		cp requirements-test.txt $(INSTALLED)requirements-test.txt; }

python:
	@if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
		echo "Python 3.11 or newer is needed and was not found; install it (on Debian: apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; fi
	@if ! "$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "$(PYTHON) cannot make virtual environments: its venv module is missing; install it (on Debian: apt-get install python3-venv)." >&2; exit 1; fi

demo: install ## start everything and print the address (PORT=8000); Ctrl-C stops all of it
	@exec $(BIN)/python manage.py demo

test: tools browser postgres proxy agents ## every check and every test
	@$(BIN)/python -m tests

SEED ?= 1
soak: tools browser agents ## the long tests that `make test` leaves out; SEED=1 is what they draw from
	$(BIN)/python -m pytest -m "soak or reader" --hypothesis-seed=$(SEED) --durations=0 --durations-min=1
	$(BIN)/python -m mutations.generic --seed $(SEED)

.PHONY: reader
reader: tools ## the reader's own tests: many documents, costly ones, each fault of its processes
	$(BIN)/python -m pytest -m "reader and not soak"

.PHONY: docs
docs: tools ## write the generated pages of docs/ from code and tables again
	@$(BIN)/python -m docs.generate

.PHONY: mutate
mutate: tools ## change kernel and shell by generic operators (SEED=1), then remove each listed guard
	$(BIN)/python -m mutations.generic --seed $(SEED)
	$(BIN)/python -m mutations.survey

.PHONY: sabotage
sabotage: install ## fire every attack: all are held, and each gets through once its guards are gone
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && export NANOVM_DATA="$$folder" && \
	$(BIN)/python manage.py sabotage && $(BIN)/python -m mutations.ablation --layers

lint: tools ## format, style, strict types, import contracts, Django's own checks
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy $(PACKAGES) tests manage.py
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run # after Django's own checks

# The tests ask for no window: Chromium's headless shell takes a quarter less processor time.
browser: # the browser tests drive Chromium; a developer may name another one with CHROMIUM
	@if [ -n "$$CHROMIUM" ]; then \
		[ -x "$$CHROMIUM" ] || { echo "CHROMIUM=$$CHROMIUM is no program; name the browser's executable or unset it." >&2; exit 1; }; \
	elif command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq </dev/null && export DEBIAN_FRONTEND=noninteractive && \
		{ apt-get install -y -qq --no-install-recommends chromium-headless-shell fonts-dejavu-core </dev/null || \
		apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core </dev/null; }; \
	else \
		echo "Chromium is needed for the browser tests and was not found; install it (on Debian: sudo apt-get install chromium) or name its executable in CHROMIUM." >&2; exit 1; fi

postgres: # the pipeline's tests run on a PostgreSQL server of their own, too
	@if command -v postgres >/dev/null || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq </dev/null && export DEBIAN_FRONTEND=noninteractive && \
		apt-get install -y -qq --no-install-recommends postgresql-common </dev/null && \
		echo "create_main_cluster = false" >> /etc/postgresql-common/createcluster.conf && \
		apt-get install -y -qq --no-install-recommends postgresql </dev/null; \
	else \
		echo "PostgreSQL is needed for the tests and was not found; install it (on Debian: sudo apt-get install postgresql); no server has to run." >&2; exit 1; fi

proxy: # tests run behind nginx and Caddy; without them, and without root to install them, they are skipped
	@if { command -v nginx || [ -x /usr/sbin/nginx ]; } >/dev/null && command -v caddy >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq </dev/null && export DEBIAN_FRONTEND=noninteractive && \
		{ [ -e /usr/sbin/policy-rc.d ] || { policy=/usr/sbin/policy-rc.d && trap 'rm -f "$$policy"' EXIT && \
		printf '#!/bin/sh\nexit 101\n' > "$$policy" && chmod +x "$$policy"; }; } && \
		apt-get install -y -qq --no-install-recommends nginx caddy </dev/null; fi

bench: $(BENCH)/.installed-requirements.txt ## measure our runtime beside its peers and write bench/results.md (some five minutes; LONG=1: every other bench, too)
	@$(BENCH)/bin/python -m bench $(if $(LONG),--long)

$(BENCH)/.installed-requirements.txt: requirements.txt bench/requirements.txt | python
	@echo "Making $(BENCH) with $(PYTHON) ..."
	@"$(PYTHON)" -m venv --clear $(BENCH)
	@$(BENCH)/bin/python -m pip install --quiet --require-hashes -r requirements.txt
	@$(BENCH)/bin/python -m pip install --quiet -r bench/requirements.txt
	@$(BENCH)/bin/python -m pip check
	@touch $@

agents: $(AGENTS)/.installed-requirements.txt ## make .venv-agents, where the agents of examples/agents/ run

$(AGENTS)/.installed-requirements.txt: examples/agents/requirements.txt | python
	@echo "Making $(AGENTS) with $(PYTHON) ..."
	@"$(PYTHON)" -m venv --clear $(AGENTS)
	@$(AGENTS)/bin/python -m pip install --quiet --no-compile --require-hashes -r examples/agents/requirements.txt
	@$(AGENTS)/bin/python -m pip check
	@touch $@

lock: python ## resolve the dependencies of pyproject.toml into the lock files again
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && "$(PYTHON)" -m venv "$$folder" && \
	"$$folder/bin/python" -m pip install --quiet --disable-pip-version-check uv && \
	resolve="$$folder/bin/uv pip compile --universal --generate-hashes --python-version 3.11 --quiet \
		--no-emit-index-url --no-emit-find-links" && \
	$$resolve --custom-compile-command "make lock" --extra app \
		--output-file requirements.txt pyproject.toml && \
	$$resolve --custom-compile-command "make lock" --extra test --constraints requirements.txt \
		--output-file requirements-test.txt pyproject.toml && \
	$$resolve --custom-compile-command "make lock" \
		--output-file examples/agents/requirements.txt examples/agents/requirements.in

.PHONY: wheel
wheel: tools ## build the kernel's wheel into dist/: it needs cryptography and orjson
	@rm -rf build dist
	@$(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@rm -rf build nanovm.egg-info && ls dist/*.whl

clean: ## remove what the tools left behind (never the data in var/)
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache test-results build nanovm_client/build dist *.egg-info
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
