# The entry point: `make` sets everything up and reproduces the published results; `make help` prints every target.
# All paths are relative, so that a space in the project's own path does no harm.

PYTHON ?= python3
NB ?= notebooks/*.ipynb
SET ?= publish
WORKERS ?= 2

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
BUILD := build
CHROMIUM ?= chromium

.DEFAULT_GOAL := all
.PHONY: all default test test-slow test-browser referees lab run sweep figures check-figures lint bench data lock help clean clean-all
.DELETE_ON_ERROR:

all: run  ## set up, run all notebooks with the set `publish`, draw the figures, print the claims (the default)
	$(PY) -m warmprefix figures --png --out $(BUILD)/figures
	$(PY) -m warmprefix claims || echo 'Some figures do not hold: see the verdicts above, and notebook 00 for why.'
	@printf '\n%s\n' 'Where to look:'
	@printf '  %-18s %s\n' \
	    $(BUILD)/notebooks 'the executed notebooks' \
	    $(BUILD)/figures 'all figures: SVG and PNG, light and dark, with numbers and captions' \
	    figures 'the published figures' \
	    'make lab' 'opens the notebooks, to turn a knob' \
	    'make help' 'prints everything else'

default: all  ## the same as `make` alone

test: $(READY)  ## run the tests
	$(PY) -m pytest -rs -m "not slow and not browser"

test-slow: $(READY)  ## run the tests that take minutes
	$(PY) -m pytest -m slow

referees: $(BUILD)/referees/.ready  ## check the cache models against real engines, installed apart into build/referees
	REFEREES=$(<D) $(PY) -m pytest tests/referees

test-browser: $(READY)  ## drive the notebooks in a headless browser (needs chromium)
	@lacks=; \
	$(PY) -c 'import playwright' 2>/dev/null || lacks="playwright ($(PY) -m pip install playwright)"; \
	command -v '$(CHROMIUM)' >/dev/null || lacks="$${lacks:+$$lacks and }chromium (sudo apt-get install chromium, or \
	CHROMIUM=/path/to/it)"; \
	test -z "$$lacks" || { echo "test-browser lacks $$lacks" >&2; exit 1; }
	CHROMIUM='$(CHROMIUM)' $(PY) -m pytest -m browser

lab: $(READY)  ## open the notebooks in JupyterLab
	$(PY) -m jupyterlab --notebook-dir=notebooks $$([ "$$(id -u)" != 0 ] || echo --allow-root)

run: $(READY)  ## execute notebooks into build/notebooks: make run NB=30 SET=smoke WORKERS=1
	$(PY) -m warmprefix run $(NB) --set $(SET) --workers $(WORKERS)

sweep: $(READY)  ## run every sweep in its set `publish`, each on two processes (minutes)
	$(PY) -m warmprefix run 40 45 50 97 --set publish --workers 1

figures: $(READY)  ## draw the published figures anew into figures/
	$(PY) -m warmprefix figures --out figures

check-figures: $(READY)  ## check that figures/ holds what the code draws
	rm -rf $(BUILD)/check-figures
	$(PY) -m warmprefix figures --out $(BUILD)/check-figures
	diff -rq -x '*.png' figures $(BUILD)/check-figures
	@echo 'figures/ is current'

lint: $(READY)  ## check style and types
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy

bench: $(READY)  ## measure speed, as ratios in one run, with a peer beside us where it can be installed apart (a quarter of an hour)
	-@$(MAKE) --silent $(BUILD)/tokenbill/.ready
	@for script in benchmarks/*.py; do echo "$$script"; $(PY) "$$script" || exit 1; done

data: $(READY)  ## generate the files in data/ anew
	$(PY) -m warmprefix generate --out data

lock:  ## resolve requirements.lock anew from pyproject.toml (needs uv and the network)
	printf 'setuptools>=77\n' | uv pip compile --universal --generate-hashes --all-extras --python-version 3.11 \
	    --fork-strategy fewest --no-annotate --no-header --no-emit-index-url --no-emit-find-links --upgrade --quiet \
	    --output-file requirements.lock pyproject.toml -

help:  ## print every target
	@awk -F ':.*  ## ' '/^[a-z-]+:.*  ## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

clean:  ## remove what was built
	rm -rf $(BUILD)

clean-all: clean  ## remove what was built, the environment and all caches
	rm -rf $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache lib/*.egg-info
	find . \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

# The stamp is written last, so an environment that was left half-made is made again. The project itself is installed
# editable, with the lock's own setuptools, so nothing outside the lock is fetched.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	    { echo 'Python 3.11 or newer is needed; name one that you have: make PYTHON=python3.12' >&2; exit 1; }
	@rm -rf $(VENV)
	@if command -v uv >/dev/null; then $(with-uv); else $(with-pip); fi
	@touch $@

define with-uv
    uv venv --quiet --python $(PYTHON) $(VENV) && \
    uv pip install --quiet --python $(PY) --require-hashes -r requirements.lock && \
    uv pip install --quiet --python $(PY) --no-build-isolation --no-deps --editable .
endef

# Debian ships Python without ensurepip, and there `venv` fails half-way.
define with-pip
    if ! $(PYTHON) -c 'import ensurepip' 2>/dev/null; then \
        if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
            apt-get update -qq && apt-get install -y -qq python3-venv; \
        else \
            echo 'This Python has no ensurepip; install it, then run make again: sudo apt-get install python3-venv' >&2; \
            exit 1; \
        fi; \
    fi && \
    $(PYTHON) -m venv $(VENV) && \
    echo 'Installing the locked packages into $(VENV) (once; a minute or two)' && \
    $(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && \
    $(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
endef

# What is only compared with goes into folders of its own, without its dependencies.
$(BUILD)/referees/.ready: tests/referees/requirements.txt | $(READY)
	@echo 'Installing the referees into $(@D) (once)'
	@rm -rf $(@D) && $(install-apart) --target $(@D) -r $< && touch $@

$(BUILD)/tokenbill/.ready: | $(READY)
	@rm -rf $(@D) && $(install-apart) --target $(@D) tokenbill==0.2.0 && touch $@

install-apart = $(if $(shell command -v uv),uv pip install --python $(PY),$(PY) -m pip install \
    --disable-pip-version-check) --quiet --no-deps
