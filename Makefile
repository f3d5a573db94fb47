# Every command of the project. `make help` lists them.

VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
STAMP := $(VENV)/.installed-requirements.txt
PACKAGES := nanovm_core stripe_sandbox pipeline sabotage dashboard config samples bench mutations examples docs
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3.14 python3; do \
	command -v $$name && break; done 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help install demo test soak lint lock clean browser python bench

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

install: ## make .venv with everything that running and testing need
	@cmp -s requirements.txt $(STAMP) || $(MAKE) --no-print-directory $(VENV)

.PHONY: $(VENV)
$(VENV): python
	@echo "Making $(VENV) with $(PYTHON) ..."
	@"$(PYTHON)" -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input \
		--require-hashes -r requirements.txt
	@$(BIN)/python -m pip check --disable-pip-version-check
	@cp requirements.txt $(STAMP)

python:
	@if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
		echo "Python 3.11 or newer is needed and was not found; install it (on Debian: apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; fi
	@if ! "$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "$(PYTHON) cannot make virtual environments: its venv module is missing; install it (on Debian: apt-get install python3-venv)." >&2; exit 1; fi

demo: install ## start everything and print the address (PORT=8000); Ctrl-C stops all of it
	@exec $(BIN)/python manage.py demo

test: install browser lint ## every check and every test
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not browser and not soak"
	$(BIN)/python -m pytest -m browser

soak: install browser ## the long tests that `make test` leaves out
	$(BIN)/python -m pytest -m soak

.PHONY: docs
docs: install ## draw the pages of rules and lifecycle from the code again
	@$(BIN)/python -m docs.generate

.PHONY: mutate
mutate: install ## remove every guard once, and see a test fail each time
	$(BIN)/python -m mutations.survey

lint: install ## format, style, strict types, import contracts, Django's own checks
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy $(PACKAGES) tests manage.py
	$(BIN)/lint-imports
	$(BIN)/python manage.py check
	$(BIN)/python manage.py makemigrations --check --dry-run

browser: # the browser tests drive Chromium; a developer may name another one with CHROMIUM
	@if [ -n "$$CHROMIUM" ]; then \
		[ -x "$$CHROMIUM" ] || { echo "CHROMIUM=$$CHROMIUM is no program; name the browser's executable or unset it." >&2; exit 1; }; \
	elif command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq </dev/null && DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core </dev/null; \
	else \
		echo "Chromium is needed for the browser tests and was not found; install it (on Debian: sudo apt-get install chromium) or name its executable in CHROMIUM." >&2; exit 1; fi

bench: $(BENCH)/.installed-requirements.txt ## measure the kernel beside its peers (some minutes); writes bench/results.md
	@$(BENCH)/bin/python -m bench

$(BENCH)/.installed-requirements.txt: bench/requirements.txt | python
	@echo "Making $(BENCH) with $(PYTHON) ..."
	@"$(PYTHON)" -m venv --clear $(BENCH)
	@$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
		-r bench/requirements.txt
	@cp bench/requirements.txt $@

lock: install ## resolve the dependencies of pyproject.toml into requirements.txt again
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --universal --generate-hashes --python-version 3.11 \
		--extra app --extra test --no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" --quiet --output-file requirements.txt pyproject.toml

clean: ## remove what the tools left behind (never the data in var/)
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache test-results build *.egg-info
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
