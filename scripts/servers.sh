#!/usr/bin/env bash
# Installs the servers of objects that tests start, into target/servers: versitygw (S3) and fake-gcs-server (Google), with Go; moto
# (S3), with Python; Azurite (Azure), with npm. What cannot be installed is said, and its tests are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/target/servers
versitygw=v1.8.0
fake_gcs_server=v1.56.1
azurite=3.37.0
mkdir -p "$out"

say() { printf 'servers: %s\n' "$*" >&2; }

# install NAME VERSION PROGRAM COMMAND...: runs the command, which PROGRAM runs, unless this version is there.
install() {
    local name=$1 version=$2 program=$3
    shift 2
    if [[ $(cat "$out/$name.version" 2>/dev/null) == "$version" ]]; then
        return
    elif ! command -v "$program" >/dev/null; then
        say "$name is left out: there is no $program"
    elif "$@"; then
        echo "$version" >"$out/$name.version"
    else
        say "$name was not installed"
    fi
}

export GOBIN=$out/bin
install versitygw "$versitygw" go install "github.com/versity/versitygw/cmd/versitygw@$versitygw"
install fake-gcs-server "$fake_gcs_server" go install "github.com/fsouza/fake-gcs-server@$fake_gcs_server"
install azurite "$azurite" npm install --silent --ignore-scripts --prefix "$out/azurite" "azurite@$azurite"

if ! cmp --quiet peers/servers.txt "$out/servers.txt"; then
    if python3 -m venv --clear "$out/venv" &&
        "$out/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --requirement peers/servers.txt; then
        cp peers/servers.txt "$out/servers.txt"
    else
        say "moto was not installed"
    fi
fi
