"""The command `thalweg`, which comes with the package, and what Python takes from it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

from thalweg._optional import needs
from thalweg._paths import Path
from thalweg.errors import Error, NoFileError, UsageError

if TYPE_CHECKING:
    import pandas


# What an error has of the output of a command that failed.
_LAST_LINES = 10


def command() -> str:
    """The path of the command `thalweg`: the one that came with this package, or else the first in `PATH`.

    The environment variable `THALWEG` names another one.
    """
    named = os.environ.get("THALWEG")
    if named:
        return named
    try:
        for file in metadata.files("thalweg") or []:
            path = os.path.realpath(os.fspath(file.locate()))
            if file.name == "thalweg" and file.parent.name == "bin" and os.path.isfile(path):
                return path
    except metadata.PackageNotFoundError:
        pass
    found = shutil.which("thalweg")
    if found is None:
        raise NoFileError("thalweg: no such command in this package or in PATH; THALWEG=/path/to/thalweg names one")
    return found


def _run(*arguments: str, accepted: tuple[int, ...] = (0,)) -> str:
    """The standard output of the command."""
    # It shows its progress in a terminal alone. In notebooks and files of output, what it says is for the caller.
    errors = None if sys.stderr.isatty() else subprocess.PIPE
    done = subprocess.run([command(), *arguments], stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
    if done.returncode not in accepted:
        said = (done.stderr or "see what it printed above").strip().splitlines()[-_LAST_LINES:]
        line = " ".join(["thalweg", *arguments])
        raise Error("\n".join([f"`{line}` failed with exit code {done.returncode}:", *said]))
    sys.stderr.write(done.stderr or "")
    return done.stdout


def _options(options: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as options of the command: `pairs=10` is `--pairs 10`."""
    arguments = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(option)
        elif isinstance(value, (list, tuple)):
            for each in value:
                arguments += [option, str(each)]
        elif isinstance(value, Mapping):
            for key, each in value.items():
                arguments += [option, f"{key}={each}"]
        else:
            arguments += [option, str(value)]
    return arguments


def _records(lines: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines() if line]


def bench(suite: Path | None = None, *, json: Path | None = None, **options: Any) -> pandas.DataFrame:
    """Runs a suite of measurements, as `thalweg bench` does, and returns its trials: a row each, in the order in which they ran.

    Trials that were rejected or failed are among them; their columns `rejected` and `failed` say why.

    Args:
        suite: A shipped suite, a suite of your own (a .toml file), or a file to measure on; a tour without one.
        json: A new file (.jsonl) that keeps the results, for `thalweg.compare`. By default no file is kept.
        options: Options of `thalweg bench`: `pairs=10`, `only="cold"`, `set={"threads": 8}`, `place={"a": "/mnt"}`.

    Raises:
        thalweg.Error: The command fails. The error has the last lines that it printed.

    >>> trials = thalweg.bench("tour", pairs=6, json="tour.jsonl")
    """
    pandas = needs("pandas", "pandas")
    if "out" in options:
        raise UsageError("bench: found out=, expected json='results.jsonl', a file that keeps the results")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results.jsonl") if json is None else os.fspath(json)
        named = [] if suite is None else [os.fspath(suite)]
        _run("bench", *named, "--json", path, *_options(options))
        with open(path, encoding="utf-8") as file:
            records = _records(file.read())
    names = {one["id"]: one["name"] for one in records if one["schema"].startswith("thalweg.session/")}
    trials = [
        {**one, "comparison": names.get(one["comparison"], one["comparison"])}
        for one in records
        if one["schema"].startswith("thalweg.trial/")
    ]
    return pandas.json_normalize(trials, sep="_")


def compare(*results: Path, **options: Any) -> pandas.DataFrame:
    """Compares results of `thalweg bench`, as `thalweg compare` does: a row an experiment, arm and run.

    `ratio_median` is the time of the arm over that of what it is compared with, and `ratio_interval` its interval of 95 %.

    Args:
        results: Files of results (.jsonl), as `thalweg.bench(json=...)` keeps them, or folders with such files in them.
            With one file, its arms are compared with the baseline.
        options: Options of `thalweg compare`: `baseline="thalweg"`, `only="cold"`.

    Raises:
        thalweg.Error: The command fails. The error has the last lines that it printed.

    >>> thalweg.compare("tour.jsonl")[["experiment", "arm", "ratio_median"]]
    """
    pandas = needs("pandas", "pandas")
    rows = []
    for line in _records(_run("compare", *(os.fspath(one) for one in results), "--json", *_options(options), accepted=(0, 3))):
        against = {one["run"]: one for one in line["against"]}
        for run in line["runs"]:
            other = {key: value for key, value in against.get(run["run"], {}).items() if key != "run"}
            rows.append({"experiment": line["experiment"], "arm": line["arm"], **run, **other})
    return pandas.json_normalize(rows, sep="_")
