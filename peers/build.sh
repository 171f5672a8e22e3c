#!/usr/bin/env bash
# Builds the C peers and the libraries they stand on into target/peers, from the repository root:
#   peers/build.sh zstd       libzstd.a from the C sources that the crate zstd-sys carries
#   peers/build.sh slow5lib   slow5_peer and slow5_reference, with slow5lib from the pyslow5 source package
#   peers/build.sh cat        cat_peer and raw_peer
#   peers/build.sh python     .venv with the Python peers
#   peers/build.sh pod5       pod5_peer, on the library inside .venv's lib_pod5
#   peers/build.sh lmdb       lmdb_peer, with LMDB from the source package of its Python binding
#   peers/build.sh all        all of these; goes on after a failure and reports it
#   peers/build.sh rocksdb    rocksdb_peer, on the library inside RocksDB's Java package (90 MB, fetched by Maven)
#   peers/build.sh rust-readers   rust_hdf5_peer and hdf5_reader_peer, readers of HDF5 in Rust
#   peers/build.sh mountpoint     mountpoint_peer: Mountpoint for S3, with a small command of ours (minutes)
#   peers/build.sh thalweg-python   the Python package of thalweg, as `make wheel` has packed it
#   peers/build.sh remote     .venv/remote with the Python peers for object stores, and the server and raw clients in target/release
#   peers/build.sh basalt     basalt_peer, basalt's own C++ library on an older RocksDB that came the same way
# Each part is skipped when its inputs (sources, versions, compiler, flags) are unchanged.
set -euo pipefail
cd "$(dirname "$0")/.."

out=target/peers
cc=${CC:-cc}
python=${PYTHON:-.venv/bin/python}
flags="-O3 -std=c11"
jobs=$(nproc)
mkdir -p "$out"

say() { printf 'peers: %s\n' "$*" >&2; }

# up_to_date PART KEY: true when PART was last built with this KEY.
up_to_date() { [[ -e $out/$1.key && $(cat "$out/$1.key") == "$2" ]]; }

# key PART FILE... : one hash over the compiler, its flags, how the part is built, and the files.
key() {
    local part=$1
    shift
    {
        "$cc" --version | head -n 1
        echo "$cc $flags ${extra:-}"
        declare -f compile "build_$part"
        sha256sum "$@"
    } | sha256sum | cut -d' ' -f1
}

# compile OBJECT_FOLDER FLAGS... -- SOURCE... : one object a source, in parallel.
compile() {
    local folder=$1; shift
    local options=()
    while [[ $1 != -- ]]; do options+=("$1"); shift; done
    shift
    rm -rf "$folder"
    mkdir -p "$folder"
    # shellcheck disable=SC2016 # $0 and the rest belong to the inner shell
    printf '%s\0' "$@" |
        xargs -0 -P "$jobs" -I{} bash -c 'source=$0; folder=$1; shift; exec "$@" -c "$source" -o "$folder/$(basename "$source").o"' \
            {} "$folder" "$cc" "${options[@]}"
}

zstd_version() { sed -n 2p "$out/zstd.source"; }

build_zstd() {
    cargo metadata --locked --format-version 1 --quiet | python3 peers/zstd_source.py >"$out/zstd.source"
    local sources key
    sources=$(sed -n 1p "$out/zstd.source")
    key=$(key zstd "$sources/zstd.h" "$sources/decompress/zstd_decompress.c" "$sources/compress/zstd_compress.c")
    up_to_date zstd "$key" && return
    say "building libzstd from $(zstd_version)"
    local files=("$sources"/common/*.c "$sources"/compress/*.c "$sources"/decompress/*.c) defines=(-DZSTD_LIB_DEPRECATED=0)
    # the one assembler file is for x86-64; xxhash is inlined, as zstd-sys does it
    case $(uname -m) in
        x86_64) files+=("$sources/decompress/huf_decompress_amd64.S") ;;
        *) defines+=(-DZSTD_DISABLE_ASM) ;;
    esac
    local kept=()
    for file in "${files[@]}"; do [[ $file == */xxhash.c ]] || kept+=("$file"); done
    # position-independent, for pyslow5 links it too
    compile "$out/zstd/objects" -O3 -fPIC -w -DXXH_PRIVATE_API= "${defines[@]}" -I"$sources" -I"$sources/common" -- "${kept[@]}"
    mkdir -p "$out/zstd/lib" "$out/zstd/include"
    rm -f "$out/zstd/lib/libzstd.a"
    ar rcs "$out/zstd/lib/libzstd.a" "$out"/zstd/objects/*.o
    cp "$sources/zstd.h" "$sources/zstd_errors.h" "$out/zstd/include/"
    echo "$key" >"$out/zstd.key"
}

# Downloads the pinned source package once and unpacks it.
fetch_slow5lib() {
    local pin
    pin=$(sed -n 's/.*sha256://p' peers/slow5lib/source.txt)
    [[ -e $out/slow5lib/source.sha256 && $(cat "$out/slow5lib/source.sha256") == "$pin" ]] && return
    say "fetching the slow5lib sources"
    rm -rf "$out/slow5lib/package" "$out/slow5lib/source"
    mkdir -p "$out/slow5lib/package" "$out/slow5lib/source"
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-binary pyslow5 \
        --require-hashes --dest "$out/slow5lib/package" --requirement peers/slow5lib/source.txt
    tar -xzf "$out"/slow5lib/package/pyslow5-*.tar.gz -C "$out/slow5lib/source" --strip-components 1
    echo "$pin" >"$out/slow5lib/source.sha256"
}

build_slow5lib() {
    build_zstd
    fetch_slow5lib
    local simd
    case $(uname -m) in
        x86_64) simd="-DSTREAMVBYTE_SSSE3=1 -mssse3" ;;
        aarch64) simd="-D__ARM_NEON__" ;;
        armv7l) simd="-mfpu=neon" ;;
        *) simd="" ;;
    esac
    local lib_flags="-DSLOW5_USE_ZSTD=1 -DSLOW5_ENABLE_MT=1 $simd"
    local source=$out/slow5lib/source key
    key=$(extra="$lib_flags $(cat "$out/zstd.key")" key slow5lib peers/slow5lib/*.c peers/common/*.[ch] peers/slow5lib/source.txt)
    up_to_date slow5lib "$key" && return
    # what was built from other inputs must not be measured, should this build fail
    rm -f "$out"/slow5_{peer,tools,reference}
    say "building slow5lib and its programs with $("$cc" --version | head -n 1)"
    local version
    version=$(sed -n 's/^pyslow5==\([0-9.]*\).*/\1/p' peers/slow5lib/source.txt)
    local include=$out/slow5lib/include
    mkdir -p "$include"
    cat >"$include/build_info.h" <<EOF
#define SLOW5LIB_VERSION "$version"
#define BUILD_COMPILER "$("$cc" --version | head -n 1 | tr -d '\\"')"
#define BUILD_FLAGS "$flags -fopenmp $lib_flags"
#define BUILD_ZSTD_SOURCE "$(zstd_version)"
#define BUILD_SOURCE_SHA256 "$(cat "$out/slow5lib/source.sha256")"
EOF
    # shellcheck disable=SC2206 # flags are words
    local lib=($flags $lib_flags)
    local svb=$source/thirdparty/streamvbyte
    compile "$out/slow5lib/objects" "${lib[@]}" -w -I"$source/include" -I"$svb/include" -I"$out/zstd/include" -- \
        "$source"/src/*.c "$svb"/src/streamvbyte_{zigzag,decode,encode}.c
    rm -f "$out/slow5lib/libslow5.a"
    ar rcs "$out/slow5lib/libslow5.a" "$out"/slow5lib/objects/*.o
    # shellcheck disable=SC2206 # flags are words
    local ours=($flags -fopenmp -Wall -Wextra -Wpedantic -Wno-unused-function -Ipeers/common -I"$include" -isystem "$source/include" -isystem "$out/zstd/include")
    local link=("$out/slow5lib/libslow5.a" "$out/zstd/lib/libzstd.a" -lz -lm -lpthread)
    "$cc" "${ours[@]}" peers/slow5lib/slow5_peer.c peers/common/{peer,digest}.c "${link[@]}" -o "$out/slow5_peer"
    "$cc" "${ours[@]}" peers/slow5lib/slow5_tools.c peers/common/peer.c "${link[@]}" -o "$out/slow5_tools"
    "$cc" "${ours[@]}" peers/slow5lib/slow5_reference.c peers/common/peer.c "${link[@]}" -o "$out/slow5_reference"
    echo "$key" >"$out/slow5lib.key"
}

build_cat() {
    local key
    key=$(key cat peers/cat/*.c peers/common/peer.[ch])
    up_to_date cat "$key" && return
    rm -f "$out"/{cat,raw}_peer
    say "building cat_peer and raw_peer"
    for reader in cat raw; do
        # shellcheck disable=SC2086 # flags are words; atomics are of C11
        "$cc" $flags -std=c11 -Wall -Wextra -Ipeers/common "peers/cat/${reader}_peer.c" peers/common/peer.c \
            -o "$out/${reader}_peer" -lpthread
    done
    echo "$key" >"$out/cat.key"
}

# The library is a Python module, and exports the C API beside it. No line of Python is run, so whatever it wants of the
# interpreter is given an address and nothing else.
build_pod5() {
    build_python
    local library version key
    library=$("$python" -c 'import importlib.util as u; print(u.find_spec("lib_pod5.pod5_format_pybind").origin)')
    version=$("$python" -c 'import importlib.metadata as m; print(m.version("lib_pod5"))')
    key=$(extra="$library $version" key pod5 peers/pod5/*.[ch] peers/common/*.[ch] "$library")
    up_to_date pod5 "$key" && return
    rm -f "$out/pod5_peer"
    say "building pod5_peer on lib_pod5 $version"
    mkdir -p "$out/pod5"
    cat >"$out/pod5/build_info.h" <<EOF
#define POD5_VERSION "$version"
#define BUILD_COMPILER "$("$cc" --version | head -n 1 | tr -d '\\"')"
#define BUILD_FLAGS "$flags -fopenmp"
EOF
    nm -D --undefined-only "$library" | sed -nE 's/^ +U (_?Py[A-Za-z0-9_]*)$/char \1[64];/p' >"$out/pod5/interpreter.c"
    # shellcheck disable=SC2086 # flags are words
    "$cc" $flags -fopenmp -Wall -Wextra -Wpedantic -Ipeers/common -I"$out/pod5" peers/pod5/pod5_peer.c \
        peers/common/{peer,digest}.c -x c -fno-builtin -w "$out/pod5/interpreter.c" -x none \
        -L"$(dirname "$library")" -l:"$(basename "$library")" \
        -Wl,-rpath,"\$ORIGIN/$(realpath --relative-to "$out" "$(dirname "$library")")" -lm -o "$out/pod5_peer"
    echo "$key" >"$out/pod5.key"
}

# launcher NAME: a program that runs a Python peer whose native part was built, so that without that part there is none.
launcher() {
    printf '#!/bin/sh\nroot=$(dirname "$(realpath "$0")")/../..\nexec "$root/.venv/bin/python" "$root/peers/%s/peer.py" "$@"\n' \
        "$1" >"$out/$1_peer"
    chmod +x "$out/$1_peer"
}

build_lmdb() {
    local key
    key=$(extra="$(declare -f launcher)" key lmdb peers/lmdb/* peers/common/graph_store.h)
    up_to_date lmdb "$key" && return
    rm -rf "$out"/lmdb{_peer,}
    mkdir -p "$out/lmdb/source"
    say "fetching the LMDB sources"
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-binary lmdb \
        --require-hashes --dest "$out/lmdb/package" --requirement peers/lmdb/source.txt
    tar -xzf "$out"/lmdb/package/lmdb-*.tar.gz -C "$out/lmdb/source" --strip-components 1
    local lib=$out/lmdb/source/lib
    # shellcheck disable=SC2086 # flags are words
    "$cc" $flags -std=gnu99 -fPIC -shared -Wall -Wextra -Ipeers/common -isystem "$lib" peers/lmdb/lmdb_store.c \
        -w "$lib"/{mdb,midl}.c -lpthread -o "$out/lmdb/liblmdb_store.so"
    sed -nE 's/^#define MDB_VERSION_(MAJOR|MINOR|PATCH)[[:space:]]+([0-9]+).*/\2/p' "$lib/lmdb.h" | paste -sd. >"$out/lmdb/version"
    rm -rf "$out/lmdb/package" "$out/lmdb/source"
    launcher lmdb
    echo "$key" >"$out/lmdb.key"
}

# Peers for object stores want dozens of packages that nothing else needs.
build_remote() {
    build_python
    cargo build --release --locked --package thalweg-testing --bins
    local key tool
    # Without a tool, the trials of its arms fail, and the report says so.
    while read -r tool; do
        if ! command -v go >/dev/null; then
            say "${tool%@*} is left out: there is no Go"
        elif [[ ! -d $out/go/bin ]] || ! grep --quiet --line-regexp --fixed-strings "$tool" "$out/go/built" 2>/dev/null; then
            say "building $tool"
            GOBIN=$PWD/$out/go/bin go install "$tool"
            echo "$tool" >>"$out/go/built"
        fi
    done <peers/remote/go.txt
    key=$(key remote peers/remote/requirements.txt)
    up_to_date remote "$key" && return
    say "installing readers of object stores"
    rm -rf .venv/remote
    python3 -m venv --without-pip .venv/remote
    "$python" -m pip --disable-pip-version-check --python .venv/remote install --quiet --no-deps --require-hashes \
        --only-binary :all: --requirement peers/remote/requirements.txt
    echo "$key" >"$out/remote.key"
}

# fetch_rocksdb PART: the shared library inside the Java package that PART pins. `fetched` has its version and name.
fetch_rocksdb() {
    local artifact version pin library package folder=$PWD/$out/$1
    read -r artifact pin < <(sed -n '/^org/p' "peers/$1/source.txt")
    version=${artifact##*:}
    case $(uname -m) in
        x86_64) library=librocksdbjni-linux64.so ;;
        *) library=librocksdbjni-linux-$(uname -m).so ;;
    esac
    command -v mvn >/dev/null || { say "RocksDB comes by Maven, and there is no mvn"; return 1; }
    say "fetching RocksDB $version"
    TERM=dumb mvn --quiet --batch-mode -Dstyle.color=never dependency:copy -Dartifact="$artifact" -DoutputDirectory="$folder" >&2
    package=$folder/rocksdbjni-$version.jar
    echo "${pin#sha256:}  $package" | sha256sum --check --quiet
    "$python" -m zipfile --extract "$package" "$folder/package"
    cp "$folder/package/$library" "$folder/"
    rm -rf "$package" "$folder/package"
    echo "$version $library" >"$folder/fetched"
}

# RocksDB from source would take ten minutes, and the distribution's has its assertions switched on.
build_rocksdb() {
    local key
    key=$(extra="$(declare -f launcher fetch_rocksdb)" key rocksdb peers/rocksdb/* peers/common/graph_store.h)
    up_to_date rocksdb "$key" && return
    rm -rf "$out"/rocksdb{_peer,}
    mkdir -p "$out/rocksdb"
    fetch_rocksdb rocksdb
    local version library
    read -r version library <"$out/rocksdb/fetched"
    # shellcheck disable=SC2016,SC2086 # $ORIGIN is the loader's; flags are words
    "$cc" $flags -fPIC -shared -Wall -Wextra -Ipeers/common peers/rocksdb/rocksdb_store.c -L"$out/rocksdb" -l:"$library" \
        -Wl,-rpath,'$ORIGIN' -o "$out/rocksdb/librocksdb_store.so"
    echo "$version" >"$out/rocksdb/version"
    launcher rocksdb
    echo "$key" >"$out/rocksdb.key"
}

# basalt's C++ library, without its Python. It counts on headers that others no longer bring in, hence the -include.
build_basalt() {
    local key
    key=$(extra="$(declare -f launcher fetch_rocksdb)" key basalt peers/basalt/*.* peers/basalt/headers/* peers/common/graph_store.h)
    up_to_date basalt "$key" && return
    rm -rf "$out"/basalt{_peer,}
    mkdir -p "$out/basalt/gen/basalt" "$out/basalt/source"
    fetch_rocksdb basalt
    local version library headers source=$out/basalt/source abi=()
    read -r version library <"$out/basalt/fetched"
    headers=$(cargo metadata --locked --format-version 1 --manifest-path peers/basalt/headers/Cargo.toml |
        "$python" -c 'import json, os, sys; print(*[os.path.dirname(p["manifest_path"]) for p in json.load(sys.stdin)["packages"] if p["name"] == "librocksdb-sys"])')
    say "fetching the basalt sources"
    grep '^basalt' peers/basalt/source.txt >"$out/basalt/requirement.txt"
    # Its version comes from a tag, of which the package knows nothing. pip asks for it by the tool that the package names.
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
        --target "$out/basalt/tools" --requirement peers/basalt/build.txt
    SETUPTOOLS_SCM_PRETEND_VERSION=0.2.9 PYTHONPATH=$PWD/$out/basalt/tools "$python" -m pip download --quiet \
        --disable-pip-version-check --no-deps --no-build-isolation --no-binary basalt --require-hashes \
        --dest "$out/basalt/package" --requirement "$out/basalt/requirement.txt"
    tar -xzf "$out"/basalt/package/basalt-*.tar.gz -C "$source" --strip-components 1
    sed 's/@Basalt_VERSION_MAJOR@/0/; s/@Basalt_VERSION_MINOR@/2/; s/@Basalt_VERSION_PATCH@/9/' \
        "$source/src/basalt/version.hpp.in" >"$out/basalt/gen/basalt/version.hpp"
    sed 's/@Basalt_SERIALIZATION@/SSTREAM/' "$source/src/basalt/settings.hpp.in" >"$out/basalt/gen/basalt/settings.hpp"
    # some releases of RocksDB were built with the strings of old
    # (all of nm's lines are read: a pipe that ends early would be a failure of nm's)
    if [[ $(nm -D --defined-only "$out/basalt/$library" | grep -c '2DB4OpenE.*RKSs') -gt 0 ]]; then abi=(-D_GLIBCXX_USE_CXX11_ABI=0); fi
    local third=$source/src/third_party
    local options=(-O3 -DNDEBUG -std=c++17 -fPIC -w "${abi[@]}" -include cstdint -include limits -include sstream -include cstring
        -include sys/stat.h -include basalt/graph.hpp -Ipeers/common -I"$source/include" -I"$source/src" -I"$source/src/basalt"
        -I"$out/basalt/gen" -I"$out/basalt/gen/basalt" -isystem "$third/spdlog/include" -isystem "$third/gsl-lite/include"
        -isystem "$third/nlohmann/include" -isystem "$headers/rocksdb/include")
    local files=("$source"/src/basalt/*.cpp) kept=()
    for file in "${files[@]}"; do [[ $file == */system_macos.cpp ]] || kept+=("$file"); done
    say "building basalt on RocksDB $version"
    cc=${CXX:-c++} compile "$out/basalt/objects" "${options[@]}" -- "${kept[@]}" peers/basalt/basalt_store.cpp
    # shellcheck disable=SC2016 # $ORIGIN is the loader's
    "${CXX:-c++}" -shared "$out"/basalt/objects/*.o -L"$out/basalt" -l:"$library" -Wl,-rpath,'$ORIGIN' -lpthread \
        -o "$out/basalt/libbasalt_store.so"
    echo "basalt 0.2.9 on RocksDB $version" >"$out/basalt/version"
    rm -rf "$out"/basalt/{package,source,objects,gen,tools}
    launcher basalt
    echo "$key" >"$out/basalt.key"
}

# cargo knows what is up to date.
build_rust-readers() {
    cargo build --release --locked --manifest-path peers/rust_readers/Cargo.toml --target-dir "$out/rust_readers"
    cp "$out"/rust_readers/release/{rust_hdf5,hdf5_reader}_peer "$out"
}

# Bindings to its C libraries are made with libclang, which the Python packages bring.
build_mountpoint() {
    rm -f "$out/mountpoint_peer"
    local missing=() found
    if ! command -v cmake >/dev/null; then missing+=(cmake); fi
    if ! command -v pkg-config >/dev/null; then missing+=(pkg-config); fi
    if ! pkg-config --exists fuse3 2>/dev/null && ! pkg-config --exists fuse 2>/dev/null; then missing+=(libfuse3-dev); fi
    if ((${#missing[@]} > 0)); then
        say "mountpoint is left out; it needs (Debian names): ${missing[*]}"
        return 1
    fi
    build_python
    found=$(echo "$PWD"/.venv/lib/python3*/site-packages/clang/native)
    LIBCLANG_PATH=${LIBCLANG_PATH:-$found} BINDGEN_EXTRA_CLANG_ARGS="-I$("$cc" -print-file-name=include)" \
        cargo build --release --locked --manifest-path peers/mountpoint/Cargo.toml --target-dir "$out/mountpoint"
    launcher mountpoint
}

# The wheel of `make wheel`, and the libraries that the package works with.
build_thalweg-python() {
    build_python
    crates/thalweg-python/build.sh libraries
    rm -rf "$out/thalweg_python"
    "$python" -m pip --disable-pip-version-check install --quiet --no-deps --target "$out/thalweg_python" target/wheels/thalweg-*.whl
}

build_python() {
    build_zstd
    peers/setup_python.sh
}

# One process a part, so that a failure ends that part alone.
build_all() {
    local failed=()
    for part in zstd python slow5lib pod5 lmdb cat; do peers/build.sh "$part" || failed+=("$part"); done
    if ((${#failed[@]} > 0)); then
        say "NOT BUILT: ${failed[*]}"
        return 1
    fi
}

for part in "$@"; do
    case $part in
        zstd | python | slow5lib | pod5 | lmdb | cat | rocksdb | basalt | remote | all) "build_$part" ;;
        rust-readers | mountpoint | thalweg-python) "build_$part" ;;
        *) say "unknown part: $part (zstd, python, slow5lib, pod5, lmdb, cat, rocksdb, basalt, rust-readers, mountpoint, remote, thalweg-python, all)"; exit 2 ;;
    esac
done
