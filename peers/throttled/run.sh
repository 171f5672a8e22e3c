#!/usr/bin/env bash
# Runs a command with the device of a file held to so many bytes and requests a second: by a control group of its own (blkio
# of version 1, io of version 2), which takes root. It is how programs that cannot slow down a store themselves are measured on a
# slow disc; reads that the page cache answers are not held up.
#
#   run.sh BYTES_A_SECOND REQUESTS_A_SECOND FILE PROGRAM [ARGUMENT..]
#   run.sh BYTES_A_SECOND REQUESTS_A_SECOND FILE PEER [ARGUMENT..]      a Python peer, by the name of its folder
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

die() { printf 'error: %s\n' "$*" >&2; exit 1; }
(($# >= 4)) || die "run.sh BYTES_A_SECOND REQUESTS_A_SECOND FILE PROGRAM [ARGUMENT..]"
bytes=$1 requests=$2 file=$3
shift 3
[[ $bytes =~ ^[0-9]+$ && $requests =~ ^[0-9]+$ ]] || die "bytes and requests a second are whole numbers, not $bytes and $requests"
[[ -e $file ]] || die "$file is not there"
if [[ $1 != */* && -e $root/peers/$1/peer.py ]]; then
    set -- "$root/.venv/bin/python" "$root/peers/$1/peer.py" "${@:2}"
fi

# a partition has no limits of its own: its disc does
device=$(stat -c '%Hd:%Ld' -- "$file")
[[ -e /sys/dev/block/$device ]] || die "$file lies on no block device ($device)"
if [[ -e /sys/dev/block/$device/partition ]]; then device=$(cat "/sys/dev/block/$device/../dev"); fi

mounted() { awk -v type="$1" -v option="$2" '$3 == type && (option == "" || ("," $4 ",") ~ ("," option ",")) { print $2; exit }' /proc/self/mounts; }
name=thalweg-$$
if blkio=$(mounted cgroup blkio) && [[ -n $blkio ]]; then
    home=$blkio$(sed -n 's/^[0-9]*:blkio://p' /proc/self/cgroup)
    mkdir "$home/$name" || die "no control group can be made in $home (are you root?)"
    limit() {
        echo "$device $bytes" >"$home/$name/blkio.throttle.read_bps_device" &&
            echo "$device $requests" >"$home/$name/blkio.throttle.read_iops_device"
    }
else
    unified=$(mounted cgroup2 "")
    home=$unified$(sed -n 's/^0:://p' /proc/self/cgroup)
    mkdir "$home/$name" || die "no control group can be made in $home (are you root?)"
    limit() { echo "$device rbps=$bytes riops=$requests" >"$home/$name/io.max"; }
fi
# whoever is in the group must leave it before it can go
trap 'echo $$ >"$home/cgroup.procs"; rmdir "$home/$name"' EXIT
limit || die "$home/$name takes no limits for $device"
echo $$ >"$home/$name/cgroup.procs"
code=0
"$@" || code=$?
exit "$code"
