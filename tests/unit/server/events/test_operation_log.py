"""Operations of users and failures are lines of the server's own log."""

from __future__ import annotations

import logging

import pytest

from corral.control.records import EventRecord
from corral.server.events.operation_log import OperationLog


def event(actor: str, action: str, subject: str) -> EventRecord:
    return EventRecord(at=1.0, actor=actor, action=action, subject=subject)


def test_operations_share_a_line_for_each_user_and_action(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "corral.operations")
    operations = OperationLog()
    operations.note(
        [
            event("ann", "task.program-started", "j-1"),
            *(event("bob", "job.submitted", f"j-{number}") for number in range(2, 10)),
            event("corral", "job.running", "j-2"),
            event("corral", "job.failed", "j-3"),
        ]
    )
    assert not caplog.records, "a thread of its own writes"
    operations.start()
    operations.stop()
    assert [record.getMessage() for record in caplog.records] == [
        "ann: task.program-started j-1",
        "bob: job.submitted j-2, j-3, j-4, j-5, j-6 and 3 more",
        "corral: job.failed j-3",
    ]


def test_a_quieter_log_has_no_operations(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "corral.operations")
    operations = OperationLog()
    operations.note([event("ann", "job.submitted", "j-1")])
    operations.write()
    assert not caplog.records
