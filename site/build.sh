#!/usr/bin/env bash
# The pages in target/site/html, from the repository root, out of this folder and the wheel that `crates/thalweg-python/build.sh pack`
# leaves in target/python/wheels. Notebooks run with that wheel. Python 3.11 or newer.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/target/site
venv=$out/venv

pip() { .venv/bin/python -m pip --disable-pip-version-check --python "$venv" install --quiet --no-deps "$@"; }

if ! cmp --quiet site/requirements.txt "$venv/requirements.txt"; then
    rm -rf "$venv"
    python3 -m venv --without-pip "$venv"
    pip --require-hashes --only-binary :all: --requirement site/requirements.txt
    cp site/requirements.txt "$venv/"
fi
pip --force-reinstall target/python/wheels/*.whl

# Nothing but what was installed here.
unset PYTHONPATH THALWEG
export PATH=$venv/bin:$PATH
export NO_MKDOCS_2_WARNING=1 IPYTHONDIR=$out/ipython JUPYTER_RUNTIME_DIR=$out/jupyter
rm -rf "$out/notebooks" "$out/html"
python site/run_notebooks.py "$out/notebooks"
mkdocs build --quiet --strict --config-file site/mkdocs.yml
echo "$out/html/index.html"
