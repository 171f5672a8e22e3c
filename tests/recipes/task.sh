#!/usr/bin/env bash
# The steps of the wrapper `.command.run` that Nextflow writes for a task whose inputs are staged as links: no Nextflow is needed, and
# a work folder on the mount sees what Nextflow would do there.
# Usage: task.sh WORK NAME INPUT SCRIPT
set -euo pipefail
work=$1 name=$2 input=$3 script=$4
folder=$work/${name:0:2}/${name:2}
mkdir -p "$folder"
printf '#!/bin/bash -ue\n%s\n' "$script" > "$folder/.command.sh"
cd "$folder"
touch .command.begin
rm -f "$(basename "$input")"
ln -s "$input" "$(basename "$input")"
set +e
(
    # As Nextflow does, what the task prints is shown and kept.
    set -o pipefail
    { bash -ue .command.sh 2> >(tee .command.err >&2) | tee .command.out; } > .command.log 2>&1
)
code=$?
set -e
# Nextflow looks for this file to learn that a task has ended.
printf '%s' $code > .exitcode.part
mv .exitcode.part .exitcode
cp .command.log .command.log.copy
rm .command.log.copy
exit $code
