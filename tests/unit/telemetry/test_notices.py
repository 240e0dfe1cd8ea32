"""Addresses of channels: which are understood, and what of them may be seen."""

from __future__ import annotations

import pytest

from corral.control.ports import NoticeFailed, NoticeRefused
from corral.telemetry.notices import AppriseNotifier

#: an address, and what is shown of it
SHOWN = [
    ("mailto://user:sesame@mail.example.org?to=ops@example.org", "mailto://user:****@mail.example.org/ops@example.org"),
    ("json://example.org/sesame/open", "json://example.org/…"),
    ("jsons://ann:sesame@example.org:8443/x", "jsons://ann:****@example.org:8443/…"),
    ("json://example.org", "json://example.org"),
    ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7F/#ops", "slack://T...2/A...D/T...F/#ops"),
]


@pytest.mark.parametrize(("url", "shown"), SHOWN)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str) -> None:
    notifier = AppriseNotifier()
    notifier.check(url)
    assert notifier.shown(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ops@example.org",
        "https://example.org/sesame",
        "carrier-pigeon://sesame",
        "mailto://",
        "json://[::sesame",
        "\0",
    ],
)
def test_an_address_that_cannot_work_is_refused_with_examples(url: str) -> None:
    with pytest.raises(NoticeRefused, match=r"not understood.*mailto://") as caught:
        AppriseNotifier().check(url)
    assert "sesame" not in str(caught.value)


def test_a_failure_says_why_without_the_secret() -> None:
    with pytest.raises(NoticeFailed, match="refused") as caught:
        AppriseNotifier().send("json://127.0.0.1:1/hook/sesame", "title", "body")
    assert "sesame" not in str(caught.value)
