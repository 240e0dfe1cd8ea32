"""Apps through a real server: a web program in a job is opened at an origin of its own with a ticket, shared with a
group and by a link, and reached by a tunnel. Its visitors and its pages get nothing beyond it."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.integration.api import API, problem
from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import PASSWORD, CorralServer, free_port, plain_http

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parents[1] / "programs" / "echo_app.py"
SERVE = (sys.executable, str(PROGRAM))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("apps"), "--virtual-gpus", "4xA10") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def ann(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "ann")


@pytest.fixture(scope="module")
def bob(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "bob")


@pytest.fixture(scope="module")
def demo(ann: Person) -> dict[str, Any]:
    """Ann's app, which answers."""
    line = " ".join(map(shlex.quote, SERVE)) + ' "$CORRAL_APP_PORT"'
    job = ann.submit("--gpus", "1", "--name", "demo", "--port", "0", "--app-name", "echo", "--", "sh", "-c", line)
    assert ann.ok("open", job, "--no-browser").strip().endswith(f"/apps/{job}/")
    (view,) = [one for one in ann.read("app", "ls")["items"] if one["job_id"] == job]
    assert (view["title"], view["ready"], view["state"]) == ("echo", True, "running")
    assert isinstance(view, dict)
    return view


class Browser:
    """A browser without scripts: names below localhost are this machine, cookies are kept by host."""

    def __init__(self, server: CorralServer, user: str) -> None:
        password = PASSWORD if user == "operator" else f"{user}-password-1"
        self.port = server.port
        self.jars: dict[str, dict[str, str]] = {}
        with plain_http(server.url) as http:
            answer = http.post(f"{API}/auth/login", json={"user": user, "password": password}).raise_for_status()
        self.keep("127.0.0.1", answer)

    def keep(self, host: str, answer: httpx.Response) -> None:
        for line in answer.headers.get_list("set-cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self.jars.setdefault(host, {})[name] = value

    def go(self, url: str, method: str = "GET", **headers: str) -> httpx.Response:
        """One request, without following."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        jar = self.jars.get(host, {})
        sent = {"Host": parts.netloc, "Accept": "text/html", "Cookie": "; ".join(f"{k}={v}" for k, v in jar.items())}
        with plain_http(f"http://127.0.0.1:{self.port}") as http:
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            answer = http.request(method, target, headers={**sent, **headers}, follow_redirects=False)
        self.keep(host, answer)
        return answer

    def open(self, url: str) -> tuple[str, httpx.Response]:
        """Follow redirects; the last address and its answer."""
        for _ in range(8):
            answer = self.go(url)
            if not answer.is_redirect:
                return url, answer
            parts = urlsplit(url)
            following = answer.headers["location"]
            url = following if "://" in following else f"{parts.scheme}://{parts.netloc}{following}"
        raise AssertionError(f"redirects do not end at {url}")


def test_the_owner_opens_it_at_an_origin_of_its_own(server: CorralServer, demo: dict[str, Any]) -> None:
    browser = Browser(server, "ann")
    url, answer = browser.open(demo["address"])
    origin = f"http://{demo['job_id']}.localhost:{server.port}"
    assert (url, answer.status_code) == (f"{origin}/", 200)
    assert "echo app" in answer.text
    seen = browser.go(f"{origin}/seen/a%20b?x=1").json()
    assert seen["path"] == "/seen/a%20b?x=1"
    assert "corral_" not in str(seen["headers"]), "neither the session nor the pass reaches the program"
    assert {name.lower(): value for name, value in seen["headers"].items()}["cookie"] == "own=1"
    assert "corral_session" not in browser.jars[f"{demo['job_id']}.localhost"], (
        "the program cannot set corral's cookies"
    )

    # WebSockets come from the app's own page only.
    pass_cookie = browser.jars[f"{demo['job_id']}.localhost"]["corral_workbench"]
    cookies = {"Cookie": f"corral_workbench={pass_cookie}", "Host": f"{demo['job_id']}.localhost:{server.port}"}
    place = f"ws://{demo['job_id']}.localhost:{server.port}/ws"

    def socket_here() -> socket.socket:
        return socket.create_connection(("127.0.0.1", server.port))

    only_cookie = {"Cookie": cookies["Cookie"]}
    with connect(place, sock=socket_here(), origin=Origin(origin), additional_headers=only_cookie) as talk:
        talk.send("hello")
        assert talk.recv() == "echo: hello"
    for foreign in (server.url, "http://j-99.localhost", None):
        with pytest.raises(InvalidStatus):
            connect(
                place,
                sock=socket_here(),
                origin=Origin(foreign) if foreign else None,
                additional_headers=only_cookie,
            )

    # The pass is not a session, and no page of another origin sends changes.
    with plain_http(server.url) as http:
        for name in ("corral_session", "corral_workbench"):
            assert http.get(f"{API}/me", headers={"Cookie": f"{name}={pass_cookie}"}).status_code == 401
    assert browser.go(f"{origin}/x", "POST", Origin=server.url).status_code == 403
    assert browser.go(f"{origin}/x", **{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}).status_code == 403
    assert browser.go(f"{origin}/sw.js", **{"Service-Worker": "script"}).status_code == 403


@pytest.mark.parametrize("path", ["//evil.example/", "///evil.example/x?y=1", "/\\\\evil.example/"])
def test_an_address_of_the_app_leads_to_no_other_host(server: CorralServer, demo: dict[str, Any], path: str) -> None:
    browser = Browser(server, "ann")
    entered = browser.go(f"{server.url}/apps/{demo['job_id']}{path}").headers["location"]
    answer = browser.go(entered)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/evil.example/")


def test_no_other_user_opens_it_and_a_token_does_it_for_programs(
    server: CorralServer, demo: dict[str, Any], ann: Person, bob: Person
) -> None:
    _, refused = Browser(server, "bob").open(demo["address"])
    assert refused.status_code == 403
    assert f"/apps/{demo['job_id']}" not in str(bob.read("app", "ls"))
    assert bob.run("open", demo["job_id"]).code == 4
    with plain_http(server.url) as http:
        assert (
            http.get(f"/apps/{demo['job_id']}/", headers={"Accept": "text/html"})
            .headers["location"]
            .startswith("/signin")
        )
        tokens = {
            name: {"Authorization": f"Bearer {server.token(name, f'{name}-password-1')}"} for name in ("ann", "bob")
        }
        own = http.get(f"/apps/{demo['job_id']}/seen", headers=tokens["ann"])
        assert own.json()["path"] == "/seen"
        assert own.headers["content-security-policy"] == "sandbox"
        assert "Authorization" not in own.json()["headers"]
        problem(http.get(f"/apps/{demo['job_id']}/seen", headers=tokens["bob"]), 403)
        # A ticket is for one job, and for one time.
        ticket = Browser(server, "ann").go(demo["address"]).headers["location"]
        other = ticket.replace(f"{demo['job_id']}.localhost", "j-99.localhost").replace(demo["job_id"], "j-99")
        assert "own=1" not in str(Browser(server, "bob").go(other).headers)
        assert Browser(server, "bob").go(ticket).status_code == 303, "j-99 did not use up the ticket of another place"


def test_a_group_and_a_link_let_others_in_until_they_end(
    server: CorralServer, demo: dict[str, Any], ann: Person, bob: Person, operator: Person
) -> None:
    job = demo["job_id"]
    assert bob.run("app", "share", job, "--link").code == 4
    ann.ok("app", "share", job, "--group", "default")
    browser = Browser(server, "bob")
    url, answer = browser.open(demo["address"])
    assert answer.status_code == 200
    assert job in str(bob.read("app", "ls"))
    ann.ok("app", "unshare", job, "--group", "default", "-y")
    assert browser.go(url).status_code == 403, "a page that is open loses access"

    made = ann.read("app", "share", job, "--link", "--for", "1h")
    by_link = Browser(server, "bob")
    url, answer = by_link.open(made["address"])
    assert answer.status_code == 200
    assert "corral_link" not in url, "the program does not see the secret of the link"
    assert by_link.go(url).status_code == 200
    _, guessed = Browser(server, "bob").open(f"{demo['address']}?corral_link=guessed")
    assert guessed.status_code == 403
    with plain_http(server.url) as http:
        answer = http.get(urlsplit(made["address"]).path, headers={"Accept": "text/html"})
        assert answer.headers["location"].startswith("/signin"), "a link needs a sign-in, too"
    shown = str(ann.read("app", "show", job)) + str(operator.read("events", "--limit", "100"))
    assert made["address"].partition("corral_link=")[2] not in shown, "the secret is shown once"
    ann.ok("app", "unshare", job, "--link", made["name"], "-y")
    assert by_link.go(url).status_code == 403

    short = ann.read("app", "share", job, "--link", "--for", "1s")
    wait_until(lambda: Browser(server, "bob").open(short["address"])[1].status_code == 403, "the link has ended")
    assert "at most 30 days" in ann.run("app", "share", job, "--link", "--for", "40d").err


def test_a_tunnel_leads_to_ports_of_the_job_and_to_no_others(
    server: CorralServer, demo: dict[str, Any], ann: Person, bob: Person, tmp_path: Path
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        # The port of the server itself, and of a program that is not the job's.
        for port in (server.port, other.getsockname()[1]):
            refused = ann.run("tunnel", demo["job_id"], str(port), "--local", "0")
            assert refused.code == 1
            assert "no program of the job listens" in refused.err
    assert bob.run("tunnel", demo["job_id"], "8080").code == 4

    served = free_port()
    job = ann.submit("--name", "plain", "--", sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(served))
    ann.wait_for(job, "running")
    for arguments, expected in (((job, str(served)), "Directory listing"), ((demo["job_id"],), "echo app")):
        local = free_port()
        out = tmp_path / f"tunnel-{local}"
        wait_until(partial(_answers, served), "the program answers")
        process = ann.fork("tunnel", *arguments, "--local", str(local), out=out)
        try:
            wait_until(partial(_answers, local), "the tunnel listens")
            for _ in range(2):
                with plain_http(f"http://127.0.0.1:{local}") as http:
                    assert expected in http.get("/").text
        finally:
            os.kill(process.pid, 2)
            assert process.wait(timeout=60) == 0
    ann.ok("stop", job)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_an_app_is_a_job_like_others(ann: Person, tmp_path: Path) -> None:
    # A known app is a program that must be there; its own arguments come last.
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "tensorboard"
    fake.write_text(f'#!/bin/sh\necho "$@"\nexec {shlex.join(SERVE)} "$4"\n')
    fake.chmod(0o755)
    path = f"PATH={programs}:{os.environ['PATH']}"
    job = ann.submit("--app", "tensorboard", "--env", path, "--", "--logdir", "runs")
    ann.ok("open", job, "--no-browser")
    assert ann.ok("logs", job).strip().endswith("--logdir . --logdir runs")
    assert ann.read("show", job)["app"] == "tensorboard"
    ann.ok("stop", job)
    assert ann.wait_for(job, "stopped")["end_reason"] == "stopped_by_user"

    assert "there is no app 'nothing'" in ann.run("submit", "--app", "nothing").err
    assert "leave app or port out" in ann.run("submit", "--app", "mlflow", "--port", "80").err
    assert "has no app" in ann.run("open", ann.submit("--", "true")).err
    ended = ann.submit("--port", "8080", "--retries", "0", "--", "sh", "-c", "exit 7")
    assert ann.wait_for(ended, "failed")["exit_code"] == 7
    names = [one["name"] for one in ann.read("app", "known")["items"]]
    assert {"tensorboard", "code-server", "mlflow"} <= set(names)
