# Two commands matter: `make bench` measures, `make test` checks. Both set up what they need first, are quick when
# there is nothing to do, and keep everything inside this folder, but for system packages (as root, on Debian-like
# machines; elsewhere they say what to install).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
# The peers and the tests look for the binaries here.
export CARGO_TARGET_DIR := $(CURDIR)/target
# .ci/cmake puts a newer cmake there where the system's is too old for libhdf5.
export PATH := $(CURDIR)/target/cmake/bin:$(PATH)
# What `make bench` hands to `thalweg bench`: make bench ARGS="--help"
ARGS ?=
PYTEST_ARGS ?=
ATTACK ?=

.PHONY: help bench build wheel python c peers rocksdb basalt rust-readers mountpoint remote test tests fmt links clippy doc docs unit unit-it unit-tests unit-src deny package interop interop-tests attack kills schedules faults servers posix recipes without-libhdf5 mpi test-neon system clean garage

help:
	@echo 'make bench   build thalweg and its peers, and measure them on this machine (ARGS="..." for options)'
	@echo 'make test    formatting, lints, unit tests, dependency policy, interop tests with slow5lib and pyslow5'
	@echo 'make test-neon  the codec tests on emulated ARM'
	@echo 'make kills   kill -9 the program 1,000 times and more while it changes stores of networks'
	@echo 'make attack  every verb on 6,000 mutants of small files of every format (ATTACK="--runs 20000 --seed 2"; goes on where it stopped)'
	@echo 'make schedules  tests of threads under many interleavings: the engine, windows of arrays, changes of networks (SCHEDULES=10000)'
	@echo 'make faults  reads of objects from a server that fails, over 10,000 seeds (FAULTS=300; FAULT_SEED=7 for one)'
	@echo 'make posix   pjdfstest and fsx on a mount, as root, with the failures that are expected in tests/posix/exceptions.txt'
	@echo 'make recipes  workflows of Snakemake and Nextflow in a work folder on a mount'
	@echo 'make servers  install versitygw, moto, fake-gcs-server and Azurite, servers of objects that tests start where they are there'
	@echo 'make garage  install Garage, another server of the protocol of S3; takes ten minutes'
	@echo 'make without-libhdf5  build and test the command without libhdf5'
	@echo 'make mpi     build target/mpi/dev/thalweg, whose ranks read together under mpiexec (PROFILE=release: target/mpi/release)'
	@echo 'make package build each crate from the files that its package holds; takes as long as a whole build'
	@echo 'make wheel   build the Python package into target/wheels'
	@echo 'make c       test the C interface'
	@echo 'make docs    run the notebooks of site/ and build its pages into target/site/html'
	@echo 'make peers   build the peers into target/peers and .venv'
	@echo 'make rocksdb, make basalt   these peers, which make peers leaves out: Maven fetches 90 MB for each'
	@echo 'make rust-readers   the peers rust-hdf5 and hdf5-reader, which take minutes to compile'
	@echo 'make mountpoint   Mountpoint for S3, a peer of mounts, which takes minutes to compile; needs libfuse3-dev'
	@echo 'make remote   the server and the peers of the suite `remote`; ros3 comes with python3-h5py of Debian, and s3fs with s3fs'
	@echo 'make clean   remove target and .venv'

bench: build
	@$(MAKE) peers || echo 'peers: going on without those that were not built; the report leaves them out' >&2
	target/release/thalweg bench $(ARGS)

build: system
	cargo build --release --locked --package thalweg-cli

peers: system
	@peers/build.sh all

rocksdb basalt: system
	@peers/build.sh python $@

rust-readers mountpoint remote:
	@peers/build.sh $@

# One after the other, cheapest first, for cargo uses all cores; fetching and unpacking the peers does not. Advisories
# appear without a change of ours, and come from another host than packages: `make deny` checks them, too. The tests run side by
# side: each is alone on its core for its last seconds, and many wait for discs or throttles. The command is linked again after
# `make mpi`, which leaves the one of MPI in its place.
test:
	@$(MAKE) system
	@$(MAKE) fmt links
	@$(MAKE) --jobs=2 tests peers
	@$(MAKE) deny ADVISORIES=skip
	@$(MAKE) mpi
	@$(MAKE) tests
	@$(MAKE) python
	@$(MAKE) c
	@$(MAKE) --jobs=4 --output-sync=line unit-it unit-tests unit-src interop-tests

# What builds for tests alone also checks lints. `make schedules` has features whose code is not linted.
test unit interop python docs c attack kills faults: export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/scripts/rustc-clippy

# With --all-targets, examples would be tests, and no programs that a test can run.
tests:
	cargo test --workspace --locked --no-run
	cargo test --workspace --locked --no-run --bench '*'

fmt:
	cargo fmt --all --check

# Of all crates, without compiling them.
clippy:
	cargo clippy --workspace --all-targets --locked -- -D warnings

# Links of the pages that lead nowhere are errors.
links:
	scripts/check-links.py

# Links between items that lead nowhere are errors. Not a part of `make test`, for it checks all dependencies once more.
doc: links
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# More threads than cores: some tests wait for the disc or for other processes. For the same reason the tests in tests/ run
# beside those in src/.
unit: tests
	@$(MAKE) --jobs=3 unit-it unit-tests unit-src

# The programs called `it` beside the others, which mostly wait.
TEST_ALL = $(if $(CI),ulimit -c unlimited;) \
	cargo test --workspace --locked --test $(1) -- --test-threads=$$(($$(nproc) * 3 / 2)) $(if $(CI),|| { .ci/backtraces; false; })

unit-it:
	$(call TEST_ALL,it)

unit-tests:
	$(call TEST_ALL,'[!i]*')

unit-src:
	cargo test --workspace --locked --lib --bins
	# rustdoc's compilers would look for make's jobserver, which only a recursive make gets, and warn.
	MAKEFLAGS= cargo test --workspace --locked --doc

# The Python package: target/wheels. `make python` packs one out of what was compiled for tests, and tests it.
wheel: system
	@peers/build.sh python
	crates/thalweg-python/build.sh wheel

python:
	@peers/build.sh python
	crates/thalweg-python/build.sh test --quiet

# The pages for users: target/site/html. `make test` runs the code of the pages, but not the notebooks.
docs: system
	@peers/build.sh python
	crates/thalweg-python/build.sh pack
	site/build.sh

# The C interface: programs in C and ctypes, on the library that was compiled for tests.
c:
	@peers/build.sh python
	cargo build --locked --workspace --lib --bins --tests
	.venv/bin/python -m pytest crates/thalweg-c/tests --quiet

deny:
	@peers/build.sh python
	.ci/deny

# Packages hold less than the checkout: only files of the crate's own folder, and no dependency without a version. Not a part of
# `make test`, for cargo builds all dependencies again, in target/package.
package:
	cargo package --workspace --exclude thalweg-testing --exclude thalweg-python --exclude thalweg-c --locked

# With the tests, though only the command is needed: without them features differ, and arrow and all above is built anew.
interop:
	@$(MAKE) peers
	@$(MAKE) mpi
	cargo build --locked --workspace --bins --tests
	@$(MAKE) interop-tests

# More of them than cores: they wait for discs and throttles, too.
interop-tests:
	.venv/bin/python -m pytest tests/interop --numprocesses=$$(($$(nproc) * 3 / 2)) $(PYTEST_ARGS)

# Mutants of every format, every verb, and what must hold for each run; `make interop` does 100 of these. What it finds is kept in
# target/attack.
attack:
	@peers/build.sh python
	cargo build --locked --workspace --bins --tests
	.venv/bin/python tests/interop/attack $(ATTACK)

# The program is killed while it changes stores, about 1,000 times out of 2,000; `make interop` tries 40 times.
kills:
	@peers/build.sh python
	cargo build --locked --workspace --bins --tests
	KILLS=2000 .venv/bin/python -m pytest tests/interop/test_graph_kill.py -s

# The threads of these tests take turns as a seeded scheduler says. It finds deadlocks, too. SCHEDULES=10000 tries more than 200 of
# each kind. Without the command: it would replace the one that other tests run.
schedules: system
	cargo test --locked --package thalweg-io --package thalweg-hdf5 --package thalweg --features thalweg/schedules --lib --test it \
		-- schedules

# One in twenty requests is refused, one in a hundred torn, one object in a hundred replaced; make unit tries 300 seeds.
FAULTS ?= 10000
faults: system
	FAULTS=$(FAULTS) cargo test --locked --package thalweg-object --test faults -- --nocapture

# Not a part of `make test`, for compiling versitygw takes long. Its tests run where it is there.
servers:
	scripts/servers.sh

# Apart from the other servers, for it takes as long to compile as this project.
garage:
	cargo install --locked --root target/servers --no-default-features --features bundled-libs,sqlite garage@2.5.0

RECIPES := $(CARGO_TARGET_DIR)/recipes

# Workflows whose work folder is on a mount.
recipes: build servers
	[[ -x $(RECIPES)/bin/snakemake ]] || python3 -m venv --clear $(RECIPES)
	$(RECIPES)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/recipes/requirements.txt
	@rm -rf $(RECIPES)/nextflow
	@command -v java >/dev/null && TERM=dumb mvn --quiet --batch-mode --strict-checksums --file tests/recipes/nextflow.xml \
		dependency:copy-dependencies -DoutputDirectory=$(RECIPES)/nextflow || \
		echo 'recipes: Nextflow is left out: it comes by Maven, and runs on Java' >&2
	tests/recipes/run.py $(RECIPES)/bin/snakemake $(RECIPES)/nextflow target/servers/bin/versitygw target/release/thalweg

# As root. Both suites are programs of crates.io.
posix: build servers
	cargo install --locked --root $(CARGO_TARGET_DIR)/posix pjdfstest@0.2.2
	cargo install --locked --root $(CARGO_TARGET_DIR)/posix fsx@0.3.2
	tests/posix/run.py target/posix/bin/pjdfstest target/posix/bin/fsx target/servers/bin/versitygw target/release/thalweg

APART := $(CARGO_TARGET_DIR)/without-libhdf5

# Without libhdf5, the command reads all formats. Apart from the other builds, whose features differ. The tests leave out repacking
# then.
without-libhdf5: system
	@peers/build.sh python
	cargo clippy --package thalweg-cli --no-default-features --all-targets --locked --target-dir $(APART) -- -D warnings
	cargo test --package thalweg-cli --no-default-features --locked --target-dir $(APART)
	THALWEG_BIN=$(APART)/debug/thalweg WITHOUT_LIBHDF5=1 .venv/bin/python -m pytest tests/interop/test_arrays.py \
		tests/interop/test_tables.py --numprocesses=$$(nproc)

# With an MPI of the machine's where there is one (MPICC=mpicc, and a release build: PROFILE=release), else with the one from
# peers/requirements.txt. One test is built too: without any, features differ.
MPICC ?= $(CURDIR)/.venv/bin/mpicc
PROFILE ?= dev
mpi: system
	@peers/build.sh python
	MPICC=$(MPICC) LIBCLANG_PATH="$${LIBCLANG_PATH:-$$(echo $(CURDIR)/.venv/lib/python3*/site-packages/clang/native)}" \
		BINDGEN_EXTRA_CLANG_ARGS="-I$$(cc -print-file-name=include)" \
		cargo build --locked --workspace --bins --test verdict --features thalweg-cli/mpi --profile $(PROFILE)
	@mkdir -p target/mpi/$(PROFILE) && cp target/$(subst dev,debug,$(PROFILE))/thalweg target/mpi/$(PROFILE)/thalweg

# The ARM kernels, compiled for real and run in an emulator. Takes minutes, and installs a cross toolchain as root.
test-neon:
	scripts/test-neon.sh

system:
	@.ci/system-packages
	@.ci/cmake

clean:
	rm -rf target .venv
