"""Save and resume: lets a training script lose little work when it is preempted, resized or moved.

    from corral import checkpoint

    state = checkpoint.restore() or {"weights": 0.0}
    for step in checkpoint.steps(10_000, lambda: state):
        state["weights"] += 1.0

`steps` continues from the last checkpoint, saves when it is due, and saves and ends the program when the platform warns
it. In a loop of your own the same is

    checkpoint.progress(step + 1)
    stop = checkpoint.should_stop()
    if stop or checkpoint.due():
        checkpoint.save(state, step=step + 1)
    if stop:
        sys.exit(checkpoint.EXIT_STOPPED)

`checkpoint.log(step, loss=0.5)` reports numbers, which the platform shows as curves.

Everything comes from the environment that the platform sets; without it, `restore` finds nothing and `save` does
nothing, so a script runs anywhere. The package needs Python 3.9 and its standard library, and nothing else of corral.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from corral.checkpoint.catalog import Checkpoint, verify
from corral.checkpoint.curves import CurveWriter
from corral.checkpoint.environment import read_environment
from corral.checkpoint.keeper import EXIT_STOPPED, Keeper, RestoreError, load_part
from corral.checkpoint.layout import Damaged
from corral.checkpoint.warning import WARNING, ignore_in_worker
from corral.checkpoint.writer import SaveError

__all__ = [
    "EXIT_STOPPED",
    "Checkpoint",
    "Damaged",
    "RestoreError",
    "SaveError",
    "configure",
    "due",
    "ignore_in_worker",
    "last",
    "load",
    "log",
    "progress",
    "restore",
    "save",
    "save_files",
    "should_stop",
    "steps",
    "steps_done",
    "watch",
]

_keeper: Keeper | None = None
_curves: CurveWriter | None = None


def _own() -> Keeper:
    global _keeper
    if _keeper is None:
        _keeper = Keeper(read_environment())
    return _keeper


def configure(**changes: Any) -> None:
    """Use other values than the environment's: `directory`, `interval_seconds`, `keep`, `rank`, `world`, `resume_from`,
    `output`.

    Call it before anything else. Starters that do not set `RANK` and `WORLD_SIZE` need `rank` and `world`.
    """
    global _keeper, _curves
    for name in ("directory", "resume_from", "output"):
        if changes.get(name) is not None:
            changes[name] = Path(changes[name])
    _keeper = Keeper(replace(read_environment(), **changes))
    _curves = CurveWriter(_keeper.surroundings)


def restore(*, map_location: Any = "cpu") -> Any:
    """The last undamaged saved state, or None. After `save_files` it is the directory with the files.

    Tensors are loaded to `map_location`. In a gang every rank gets the state that rank 0 saved, or with `shard` its own
    part.
    """
    return _own().restore(map_location=map_location)


def save(state: Any, *, step: int, shard: bool = False) -> Path | None:
    """Save any object that can be pickled, including tensors. `step` is the number of steps done: where to continue.

    In a gang only rank 0 writes, unless `shard` makes every rank write its part; then all must save the same steps.
    Returns the directory of the checkpoint, or None if this process wrote nothing. Raises `SaveError`.
    """
    return _own().save(state, step=step, shard=shard)


def save_files(write: Callable[[Path], None], *, step: int, shard: bool = False) -> Path | None:
    """Save the files that `write(directory)` puts into the given empty directory: for file formats of your own."""
    return _own().save_files(write, step=step, shard=shard)


def progress(step: int) -> None:
    """Report that so many steps are done, so that the platform notices if the program hangs or slows down.

    `steps` does this by itself. Cheap enough for every step: at most once a second a small file is written.
    """
    _own().progress(step)


def due() -> bool:
    """Whether to save now: the interval has passed, the platform asks for it, or there was no save since a warning."""
    return _own().due()


def should_stop() -> bool:
    """Whether the platform warned that this attempt ends soon: save, then exit with `EXIT_STOPPED`.

    The first call installs the signal handler, see `watch`.
    """
    return _own().should_stop()


def watch() -> bool:
    """Handle the warning, SIGTERM, from now on; an existing handler is still called. Main thread only."""
    return WARNING.watch()


def steps(
    total: int,
    capture: Callable[[], Any],
    *,
    shard: bool = False,
    agree: Callable[[int], int] | None = None,
) -> Iterator[int]:
    """The remaining steps, `steps_done()` to `total` - 1; call `restore` first.

    After each step, the result of `capture()` is saved if a save is due, and at the end. On a warning it is saved and
    the program exits. In a gang, `agree` makes the ranks decide alike: it gets a number and returns the largest over
    all ranks.
    """
    return _own().steps(total, capture, shard=shard, agree=agree)


def steps_done() -> int:
    """The `step` of the state that was restored or saved last; 0 at the beginning."""
    return _own().steps_done()


def log(step: int, **values: Any) -> None:
    """Report numbers of a step, `log(step, loss=0.5, accuracy=0.9)`: the job's page and `corral curves` show them.

    In a gang only rank 0 reports. A step that is reported again, by a later attempt, replaces the earlier values.
    """
    global _curves
    if _curves is None:
        _curves = CurveWriter(_own().surroundings)
    _curves.log(step, values)


def last() -> Checkpoint | None:
    """The checkpoint that this process restored or saved last: its path, step and time."""
    return _own().last()


def load(path: str | os.PathLike[str], *, map_location: Any = "cpu") -> Any:
    """Verify and load one checkpoint, or one part of one, by its directory. Raises `Damaged`.

    Only for directories that you trust: loading a pickle can run code.
    """
    checkpoint = verify(path)
    return load_part(Path(path), checkpoint.kind, map_location)
