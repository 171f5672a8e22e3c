"""Paths and URLs."""

from __future__ import annotations

import os
import pathlib
from typing import Union

Path = Union[str, "os.PathLike[str]"]


def absolute(path: Path) -> str:
    """A path that stays valid where the folder of the process is another. A URL stays as it is."""
    name = os.fspath(path)
    return name if "://" in name else os.path.abspath(name)


def shown(name: str) -> Path:
    """A path, or a URL, as users get it: a `pathlib.Path` of a URL would have one slash after the scheme."""
    return name if "://" in name else pathlib.Path(name)
