#!/usr/bin/env bash
# Installs the servers of the protocol of S3 that tests start, into target/servers: versitygw, with Go, and moto, with Python. What
# cannot be installed is said, and its tests are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/target/servers
versitygw=v1.8.0
mkdir -p "$out"

say() { printf 'servers: %s\n' "$*" >&2; }

if [[ $(cat "$out/versitygw.version" 2>/dev/null) != "$versitygw" ]]; then
    if ! command -v go >/dev/null; then
        say "versitygw is left out: there is no Go"
    elif GOBIN=$out/bin go install "github.com/versity/versitygw/cmd/versitygw@$versitygw"; then
        echo "$versitygw" >"$out/versitygw.version"
    else
        say "versitygw was not installed"
    fi
fi

if ! cmp --quiet peers/servers.txt "$out/servers.txt"; then
    if python3 -m venv --clear "$out/venv" &&
        "$out/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --requirement peers/servers.txt; then
        cp peers/servers.txt "$out/servers.txt"
    else
        say "moto was not installed"
    fi
fi
