"""At which origin a workbench's pages are, and whose origin a request came to."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import ValidationError
from starlette.datastructures import URL

from corral.server.http.problems import Problem
from corral.server.settings.sections.server_sections import ServerSettings, WorkbenchSettings
from corral.server.settings.settings import Settings
from corral.server.workbenches.workbench_origins import WorkbenchOrigins, is_loopback
from corral.server.workbenches.workbench_ports import WorkbenchPorts


class OnePort:
    """Port 9001 is j-7's."""

    async def port_of(self, job_id: str) -> int:
        assert job_id == "j-7"
        return 9001

    def job_at(self, port: int) -> str | None:
        return "j-7" if port == 9001 else None

    def mark_at(self, port: int) -> str | None:
        return "mark" if port == 9001 else None


def origins(url: str | None = None, **server: Any) -> WorkbenchOrigins:
    settings = Settings(home=Path("/nowhere"), server=ServerSettings(**server), workbench=WorkbenchSettings(url=url))
    return WorkbenchOrigins(settings, cast("WorkbenchPorts", OnePort()))


def scope(host: str, port: int = 8470) -> dict[str, Any]:
    return {"type": "http", "headers": [(b"host", host.encode())], "server": ("10.0.0.1", port)}


@pytest.mark.parametrize(
    ("url", "server", "asked", "found"),
    [
        (None, {}, "http://127.0.0.1:8470/x", "http://j-7.localhost:8470"),
        (None, {}, "http://localhost:9999/", "http://j-7.localhost:9999"),
        (None, {"host": "0.0.0.0"}, "http://localhost/", "http://j-7.localhost:80"),
        (None, {"host": "0.0.0.0"}, "http://10.0.0.1:8470/", "http://10.0.0.1:9001"),
        (None, {"host": "::"}, "http://[fd00::1]:8470/", "http://[fd00::1]:9001"),
        (None, {"host": "0.0.0.0"}, "http://gpu1:8470/", "http://gpu1:9001"),
        ("https://{workbench}.wb.example.org", {}, "https://hub.example.org/", "https://j-7.wb.example.org"),
        ("https://{workbench}.wb.example.org", {}, "http://127.0.0.1:8470/", "https://j-7.wb.example.org"),
        ("https://hub.example.org:{port}", {}, "https://hub.example.org/", "https://hub.example.org:9001"),
    ],
)
def test_where_its_pages_are(url: str | None, server: dict[str, Any], asked: str, found: str) -> None:
    assert asyncio.run(origins(url, **server).url_of("j-7", URL(asked))) == found


@pytest.mark.parametrize(
    ("server", "asked"),
    [
        ({}, "https://hub.example.org/"),
        ({}, "http://hub.example.org/"),
        ({"host": "0.0.0.0"}, "https://hub.example.org/"),
        ({}, "https://localhost/"),
    ],
)
def test_behind_a_proxy_it_must_be_said(server: dict[str, Any], asked: str) -> None:
    with pytest.raises(Problem, match=r"workbench\.url"):
        asyncio.run(origins(None, **server).url_of("j-7", URL(asked)))


@pytest.mark.parametrize(
    ("url", "host", "port", "found"),
    [
        (None, "127.0.0.1:8470", 8470, None),
        (None, "J-7.LocalHost:8470", 8470, "j-7"),
        (None, "j-7.localhost", 8470, "j-7"),
        (None, "j-7.localhost.example.org", 8470, None),
        (None, "x.j-7.localhost", 8470, None),
        (None, "anything", 9001, "j-7"),
        (None, "j-8.localhost", 9001, "j-7"),
        ("https://{workbench}.wb.example.org", "j-7.wb.example.org", 8470, "j-7"),
        ("https://wb-{workbench}.example.org", "wb-j-12.example.org:443", 8470, "j-12"),
        ("https://{workbench}.wb.example.org", "j-7xwb.example.org", 8470, None),
        ("https://{workbench}.wb.example.org", "j-7.localhost:8470", 8470, None),
        ("https://{workbench}.wb.example.org", "hub.example.org", 8470, None),
        ("https://hub.example.org:{port}", "hub.example.org:9001", 9001, "j-7"),
        ("https://hub.example.org:{port}", "hub.example.org:9001", 8470, None),
    ],
)
def test_the_job_of_an_origin(url: str | None, host: str, port: int, found: str | None) -> None:
    """By the port that it truly came in at, never by one that the client names."""
    assert origins(url).job_at(scope(host, port)) == found


@pytest.mark.parametrize(
    "url",
    [
        "https://wb.example.org",
        "https://wb.example.org/{workbench}",
        "https://wb.example.org/?{port}",
        "https://{workbench}.example.org:{port}",
        "{workbench}.example.org",
        "ftp://{workbench}.example.org",
        "https://{workbench}@example.org",
        "https://example.org:80{port}/x",
    ],
)
def test_an_address_that_workbenches_would_share_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        WorkbenchSettings(url=url)


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.3.2.1", "::1", "[::1]", "LOCALHOST."])
def test_this_machine_has_several_names(host: str) -> None:
    assert is_loopback(host)
    assert not is_loopback(f"x{host.strip('[]')}.example.org")


# ---------------------------------------------------------------- ports


class Server:
    """Takes listeners and remembers their ports."""

    def __init__(self) -> None:
        self.listeners: list[Any] = []

    async def serve(self, listener: Any) -> None:
        self.listeners.append(listener)

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()


def ports_of(path: Path, live: set[str], ports: range) -> WorkbenchPorts:
    async def still(job_ids: Collection[str]) -> set[str]:
        return live & set(job_ids)

    return WorkbenchPorts(path=path, host="127.0.0.1", ports=ports, live=still)


def free_range(count: int) -> range:
    """Consecutive ports that no program uses at this moment."""
    import socket

    for first in range(20_000, 30_000, count):
        probes = [socket.socket() for _ in range(count)]
        try:
            for number, probe in enumerate(probes):
                probe.bind(("127.0.0.1", first + number))
        except OSError:
            continue
        else:
            return range(first, first + count)
        finally:
            for probe in probes:
                probe.close()
    raise AssertionError("no ports are free")


def test_a_port_is_kept_and_taken_from_the_longest_ended_only(tmp_path: Path) -> None:
    async def story() -> None:
        live, server, path = {"j-1", "j-2"}, Server(), tmp_path / "ports.json"
        ports = ports_of(path, live, free_range(2))
        await ports.start(server.serve)
        first, second = await ports.port_of("j-1"), await ports.port_of("j-2")
        assert first != second
        assert (ports.job_at(first), ports.job_at(second)) == ("j-1", "j-2")
        assert path.stat().st_mode & 0o777 == 0o600
        mark = ports.mark_at(first)
        with pytest.raises(Exception, match=r"workbench\.ports"):
            await ports.port_of("j-3")
        server.close()

        # The next server serves at the same ports.
        server = Server()
        ports = ports_of(path, live, ports._ports)
        await ports.start(server.serve)
        assert sorted(listener.getsockname()[1] for listener in server.listeners) == sorted([first, second])
        assert (await ports.port_of("j-1"), ports.mark_at(first)) == (first, mark)

        live.clear()
        assert await ports.port_of("j-3") == second, "j-1 was asked for since"
        assert ports.job_at(second) == "j-3"
        assert await ports.port_of("j-2") == first
        assert ports.mark_at(first) != mark, "browsers see that it is another's now"
        server.close()

    asyncio.run(story())


def test_a_port_that_another_program_has_is_not_used(tmp_path: Path) -> None:
    async def story() -> None:
        import socket

        free, server = free_range(2), Server()
        with socket.socket() as other:
            other.bind(("127.0.0.1", free[0]))
            other.listen(1)
            ports = ports_of(tmp_path / "ports.json", {"j-1"}, free)
            await ports.start(server.serve)
            assert await ports.port_of("j-1") == free[1]
        server.close()

    asyncio.run(story())


def test_a_file_that_cannot_be_read_costs_the_ports_and_nothing_else(tmp_path: Path) -> None:
    async def story() -> None:
        path, server = tmp_path / "ports.json", Server()
        for content in ("", "[]", '{"x": 1}', '{"1": {"job_id": "j-1"}}', "\xff"):
            path.write_text(content, encoding="latin-1")
            ports = ports_of(path, set(), free_range(1))
            await ports.start(server.serve)
            assert await ports.port_of("j-1") == ports._ports[0]
            server.close()

    asyncio.run(story())
