"""The relay of a workbench: it accepts clients with the workbench's own key, and no others."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from corral.engines.workbenches import workbench_relay, workbench_start
from corral.engines.workbenches.workbench_relay import Relay, listen_at, tls_context
from corral.stores.workbenches.workbench_keys import NAME, WorkbenchKeys

SECONDS = 60.0
PORTS = (20_000, 60_999)
LARGE = 3_000_000


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> WorkbenchKeys:
    """The keys of the workbench j-1, and of another one, j-2."""
    directory = tmp_path_factory.mktemp("keys")
    found = WorkbenchKeys(lambda job_id: directory / f"{job_id}.key")
    for job_id in ("j-1", "j-2"):
        (directory / f"{job_id}.pem").write_bytes(found.of(job_id))
    return found


@pytest.fixture
def key(keys: WorkbenchKeys, tmp_path: Path) -> str:
    """The copy that the workbench j-1 has."""
    path = tmp_path / "relay.pem"
    path.write_bytes(keys.of("j-1"))
    return str(path)


@contextlib.asynccontextmanager
async def relayed(key: str, target: Path) -> AsyncIterator[int]:
    """A relay before something that repeats what it hears, louder; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper())
        writer.close()

    echo = await asyncio.start_unix_server(answer, target, limit=2 * LARGE)
    listener = listen_at("127.0.0.1", *PORTS)
    relay = asyncio.create_task(Relay(listener, tls_context(key), str(target)).run())
    try:
        yield listener.getsockname()[1]
    finally:
        relay.cancel()
        await asyncio.gather(relay, return_exceptions=True)
        listener.close()
        echo.close()


async def reported(port: int, context: ssl.SSLContext | None) -> bytes:
    """The answer to a client that sends a word and closes; empty if TLS refuses the connection."""
    name = None if context is None else NAME
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
        writer.write(b"word\n")
        heard = await asyncio.wait_for(reader.readline(), SECONDS)
        writer.close()
    except OSError:
        return b""
    return heard


def careless() -> ssl.SSLContext:
    """The TLS context of a client that accepts any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def with_key_of_another(keys: WorkbenchKeys, tmp_path: Path) -> ssl.SSLContext:
    context = careless()
    path = tmp_path / "other.pem"
    path.write_bytes(keys.of("j-2"))
    context.load_cert_chain(path)
    return context


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await asyncio.wait_for(story(), SECONDS)

    asyncio.run(whole())


def test_only_the_workbenchs_own_key_opens(keys: WorkbenchKeys, key: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with relayed(key, tmp_path / "sock") as port:
            assert await reported(port, keys.context("j-1")) == b"WORD\n"
            assert await reported(port, careless()) == b"", "no key"
            assert await reported(port, with_key_of_another(keys, tmp_path)) == b"", "the key of another workbench"
            assert b"WORD" not in await reported(port, None), "no TLS"
            assert await reported(port, keys.context("j-1")) == b"WORD\n", "refused connections leave nothing behind"

    run(story)


def test_an_impostor_is_not_spoken_to(keys: WorkbenchKeys, key: str, tmp_path: Path) -> None:
    """Another program that listens at the port of a workbench that is gone."""

    async def story() -> None:
        async with relayed(key, tmp_path / "sock") as port:
            with pytest.raises(ssl.SSLCertVerificationError):
                await asyncio.open_connection("127.0.0.1", port, ssl=keys.context("j-2"), server_hostname=NAME)

    run(story)


def test_a_silent_client_is_disconnected_and_delays_no_other(
    keys: WorkbenchKeys, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench_relay, "HANDSHAKE_SECONDS", 0.05)
    monkeypatch.setattr(workbench_relay, "MAX_UNAUTHENTICATED", 2)

    async def story() -> None:
        async with relayed(key, tmp_path / "sock") as port:
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
            for reader, _ in silent:
                assert await asyncio.wait_for(reader.read(), SECONDS) == b""
            monkeypatch.setattr(workbench_relay, "HANDSHAKE_SECONDS", SECONDS)
            assert await reported(port, keys.context("j-1")) == b"WORD\n"
            for _, writer in silent:
                writer.close()

    run(story)


def test_large_things_pass_whole_and_the_end_is_seen(keys: WorkbenchKeys, key: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with relayed(key, tmp_path / "sock") as port:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=keys.context("j-1"), server_hostname=NAME, limit=2 * LARGE
            )
            writer.write(b"x" * LARGE + b"\n")
            assert await reader.readline() == b"X" * LARGE + b"\n"
            writer.close()

    run(story)


def test_without_jupyter_clients_are_disconnected(keys: WorkbenchKeys, key: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with relayed(key, tmp_path / "sock") as port:
            (tmp_path / "sock").unlink()
            assert await reported(port, keys.context("j-1")) == b""

    run(story)


def test_a_port_of_the_range_is_taken_or_refused_in_a_message() -> None:
    with listen_at("127.0.0.1", *PORTS) as taken:
        port = taken.getsockname()[1]
        assert PORTS[0] <= port <= PORTS[1]
        with pytest.raises(OSError, match="in use"):
            listen_at("127.0.0.1", port, port)


@pytest.mark.parametrize("module", [workbench_relay, workbench_start])
def test_programs_run_on_old_pythons_with_the_standard_library_alone(module: object) -> None:
    path = str(module.__file__)  # type: ignore[attr-defined]
    ast.parse(Path(path).read_text(), feature_version=(3, 9) if module is workbench_relay else (3, 4))
    subprocess.run([sys.executable, "-IS", "-c", f"import runpy; runpy.run_path({path!r})"], check=True)


def test_run_by_path_it_writes_its_port(keys: WorkbenchKeys, key: str, tmp_path: Path) -> None:
    target, port_file = tmp_path / "sock", tmp_path / "port"
    with socket.socket(socket.AF_UNIX) as jupyter:
        jupyter.bind(str(target))
        jupyter.listen()
        words = ["127.0.0.1", *map(str, PORTS), key, str(target), str(port_file)]
        command = [sys.executable, "-ISu", workbench_relay.__file__, *words]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL) as relay:
            while not port_file.exists():
                assert relay.poll() is None
            with (
                socket.create_connection(("127.0.0.1", int(port_file.read_text())), timeout=SECONDS) as plain,
                keys.context("j-1").wrap_socket(plain, server_hostname=NAME) as connection,
            ):
                connection.sendall(b"word")
                inside, _ = jupyter.accept()
                with inside:
                    assert inside.recv(4) == b"word"
            relay.terminate()


def test_a_missing_key_is_reported(tmp_path: Path) -> None:
    words = ["127.0.0.1", *map(str, PORTS), str(tmp_path / "none"), str(tmp_path / "sock"), str(tmp_path / "port")]
    done = subprocess.run(
        [sys.executable, "-ISu", workbench_relay.__file__, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "the relay cannot listen at 127.0.0.1" in done.stdout
