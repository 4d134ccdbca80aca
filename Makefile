# The front door: `make demo` and `make test` set up, build and run all by themselves.
# JOBS is how many things are compiled or tested at a time; a libtorch source takes about 1 GB of memory.
JOBS ?= 2
BUILD := build/release
PYTHON := .deps/venv/bin/python
# Programs that use libtorch in several processes at a time must not spin against each other.
export OMP_WAIT_POLICY ?= PASSIVE
export CCACHE_SLOPPINESS ?= pch_defines,time_macros
export CCACHE_BASEDIR ?= $(CURDIR)

.PHONY: help setup build demo test clean
.DEFAULT_GOAL := help

help:
	@echo "make demo   fine-tune a real model on real text (sets up and builds first; about 545 MB to download)"
	@echo "make test   build and run all tests (sets up first)"
	@echo "make build  leave the program at build/headrace"
	@echo "make clean  remove what was built and the demo's result; .deps and the demo's model stay"

setup:
	@tools/setup

# TARGET=all builds tests and benchmarks too. CMake's own chatter goes to a file and is shown when it fails.
TARGET ?= headrace
build: setup
	@mkdir -p $(BUILD)
	@cmake --preset release -DHEADRACE_TORCH="$$(cat .deps/torch_path)" > $(BUILD)/configure.log 2>&1 \
	  || { cat $(BUILD)/configure.log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS) --target $(TARGET)
	@ln -sfn release/bin/headrace build/headrace

demo: build
	@tools/setup --demo
	@tools/demo

# The last line is the count of all test cases, those inside pytest's files included.
test:
	@tools/setup --tests
	@$(MAKE) --no-print-directory build TARGET=all
	@rm -rf $(BUILD)/pytest
	@ctest --test-dir $(BUILD) --progress --output-on-failure -j $(JOBS) --output-junit ctest.xml; status=$$?; \
	  $(PYTHON) tools/test_count.py $(BUILD)/ctest.xml $(BUILD)/pytest || status=1; exit $$status

clean:
	@rm -rf build demo/result
