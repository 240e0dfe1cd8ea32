"""A Python that has PyTorch: that of the tests, or Debian's own with its package python3-torch."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

import corral

HOW_TO_INSTALL = "PyTorch is not installed: run scripts/install-test-servers as root (Debian package: python3-torch)"
_SYSTEM = "/usr/bin/python3"


@functools.cache
def _found() -> str | None:
    for python in (sys.executable, _SYSTEM):
        if Path(python).exists():
            done = subprocess.run([python, "-c", "import torch"], capture_output=True)
            if done.returncode == 0:
                return python
    return None


def torch_python() -> str:
    """Skips the test where none has it."""
    python = _found()
    if python is None:
        pytest.skip(HOW_TO_INSTALL)
    return python


def torch_environment() -> dict[str, str]:
    """For a program of that Python which imports corral's helper."""
    return {**os.environ, "PYTHONPATH": str(Path(corral.__file__).parents[1])}
