"""How the scripts of peers mount a bucket with Mountpoint for S3."""

import os
import pathlib
import sys

BUILT = pathlib.Path(__file__).resolve().parent.parent.parent / "target/peers/mountpoint/release/thalweg-mountpoint"
PROGRAM = os.environ.get("MOUNTPOINT", str(BUILT))


def command(base: str, bucket: str, folder: str, *options: str) -> list[str]:
    """In the foreground. BASE is the address of the server."""
    if not os.path.exists(PROGRAM):
        sys.exit("error: Mountpoint is not built: `make mountpoint` builds it")
    return [PROGRAM, bucket, folder, "--endpoint-url", base, *options]
