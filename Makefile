# make demo    from a fresh clone to a report, on any Linux machine, no GPU needed
# make test    every test, on all cores with one thread each
# make lint    style, types and prose
# make docs    the documentation site, into build/site; fails on a broken link
# make paper   the technical report from the stored results, into build/paper
# make setup   only the installation
#
# ENGINES      all: build the simulator's engine for every instruction set, not for this processor alone
# TORCH_INDEX  index to take PyTorch from, such as PyTorch's own CPU or ROCm index
# PYTHON       Python 3.11 or newer to make the virtual environment with

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --jobs=2 # packages are installed while the C++ is compiled
.PHONY: demo test lint docs paper setup clean

VENV ?= .venv
ENGINES ?=
TORCH_INDEX ?=
PYTHON ?=
STAMPS := $(VENV)/stamps
IN := $(VENV)/bin
PIP := flock $(VENV) $(IN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
NATIVE := $(shell find kernel_gym -name '*.cpp' -o -name '*.h' -o -name '*.inc' 2>/dev/null)

demo: $(STAMPS)/judge $(STAMPS)/engine
	$(IN)/kernel-gym demo

test: $(STAMPS)/adapters
	OMP_NUM_THREADS=1 $(IN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

lint: setup
	$(IN)/ruff check .
	$(IN)/ruff format --check .
	$(IN)/python -m mypy
	$(IN)/python scripts/check_prose.py

docs: $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 $(IN)/mkdocs build --strict --quiet

paper: $(STAMPS)/docs
	$(IN)/python -m benchmarks paper

setup: $(STAMPS)/package $(STAMPS)/engine

$(STAMPS)/system: scripts/system-packages.sh
	scripts/system-packages.sh
	PYTHON="$(PYTHON)" scripts/make-venv.sh "$(VENV)"
	mkdir -p $(STAMPS)
	touch $@

$(STAMPS)/torch: $(STAMPS)/system constraints.txt scripts/install-torch.sh
	TORCH_INDEX="$(TORCH_INDEX)" scripts/install-torch.sh $(IN)/python
	touch $@

# The simulator, compiled without the packages that are being installed meanwhile.
$(STAMPS)/engine: $(STAMPS)/system setup.py $(NATIVE)
	@echo "Compiling the simulator ..."
	$(PIP) --upgrade --target $(VENV)/compiling setuptools
	KERNEL_GYM_ENGINES="$(ENGINES)" PYTHONPATH=$(VENV)/compiling $(IN)/python -S setup.py --quiet build_ext --inplace
	touch $@

# What evaluates and reports.
$(STAMPS)/judge: $(STAMPS)/torch pyproject.toml
	@echo "Installing kernel-gym ..."
	KERNEL_GYM_ENGINES=none $(PIP) --editable '.[judge,report]'
	touch $@

$(STAMPS)/package: $(STAMPS)/judge
	@echo "Installing what trains, serves and tests ..."
	$(PIP) 'kernel-gym[dev,train,service]'
	$(IN)/python -m kernel_gym.torch_device.build
	touch $@

# The other frameworks and languages: about a hundred packages that only their own tests need.
$(STAMPS)/adapters: $(STAMPS)/package $(STAMPS)/engine
	$(PIP) 'kernel-gym[kernels,openenv,skyrl,flydsl,tilelang]'
	touch $@

$(STAMPS)/docs: $(STAMPS)/package
	$(PIP) 'kernel-gym[docs]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
