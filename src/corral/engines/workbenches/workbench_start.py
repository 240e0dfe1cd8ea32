"""The first program of a workbench: reports a Python that is too old, and then becomes the workbench's program.

Written so that every Python 3 can read it: the program itself, a package beside this file, needs Python 3.9.
"""

import os
import runpy
import sys

#: Another exit code of the workbench.
OLD_PYTHON = 88
PACKAGE = "program"

if __name__ == "__main__":
    if sys.version_info < (3, 9):  # noqa: UP036 - nodes and images have their own
        sys.stdout.write("corral: a workbench needs Python 3.9 or later; this one is " + sys.version.split()[0] + "\n")
        sys.exit(OLD_PYTHON)
    # The server replaces these files: no compiled copies of them stay behind.
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    runpy.run_module(PACKAGE + ".host", run_name="__main__")
