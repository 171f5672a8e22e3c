#!/usr/bin/env bash
# Writes the lists of Python packages with the hashes of all their files: peers/requirements.txt out of requirements.in, and the
# shorter ones out of the versions that they name. Needs uv (https://docs.astral.sh/uv/) and the network.
set -euo pipefail
cd "$(dirname "$0")/.."

# pins [PYTHON] < VERSIONS : the same with hashes, for all machines and all Pythons from PYTHON (3.10) on.
pins() {
    uv pip compile --quiet --no-deps --universal --python-version "${1:-3.10}" --generate-hashes --no-annotate --no-header -
}

{
    echo "# Made out of requirements.in by scripts/pin-hashes.sh."
    pins <peers/requirements.in
} >target/requirements.txt
mv target/requirements.txt peers/requirements.txt
for list in peers/build.txt peers/apart.txt peers/writers.txt peers/remote/requirements.txt peers/basalt/build.txt .ci/cmake.txt \
    crates/thalweg-python/tools.txt crates/thalweg-python/libraries.txt site/requirements.txt; do
    python=3.10
    case $list in peers/writers.txt | peers/remote/requirements.txt | */libraries.txt | site/requirements.txt) python=3.11 ;; esac
    { sed -n '/^#/p' "$list"; sed -nE 's/^([a-z0-9.-]+==[^\\]+).*/\1/p' "$list" | pins $python; } >target/pins.txt
    mv target/pins.txt "$list"
done
