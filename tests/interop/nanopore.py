"""The real files, which of them slow5lib can read, and small helpers."""

import json
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent
REPOSITORY = HERE.parent.parent
SHARED = pathlib.Path(os.environ.get("THALWEG_SHARED", REPOSITORY.parent / "shared")) / "data/nanopore"

# One of how many cases a long test tries; all of them with THOROUGH=1, as in CI.
ONE_OF = 1 if os.environ.get("THOROUGH") else 7

RECORD = ["none", "zlib", "zstd"]
SIGNAL = ["none", "svb-zd", "ex-zd"]

# slow5lib 1.5.0 refuses these: signal coding 253 was never released, 1.1.0 is newer than it knows.
UNRELEASED_CODING = "blow5/derived_zstd_svb16-zd_253.blow5"
NEWER_VERSION = "blow5/zlib_svb-zd_multi_rg_v1.1.0.blow5"
MALFORMED = ["blow5/bad_eof.blow5", "blow5/bad_trunc.blow5"]


def readable() -> list[str]:
    """Names of the SLOW5 and BLOW5 files that slow5lib reads. Never empty, so that a missing folder is one skipped
    test each, not silence."""
    names = sorted(
        f"{path.parent.name}/{path.name}" for folder in ("blow5", "slow5") for path in (SHARED / folder).glob("*.?low5")
    )
    refused = {UNRELEASED_CODING, NEWER_VERSION, *MALFORMED}
    return [name for name in names if name not in refused] or ["blow5/example3.blow5"]


# escapepod 0.33 wants the columns of version 3.
OLD_POD5 = ["pod5/compat_v0.pod5", "pod5/multi_fast5_zip_v1.pod5", "pod5/multi_fast5_zip_v2.pod5"]

# FAST5 files, and a file with the same reads that expectations.json knows.
FAST5 = {
    "fast5/compat_file.fast5": "pod5/compat_v0.pod5",
    "fast5/multi_fast5_v2.3.fast5": "slow5/multi_fast5_v2.3.slow5",
    "fast5/multi_fast5_vbz_v1.fast5": "pod5/multi_fast5_zip_v1.pod5",
    "fast5/multi_fast5_zip.fast5": "pod5/multi_fast5_zip_v1.pod5",
}


def pod5_files() -> list[str]:
    """Never empty, as `readable`."""
    return sorted(f"pod5/{path.name}" for path in (SHARED / "pod5").glob("*.pod5")) or ["pod5/b1.pod5"]


def expectations(shared: pathlib.Path) -> dict:
    return json.loads((shared / "expect/expectations.json").read_text())


def expected_rows(shared: pathlib.Path, name: str) -> list[str]:
    """What `--digest` must print for a file."""
    return [f"{r['read_id']}\t{r['n']}\t{r['sum']}\t{r['sha256']}" for r in expectations(shared)[name]["reads"]]


def run(*command, check=True, **options) -> subprocess.CompletedProcess:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    return done


def file_digest(rows: list[str]) -> str:
    """The order-independent digest of docs/method.md over rows of `read_id, samples, sum, ...`."""
    total = 0
    for row in rows:
        value = 0xCBF29CE484222325
        for byte in "\t".join(row.split("\t")[:3]).encode():
            value = ((value ^ byte) * 0x100000001B3) % 2**64
        total = (total + value) % 2**64
    return f"{total:016x}"
