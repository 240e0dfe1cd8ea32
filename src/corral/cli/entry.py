"""The program `corral`: answers `--version` by itself, and loads the commands for everything else.

Two hundred commands and the library that parses options take ten times as long to load as the answer. So this module
imports nothing of either before it knows that they are needed.
"""

from __future__ import annotations

import sys

VERSION_OPTION = "--version"


def main() -> None:
    if sys.argv[1:] == [VERSION_OPTION]:
        sys.stdout.write(f"corral {own_version()}\n")
        return
    from corral.cli.main import main as run_command

    run_command()


def own_version() -> str:
    from importlib.metadata import version

    return version("corral")


if __name__ == "__main__":
    main()
