"""Files in places that a job can change: job directories, run directories' job-owned parts, volumes, checkpoints.

The server may be root, and a job can replace any name in such a place by a link, a pipe or another's file at any
moment. So every step down starts from a directory that is held open, follows no link and enters no other file system;
only regular files are read, up to a limit and without waiting; files are written under a random name and renamed. No
other module opens such paths (`scripts/check_job_paths.py` checks it). Standard library only: supervisors use it too.
"""

from corral.files.opening import NotPlain, describe, open_below, open_trusted
from corral.files.ownership import hand_over
from corral.files.place import Place
from corral.files.removal import remove_tree
from corral.files.trash import Trash
from corral.files.usage import used_bytes

__all__ = [
    "NotPlain",
    "Place",
    "Trash",
    "describe",
    "hand_over",
    "open_below",
    "open_trusted",
    "remove_tree",
    "used_bytes",
]
