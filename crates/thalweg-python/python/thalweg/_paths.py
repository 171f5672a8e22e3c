"""Paths and URLs."""

from __future__ import annotations

import os
from typing import Union

Path = Union[str, "os.PathLike[str]"]


def absolute(path: Path) -> str:
    """A path that stays valid where the folder of the process is another. A URL stays as it is."""
    name = os.fspath(path)
    return name if "://" in name else os.path.abspath(name)
