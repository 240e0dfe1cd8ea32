"""The first program of a workbench: reports a Python that is too old, and then becomes the workbench's program.

Written so that every Python 3 can read it: the program itself, beside this file, needs Python 3.9.
"""

import os
import runpy
import sys

#: Another exit code of `workbench_host.py`.
OLD_PYTHON = 88
PROGRAM = "workbench.py"

if __name__ == "__main__":
    if sys.version_info < (3, 9):  # noqa: UP036 - nodes and images have their own
        sys.stdout.write("corral: a workbench needs Python 3.9 or later; this one is " + sys.version.split()[0] + "\n")
        sys.exit(OLD_PYTHON)
    runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), PROGRAM), run_name="__main__")
