"""How an instance ended, as its supervisor puts it on record, and the words for it.

Runs forked from the spawner, so only the standard library is imported here.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from typing import Any

from corral.engines.attempts.claims import record_end, take_claim
from corral.engines.attempts.instance_messages import InstanceSpec
from corral.engines.local.rundir import notify

REASON_EXIT = "exit_code"
REASON_LAUNCH = "launch_error"
REASON_TIME = "timed_out"
REASON_OOM = "oom_killed"
REASON_PULL = "image_pull_error"
REASON_LOST = "lost"

_NOTIFY_SECONDS = 1.0
#: There is no room, by the disk or by a quota: how long it is tried again.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FULL_SECONDS = 600.0
_FULL_PAUSE_SECONDS = 0.2


#: What the machine has run out of, or has wrong: no fault of the job that is being started.
_FAULTS = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EIO, errno.EROFS})


def launch_reason(error: OSError) -> str:
    """Whether a launch failed by a fault of the platform, which is tried again, or by what the job asks for."""
    return REASON_LOST if error.errno in _FAULTS else REASON_LAUNCH


def record_failed_launch(spec: InstanceSpec, message: str, reason: str = REASON_LAUNCH) -> None:
    """The instance ends before it began, unless another supervisor has it."""
    claim = take_claim(spec["rank_dir"], {"pid": 0, "boot_id": spec["boot_id"]})
    if claim is not None:
        record_exit(spec, reason=reason, message=message)
        os.close(claim)


def record_exit(
    spec: InstanceSpec,
    *,
    reason: str,
    message: str,
    exit_code: int | None = None,
    signal_number: int | None = None,
    started_at: float | None = None,
    **more: Any,
) -> None:
    body = {
        "exit_code": exit_code,
        "signal": signal_number,
        "reason": reason,
        "message": message,
        "started_at": started_at,
        "ended_at": time.time(),
        **more,
    }
    _record_when_there_is_room(spec["rank_dir"], body)
    deadline = time.monotonic() + _NOTIFY_SECONDS
    while not notify(spec["events_path"], spec["attempt_id"]) and time.monotonic() < deadline:
        time.sleep(0.02)


def _record_when_there_is_room(rank_dir: str, body: dict[str, Any]) -> None:
    """A full disk must not lose an end: the server gives up its reserve then. Raises OSError after a while."""
    deadline = time.monotonic() + _FULL_SECONDS
    while True:
        try:
            record_end(rank_dir, body)
        except OSError as error:
            if error.errno not in _FULL or time.monotonic() > deadline:
                raise
            time.sleep(_FULL_PAUSE_SECONDS)
        else:
            return


def oom_message(limit_bytes: int, peak_bytes: int, own_limit: bool) -> str:
    if not own_limit:
        return "the machine ran out of memory; the kernel killed it"
    peak = f" (peak {peak_bytes / (1 << 20):.1f} MiB)" if peak_bytes else ""
    return f"used more than its {limit_bytes / (1 << 20):.1f} MiB of memory{peak}; the kernel killed it"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
