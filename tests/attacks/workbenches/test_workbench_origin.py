"""The content of a workbench cannot attack the browser of an operator who opens it.

Eve's workbench serves whatever she likes: a program in place of Jupyter can do all that an extension, a page among the
files or the output of a notebook can. The operator is signed in, opens ann's workbench, and then eve's.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Response, sync_playwright
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.attacks.hostile_workbench import PAGE, PROGRAM, WORKER
from tests.e2e.conftest import CHROMIUM, CHROMIUM_OPTIONS, LAUNCHER
from tests.e2e.jupyter import Kernel
from tests.e2e.workbench_steps import create, token
from tests.integration.api import problem
from tests.integration.waiting import wait_until
from tests.servers.corral_server import PASSWORD, CorralServer, free_port, plain_http
from tests.servers.tls_relay import tls_relay

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

#: Where the console and workbenches are found. Browsers say more about requests to this machine itself than to others,
#: so both are tried; and a host name as well as a port of a host whose cookies they share.
PLACES = {
    "below localhost": ("http://127.0.0.1:{own}", None),
    "below localhost itself": ("http://localhost:{own}", None),
    "ports": ("http://hub.test:{own}", "http://hub.test:{{port}}"),
    "ports of this machine": ("http://127.0.0.1:{own}", "http://127.0.0.1:{{port}}"),
    "names below the console's": ("http://hub.test:{own}", "http://{{workbench}}.hub.test:{own}"),
    "names with TLS": ("https://hub.test:{tls}", "https://{{workbench}}.hub.test:{tls}"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Installation:
    server: CorralServer
    console: str
    #: where the programs of the workbenches are
    place: Path
    anns: dict[str, Any]
    eves: dict[str, Any]

    @property
    def cookie(self) -> str:
        """The name of the session cookie."""
        return "__Host-corral_session" if self.console.startswith("https:") else "corral_session"

    def session(self, user: str) -> str:
        """The secret of a new session."""
        password = PASSWORD if user == "operator" else f"password-of-{user}"
        with plain_http(self.server.url) as http:
            answer = http.post("/api/v1/auth/login", json={"user": user, "password": password}).raise_for_status()
        name, _, rest = answer.headers["set-cookie"].partition("=")
        assert name == self.cookie
        assert ("Secure" in rest) == name.startswith("__Host-")
        return str(rest.partition(";")[0])

    def heard(self, name: str) -> str:
        """The requests that the program in a workbench has received."""
        path = self.place / name / "bin" / "heard"
        return path.read_text() if path.exists() else ""


def hostile_venv(place: Path, name: str) -> str:
    programs = place / name / "bin"
    programs.mkdir(parents=True)
    for file, content in {"jupyter-lab": PROGRAM, "page.html": PAGE, "worker.js": WORKER}.items():
        (programs / file).write_text(content)
    (programs / "jupyter-lab").chmod(0o755)
    return str(programs.parent)


@pytest.fixture(scope="module", params=PLACES)
def installation(request: pytest.FixtureRequest) -> Iterator[Installation]:
    place = Path(tempfile.mkdtemp(prefix="corral-origin-"))
    config = place / "corral.yaml"
    server = CorralServer(place / "home", "--virtual-gpus", "2xA10", "--config", str(config))
    console, pattern = PLACES[request.param]
    ports = {"own": server.port, "tls": free_port()}
    url = f", url: '{pattern.format(**ports)}'" if pattern is not None else ""
    public = f"server: {{public_url: '{console.format(**ports)}'}}\n" if "hub.test" in console else ""
    config.write_text(f"{public}workbench: {{operators_open: true, ports: {server.port + 1}-65535{url}}}\n")
    with tls_relay(ports["tls"], server.port):
        yield from prepared(server, console.format(**ports), place)


def prepared(server: CorralServer, console: str, place: Path) -> Iterator[Installation]:
    try:
        server.start()
        for user in ("ann", "eve"):
            server.add_user(user)
        anns = create(server, "ann", "anns", venv=hostile_venv(place, "anns"))
        eves = create(server, "eve", "eves", venv=hostile_venv(place, "eves"))
        yield Installation(server=server, console=console, place=place, anns=anns, eves=eves)
        for user, view in (("ann", anns), ("eve", eves)):
            with server.http(user) as http:
                http.post(f"/workbenches/{view['id']}/stop").raise_for_status()
    finally:
        server.kill()
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        pytest.skip("there is no Chromium: install it with scripts/install-test-servers (package chromium)")
    names = "--host-resolver-rules=MAP hub.test 127.0.0.1, MAP *.hub.test 127.0.0.1"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=LAUNCHER, args=[*CHROMIUM_OPTIONS, names])
        yield launched
        launched.close()


@pytest.fixture
def operator(browser: Browser, installation: Installation) -> Iterator[BrowserContext]:
    """The browser of an operator who is signed in."""
    context = browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(20_000)
    sign_in(context, installation, "operator", PASSWORD)
    yield context
    context.close()


def sign_in(context: BrowserContext, installation: Installation, user: str, password: str) -> None:
    page = context.new_page()
    page.goto(f"{installation.console}/healthz")
    headers = "{'Content-Type': 'application/json'}"
    sent = f"async body => (await fetch('/api/v1/auth/login', {{method: 'POST', body, headers: {headers}}})).status"
    assert page.evaluate(sent, f'{{"user": "{user}", "password": "{password}"}}') == 200
    page.close()


def opened(context: BrowserContext, installation: Installation, view: dict[str, Any]) -> Page:
    """The workbench as its link in the console opens it."""
    page = context.new_page()
    page.goto(f"{installation.console}/workbenches/{view['id']}/jupyter/lab", wait_until="load")
    page.wait_for_url("**/jupyter/lab")
    return page


def base_of(page: Page, view: dict[str, Any]) -> str:
    parts = urlsplit(page.url)
    return f"{parts.scheme}://{parts.netloc}/workbenches/{view['id']}/jupyter/"


def test_the_content_of_a_workbench_gets_nothing_of_who_opens_it(
    installation: Installation, operator: BrowserContext
) -> None:
    other = opened(operator, installation, installation.anns)
    page = opened(operator, installation, installation.eves)
    assert page.locator("h1").inner_text() == "Work in progress", "the attacker's page is shown"
    before = installation.heard("anns")
    eves = installation.session("eve")
    got = page.evaluate(
        "([console, other, session]) => attack(console, other, session)",
        [installation.console, base_of(other, installation.anns), eves],
    )
    assert {what: value for what, value in got.items() if value is not None} == {}

    # Nothing was done behind its back either.
    with installation.server.http() as http:
        assert {user["name"]: user["role"] for user in http.get("/users").json()["items"]} == {
            "operator": "operator",
            "ann": "scientist",
            "eve": "scientist",
        }
    since = installation.heard("anns")[len(before) :]
    assert "POST" not in since
    assert "forged" not in since
    if "127.0.0.1" in installation.console:
        assert "secret" not in since, "browsers name the page that asks: nothing of what they would not show is passed"
    assert "corral_" not in installation.heard("eves"), "nor did the program in it see a cookie of corral's"

    # Whatever the page planted, the console acts as the operator or not at all, and is itself again at once.
    console = operator.new_page()
    console.goto(f"{installation.console}/healthz")
    asked = "async () => { const me = await fetch('/api/v1/me'); return [me.status, (await me.json()).name]; }"
    answers = [console.evaluate(asked) for _ in range(2)]
    assert "eve" not in [name for _, name in answers]
    assert answers[-1] == [200, "operator"]


#: In a cell of eve's: a page among her files, and a notebook that she trusts, whose output runs where it is shown.
PLANTED = """
import json, subprocess
page = {page!r}
open("page.html", "w").write(page)
script = page.partition("<script>")[2].partition("</script>")[0]
output = {{"output_type": "display_data", "metadata": {{}}, "data": {{"text/html": "<b>shown</b><script>" + script
    + "\\nwindow.attack = attack;</script>"}}}}
cell = {{"cell_type": "code", "id": "one", "execution_count": 1, "metadata": {{}}, "source": "1", "outputs": [output]}}
json.dump({{"cells": [cell], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}, open("shown.ipynb", "w"))
print(subprocess.run(["jupyter", "trust", "shown.ipynb"], capture_output=True, text=True).stdout)
"""


@pytest.mark.parametrize("installation", ["ports of this machine"], indirect=True)
def test_notebook_and_file_in_a_real_jupyter_do_not_reach_the_console(
    installation: Installation, operator: BrowserContext
) -> None:
    server = installation.server
    home = installation.place / "eves-home"
    home.mkdir()
    view = create(server, "eve", "real", env={"HOME": str(home)})
    assert "Signing notebook" in Kernel(view["jupyter"]["address"], token(server, "eve")).run(PLANTED.format(page=PAGE))
    other = opened(operator, installation, installation.anns)
    tried = [installation.console, base_of(other, installation.anns), "none"]
    for path in ("files/page.html", "lab/tree/shown.ipynb"):
        page = opened(operator, installation, view)
        # As by a link in JupyterLab: it shows files to its own pages only.
        page.evaluate("url => { location.href = url; }", f"{base_of(page, view)}{path}")
        page.wait_for_function("() => window.attack", timeout=90_000)
        got = page.evaluate("([console, other, session]) => attack(console, other, session)", tried)
        assert {what: value for what, value in got.items() if value is not None} == {}, path
    with server.http() as http:
        assert [user["name"] for user in http.get("/users?role=operator").json()["items"]] == ["operator"]
    with server.http("eve") as http:
        http.post(f"/workbenches/{view['id']}/stop").raise_for_status()


def test_pages_of_workbenches_are_shown_as_such(installation: Installation, operator: BrowserContext) -> None:
    seen: list[Response] = []
    operator.on("response", lambda answer: seen.append(answer))
    page = opened(operator, installation, installation.eves)
    shown = next(answer for answer in reversed(seen) if answer.url == page.url)
    headers = shown.all_headers()
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"
    assert not {"access-control-allow-origin", "service-worker-allowed", "clear-site-data"} & {*headers}
    console = next(answer for answer in seen if answer.url.startswith(f"{installation.console}/workbenches/"))
    assert console.status == 303, "the console's own origin serves none of it"
    cookies = {cookie["name"].removeprefix("__Secure-") for cookie in operator.cookies()}
    assert cookies == {installation.cookie, "corral_workbench"}, "what it planted by headers is not kept"


def test_the_console_is_shown_in_no_frame_and_keeps_its_windows_to_itself(installation: Installation) -> None:
    for path in ("/", "/signin", "/api/v1/me", "/workbenches", "/healthz"):
        headers = httpx.get(f"{installation.server.url}{path}", headers={"Accept": "text/html"}).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"], path
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["origin-agent-cluster"] == "?1"
        assert "access-control-allow-origin" not in headers


# ---------------------------------------------------------------- without a browser's help


@dataclass(frozen=True, kw_only=True, slots=True)
class Visitor:
    """A program with the cookies of a browser. It connects to this machine, whatever the address says."""

    installation: Installation

    def ask(self, method: str, url: str, **headers: str) -> httpx.Response:
        parts = urlsplit(url)
        port = parts.port or 80
        target = f"{parts.scheme}://127.0.0.1:{port}{parts.path}{f'?{parts.query}' if parts.query else ''}"
        sent = {"Host": parts.netloc, **headers}
        return httpx.request(method, target, headers=sent, trust_env=False, timeout=30, verify=False)

    def socket(self, url: str, cookie: str, origin: str) -> None:
        parts = urlsplit(url)
        # Behind TLS as well: what is asked is which page it comes from.
        port = self.installation.server.port if parts.scheme == "https" else parts.port or 80
        connection = socket.create_connection(("127.0.0.1", port))
        connect(
            f"ws://{parts.netloc}{parts.path}",
            sock=connection,
            origin=Origin(origin),
            additional_headers={"Cookie": cookie},
            proxy=None,
        ).close()

    def ticket(self, session: str, view: dict[str, Any]) -> str:
        """The address that a browser with this session is sent to."""
        url = f"{self.installation.console}/workbenches/{view['id']}/jupyter/lab"
        answer = self.ask("GET", url, Cookie=f"{self.installation.cookie}={session}", Accept="text/html")
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def entered(self, session: str, view: dict[str, Any]) -> tuple[str, str]:
        """The address of the workbench's pages, and the cookie that opens them."""
        url = self.ticket(session, view)
        answer = self.ask("GET", url)
        assert answer.status_code in (200, 303)
        cookie = answer.headers["set-cookie"].partition(";")[0]
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc}/workbenches/{view['id']}/jupyter/", cookie


@pytest.fixture
def visitor(installation: Installation) -> Visitor:
    return Visitor(installation=installation)


def test_a_ticket_is_good_once_and_for_one_workbench(installation: Installation, visitor: Visitor) -> None:
    ann = installation.session("ann")
    url = visitor.ticket(ann, installation.anns)
    assert visitor.ask("GET", url).status_code in (200, 303)
    problem(visitor.ask("GET", url), 401)
    anns, _ = visitor.entered(ann, installation.anns)
    eves, _ = visitor.entered(installation.session("eve"), installation.eves)
    assert urlsplit(anns).netloc != urlsplit(eves).netloc, "an origin for each"
    ticket = urlsplit(visitor.ticket(ann, installation.anns)).query
    at_eves = f"{eves.removesuffix('jupyter/')}enter?{ticket}"
    problem(visitor.ask("GET", at_eves), 401)
    # No other user gets one.
    url = f"{installation.console}/workbenches/{installation.anns['id']}/jupyter/lab"
    problem(visitor.ask("GET", url, Cookie=f"{installation.cookie}={installation.session('eve')}"), 403)
    problem(visitor.ask("GET", url), 401)


def test_a_cookie_or_token_opens_only_its_own_origin(installation: Installation, visitor: Visitor) -> None:
    ann, eve = installation.session("ann"), installation.session("eve")
    anns, cookie = visitor.entered(ann, installation.anns)
    _, other = visitor.entered(eve, installation.eves)
    assert visitor.ask("GET", f"{anns}lab", Cookie=cookie).status_code == 200
    # At the workbench neither a session nor a token nor a cookie of another workbench is accepted.
    problem(visitor.ask("GET", f"{anns}lab", Cookie=f"{installation.cookie}={ann}"), 401)
    problem(visitor.ask("GET", f"{anns}lab", Authorization=f"Bearer {installation.server.token('ann')}"), 401)
    problem(visitor.ask("GET", f"{anns}lab", Cookie=other), 401)
    # Cookies that a page put beside it change nothing.
    assert visitor.ask("GET", f"{anns}lab", Cookie=f"{other}; {cookie}; corral_workbench=x").status_code == 200
    # Nothing of corral's is there, and nothing of others.
    with_all = f"{cookie}; {installation.cookie}={ann}"
    for path in ("/api/v1/me", "/", "/signin", "/healthz", f"/workbenches/{installation.eves['id']}/jupyter/lab"):
        at_workbench = f"{anns.removesuffix(urlsplit(anns).path)}{path}"
        assert visitor.ask("GET", at_workbench, Cookie=with_all).status_code in (404, 307), path
    # Nor does the API accept what a workbench does.
    for given in (cookie, f"{installation.cookie}={cookie.partition('=')[2]}"):
        problem(visitor.ask("GET", f"{installation.console}/api/v1/me", Cookie=given), 401)
    # Who signs out is out.
    csrf = visitor.ask("GET", f"{installation.console}/api/v1/me", Cookie=f"{installation.cookie}={ann}").json()[
        "csrf_token"
    ]
    out = {"Cookie": f"{installation.cookie}={ann}", "X-CSRF-Token": csrf}
    assert visitor.ask("POST", f"{installation.console}/api/v1/auth/logout", **out).status_code == 204
    problem(visitor.ask("GET", f"{anns}lab", Cookie=cookie), 401)


def test_only_its_own_pages_change_something(installation: Installation, visitor: Visitor) -> None:
    anns, cookie = visitor.entered(installation.session("ann"), installation.anns)
    own = f"{urlsplit(anns).scheme}://{urlsplit(anns).netloc}"
    assert cookie.startswith("__Secure-corral_workbench=" if own.startswith("https:") else "corral_workbench=")
    for origin in ("http://evil.example", installation.console, "null", f"{own}0", f"x{own}"):
        problem(visitor.ask("POST", f"{anns}api/kernels", Cookie=cookie, Origin=origin), 403)
        problem(visitor.ask("GET", f"{anns}api/contents", Cookie=cookie, Origin=origin), 403)
        with pytest.raises(InvalidStatus) as refused:
            visitor.socket(f"{anns}api/x", cookie, origin)
        assert refused.value.response.status_code == 403
    problem(visitor.ask("POST", f"{anns}api/kernels", Cookie=cookie), 403)
    fetched = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}
    problem(visitor.ask("GET", f"{anns}api/contents", Cookie=cookie, **fetched), 403)
    assert visitor.ask("POST", f"{anns}api/kernels", Cookie=cookie, Origin=own).status_code == 200


def test_the_api_refuses_pages_of_other_origins(installation: Installation, visitor: Visitor) -> None:
    session = installation.session("operator")
    me = f"{installation.console}/api/v1/me"
    own = {"Cookie": f"{installation.cookie}={session}"}
    csrf = visitor.ask("GET", me, **own).json()["csrf_token"]
    for foreign in (
        {"Origin": "http://evil.example"},
        {"Origin": f"{installation.console}1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    ):
        problem(visitor.ask("GET", me, **own, **foreign), 403)
        logout = f"{installation.console}/api/v1/auth/logout"
        problem(visitor.ask("POST", logout, **own, **foreign, **{"X-CSRF-Token": csrf}), 403)
    assert visitor.ask("GET", me, **own, Origin=installation.console).status_code == 200


def test_open_pages_go_on_after_a_restart(installation: Installation, visitor: Visitor) -> None:
    ann = installation.session("ann")
    anns, cookie = visitor.entered(ann, installation.anns)
    installation.server.kill()
    installation.server.start()
    wait_until(
        lambda: visitor.ask("GET", f"{anns}lab", Cookie=cookie).status_code == 200, "the next server lets the page in"
    )
    assert visitor.entered(ann, installation.anns)[0] == anns, "at the same origin"
