"""Synthetic files for the tests of the package."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COMMAND = os.environ.get("THALWEG", str(ROOT / "target/debug/thalweg"))


def thalweg_command(*args):
    """The output of the command."""
    return subprocess.run([COMMAND, *map(str, args)], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="session")
def command():
    return thalweg_command


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with the same reads in all formats, a run of events, and a network."""
    folder = tmp_path_factory.mktemp("files")
    thalweg_command("synth", folder / "reads.blow5", "--samples", "3M")
    for name in ["reads.pod5", "reads.slow5"]:
        thalweg_command("convert", folder / "reads.blow5", folder / name)
    thalweg_command("synth", folder / "run.nxs", "--kind", "nexus-live", "--size", "2MB", "--banks", "4")
    circuit = ["--kind", "neuroglial", "--astrocytes", "50", "--neurons", "2000"]
    thalweg_command("synth", folder / "circuit.h5", *circuit)
    thalweg_command("graph", "import", folder / "circuit.h5", folder / "network")
    return folder
