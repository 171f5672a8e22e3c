"""Libraries that only some functions need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needs(module: str, extra: str) -> Any:
    """A module of the extra of thalweg that brings it. Its absence is an error that says how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # "dask.dataframe" lacks "dask".
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ModuleNotFoundError(f"this needs {module}: pip install 'thalweg[{extra}]'", name=module) from error
