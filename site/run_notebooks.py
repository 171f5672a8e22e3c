"""Runs the notebooks of this folder, each in an empty folder, and keeps them with their outputs.

python site/run_notebooks.py OUT
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

out = Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
for path in sorted((Path(__file__).parent / "notebooks").glob("*.ipynb")):
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder, "here")
        here.mkdir()
        # No ports are opened.
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/socket"}})
        resources = {"metadata": {"path": str(here)}}
        # An error in a cell ends this program, too.
        NotebookClient(notebook, config=config, kernel_name="python3", timeout=300, resources=resources).execute()
    nbformat.write(notebook, out / path.name)
    print(f"{path.name}: {len(notebook.cells)} cells")
