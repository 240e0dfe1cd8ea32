"""The published settings of providers: requested once an hour, checked, and compared with this machine's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from email.utils import formatdate

import pytest

from corral.control.records import ProviderKind, ProviderRecord
from corral.server.auth.discovery import WELL_KNOWN, Discovery
from corral.server.auth.kinds.oidc import clock_check
from corral.server.auth.outside import ProviderFailed, fetch_json
from corral.server.auth.providers import _allow_checks
from tests.servers.forge_server import ForgeServer


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def forge() -> Iterator[ForgeServer]:
    started = ForgeServer()
    yield started
    started.close()


def test_a_provider_is_asked_again_when_its_answer_is_old(forge: ForgeServer) -> None:
    clock = Hand()

    async def story() -> list[int]:
        discovery = Discovery(monotonic=clock, lifetime=60)
        counts = []

        async def ask(**options: bool) -> None:
            await asyncio.gather(*(discovery.metadata(forge.url, **options) for _ in range(5)))
            counts.append(sum(path == WELL_KNOWN for _, path in forge.requests))

        await ask()
        clock.at += 59
        await ask()
        clock.at += 2
        await ask()
        discovery.forget(forge.url)
        await ask()
        return counts

    assert asyncio.run(story()) == [1, 1, 2, 3]


def test_keys_are_asked_for_anew_when_one_is_missing(forge: ForgeServer) -> None:
    async def story() -> tuple[set[str | None], set[str | None]]:
        discovery = Discovery()
        before = {key.kid for key in await discovery.keys(forge.url)}
        forge.key = forge.key.generate_key(2048, {"kid": "k2", "use": "sig"})
        assert {key.kid for key in await discovery.keys(forge.url)} == before
        return before, {key.kid for key in await discovery.keys(forge.url, fresh=True)}

    assert asyncio.run(story()) == ({"k1"}, {"k2"})


def test_an_issuer_must_be_spelt_as_the_provider_does(forge: ForgeServer) -> None:
    with pytest.raises(ProviderFailed) as failure:
        asyncio.run(Discovery().metadata(f"{forge.url}/"))
    assert failure.value.hint == f"Set the issuer to exactly {forge.url}."


@pytest.mark.parametrize("path", ["/nowhere", "/api/v3/user", "/login/oauth/authorize?response_type=code"])
def test_a_bad_answer_is_reported(forge: ForgeServer, path: str) -> None:
    with pytest.raises(ProviderFailed):
        asyncio.run(fetch_json(forge.url + path))


@pytest.mark.parametrize(
    ("date", "state", "detail"),
    [
        (formatdate(1_000_030, usegmt=True), "ok", "30 s apart"),
        (formatdate(1_000_120, usegmt=True), "fail", "120 s behind"),
        (formatdate(999_000, usegmt=True), "fail", "1000 s ahead of"),
        ("", "warn", "does not say"),
        ("tomorrow", "warn", "does not say"),
    ],
)
def test_clocks_that_differ_are_reported(date: str, state: str, detail: str) -> None:
    check = clock_check(date, 1_000_000.0)
    assert check.state == state
    assert detail in check.detail


def test_a_public_provider_open_to_all_accounts_is_reported() -> None:
    record = ProviderRecord(
        id="hub", kind=ProviderKind.GITHUB, issuer="https://github.com", client_id="x", allow=("*",)
    )
    (check,) = _allow_checks(record)
    assert (check.state, "every account" in check.detail) == ("warn", True)
    assert _allow_checks(replace(record, allow=("ann",))) == []
    assert _allow_checks(replace(record, issuer="https://github.example.org")) == []
