"""`corral mcp` with the public client library of the protocol, against a real server."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.integration.cli_harness import CORRAL, Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

TOOLS = {
    *("status", "list_jobs", "show_job", "why", "estimate", "dry_run", "submit", "logs", "stop", "what_if"),
    *("analysis", "reports", "report"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("mcp"), "--virtual-gpus", "2xA100-80G") as server:
        yield server


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def ann(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "ann")


def over_stdio(person: Person, talk: Callable[[Client], Awaitable[None]]) -> None:
    """A conversation with the server that the assistant starts itself."""
    parameters = StdioServerParameters(
        command=CORRAL[0], args=[*CORRAL[1:], "mcp"], env=person.environment(), cwd=str(person.home)
    )

    async def run() -> None:
        async with Client(stdio_client(parameters)) as client:
            await talk(client)

    asyncio.run(asyncio.wait_for(run(), 120))


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    text = "".join(getattr(part, "text", "") for part in result.content)
    assert not result.is_error, text
    return json.loads(text)


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return "".join(getattr(part, "text", "") for part in result.content)


def test_an_assistant_looks_plans_submits_and_stops(ann: Person) -> None:
    async def talk(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        asks = {tool.name for tool in tools if "confirm" in tool.input_schema["properties"]}
        assert asks == {"submit", "stop", "what_if", "report"}
        assert (await call(client, "status"))["gpus"] == 2

        job = {"command": ["sh", "-c", "echo loss 0.5; sleep 600"], "gpus": 1, "options": {"name": "by-assistant"}}
        assert (await call(client, "dry_run", **job))["outcome"] == "start"
        unconfirmed = await call(client, "submit", **job)
        assert "confirm=true" in unconfirmed["not_done"]
        assert (await call(client, "list_jobs"))["jobs"] == []
        submitted = await call(client, "submit", **job, confirm=True)
        assert (submitted["name"], submitted["user"]) == ("by-assistant", "ann")
        ann.wait_for("by-assistant", "running")
        wait_until(lambda: "loss 0.5" in ann.ok("logs", "by-assistant"), "the first line")
        assert (await call(client, "logs", job="by-assistant"))["text"] == "loss 0.5\n"
        assert (await call(client, "logs", job="by-assistant", search="loss"))["lines"][0]["line"] == 1

        waiting = {"command": ["true"], "gpus": 2, "options": {"name": "waits-its-turn"}}
        await call(client, "submit", **waiting, confirm=True)
        why = await call(client, "why", job="waits-its-turn")
        assert why["state"] == "queued"
        assert why["reasons"] or why["summary"]
        assert (await call(client, "estimate", job="waits-its-turn"))["state"] == "queued"
        assert "99" in str((await call(client, "dry_run", command=["true"], gpus=99))["detail"])

        assert "not_done" in await call(client, "stop", job="by-assistant")
        assert ann.state("by-assistant") == "running"
        assert (await call(client, "stop", job="by-assistant", confirm=True))["state"] in ("stopping", "stopped")
        ann.wait_for("waits-its-turn", "completed")

    over_stdio(ann, talk)


def test_a_tool_has_the_rights_of_its_caller_and_says_why_it_is_refused(ann: Person, operator: Person) -> None:
    foreign = operator.submit("--name", "not-anns", "--hold", "--", "true")

    async def as_ann(client: Client) -> None:
        assert "no job" in await refusal(client, "stop", job=foreign, confirm=True)
        assert "perator" in await refusal(client, "reports")
        assert "between 0 and" in await refusal(client, "submit", command=["true"], gpus=-1, confirm=True)

    async def as_operator(client: Client) -> None:
        assert foreign in [job["id"] for job in (await call(client, "list_jobs"))["jobs"]]
        assert (await call(client, "reports"))["reports"] == []
        assert "not_done" in await call(client, "report")
        made = await call(client, "report", period="24h", confirm=True)
        assert made["state"] == "ready"
        assert made["csv"]
        assert "findings" in await call(client, "analysis", period="24h")
        assert "not_done" in await call(client, "what_if", changes={"policy": "fcfs"})

    over_stdio(ann, as_ann)
    over_stdio(operator, as_operator)
    operator.ok("rm", "-y", foreign)


def test_documents_are_resources(ann: Person) -> None:
    async def talk(client: Client) -> None:
        found = {str(resource.uri) for resource in (await client.list_resources()).resources}
        assert "corral://docs/submit-jobs" in found
        read = await client.read_resource("corral://docs/words-of-other-tools")
        assert "corral" in getattr(read.contents[0], "text", "")

    over_stdio(ann, talk)


def test_over_http_each_request_has_the_rights_of_its_token(ann: Person, operator: Person) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}/mcp"
    # the command itself is not signed in
    env = {**ann.environment(), "CORRAL_HOME": str(ann.home / "nobody")}
    serving = subprocess.Popen(
        [*CORRAL, "mcp", "--http", "--port", str(port)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def status() -> int:
        assert serving.poll() is None
        try:
            return httpx.post(address, json={}).status_code
        except httpx.TransportError:
            return 0

    async def whose(token: str) -> str:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            submitted = await call(client, "submit", command=["true"], options={"hold": True}, confirm=True)
            return str(submitted["user"])

    async def both() -> list[str]:
        tokens = [person.read("token", "create", "assistant")["token"] for person in (ann, operator)]
        return list(await asyncio.gather(*(whose(token) for token in tokens)))

    try:
        wait_until(lambda: status() == 401, "it listens, and refuses requests without a token")
        assert asyncio.run(asyncio.wait_for(both(), 120)) == ["ann", "operator"]
    finally:
        serving.terminate()
        serving.wait(timeout=20)


def test_without_the_library_the_command_says_how_to_install_it(ann: Person) -> None:
    hidden = (
        "import sys; sys.modules['mcp'] = None; from corral.cli.main import main; sys.argv = ['corral', 'mcp']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden],
        env=ann.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "corral[mcp]" in done.stderr


def test_wrong_arguments_are_refused_in_plain_words(ann: Person) -> None:
    async def talk(client: Client) -> None:
        before = await call(client, "list_jobs", ended=True)
        unknown = await refusal(client, "submit", command=["true"], gpu=1, confirm=True)
        assert unknown == "submit has no argument 'gpu'. Its arguments: command, gpus, nodes, options, confirm."
        assert await refusal(client, "show_job") == "job: it is missing."
        assert await refusal(client, "list_jobs", limit="many") == "limit: 'many' is not a whole number."
        assert await refusal(client, "dry_run", command="true") == "command: 'true' is not a list."
        assert "got -1." in await refusal(client, "dry_run", command=["true"], gpus=-1)
        assert "is empty" in await refusal(client, "show_job", job="")
        assert await call(client, "list_jobs", ended=True) == before

    over_stdio(ann, talk)


def test_sizes_may_come_from_the_options(ann: Person) -> None:
    async def talk(client: Client) -> None:
        options = {"min_gpus": 1, "max_gpus": 2}
        assert (await call(client, "dry_run", command=["true"], options=options))["outcome"] == "start"
        done = await call(client, "submit", command=["true"], options={"name": "small-one"}, confirm=True)
        assert done["gpus"] == 0
        ann.wait_for("small-one", "completed")
        assert "ended already" in await refusal(client, "stop", job="small-one")

    over_stdio(ann, talk)
