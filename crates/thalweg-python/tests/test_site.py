"""The code of the pages in site/ runs as it stands: each page's blocks one after the other, in an empty folder.

- ```console: the lines behind `$ ` are commands. What they print is not compared.
- ```bash: a script.
- ```python: runs in the namespace of the page; with title="NAME.py" it is a file.
- Whatever is marked title="not run" needs something that is not here.
"""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SITE = Path(__file__).parents[3] / "site"
PAGES = sorted(path for path in (SITE / "docs").rglob("*.md") if "```" in path.read_text())
NOTEBOOKS = sorted((SITE / "notebooks").glob("*.ipynb"))
BLOCK = re.compile(r"^```(console|bash|python)(?: title=\"([^\"\n]*)\")?\n(.*?)^```$", re.M | re.S)


def blocks_of_page(path):
    """The language, title, text and line of each block."""
    text = path.read_text()
    fences = re.findall(r"^```(?:console|bash|python)\b", text, re.M)
    found = list(BLOCK.finditer(text))
    assert len(found) == len(fences), f"{path}: fences that the test cannot read"
    return [(*match.groups(), text.count("\n", 0, match.start()) + 1) for match in found]


def blocks_of_notebook(path):
    """The same of a notebook's cells, but for those that show pictures, which takes a notebook."""
    cells = json.loads(path.read_text())["cells"]
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and "IPython" not in source:
            is_script = source.startswith("%%bash")
            yield "bash" if is_script else "python", None, source.removeprefix("%%bash"), number


def commands(text):
    """The lines of a terminal that were typed, with those that follow a backslash."""
    lines = re.findall(r"^\$ ((?:.*\\\n)*.*)$", text, re.M)
    assert lines, "no line begins with `$ `"
    return "\n".join(lines)


@pytest.fixture
def folder(tmp_path, command_path, monkeypatch):
    """An empty folder, with the command and this Python first in PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "thalweg").symlink_to(command_path)
    here = tmp_path / "here"
    here.mkdir()
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("THALWEG", str(command_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(here)
    if not importlib.metadata.entry_points(group="xarray.backends", name="thalweg"):
        register(tmp_path / "thalweg-0.dist-info", monkeypatch)
    return here


def register(info, monkeypatch):
    """Tells xarray of the engine where the package is in the path, and not installed."""
    from xarray.backends import plugins

    info.mkdir()
    (info / "METADATA").write_text("Name: thalweg\n")
    (info / "entry_points.txt").write_text("[xarray.backends]\nthalweg = thalweg.xarray:ThalwegBackend\n")
    monkeypatch.syspath_prepend(info.parent)
    plugins.list_engines.cache_clear()


@pytest.mark.parametrize("path", PAGES + NOTEBOOKS, ids=lambda path: str(path.relative_to(SITE)))
@pytest.mark.filterwarnings("ignore")
def test_the_code_of_a_page_runs(path, folder):
    names = {"__name__": "page"}
    for language, title, text, place in blocks_of_page(path) if path.suffix == ".md" else blocks_of_notebook(path):
        where = f"{path}:{place}"
        if title == "not run":
            continue
        if language == "python" and title:
            (folder / title).write_text(text)
        elif language == "python":
            exec(compile("\n" * (place if path.suffix == ".md" else 0) + text, where, "exec"), names)
        else:
            script = commands(text) if language == "console" else text
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{where}: {script}\n{done.stdout}{done.stderr}"


def test_the_grammar_of_conditions_is_that_of_the_verbs():
    page, verbs = (SITE / "docs/howto/files.md").read_text(), (SITE.parent / "docs/verbs.md").read_text()
    grammar = re.search(r"^condition := .*?(?=^```)", verbs, re.M | re.S)
    assert grammar and grammar[0] in page


def test_few_blocks_are_not_run():
    titles = [title for path in PAGES for _, title, _, _ in blocks_of_page(path)]
    assert len(titles) > 5 * titles.count("not run")
