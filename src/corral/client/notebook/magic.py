"""`%%corral`: the cell runs as a job, its output appears below the cell, with a line that shows the progress."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import cloudpickle

from corral.client.client import Client
from corral.client.functions.calls import Call
from corral.client.jobs.jobs import ENDED_STATES
from corral.client.notebook import cells

if TYPE_CHECKING:
    from corral.client.views import JobView

POLL_SECONDS = 1.0
BAR_CHARACTERS = 30
#: Shows a text, or replaces the one that it showed before.
Show = Callable[[str], None]


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext corral`."""

    def corral(line: str, cell: str) -> None:
        with Client.from_environment() as client:
            run(client, line, cell, shell.user_ns, _progress_line())

    shell.register_magic_function(corral, magic_kind="cell", magic_name="corral")


def run(client: Client, line: str, cell: str, notebook: dict[str, Any], show: Show) -> Call[dict[str, Any]]:
    """Run the cell as a job; the notebook then has the names that the cell gives. Interrupting the cell stops the
    job."""
    options = cells.options_of(line)
    cells.check_source(cell)
    cloudpickle.register_pickle_by_value(cells)
    try:
        functions = client.functions(python=options.python, **options.settings)
        call = functions.submit(cells.run_cell, cell, cells.taken(options.take, notebook), options.give)
    finally:
        cloudpickle.unregister_pickle_by_value(cells)
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(client, call.id, show, ended), daemon=True)
    watcher.start()
    try:
        for text in call.logs():
            sys.stdout.write(text)
    except KeyboardInterrupt:
        call.stop()
        raise
    finally:
        ended.set()
        watcher.join()
    notebook.update(call.result())
    return call


def progress(job: JobView, seconds: float) -> str:
    """One line about the job: a bar over its time limit while it runs, and its state."""
    passed = f"{int(seconds)} s"
    if job["state"] in ENDED_STATES:
        return f"{job['id']} {job['state']} after {passed}"
    limit = job["time_limit_seconds"]
    if job["state"] == "running" and limit:
        done = min(BAR_CHARACTERS, int(BAR_CHARACTERS * seconds / limit))
        return f"{job['id']} running [{'#' * done}{'.' * (BAR_CHARACTERS - done)}] {passed} of {int(limit)} s"
    return f"{job['id']} {job['state']}, {passed}"


def _watch(client: Client, job: str, show: Show, ended: threading.Event) -> None:
    began, state = time.monotonic(), ""
    while True:
        was_ended = ended.is_set()
        view = client.jobs.get(job)
        if view["state"] != state:
            state = view["state"]
            if state == "running":
                began = time.monotonic()
        show(progress(view, time.monotonic() - began))
        if was_ended or state in ENDED_STATES:
            return
        ended.wait(POLL_SECONDS)


def _progress_line() -> Show:
    from IPython.display import display  # notebooks have it; the client does not need it

    shown_by: Any = display
    handle: Any = None

    def show(text: str) -> None:
        nonlocal handle
        content = {"text/plain": text}
        if handle is None:
            handle = shown_by(content, raw=True, display_id=True)
        else:
            handle.update(content, raw=True)

    return show
