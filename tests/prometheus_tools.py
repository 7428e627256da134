"""Prometheus' own programs, where they can be had (`make prometheus`); tests that need them are skipped where not."""

import os
import shutil
import sys
from pathlib import Path

import pytest

_PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))


def program(name: str) -> str:
    """Give the path of `promtool` or `prometheus`; skips the test where there is none."""
    found = shutil.which(name, path=_PATH)
    if found is None:
        pytest.skip(f"{name} is not here: `make prometheus` says how to get it")
    return found
