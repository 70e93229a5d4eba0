# Thin: each target sets up what it needs and calls cmake, ctest or a script of tools/.
# `make help` lists them.

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
CTEST_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=
FUZZ_SECONDS ?= 60

CTEST = ctest --output-on-failure --no-tests=error -j $(JOBS)
# TSan and, on some kernels, ASan need a fixed address layout. A finding of UBSan is a failure.
# Arrow's own allocator lies in the wheel, where sanitizers cannot see it: malloc instead.
SANITIZED = ARROW_DEFAULT_MEMORY_POOL=system UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
  TSAN_OPTIONS=suppressions=$(CURDIR)/tools/tsan_suppressions.txt setarch -R

# Compilations are shared between clones: ccache takes paths as relative to this folder.
export CCACHE_BASEDIR = $(CURDIR)
export CCACHE_NOHASHDIR = 1

# Tests that run the command hundreds of times: too long under a sanitizer. The tiny runs of scan and
# rewrite, bug_cases, differential_small and kill_small stand for them under ASan.
LAYOUT_COMMANDS = layout_(report|plan|advise|upkeep)|rewrite_(tree|dry_run)
MANY_COMMANDS = (scan|ranges|rewrite|rewrite_faults|writer)_small|(cli|scan)_cases|$(LAYOUT_COMMANDS)
# Under TSan the tiny run of scan alone: the others, and byte flips, add no threads to what the rooms' and
# the engine's tests run. A rewrite's threads share Arrow's schemas, whose cached fingerprints TSan
# cannot see guarded inside the wheel: layout_rewrite_test and write_file_test stand for it.
ONE_THREAD_TESTS = $(MANY_COMMANDS)|rewrite_tiny|bug_cases|differential_small|kill_small|Damage|FlippedByte

.PHONY: help setup build dev test test-slow demo asan tsan coverage fuzz bench install clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## install what building and testing need (apt, .venv)
	tools/setup.sh build test

build:  ## build the command, build/release/grebe
	tools/setup.sh build
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target grebe_cli

test: setup  ## build all and run every test that is not slow
	cmake --preset release
	cmake --build build/release -j $(JOBS)
	$(CTEST) --test-dir build/release -LE slow $(CTEST_ARGS)

test-slow: setup  ## build all and run the slow tests
	cmake --preset release
	cmake --build build/release -j $(JOBS)
	$(CTEST) --test-dir build/release -L slow $(CTEST_ARGS)

demo: build  ## make a lake of 1,000,000 rows, index it, look one key up
	.venv/bin/python tools/demo.py $(DEMO_ARGS)

dev: setup  ## build all with little optimisation, in build/dev
	cmake --preset dev
	cmake --build build/dev -j $(JOBS)

asan: setup  ## the fast tests under AddressSanitizer and UBSan
	cmake --preset asan-ubsan
	cmake --build build/asan-ubsan -j $(JOBS)
	$(SANITIZED) $(CTEST) --test-dir build/asan-ubsan -L fast -E '$(MANY_COMMANDS)' $(CTEST_ARGS)

tsan: setup  ## the fast tests under ThreadSanitizer
	cmake --preset tsan
	cmake --build build/tsan -j $(JOBS)
	$(SANITIZED) $(CTEST) --test-dir build/tsan -L fast -E '$(ONE_THREAD_TESTS)' $(CTEST_ARGS)

coverage: setup  ## line coverage of the fast tests
	cmake --preset coverage
	cmake --build build/coverage -j $(JOBS)
	$(CTEST) --test-dir build/coverage -L fast $(CTEST_ARGS)
	tools/coverage.py build/coverage

fuzz:  ## each fuzz program for FUZZ_SECONDS (60) seconds
	tools/setup.sh build fuzz
	cmake --preset fuzz
	cmake --build build/fuzz -j $(JOBS) --target grebe_fuzz
	fuzz/run.sh $(FUZZ_SECONDS)

bench:  ## compare lookups with the peers, local and on S3 (BENCH_ARGS="--tiny" for a taste)
	tools/setup.sh build test bench
	cmake --preset release
	cmake --build build/release -j $(JOBS)
	.venv/bin/python bench/run.py $(BENCH_ARGS)

install: build  ## install command, library, headers and CMake package under PREFIX
	cmake --build build/release -j $(JOBS) --target grebe
	cmake --install build/release --prefix $(PREFIX)

clean:  ## remove build/ (the .venv stays)
	rm -rf build
