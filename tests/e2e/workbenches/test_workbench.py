"""A workbench as a scientist uses one: Jupyter in a real browser, at an origin of its own. And what strangers get:
nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from tests.e2e.jupyter import Kernel
from tests.e2e.workbench_steps import ECHO, create, token
from tests.integration.api import problem
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench(server: CorralServer) -> dict[str, Any]:
    """Ann's, with Jupyter."""
    return create(server, "ann", "bench", gpus=1)


def signed_in(browser: Browser, server: CorralServer, user: str, path: str, origin: str | None = None) -> Page:
    """A browser of one's own that asked for a page, was sent to sign in, and got there, or to another origin."""
    page = browser.new_context().new_page()
    page.goto(f"{server.url}{path}", wait_until="domcontentloaded")
    assert page.url == f"{server.url}/signin?next={quote(path, safe='')}", "who is not signed in is asked to"
    page.get_by_label("User").fill(user)
    page.get_by_role("textbox", name="Password").fill(f"password-of-{user}")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{origin or server.url}{path}", wait_until="domcontentloaded")
    return page


def origin_of(server: CorralServer, view: dict[str, Any]) -> str:
    return f"http://{view['id']}.localhost:{server.port}"


# ---------------------------------------------------------------- Jupyter


def test_a_cell_runs_in_a_real_browser(browser: Browser, server: CorralServer, bench: dict[str, Any]) -> None:
    origin = origin_of(server, bench)
    page = signed_in(browser, server, "ann", f"/workbenches/{bench['id']}/jupyter/lab", origin)
    changes: list[tuple[str, int]] = []
    page.on("response", lambda answer: changes.append((answer.request.method, answer.status)))
    page.locator('.jp-LauncherCard[data-category="Notebook"]').first.click(timeout=60_000)
    # Until its kernel is there, the notebook is drawn again and again.
    expect(page.get_by_role("button", name="| Idle")).to_be_visible(timeout=90_000)
    cell = page.locator(".jp-Notebook .jp-Cell .cm-content").first
    cell.fill("import os; print('GPU', os.environ['CUDA_VISIBLE_DEVICES'], 6 * 7)")
    expect(cell).to_contain_text("6 * 7")
    cell.press("Shift+Enter")
    output = page.locator(".jp-OutputArea-output").first
    expect(output).to_contain_text("GPU 0 42", timeout=60_000)
    assert page.url.startswith(f"{origin}/workbenches/{bench['id']}/jupyter/lab"), "an origin of its own"
    assert "ticket" not in page.url
    kept = {cookie["name"]: cookie for cookie in page.context.cookies(origin + f"/workbenches/{bench['id']}/jupyter/")}
    assert "corral_session" not in kept
    assert kept["corral_workbench"]["httpOnly"]
    assert ("POST", 201) in changes, "what Jupyter changes passes its own check against forged requests"
    assert [change for change in changes if change[1] in (401, 403)] == []
    page.context.close()


def test_another_user_gets_403_and_nothing_else(browser: Browser, server: CorralServer, bench: dict[str, Any]) -> None:
    path = f"/workbenches/{bench['id']}/jupyter/"
    page = signed_in(browser, server, "bob", f"{path}lab")
    answer = page.goto(f"{server.url}{path}lab", wait_until="domcontentloaded")
    assert answer is not None
    assert answer.status == 403
    assert page.locator(".jp-LabShell").count() == 0
    page.context.close()
    bob = token(server, "bob")
    for method, where in (("GET", "api/status"), ("GET", "api/contents"), ("POST", "api/kernels"), ("GET", "")):
        problem(httpx.request(method, f"{server.url}{path}{where}", headers=bob, timeout=30), 403)
    with pytest.raises(InvalidStatus) as refused:
        Kernel(bench["jupyter"]["address"], bob, "any").channel()
    assert refused.value.response.status_code == 403
    # One that is not there looks the same to those whose it would not be.
    problem(httpx.get(f"{server.url}/workbenches/j-999/jupyter/", headers=bob), 403)
    problem(httpx.get(f"{server.url}/workbenches/j-999/jupyter/", headers=token(server, "operator")), 404)
    problem(httpx.get(f"{server.url}{path}api/status"), 401)


def test_operators_come_in_with_a_token_but_not_with_a_browser(server: CorralServer, bench: dict[str, Any]) -> None:
    address = bench["jupyter"]["address"]
    assert httpx.get(f"{address}api/status", headers=token(server, "operator")).json()["kernels"] >= 0
    with httpx.Client(timeout=30) as http:
        body = {"user": "operator", "password": "first-password-of-the-operator"}
        http.post(f"{server.url}/api/v1/auth/login", json=body).raise_for_status()
        reported = problem(http.get(f"{address}lab"), 403)
    assert "operators_open" in reported["detail"]


def test_a_bookmark_of_the_workbench_leads_through_the_console(
    browser: Browser, server: CorralServer, bench: dict[str, Any]
) -> None:
    path = f"/workbenches/{bench['id']}/jupyter/"
    page = signed_in(browser, server, "ann", f"{path}lab", origin_of(server, bench))
    page.context.clear_cookies(name="corral_workbench")
    page.goto(f"{origin_of(server, bench)}{path}tree?x=1", wait_until="domcontentloaded")
    assert page.url == f"{origin_of(server, bench)}{path}tree?x=1", "a new ticket, without asking"
    page.goto(f"{origin_of(server, bench)}/", wait_until="domcontentloaded")
    assert page.url.startswith(f"{origin_of(server, bench)}{path}")
    # Who signs out at the console is out here, too.
    token = page.request.get(f"{server.url}/api/v1/me").json()["csrf_token"]
    page.request.post(f"{server.url}/api/v1/auth/logout", headers={"X-CSRF-Token": token})
    page.goto(f"{origin_of(server, bench)}{path}lab", wait_until="domcontentloaded")
    assert page.url.startswith(f"{server.url}/signin?next=")
    page.context.close()


def test_a_token_that_may_only_look_does_not_reach_it(server: CorralServer, bench: dict[str, Any]) -> None:
    with server.http("ann") as http:
        small = http.post("/me/tokens", json={"name": "small", "scopes": ["read"]}).json()["token"]
    reported = problem(
        httpx.get(f"{bench['jupyter']['address']}api/status", headers={"Authorization": f"Bearer {small}"}), 403
    )
    assert reported["type"] == "/problems/insufficient-scope"


def test_the_program_in_it_learns_nothing_of_who_comes(server: CorralServer, tmp_path: Path) -> None:
    """An owner's program is not corral's: it must not get the session or the token of a user, nor plant one."""
    program = tmp_path / "venv" / "bin" / "jupyter-lab"
    program.parent.mkdir(parents=True)
    program.write_text(ECHO)
    program.chmod(0o755)
    view = create(server, "carl", "curious", venv=str(tmp_path / "venv"))
    secret = server.token("carl")
    headers = {"Authorization": f"Bearer {secret}", "Cookie": "corral_session=mine; kept=1", "X-CSRF-Token": "csrf"}
    answer = httpx.get(f"{view['jupyter']['address']}echo", headers=headers)
    assert "kept=1" in answer.text
    assert secret not in answer.text
    assert "corral_session" not in answer.text
    assert "csrf" not in answer.text.lower()
    assert not {"service-worker-allowed", "access-control-allow-origin"} & {*answer.headers}
    assert answer.headers["content-security-policy"] == "sandbox", "no browser shows it as a page of the console"
    assert answer.headers.get_list("set-cookie") == [f"mine=1; Path=/workbenches/{view['id']}/jupyter/"] * 2


def test_large_files_go_through_piece_by_piece(server: CorralServer, bench: dict[str, Any]) -> None:
    address, ann = bench["jupyter"]["address"], token(server, "ann")
    kernel = Kernel(address, ann)
    size = 200 * 1024 * 1024
    work = kernel.run("import os; print(os.getcwd())").strip()
    kernel.run(f"open('large.bin', 'wb').truncate({size})")
    seen = 0
    from_lab = {**ann, "Referer": f"{address}lab"}
    with httpx.stream("GET", f"{address}files/large.bin", headers=from_lab, timeout=60) as answer:
        assert answer.status_code == 200
        assert int(answer.headers["content-length"]) == size
        for piece in answer.iter_raw():
            seen += len(piece)
    assert seen == size
    with httpx.Client(headers=ann, timeout=60) as http:
        http.get(f"{address}lab").raise_for_status()
        body = {"type": "file", "format": "text", "content": "x" * (8 << 20)}
        headers = {"X-XSRFToken": http.cookies["_xsrf"]}
        saved = http.put(f"{address}api/contents/eight.txt", json=body, headers=headers)
    assert saved.status_code == 201, "more than corral's own limit of a body"
    assert (Path(work) / "eight.txt").stat().st_size == 8 << 20
    kernel.run("import os; os.remove('large.bin'); os.remove('eight.txt')")


def exhaust(channel: ClientConnection) -> None:
    while True:
        channel.recv(timeout=60)


def test_a_deleted_token_closes_its_channels(server: CorralServer, bench: dict[str, Any]) -> None:
    with server.http("ann") as http:
        made = http.post("/me/tokens", json={"name": "short"}).json()
        headers = {"Authorization": f"Bearer {made['token']}"}
        kernel = Kernel(bench["jupyter"]["address"], headers)
        with kernel.channel() as channel:
            http.delete(f"/me/tokens/{made['id']}").raise_for_status()
            with pytest.raises(ConnectionClosed) as closed:
                exhaust(channel)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
    problem(httpx.get(f"{bench['jupyter']['address']}api/status", headers=headers), 401)
