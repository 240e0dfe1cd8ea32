"""Many users do everything at once with the same few things, which vanish in the middle: no answer is a 500, every
answer is one that the description announces, and the log has no error.

A fixed number of requests; more with CONCURRENT_REQUESTS=20000, and others with CONCURRENT_SEED=7.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher

from corral.server.auth.passwords import Passwords
from corral.server.auth.throttle import LoginThrottle
from corral.server.http.app import bare_app
from corral.server.http.context import ServerContext
from corral.server.http.description.api_description import describe
from corral.server.settings.settings_sources import load_settings
from corral.server.wiring.assembly import Assembly, assembled
from tests.faults.made_requests import GOOD, USERS, Maker, Operation, operations
from tests.integration.api import API
from tests.integration.inside import PASSWORD

REQUESTS = int(os.environ.get("CONCURRENT_REQUESTS", "500"))
SEED = int(os.environ.get("CONCURRENT_SEED", "1"))
AT_ONCE = 12
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMGnlDbDWfzl0VqVzNtPFkDPpEVQOuLYY0hfGmXFxxQ4 laptop"
#: How much more often than others what changes jobs is asked for.
OFTEN = 6
OFTEN_ASKED = {
    "submit_job", "edit_job", "delete_job", "start_job", "stop_job", "requeue_job", "clone_job", "pin_job", "unpin_job",
    "move_job", "why_job", "get_job", "create_queue", "delete_queue", "edit_queue", "create_pool", "delete_pool",
    "get_queue_order", "create_group", "delete_group", "resize_job", "migrate_job",
}  # fmt: skip


class Errors(logging.Handler):
    """The records of the log that say that something went wrong."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter("%(levelname)s %(name)s %(message)s").format(record))


@pytest.fixture
def errors() -> Iterator[Errors]:
    handler = Errors()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


@pytest.fixture
def assembly(tmp_path: Path) -> Iterator[Assembly]:
    overrides = {"home": tmp_path, "local.virtual_nodes": "2x4xA100-80G"}
    settings = load_settings(
        overrides=overrides, environ={"CORRAL_BOOTSTRAP_PASSWORD": PASSWORD, "CORRAL_ALLOW_ROOT": "true"}
    )
    cheap = Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    with assembled(settings, passwords=cheap) as made:
        yield made


@asynccontextmanager
async def client_of(assembly: Assembly) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the server without its network: an error of it is an answer, as over the network."""
    app = assembly.app
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://corral.test", timeout=60) as http,
    ):
        yield http


class Story:
    """Requests of an operator and of scientists, some at a time."""

    def __init__(self, http: httpx.AsyncClient, description: dict[str, Any]) -> None:
        self.http = http
        self.rng = random.Random(SEED)
        self.maker = Maker(self.rng, description["components"]["schemas"])
        every = list(operations(description))
        self.operations = [
            one for each in every for one in [each] * (OFTEN if each.id in OFTEN_ASKED or each.id in GOOD else 1)
        ]
        self.tokens: dict[str, str] = {}
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.wrong: list[str] = []

    async def run(self) -> None:
        await self.sign_in("operator", PASSWORD)
        shown = [(await self.get(path))["items"] for path in ("nodes", "gpus")]
        self.maker.nodes, self.maker.gpus = (tuple(one["id"] for one in items) for items in shown)
        for user in USERS:
            await self._add(user)
        left = iter(range(REQUESTS))
        await asyncio.gather(*(self._ask_on(left) for _ in range(AT_ONCE)))

    async def _ask_on(self, left: Iterator[int]) -> None:
        for _ in left:
            await self._ask(self.rng.choice(self.operations))

    async def _ask(self, operation: Operation) -> None:
        user = self.rng.choice([*USERS, *["operator"] * 5])
        made = self.maker.request(operation)
        answer = await self.http.request(
            made.method,
            made.path,
            params=made.params,
            headers={"Authorization": f"Bearer {self.tokens[user]}"},
            **({"json": made.json} if made.content is None else {"content": made.content}),
        )
        self.statuses[operation.id, answer.status_code] += 1
        if answer.status_code == 500 or str(answer.status_code) not in operation.statuses:
            self.wrong.append(f"{user}: {made} -> {answer.status_code} {answer.text[:500]}")
        if answer.status_code == 401:
            await self._add(user)
        if answer.is_success and answer.headers.get("content-type") == "application/json":
            self.maker.saw(operation, answer.json())

    async def _add(self, user: str) -> None:
        """Signs the user in once more, who may have been deleted, disabled or signed out."""
        if await self.sign_in(user, PASSWORD) or user == "operator":
            return
        await self.sign_in("operator", PASSWORD)
        headers = {"Authorization": f"Bearer {self.tokens['operator']}"}
        await self.http.patch(f"{API}/users/{user}", json={"disabled": False}, headers=headers)
        if await self.sign_in(user, PASSWORD):
            return
        await self.http.delete(f"{API}/users/{user}", headers=headers)
        await self.http.post(f"{API}/users", json={"name": user, "password": PASSWORD}, headers=headers)
        await self.sign_in(user, PASSWORD)

    async def sign_in(self, user: str, password: str) -> bool:
        body = {"user": user, "password": password, "token_name": "story"}
        answer = await self.http.post(f"{API}/auth/login", json=body)
        # Another one may delete the user at the same time.
        self.tokens[user] = answer.json()["token"] if answer.is_success else "none"
        return answer.is_success

    async def get(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens['operator']}"}
        return (await self.http.get(f"{API}/{path}", headers=headers)).raise_for_status().json()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets other requests in between the looks of one request at the store and at the state. A user who was deleted
    signs in again without a wait."""
    monkeypatch.setattr(LoginThrottle, "begin", lambda *_: 0.0)
    rng = random.Random(SEED)

    def late(method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(rng.choice([0, 0, 0.01, 0.05]))
            return await method(*args, **kwargs)

        return call

    for name in ("execute", "inspect", "read"):
        monkeypatch.setattr(ServerContext, name, late(getattr(ServerContext, name)))


def test_a_job_may_end_while_a_user_asks_why_it_waits(assembly: Assembly, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last job of its line: with it, the line goes."""

    async def run() -> list[httpx.Response]:
        async with client_of(assembly) as http:
            story = Story(http, {"components": {"schemas": {}}, "paths": {}})
            await story.sign_in("operator", PASSWORD)
            headers = {"Authorization": f"Bearer {story.tokens['operator']}"}
            for node in (await story.get("nodes"))["items"]:
                (await http.post(f"{API}/nodes/{node['id']}/cordon", headers=headers)).raise_for_status()
            answers = []
            for ends in ("stop", "delete"):
                body = {"command": ["true"], "gpus": 1}
                job = (await http.post(f"{API}/jobs", json=body, headers=headers)).raise_for_status().json()["id"]

                async def end(job: str = job, ends: str = ends) -> None:
                    (await http.post(f"{API}/jobs/{job}/stop", headers=headers)).raise_for_status()
                    if ends == "delete":
                        (await http.delete(f"{API}/jobs/{job}", headers=headers)).raise_for_status()

                happens_before(monkeypatch, "inspect", end)
                answers.append(await http.get(f"{API}/jobs/{job}/why", headers=headers))
            return answers

    stopped, deleted = asyncio.run(run())
    assert (stopped.status_code, stopped.json()["state"]) == (200, "stopped")
    assert deleted.status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "look"),
    [
        ("queues", {"name": "new"}, "inspect"),
        ("maintenance-windows", {"name": "new", "nodes": [], "until": "2100-01-01T00:00:00Z"}, "inspect"),
        ("pools", {"name": "new"}, "read"),
        ("groups", {"name": "new"}, "read"),
        ("permission-groups", {"name": "new", "functions": []}, "read"),
        ("flavors", {"name": "new"}, "read"),
        ("packages", {"name": "new", "cpus": 1}, "read"),
        ("reservations", {"name": "new", "pool": "default", "gpus": 1, "users": ["operator"]}, "read"),
    ],
)
def test_a_new_object_may_be_deleted_before_it_is_shown(
    assembly: Assembly, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any], look: str
) -> None:
    async def run() -> httpx.Response:
        async with client_of(assembly) as http:
            story = Story(http, {"components": {"schemas": {}}, "paths": {}})
            await story.sign_in("operator", PASSWORD)
            headers = {"Authorization": f"Bearer {story.tokens['operator']}"}
            if "nodes" in body:
                body["nodes"] = [(await story.get("nodes"))["items"][0]["id"]]

            async def delete() -> None:
                (await http.delete(f"{API}/{path}/new", headers=headers)).raise_for_status()

            happens_before(monkeypatch, look, delete)
            return await http.post(f"{API}/{path}", json=body, headers=headers)

    answer = asyncio.run(run())
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/deleted-meanwhile")


UNDER_WAY: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "jobs", {"command": ["true"]}),
    ("PUT", "secrets/key", {"value": "the secret of the next user of this name"}),
    ("POST", "me/ssh-keys", {"name": "laptop", "public_key": SSH_KEY}),
    ("PUT", "me/first-steps", {"dismissed": True}),
    ("POST", "queues", {"name": "new"}),
]


def test_a_request_under_way_ends_with_the_rights_of_its_caller(
    assembly: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request waits for the host of a repository for most of a minute, for example."""

    async def run() -> tuple[list[httpx.Response], list[Any]]:
        async with client_of(assembly) as http:
            story = Story(http, {"components": {"schemas": {}}, "paths": {}})
            await story.sign_in("operator", PASSWORD)
            root = {"Authorization": f"Bearer {story.tokens['operator']}"}

            async def asked(user: str, change: dict[str, Any] | None, made: tuple[str, str, Any]) -> httpx.Response:
                body = {"name": user, "password": PASSWORD, "role": "operator"}
                (await http.post(f"{API}/users", json=body, headers=root)).raise_for_status()
                await story.sign_in(user, PASSWORD)

                async def changed() -> None:
                    method = "DELETE" if change is None else "PATCH"
                    (await http.request(method, f"{API}/users/{user}", json=change, headers=root)).raise_for_status()

                happens_before(monkeypatch, "execute", changed)
                method, path, content = made
                headers = {"Authorization": f"Bearer {story.tokens[user]}"}
                return await http.request(method, f"{API}/{path}", json=content, headers=headers)

            changes = (None, {"disabled": True}, {"role": "scientist"})
            cases = [(change, made) for change in changes for made in UNDER_WAY]
            answers = [await asked(f"maria-{number}", *case) for number, case in enumerate(cases)]
            return answers, (await story.get("jobs"))["items"]

    answers, jobs = asyncio.run(run())
    assert {(answer.status_code, answer.json()["type"]) for answer in answers} == {(401, "/problems/not-signed-in")}
    assert jobs == []


def happens_before(monkeypatch: pytest.MonkeyPatch, look: str, event: Callable[[], Awaitable[None]]) -> None:
    """Lets something happen once, before the next look of a request at the state (inspect) or at the store (read)."""
    original = getattr(ServerContext, look)

    async def late(context: ServerContext, *args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(ServerContext, look, original)
        await event()
        return await original(context, *args, **kwargs)

    monkeypatch.setattr(ServerContext, look, late)


@pytest.mark.usefixtures("pauses")
def test_no_answer_is_an_error_of_the_server(assembly: Assembly, errors: Errors) -> None:
    description = describe(bare_app())

    async def run() -> Story:
        async with client_of(assembly) as http:
            story = Story(http, description)
            await story.run()
            return story

    story = asyncio.run(run())
    assert sum(status < 300 for _, status in story.statuses.elements()) > REQUESTS / 5, "a story about nothing"
    assert not story.wrong, "\n".join(story.wrong)
    assert not errors.lines, "\n".join(errors.lines)
