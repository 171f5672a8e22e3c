#!/usr/bin/env bash
# The Python package, from the repository root, where `peers/build.sh python` has made .venv:
#   crates/thalweg-python/build.sh wheel    target/wheels/thalweg-*.whl, optimised
#   crates/thalweg-python/build.sh test     a wheel of what `make test` has compiled, installed into a clean environment, and its tests
#   crates/thalweg-python/build.sh pack     that wheel alone, in target/python/wheels
#   crates/thalweg-python/build.sh libraries   the libraries that the package works with, in target/python/libraries
set -euo pipefail
cd "$(dirname "$0")/../.."

package=crates/thalweg-python
tools=target/python/tools
libraries=$PWD/target/python/libraries

pip() { .venv/bin/python -m pip --disable-pip-version-check --python "$1" install --quiet "${@:2}"; }

tools() {
    cmp --quiet $package/tools.txt $tools/tools.txt && return
    rm -rf $tools
    python3 -m venv --without-pip $tools
    pip $tools --no-deps --require-hashes --only-binary :all: --requirement $package/tools.txt
    cp $package/tools.txt $tools/
}

# The libraries that the package works with. They stay apart from .venv, where the peers must be as they are measured.
libraries() {
    cmp --quiet $package/libraries.txt $libraries/libraries.txt && return
    rm -rf $libraries
    .venv/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes --only-binary :all: \
        --target $libraries --requirement $package/libraries.txt
    cp $package/libraries.txt $libraries/
}

# command_of PROFILE DATA : the command, as what a wheel installs beside Python's own programs
command_of() {
    mkdir -p "$2/scripts"
    cp "${CARGO_TARGET_DIR:-target}/$1/thalweg" "$2/scripts/"
}

# pack FOLDER : a wheel, alone in the folder, of the library that cargo built with all others. maturin would compile all crates again,
# for it selects other features.
pack() {
    local wheel=$1/unpacked
    rm -rf "$1"
    # maturin looks for the folder of the command, which is empty here.
    mkdir -p "$wheel" $package/thalweg.data
    cargo build --locked --workspace --lib --bins --tests
    $tools/bin/maturin pep517 write-dist-info --manifest-path $package/Cargo.toml --metadata-directory "$wheel" >&2
    cp -r $package/python/thalweg "$wheel/"
    cp "${CARGO_TARGET_DIR:-target}/debug/lib_thalweg.so" "$wheel/thalweg/_thalweg.abi3.so"
    local info=("$wheel"/thalweg-*.dist-info)
    command_of debug "${info[0]%.dist-info}.data"
    $tools/bin/python -m wheel pack "$wheel" --dest-dir "$1" >&2
}

case ${1:-} in
    wheel)
        tools
        rm -rf target/wheels
        cargo build --release --locked --package thalweg-cli
        command_of release $package/thalweg.data
        $tools/bin/maturin build --release --quiet --locked --manifest-path $package/Cargo.toml --out target/wheels
        ls target/wheels/*.whl
        ;;
    test)
        tools
        libraries
        pack target/python/wheels
        site=$PWD/target/python/site
        rm -rf target/python/venv "$site"
        # Nothing but numpy is there.
        python3 -m venv --without-pip target/python/venv
        awk '/==/ { is_numpy = /^numpy==/ } is_numpy' peers/build.txt >target/python/numpy.txt
        pip target/python/venv --no-deps --require-hashes --only-binary :all: --requirement target/python/numpy.txt
        pip target/python/venv --no-deps target/python/wheels/*.whl
        target/python/venv/bin/python -I -c 'import thalweg; print("import", thalweg.__file__)'
        target/python/venv/bin/thalweg --version
        # The libraries that it is compared with are in .venv.
        pip .venv --no-deps --target "$site" target/python/wheels/*.whl
        export PYTHONPATH=$site:$libraries
        $tools/bin/mypy --python-executable .venv/bin/python --config-file $package/mypy.ini "$site/thalweg"
        $tools/bin/basedpyright --project $package/pyrightconfig.json --pythonpath .venv/bin/python
        .venv/bin/python -m pytest $package/tests "${@:2}"
        ;;
    pack)
        tools
        pack target/python/wheels
        ;;
    libraries)
        libraries
        ;;
    *)
        sed -n '2,6s/^# //p' "$0" >&2
        exit 2
        ;;
esac
