"""Search: text in the audit log, and when a user was last active."""

from __future__ import annotations

import pytest

from corral.control.ports import Store
from corral.control.records import EventFilter, EventRecord

pytest_plugins = ("tests.servers.fixtures",)

EVENTS = [
    EventRecord(at=1.0, actor="ann", action="job.submitted", subject="j-1", detail={"name": "resnet_50%"}),
    EventRecord(at=2.0, actor="bob", action="user.edited", subject="bob", detail={"display_name": 'Björn "B"'}),
    EventRecord(at=3.0, actor="corral", action="node.added", subject="gpu-01"),
]


@pytest.mark.parametrize(
    ("text", "subjects"),
    [
        ("ANN", ["j-1"]),
        ("submit", ["j-1"]),
        ("gpu-0", ["gpu-01"]),
        ("resnet_50%", ["j-1"]),
        ("resnet%50", []),
        ("resnet.50", []),
        ("Björn", ["bob"]),
        ('"B"', ["bob"]),
        ("b", ["bob", "j-1"]),
        ("nothing of this", []),
    ],
)
def test_text_is_found_wherever_it_stands_and_taken_literally(store: Store, text: str, subjects: list[str]) -> None:
    with store.write() as tx:
        tx.events.append(EVENTS)
    with store.read() as tx:
        page = tx.events.page(EventFilter(text=text), cursor=None, limit=10)
        assert [event.subject for event in page.items] == subjects
        both = tx.events.page(EventFilter(text=text, actor="nobody"), cursor=None, limit=10)
        assert both.items == ()
