# Two commands do everything on a fresh machine with Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test foreign lint types docs clean

demo: $(VENV)/.installed
	$(BIN)/forsooth demo

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest

# Other people's explainers and models, against docs/bring-your-own.md. What cannot be installed here is named, and its lines
# are skipped. Those that want torchvision for a class or two, or gigabytes for a card, come without what they need.
WHOLE := keras lightgbm shap transformers
ALONE := grad-cam lime opencv-python-headless patternlocal timm torchcam ttach xgboost zennit
foreign: $(VENV)/.installed-dev
	@for name in $(WHOLE); do $(BIN)/pip install --quiet --constraint constraints.txt $$name || echo "not installed: $$name"; done
	@for name in $(ALONE); do $(BIN)/pip install --quiet --no-deps $$name || echo "not installed: $$name"; done
	$(BIN)/python -m pytest tests/test_bring_your_own.py tests/adapters tests/attributions/test_transformers.py tests/attributions/test_local_patterns.py -rs

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
