#!/usr/bin/env bash
# Makes .venv for the Python peers and the interop tests, from the repository root, and .venv/writers for libraries that
# write HDF5. pyslow5 is built from its source package with zstd switched on, against the same libzstd that slow5_peer
# uses; the others come as they are published. Quick when nothing has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

zstd=$PWD/target/peers/zstd
key=$({ python3 --version; cat target/peers/zstd.key peers/{build,requirements,apart,writers,slow5lib/source}.txt "$0"; } | sha256sum)
[[ -e .venv/complete && $(cat .venv/complete) == "$key" ]] && exit

rm -f .venv/complete
[[ -x .venv/bin/python ]] || python3 -m venv .venv
# Nothing comes in without a hash: what is built here is built by what build.txt names, not by what pip would fetch for it.
install() { .venv/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes --no-build-isolation "$@"; }
install --requirement peers/build.txt
install --requirement peers/requirements.txt
# no cache: a wheel that was built earlier without zstd must not be reused
PYSLOW5_ZSTD=1 CFLAGS="-I$zstd/include" LDFLAGS="-L$zstd/lib" install --no-cache-dir --no-binary pyslow5 --force-reinstall \
    --requirement peers/slow5lib/source.txt
rm -rf .venv/apart
install --target .venv/apart --requirement peers/apart.txt
# These want other versions of what the peers want, so they have a Python of their own.
rm -rf .venv/writers
if .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    python3 -m venv --without-pip .venv/writers
    .venv/bin/python -m pip --disable-pip-version-check --python .venv/writers install --quiet --no-deps --no-compile \
        --require-hashes --only-binary :all: --requirement peers/writers.txt
fi
.venv/bin/python -m pip --disable-pip-version-check check >&2
.venv/bin/python -c 'import pyslow5, pod5, escapepod, h5py, vbz_h5py_plugin, blue_crab.blue_crab, mpi4py.MPI'
.venv/bin/python -c 'import sys; sys.version_info < (3, 11) or __import__("pyfive")'
echo "$key" >.venv/complete
