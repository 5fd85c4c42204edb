# The words a person and CI share.  `make help` lists them.
SHELL  := /bin/bash
PYTHON ?= python3
JOBS   ?= 2
VENV   := .venv
JAX    := .venv-jax
BIN    := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP    := -m pip --disable-pip-version-check --quiet install
LOCKED := $(PIP) --no-compile --no-deps --require-hashes -r
LOCK    = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
          --no-emit-index-url --no-emit-find-links --no-header --no-annotate
NATIVE := $(shell find native -type f 2>/dev/null)
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help demo test setup compiler clients cloud check conformance system bench bench-tensor docs nightly lock \
        sanitize format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup compiler  ## set up, then run a CUDA C++ program on the virtual A100
	$(BIN)/va100 run examples/saxpy.cu

test: setup clients cloud $(STAMPS)/plan check  ## set up, check, and run the tests
	$(PYTEST) -n $(JOBS)

setup: $(STAMPS)/native  ## make .venv and build the native core; quick when up to date

# NVIDIA's packages, under NVIDIA's own terms: docs/licences.md.  CLIENTS= leaves them out of the
# tests, which then skip what needs them.
# JAX lives apart: XLA would take the ptxas that comes with nvcc's package.
CLIENTS ?= compiler $(STAMPS)/clients $(STAMPS)/pycuda $(STAMPS)/jax $(STAMPS)/node-clients
CLOUD ?= $(STAMPS)/cloud-test
cloud: $(CLOUD)  ## install what the cloud needs, and its tests
clients: $(CLIENTS)  ## install the client libraries that the tests run

compiler: $(if $(shell command -v nvcc),,$(STAMPS)/nvcc)  ## install nvcc where there is none

check: $(STAMPS)/dev  ## formatting, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

conformance: setup $(STAMPS)/dev  ## every instruction form, JIT against reference, at length
	$(PYTEST) -n $(JOBS) --full tests/conformance

system: setup clients cloud $(STAMPS)/dev  ## va100 from outside only
	$(PYTEST) -n $(JOBS) tests/system

nightly: setup clients cloud $(STAMPS)/plan check sanitize  ## every test at full length, and under sanitizers
	$(PYTEST) -n $(JOBS) --full

sanitize: $(STAMPS)/base  ## the native core under ASan, UBSan and TSan: 16 threads, 10,000 calls each
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/sanitize.py --jobs $(JOBS)

bench: setup compiler $(STAMPS)/bench  ## speed, as ratios in one run
	$(BIN)/python -m benchmarks

bench-tensor: setup $(STAMPS)/bench-tensor  ## tensor cores, beside mmasim
	$(BIN)/python -m benchmarks.tensor_core --peer $(BIN)/python

docs: setup  ## write the generated pages anew
	$(BIN)/python tools/isa_coverage.py
	$(BIN)/python tools/driver_tables/generate.py
	$(BIN)/python tools/nvml_tables/generate.py
	$(BIN)/python tools/nccl_tables/generate.py

lock: $(STAMPS)/dev  ## pin the newest allowed versions into requirements/*.txt; needs uv in .venv
	$(LOCK) --upgrade requirements/build.in -o requirements/build.txt
	$(LOCK) --upgrade pyproject.toml -o requirements/base.txt
	$(LOCK) --upgrade pyproject.toml --extra dev -o requirements/dev.txt
	$(LOCK) --upgrade pyproject.toml --extra nvcc -o requirements/nvcc.txt
	$(LOCK) --upgrade pyproject.toml --extra cuda-python -o requirements/cuda-python.txt
	$(LOCK) --upgrade -c requirements/dev.txt pyproject.toml --extra clients -o requirements/clients.txt
	$(LOCK) --upgrade pyproject.toml --extra cloud -o requirements/cloud.txt
	$(LOCK) --upgrade pyproject.toml --extra cloud-test -o requirements/cloud-test.txt
	$(LOCK) --upgrade -c requirements/dev.txt pyproject.toml --extra plan --extra onnx \
	  -o requirements/plan.txt
	$(LOCK) --upgrade -c requirements/dev.txt pyproject.toml --extra pycuda -o requirements/pycuda.txt
	$(LOCK) --upgrade pyproject.toml --extra jax -o requirements/jax.txt
	$(LOCK) --upgrade pyproject.toml --extra node-clients -o requirements/node-clients.txt
	$(LOCK) --upgrade pyproject.toml --extra bench -o requirements/bench.txt
	$(LOCK) --upgrade pyproject.toml --extra bench-tensor -o requirements/bench-tensor.txt

format: $(STAMPS)/dev  ## format the Python sources
	$(BIN)/ruff format .

clean:  ## forget the environment and everything built
	rm -rf $(VENV) $(JAX) build src/va100/_native

# ---------------------------------------------------------------- what the targets need

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "va100 needs Python 3.11 or newer: make PYTHON=/path/to/python3"; exit 1; }
	@command -v $${CXX:-c++} >/dev/null \
	  || { echo "va100 needs a C++17 compiler: install g++ or clang++, or set CXX"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/base: requirements/build.txt requirements/base.txt | $(STAMPS)/venv
	$(BIN)/python $(LOCKED) requirements/build.txt
	$(BIN)/python $(LOCKED) requirements/base.txt
	@touch $@

$(STAMPS)/package: pyproject.toml native/CMakeLists.txt | $(STAMPS)/base
	$(BIN)/python $(PIP) --no-build-isolation --no-deps --editable .
	@touch $@

$(STAMPS)/native: $(STAMPS)/package $(NATIVE)
	$(BIN)/cmake --build build/editable | tail -n 1
	@touch $@

# Each further lock holds the base one's versions too, so the order does not matter.
$(addprefix $(STAMPS)/,dev nvcc cuda-python clients node-clients cloud cloud-test \
    plan bench bench-tensor): $(STAMPS)/%: requirements/%.txt | $(STAMPS)/base
	$(BIN)/python $(LOCKED) requirements/$*.txt
	@touch $@

$(STAMPS)/pycuda: requirements/pycuda.txt tools/install_pycuda.py | $(STAMPS)/native
	$(BIN)/python tools/install_pycuda.py requirements/pycuda.txt
	@touch $@

# The tests start it with the checkout's va100 (tests/helpers/client_programs.py).
$(STAMPS)/jax: requirements/jax.txt | $(STAMPS)/venv
	$(PYTHON) -m venv --clear $(JAX)
	$(JAX)/bin/python $(LOCKED) requirements/jax.txt
	@touch $@
