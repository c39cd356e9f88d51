# Two commands do everything on a fresh machine with Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types docs clean

demo: $(VENV)/.installed
	$(BIN)/forsooth demo

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

docs: $(VENV)/.installed-dev
	$(BIN)/mkdocs build

clean:
	rm -rf $(VENV) forsooth-runs

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "forsooth needs Python 3.11 or newer, got $$($(PYTHON) --version). Set PYTHON=/path/to/python."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Setting up $(VENV) (once; a few minutes) ..."
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Setting up $(VENV) (once; a few minutes) ..."
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.installed
