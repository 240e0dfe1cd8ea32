"""Files in directories that a job can change: job directories, the job-owned parts of run directories, volumes,
checkpoints.

The server may be root, and a job can replace any name in such a directory by a link, a pipe or a file of another user
at any moment. So every step down starts from a directory that is held open, follows no link and enters no other file
system; only regular files are read, up to a limit and without waiting; files are written under a random name and
renamed. No other module opens such paths (`scripts/check_job_paths.py` checks it). Supervisors use this package too, so
it uses the standard library only, and does not load `threading`: its handler in each forked process costs a quarter of
the fork. `corral.files.trash` removes directories on a thread, and is imported by itself.
"""

from corral.files.descriptors import NotPlain, describe, open_below, open_trusted
from corral.files.ownership import give_to
from corral.files.place import Place
from corral.files.removal import remove_tree
from corral.files.usage import used_bytes

__all__ = [
    "NotPlain",
    "Place",
    "describe",
    "give_to",
    "open_below",
    "open_trusted",
    "remove_tree",
    "used_bytes",
]
