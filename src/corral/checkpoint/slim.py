"""Installs the checkpoint helper for programs whose environment has no corral.

The platform adds the directory to `PYTHONPATH`, where it comes before all installed packages. So its `corral` package
must not hide a full one: modules that it lacks are imported from there.
"""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = '''"""The part of corral that jobs use; a corral installed elsewhere is found beside it."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
'''


def install_slim(directory: str | os.PathLike[str]) -> Path:
    """Copy the helper into `directory`, to be added to `PYTHONPATH`; safe to repeat while programs import from it."""
    root = Path(directory)
    source = Path(__file__).parent
    target = root / "corral" / source.name
    target.mkdir(parents=True, exist_ok=True)
    # Jobs may run as other accounts than the owner of these files, whatever its umask is.
    for directory in (root, target.parent, target):
        directory.chmod(0o755)
    _put(root / "corral" / "__init__.py", _PACKAGE)
    modules = {path.name: path.read_text(encoding="utf-8") for path in source.glob("*.py")}
    # The package's `__init__` last: everything that it imports exists by then.
    for name in sorted(modules, key=lambda name: name == "__init__.py"):
        _put(target / name, modules[name])
    for path in target.glob("*.py"):
        if path.name not in modules:
            path.unlink()
    return root


def _put(path: Path, text: str) -> None:
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(0o644)
    os.replace(draft, path)
