"""The examples of the docstrings and of the README run as they stand."""

import doctest
import importlib
import os
import pkgutil
import re
import shutil
import types
from pathlib import Path

import numpy as np
import pytest
import thalweg

MODULES = ["thalweg"] + [
    f"thalweg.{module.name}" for module in pkgutil.iter_modules(thalweg.__path__) if module.name != "_thalweg"
]

# They measure for minutes, or need files that only their readers have.
NOT_RUN = {
    "thalweg.bench",
    "thalweg.compare",
    "thalweg._command.bench",
    "thalweg._command.compare",
    "thalweg.network.Network.node_set",
    "thalweg.virtualizarr",
}


@pytest.fixture(scope="module")
def names(files, tmp_path_factory, request):
    """What the examples take for granted: files in the folder, and names."""
    folder = tmp_path_factory.mktemp("examples")
    for file in files.iterdir():
        # Examples change networks.
        (shutil.copytree if file.is_dir() else os.symlink)(file, folder / file.name)
    (folder / "run").mkdir()
    for suffix in ["pod5"]:
        os.symlink(files / f"reads.{suffix}", folder / "run" / f"{suffix}.{suffix}")
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.chdir(folder)
    request.addfinalizer(monkeypatch.undo)
    xarray = importlib.import_module("xarray")
    xarray.Dataset({"counts": ("time", np.arange(100.0))}).to_netcdf("run.nc", engine="netcdf4")
    with thalweg.open("network").transaction() as change:
        change.add_edges("gap", [(1, 2), (17, 2)], between=("Neuron", "Neuron"))
    reads = thalweg.open("reads.pod5")
    run = thalweg.open("run.nxs")
    yield {
        "thalweg": thalweg,
        "reads": reads,
        "read": next(iter(reads)),
        "run": run,
        "f": run,
        "file": run,
        "events": run.events,
        "network": thalweg.open("network"),
        "fastq": thalweg.open("r.fastq.gz"),
        "ids": reads.ids[:3],
        "comm": types.SimpleNamespace(rank=0, size=2),
        **{name: importlib.import_module(name) for name in ["numpy", "polars", "pyarrow"]},
        "np": np,
        "xarray": xarray,
    }


def ran(source, names, where):
    try:
        exec(compile(source, where, "exec"), dict(names))
    except ModuleNotFoundError as error:
        pytest.skip(f"{where}: {error}")


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.filterwarnings("ignore")
def test_examples_of_docstrings(module, names, monkeypatch, capsys):
    found = doctest.DocTestFinder().find(pytest.importorskip(module))
    for test in found:
        if test.examples and test.name not in NOT_RUN:
            ran("".join(example.source for example in test.examples), names, test.name)


def test_examples_of_the_readme(names, capsys):
    text = (Path(__file__).parents[1] / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert blocks
    ran("".join(blocks), {**names, "ids": names["reads"].ids[:3]}, "README.md")
