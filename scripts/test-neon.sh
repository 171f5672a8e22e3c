#!/bin/sh
# Runs the codec tests for 64-bit ARM under emulation, so that the NEON kernels are tested on x86-64 machines too.
#
#   scripts/test-neon.sh [test arguments]
#
# Debian 12 or newer. As root it installs what it needs: Debian's own Rust with the standard library for arm64, a C
# cross compiler (zstd, libdeflate) and QEMU. These lie in /usr/bin, beside any Rust from rustup.
set -eu
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu

if [ ! -d "/usr/lib/rustlib/$target" ] || ! command -v qemu-aarch64 aarch64-linux-gnu-gcc >/dev/null; then
    if [ "$(id -u)" -ne 0 ]; then
        echo "Standard library for $target, qemu-aarch64 or aarch64-linux-gnu-gcc is missing; root would install them." >&2
        exit 1
    fi
    dpkg --add-architecture arm64
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        rustc-web cargo-web libstd-rust-web-dev:arm64 gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
fi

# QEMU gets no -L: the arm64 C library that comes with the standard library is installed for good. With the cross
# compiler's copy as prefix, the loader of one is mixed with the libc of the other, and creating a thread hangs.
export PATH="/usr/bin:$PATH" RUSTC=/usr/bin/rustc
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/neon"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
# Fewer property-test cases than natively: each instruction costs ten or more.
export PROPTEST_CASES="${PROPTEST_CASES:-128}"
exec /usr/bin/cargo test --target "$target" -p thalweg-codec "$@"
