#!/usr/bin/env bash
# thalweg on real MPI ranks, under the mpiexec that `make peers` installs: what `make mpi PROFILE=release` built.
#
#   run.sh RANKS [ARGUMENT..]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
(($# >= 2)) && [[ $1 =~ ^[0-9]+$ ]] || die "run.sh RANKS [ARGUMENT..]"
program=$root/target/mpi/release/thalweg
[[ -x $program ]] || die "$program is not built: make mpi PROFILE=release"
exec "$root/.venv/bin/mpiexec" -n "$1" "$program" "${@:2}"
