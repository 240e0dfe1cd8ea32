"""The program of a workbench: Jupyter and an SSH server in a job.

This package is copied into the job's directory and run there by `workbench_start.py`, on a node or inside an image, by
a Python that has no corral installed. So it uses the standard library of Python 3.9 or later only, and imports its own
modules relatively. The server decides how users connect: Jupyter listens on a socket that only the job's own account
can open, and SSH accepts only the keys that the server has written. A server on another machine connects through a
relay (`workbench_relay.py`), which accepts only the key that the server gave to this workbench.
"""
