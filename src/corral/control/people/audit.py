"""Audit log lines of actions that change nothing: reads of other users' data, refused sign-ins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.control.live.unit_of_work import Caller, Work


def note(work: Work, caller: Caller, action: str, subject: str, owner: str, detail: Mapping[str, Any]) -> None:
    work.record(caller, action, subject, owner=owner, detail=detail)
