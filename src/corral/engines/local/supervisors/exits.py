"""How an instance ended: the record that its supervisor writes, and the messages in it.

It is forked from the spawner, so this module uses the standard library only.
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
#: The disk or a quota is full: how long writing is retried.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FULL_SECONDS = 600.0
_FULL_PAUSE_SECONDS = 0.2


#: Errors of the machine, not of the job that is being started.
_FAULTS = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EIO, errno.EROFS})


def launch_reason(error: OSError) -> str:
    """Whether a launch failed by a platform failure, which is retried, or by something that the job asks for."""
    return REASON_LOST if error.errno in _FAULTS else REASON_LAUNCH


def record_failed_launch(spec: InstanceSpec, message: str, reason: str = REASON_LAUNCH) -> None:
    """End the instance before it has started, unless another supervisor has claimed it."""
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
    """A full disk must not lose an end. The server frees its disk reserve then, so writing is retried. Raises OSError
    after ten minutes."""
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
