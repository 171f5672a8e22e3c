"""Synthetic files for the tests of the package."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
COMMAND = os.environ.get("THALWEG", str(TARGET / "debug/thalweg"))


def thalweg_command(*args):
    """The output of the command."""
    return subprocess.run([COMMAND, *map(str, args)], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="session")
def command():
    return thalweg_command


@pytest.fixture(scope="session")
def command_path():
    return COMMAND


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with the same reads in all formats, a run of events, FASTQ, and a network."""
    folder = tmp_path_factory.mktemp("files")
    thalweg_command("synth", folder / "reads.blow5", "--samples", "3M")
    for name in ["reads.pod5", "reads.slow5"]:
        thalweg_command("convert", folder / "reads.blow5", folder / name)
    thalweg_command("synth", folder / "run.nxs", "--kind", "nexus-live", "--size", "2MB", "--banks", "4")
    thalweg_command("synth", folder / "r.fastq.gz", "--kind", "fastq", "--bases", "200k", "--gzip")
    circuit = ["--kind", "neuroglial", "--astrocytes", "50", "--neurons", "2000"]
    thalweg_command("synth", folder / "circuit.h5", *circuit)
    thalweg_command("graph", "import", folder / "circuit.h5", folder / "network")
    return folder


# As in tests/interop: the folder of real files, which are not part of the project.
SHARED = Path(os.environ.get("THALWEG_SHARED", ROOT.parent / "shared")) / "data/nanopore"


def real(pattern):
    """The names of real files of reads; one that says why if there are none."""
    names = sorted(str(path.relative_to(SHARED)) for path in SHARED.glob(pattern))
    absent = pytest.mark.skip(reason=f"no real files at {SHARED} (THALWEG_SHARED names the folder above data)")
    return names or [pytest.param(pattern, marks=absent)]


@pytest.fixture
def copy(tmp_path):
    """Copies real files, since indexes must not come to lie beside them."""

    def call(name):
        return Path(shutil.copy(SHARED / name, tmp_path))

    return call
