"""Prints the folder and the version of the zstd C sources that thalweg itself is built from.

Both arms of a comparison must use the same zstd: the crate `zstd-sys`, at the version that Cargo.lock pins, carries
the sources. Reads `cargo metadata` from standard input; exits with 1 when the workspace does not depend on zstd-sys.
"""

import json
import pathlib
import sys

packages = json.load(sys.stdin)["packages"]
found = [p for p in packages if p["name"] == "zstd-sys"]
if len(found) != 1:
    sys.exit(f"error: expected one zstd-sys in the dependency tree, found {len(found)}")
print(pathlib.Path(found[0]["manifest_path"]).parent / "zstd" / "lib")
print("zstd-sys " + found[0]["version"])
