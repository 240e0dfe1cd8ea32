"""A page that stays open while the leader of several servers is killed: it goes on by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from corral.client.client import Client
from tests.e2e.console import BUILT, NOT_BUILT, Console
from tests.integration.waiting import wait_until
from tests.servers.balancer import balancer
from tests.servers.corral_server import CorralServer
from tests.servers.failover import Servers
from tests.servers.postgres import PostgresServer

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


def test_an_open_page_shows_what_the_next_leader_does(
    browser: Browser, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    servers = Servers(tmp_path / "home", postgres_server, 2)
    try:
        token = servers.start()
        leader = servers.leader()
        assert leader is not None
        (other,) = servers.others(leader)
        with balancer([leader.port, other.port]) as address, Client(address, token) as client:
            front = CorralServer(tmp_path)
            front.url = address
            console = Console(browser, front).sign_in()
            page = console.open("/jobs", "Jobs")
            client.jobs.submit({"name": "before", "command": ["sleep", "600"], "gpus": 1})
            expect(page.get_by_role("link", name="before j-1")).to_be_visible()
            changes = servers.changes()
            leader.kill()
            wait_until(lambda: servers.changes() > changes, "the other server leads")
            # The page is not loaded again, and there is no second sign-in.
            client.jobs.submit({"name": "after", "command": ["sleep", "600"], "gpus": 1})
            expect(page.get_by_role("link", name="after j-2")).to_be_visible(timeout=60_000)
            assert "/jobs" in page.url
            console.context.close()
    finally:
        servers.stop()
        postgres_server.drop_database(servers.database)
