"""The server of the Model Context Protocol: tools, documents as resources, and the two transports."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from corral.cli.assistant.mcp_guard import Guard, Receive, Send, is_accepted
from corral.cli.assistant.mcp_tools import Tools, tools_of
from corral.cli.habits.usage_errors import sentence_of
from corral.client.client import Client
from corral.client.http.errors import ApiProblem, ClientError

INSTRUCTIONS = (
    "corral schedules jobs on shared GPUs. Ask `status` and `list_jobs` first; `why` explains a job that waits. "
    "Call `dry_run` before `submit`. Tools that change something do nothing without confirm=true: ask the user first."
)
#: Documents that an assistant may read, by the name of the resource.
DOCUMENTS = {
    "command-line": "reference/cli.md",
    "words-of-other-tools": "reference/habits.md",
    "submit-jobs": "how-to/jobs/submit-jobs.md",
    "understand-the-wait": "how-to/scheduling/understand-the-wait.md",
    "glossary": "glossary.md",
}

#: Open at the same time over HTTP.
CONNECTIONS = 500

#: The token of the current request over HTTP.
_token: ContextVar[str | None] = ContextVar("token", default=None)


class AssistantServer(MCPServer[Any]):
    """Refuses arguments that a tool does not have: an assistant that writes `gpu` means GPUs, and would get none."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        known = {tool.name: list(tool.input_schema.get("properties", {})) for tool in await self.list_tools()}
        unknown = [argument for argument in arguments if argument not in known.get(name, arguments)]
        if unknown:
            there = ", ".join(known[name]) or "none"
            raise ToolError(f"{name} has no argument {unknown[0]!r}. Its arguments: {there}.")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            raise ToolError("; ".join(_sentence(detail) for detail in error.__cause__.errors()) + ".") from error


def _sentence(detail: Any) -> str:
    place = ".".join(str(part) for part in detail["loc"])
    return f"{place}: {sentence_of(detail) or detail['msg']}"


def assistant_server(opened: Callable[[], AbstractContextManager[Client]]) -> MCPServer[Any]:
    """The server with its tools and documents; `opened` yields the client of the current caller."""
    server = AssistantServer("corral", instructions=INSTRUCTIONS, log_level="WARNING")
    for name, tool in tools_of(Tools(opened)).items():
        server.add_tool(_with_plain_errors(tool), name=name, description=inspect.getdoc(tool))
    for name, place in DOCUMENTS.items():
        path = documents() / place
        if path.is_file():
            server.resource(f"corral://docs/{name}", name=name, mime_type="text/markdown")(_reader(path))
    return server


def _reader(path: Path) -> Callable[[], str]:
    def read() -> str:
        return path.read_text(encoding="utf-8")

    return read


def documents() -> Path:
    """The documentation: of the repository that corral runs from, or of the package."""
    package = Path(str(files("corral")))
    inside = package / "docs"
    return inside if inside.is_dir() else package.parents[1] / "docs"


def _with_plain_errors(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A refusal of the server is the answer of the tool, in the server's words."""

    @functools.wraps(tool)
    def call(**arguments: Any) -> dict[str, Any]:
        try:
            return tool(**arguments)
        except ClientError as error:
            fields = error.field_errors if isinstance(error, ApiProblem) else []
            detail = "; ".join(f"{field}: {message}" for field, message in fields) or error.message
            raise ToolError(f"{detail}. {error.hint}".rstrip(". ") + ".") from error

    return call


def serve_stdio(opened: Callable[[], AbstractContextManager[Client]]) -> None:
    assistant_server(opened).run("stdio")


def serve_http(corral: str, *, host: str, port: int) -> None:
    """Every request has the rights of its own token; the address of corral's server is the same for all."""
    import uvicorn

    uvicorn.run(
        http_application(corral, host=host),
        host=host,
        port=port,
        log_level="warning",
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=5,
    )


def http_application(corral: str, *, host: str) -> Any:
    @contextmanager
    def opened() -> Iterator[Client]:
        with Client(corral, _token.get()) as client:
            yield client

    inner = assistant_server(opened).streamable_http_app(stateless_http=True, json_response=True, host=host)

    async def answer(token: str, scope: Any, receive: Receive, send: Send) -> None:
        before = _token.set(token)
        try:
            await inner(scope, receive, send)
        finally:
            _token.reset(before)

    guard = Guard(answer, partial(is_accepted, corral))

    async def application(scope: Any, receive: Receive, send: Send) -> None:
        await (guard if scope["type"] == "http" else inner)(scope, receive, send)

    return application
