"""The audit log as a file."""

from __future__ import annotations

import csv
import io
import json

from corral.control.records import EventRecord
from corral.server.events.event_export import COLUMNS, csv_lines, json_lines

EVENT = EventRecord(
    id=7, at=0.5, actor="ann", action="queue.created", subject='=cmd|"x"', detail={"a": 'two\nlines, "ü"'}, source="::1"
)


def test_a_line_of_csv_is_read_back_and_is_no_formula() -> None:
    (row,) = list(csv.reader(io.StringIO(csv_lines([EVENT]), newline="")))
    assert len(row) == len(COLUMNS)
    assert row[:6] == ["7", "1970-01-01T00:00:00.500Z", "ann", "queue.created", '\'=cmd|"x"', "::1"]
    assert json.loads(row[6]) == EVENT.detail


def test_every_event_is_one_line_of_json() -> None:
    first, second = json_lines([EVENT, EVENT]).splitlines()
    assert first == second
    assert json.loads(first)["subject"] == EVENT.subject
