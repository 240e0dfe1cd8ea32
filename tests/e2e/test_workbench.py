"""A workbench as a scientist uses one: Jupyter in a real browser through the server's own door, SSH with a real client,
over restarts of the workbench and of the server. And what strangers get: nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from tests.e2e.conftest import new_key
from tests.e2e.jupyter import Kernel
from tests.integration.api import problem
from tests.integration.cli_harness import Person
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

JUPYTER_SECONDS = 120.0


def token(server: CorralServer, user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token(user)}"}


def create(server: CorralServer, user: str, name: str, **body: Any) -> dict[str, Any]:
    """A workbench that is ready."""
    with server.http(user) as http:
        answer = http.post("/workbenches", json={"name": name, **body})
        assert answer.status_code == 201, answer.text
    return until_ready(server, user, name)


def look(server: CorralServer, user: str, name: str) -> dict[str, Any]:
    with server.http(user) as http:
        answer = http.get(f"/workbenches/{name}")
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found


def until_ready(server: CorralServer, user: str, name: str) -> dict[str, Any]:
    def is_ready() -> bool:
        view = look(server, user, name)
        assert view["state"] not in ("failed", "stopped"), view
        return view["state"] == "running" and all(part["ready"] for part in (view["jupyter"], view["ssh"]) if part)

    wait_until(is_ready, f"workbench {name} is ready", JUPYTER_SECONDS)
    return look(server, user, name)


def until_state(server: CorralServer, user: str, name: str, state: str) -> dict[str, Any]:
    wait_until(lambda: look(server, user, name)["state"] == state, f"workbench {name} is {state}")
    return look(server, user, name)


@pytest.fixture(scope="module")
def bench(server: CorralServer) -> dict[str, Any]:
    """Ann's, with Jupyter."""
    return create(server, "ann", "bench", gpus=1)


@pytest.fixture
def keys(server: CorralServer, ssh_programs: None, tmp_path: Path) -> Path:
    """A key that ann has registered; `other` beside it is nobody's."""
    path = new_key(tmp_path, "ann")
    new_key(tmp_path, "other")
    with server.http("ann") as http:
        body = {"name": tmp_path.name, "public_key": path.with_suffix(".pub").read_text()}
        http.post("/me/ssh-keys", json=body).raise_for_status()
    return path


def signed_in(browser: Browser, server: CorralServer, user: str, path: str) -> Page:
    """A browser of one's own that asked for a page, was sent to sign in, and got there."""
    page = browser.new_context().new_page()
    page.goto(f"{server.url}{path}", wait_until="domcontentloaded")
    assert page.url == f"{server.url}/signin?next={quote(path, safe='')}", "who is not signed in is asked to"
    page.get_by_label("User").fill(user)
    page.get_by_role("textbox", name="Password").fill(f"password-of-{user}")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{server.url}{path}", wait_until="domcontentloaded")
    return page


# ---------------------------------------------------------------- Jupyter


def test_a_cell_runs_in_a_real_browser(browser: Browser, server: CorralServer, bench: dict[str, Any]) -> None:
    page = signed_in(browser, server, "ann", f"/workbenches/{bench['id']}/jupyter/lab")
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
    assert "token" not in page.url
    assert ("POST", 201) in changes, "what Jupyter changes passes its own check against forged requests"
    assert [change for change in changes if change[1] in (401, 403)] == []
    page.context.close()


def test_a_stranger_gets_403_and_nothing_else(browser: Browser, server: CorralServer, bench: dict[str, Any]) -> None:
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
        told = problem(http.get(f"{address}api/status"), 403)
    assert "operators_open" in told["detail"]


def test_pages_of_others_can_change_nothing(server: CorralServer, bench: dict[str, Any]) -> None:
    address = bench["jupyter"]["address"]
    with httpx.Client(timeout=30) as http:
        http.post(
            f"{server.url}/api/v1/auth/login", json={"user": "ann", "password": "password-of-ann"}
        ).raise_for_status()
        session = {"Cookie": f"corral_session={http.cookies['corral_session']}"}
        xsrf = httpx.get(f"{address}lab", headers=session).cookies["_xsrf"]
    own = {"Cookie": f"{session['Cookie']}; _xsrf={xsrf}", "X-XSRFToken": xsrf}
    for origin in ("http://evil.example", "http://127.0.0.1:1", "null"):
        problem(httpx.post(f"{address}api/kernels", headers={**own, "Origin": origin}), 403)
        problem(httpx.get(f"{address}api/contents", headers={**own, "Origin": origin}), 403)
        with pytest.raises(InvalidStatus) as refused:
            Kernel(address, own, "any").channel(origin=origin)
        assert refused.value.response.status_code == 403
    problem(httpx.post(f"{address}api/kernels", headers=own), 403)
    started = httpx.post(f"{address}api/kernels", headers={**own, "Origin": server.url}, timeout=60)
    assert started.status_code == 201
    assert Kernel(address, {**own, "Origin": server.url}, started.json()["id"]).run("print(1 + 1)") == "2\n"
    # Jupyter's own check is in force behind ours.
    forged = {**own, "Origin": server.url, "X-XSRFToken": "forged"}
    assert httpx.post(f"{address}api/kernels", headers=forged).status_code == 403


def test_a_token_that_may_only_look_does_not_reach_it(server: CorralServer, bench: dict[str, Any]) -> None:
    with server.http("ann") as http:
        small = http.post("/me/tokens", json={"name": "small", "scopes": ["read"]}).json()["token"]
    told = problem(
        httpx.get(f"{bench['jupyter']['address']}api/status", headers={"Authorization": f"Bearer {small}"}), 403
    )
    assert told["type"] == "/problems/insufficient-scope"


#: Stands in for Jupyter in the environment of a workbench, as an owner could have it: tells what it was sent.
ECHO = """#!/usr/bin/env python3
import http.server, os, socketserver, sys

class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_own = self.path.endswith(("api/status", "api/kernels", "api/terminals"))
        body = b"[]" if is_own else str(self.headers).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        for path in ("/", "/workbenches/"):
            self.send_header("Set-Cookie", f"corral_session=stolen; Path={path}")
            self.send_header("Set-Cookie", f"mine=1; Path={path}; Domain=example.org")
        self.send_header("Service-Worker-Allowed", "/")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    def get_request(self):
        return super().get_request()[0], ("local", 0)

where = next(word.partition("=")[2] for word in sys.argv if word.startswith("--ServerApp.sock="))
Server(where, Echo).serve_forever()
"""


def test_the_program_in_it_learns_nothing_of_who_comes(server: CorralServer, tmp_path: Path) -> None:
    """An owner's program is not corral's: it must not get anybody's session or token, nor plant one."""
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


def test_who_signs_out_is_cut_off(server: CorralServer, bench: dict[str, Any]) -> None:
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


# ---------------------------------------------------------------- SSH


def ssh(view: dict[str, Any], key: Path, *command: str, known_hosts: Path) -> subprocess.CompletedProcess[str]:
    where = view["ssh"]
    known_hosts.write_text(f"[{where['host']}]:{where['port']} {where['host_key']}\n")
    options = ["UserKnownHostsFile=" + str(known_hosts), "StrictHostKeyChecking=yes", "IdentitiesOnly=yes"]
    options += ["BatchMode=yes", "IdentityAgent=none"]
    # The command as people copy it, with what a test must not take from the machine it runs on.
    words = where["command"].split()
    line = [
        words[0],
        "-F",
        "none",
        "-i",
        str(key),
        *(part for option in options for part in ("-o", option)),
        *words[1:],
    ]
    return subprocess.run([*line, *command], capture_output=True, text=True, timeout=60, check=False)


def test_the_registered_key_logs_in_and_no_other(server: CorralServer, keys: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    view = create(server, "ann", "shell", gpus=2, ssh=True, jupyter=False, env={"GREETING": 'it\'s "me" $HOME'})
    assert view["jupyter"] is None
    done = ssh(view, keys, 'echo "$GREETING|$CUDA_VISIBLE_DEVICES|$CORRAL_JOB_ID"', known_hosts=known)
    assert done.returncode == 0, done.stderr
    indexes = ",".join(gpu.rpartition("-")[2] for gpu in view["job"]["allocation"]["grants"][0]["gpus"])
    greeting, gpus, job_id = done.stdout.strip().split("|")
    assert greeting == 'it\'s "me" $HOME', "the job's environment, as it was given"
    assert len(gpus.split(",")) == 2, indexes
    assert job_id == view["id"]
    assert ssh(view, keys, "exit 7", known_hosts=known).returncode == 7
    refused = ssh(view, tmp_path / "other", "true", known_hosts=known)
    assert refused.returncode == 255
    assert "Permission denied" in refused.stderr
    password = ssh(view, keys, "true", known_hosts=known)
    assert password.returncode == 0
    sent = tmp_path / "sent.txt"
    sent.write_text("hello")
    where = view["ssh"]
    options = ["-F", "none", "-b", "-", "-i", str(keys), "-P", str(where["port"]), "-o", "IdentitiesOnly=yes"]
    copied = subprocess.run(
        ["sftp", *options, "-o", f"UserKnownHostsFile={known}", f"{where['account']}@{where['host']}"],
        input=f"put {sent} sent.txt\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert copied.returncode == 0, copied.stderr
    assert ssh(view, keys, "cat sent.txt", known_hosts=known).stdout == "hello"


def test_a_key_that_is_removed_opens_nothing_any_more(server: CorralServer, keys: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    view = create(server, "ann", "revoking", ssh=True, jupyter=False)
    later = new_key(tmp_path, "later")
    assert ssh(view, keys, "true", known_hosts=known).returncode == 0
    assert ssh(view, later, "true", known_hosts=known).returncode == 255
    with server.http("ann") as http:
        added = http.post(
            "/me/ssh-keys", json={"name": f"{tmp_path.name} later", "public_key": later.with_suffix(".pub").read_text()}
        ).json()
        assert ssh(view, later, "true", known_hosts=known).returncode == 0, "at once"
        http.delete(f"/me/ssh-keys/{added['id']}").raise_for_status()
        assert ssh(view, later, "true", known_hosts=known).returncode == 255, "at once"
    assert ssh(view, keys, "true", known_hosts=known).returncode == 0


# ---------------------------------------------------------------- its life


def test_a_restart_keeps_settings_files_port_and_host_key(server: CorralServer, keys: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    before = create(server, "ann", "lasting", gpus=1, ssh=True, env={"COLOUR": "blue"}, idle_stop="2h")
    kernel = Kernel(before["jupyter"]["address"], token(server, "ann"))
    kernel.run("open('kept.txt', 'w').write('kept')")
    with server.http("ann") as http:
        http.post("/workbenches/lasting/stop").raise_for_status()
        stopped = until_state(server, "ann", "lasting", "stopped")
        assert stopped["idle_seconds"] is None
        problem(httpx.get(f"{before['jupyter']['address']}lab", headers=token(server, "ann")), 409)
        http.post("/workbenches/lasting/start").raise_for_status()
    after = until_ready(server, "ann", "lasting")
    assert after["job"]["attempt"] == before["job"]["attempt"] + 1
    for same in ("id", "idle_stop_seconds", "image", "venv"):
        assert after[same] == before[same]
    assert after["jupyter"]["address"] == before["jupyter"]["address"]
    assert after["ssh"]["command"] == before["ssh"]["command"], "what people have in their configuration still works"
    assert ssh(before, keys, "echo $COLOUR", known_hosts=known).stdout == "blue\n", "nor does the host key alarm them"
    kernel = Kernel(after["jupyter"]["address"], token(server, "ann"))
    assert kernel.run("print(open('kept.txt').read())") == "kept\n"
    told = problem(httpx.delete(f"{server.url}/api/v1/workbenches/lasting", headers=token(server, "ann")), 409)
    assert "stop it first" in told["detail"]


def test_it_outlives_the_server(server: CorralServer) -> None:
    view = create(server, "carl", "survivor")
    kernel = Kernel(view["jupyter"]["address"], token(server, "carl"))
    kernel.run("answer = 42")
    server.kill()
    server.start()
    wait_until(lambda: look(server, "carl", "survivor")["state"] == "running", "the next server knows it")
    again = look(server, "carl", "survivor")
    assert again["job"]["attempt"] == view["job"]["attempt"]
    wait_until(lambda: bool(look(server, "carl", "survivor")["jupyter"]["ready"]), "it is told to be ready")
    assert kernel.run("print(answer)") == "42\n", "the same kernel, through the next server"


def test_one_that_nobody_uses_is_stopped(server: CorralServer) -> None:
    with server.http("carl") as http:
        http.post("/workbenches", json={"name": "forgotten", "idle_stop": 1}).raise_for_status()
    stopped = until_state(server, "carl", "forgotten", "stopped")
    assert stopped["job"]["end_reason"] == "evicted"
    assert "nobody used it" in stopped["message"]


def test_one_that_computes_is_not_idle(server: CorralServer) -> None:
    view = create(server, "carl", "diligent", idle_stop=10)
    kernel = Kernel(view["jupyter"]["address"], token(server, "carl"))
    kernel.run("import time\nuntil = time.monotonic() + 20\nwhile time.monotonic() < until: pass")
    assert look(server, "carl", "diligent")["state"] == "running"
    until_state(server, "carl", "diligent", "stopped")


# ---------------------------------------------------------------- refusals


def test_what_is_missing_is_told_before_it_waits(server: CorralServer, tmp_path: Path) -> None:
    with server.http("bob") as http:
        told = problem(http.post("/workbenches", json={"name": "keyless", "ssh": True}), 409)
        assert told["type"] == "/problems/missing"
        assert "corral key add" in told["detail"]
        empty = tmp_path / "empty"
        (empty / "bin").mkdir(parents=True)
        body = {"name": "bare-one", "env": {"PATH": str(empty / "bin")}}
        told = problem(http.post("/workbenches", json=body), 409)
        assert told["errors"][0]["field"] == "jupyter"
        assert "pip install jupyterlab" in told["detail"]
        assert http.get("/workbenches").json()["items"] == []


def test_one_whose_key_is_gone_does_not_start_again(server: CorralServer, ssh_programs: None, tmp_path: Path) -> None:
    key = new_key(tmp_path, "carl")
    with server.http("carl") as http:
        body = {"name": "laptop", "public_key": key.with_suffix(".pub").read_text()}
        added = http.post("/me/ssh-keys", json=body).json()
        http.post("/workbenches", json={"name": "keyed", "ssh": True, "hold": True}).raise_for_status()
        http.delete(f"/me/ssh-keys/{added['id']}").raise_for_status()
        assert "you have none" in problem(http.post("/workbenches/keyed/start"), 409)["detail"]
        assert "you have none" in problem(http.post("/jobs/keyed/start"), 409)["detail"]
    with server.http() as operator:
        job_id = look(server, "carl", "keyed")["id"]
        assert "carl has none" in problem(operator.post(f"/workbenches/{job_id}/start"), 409)["detail"]


def test_an_environment_that_turns_out_empty_is_told_at_its_end(server: CorralServer, tmp_path: Path) -> None:
    """As with an image, which cannot be looked into before: here the program goes between the check and the start."""
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    jupyter = programs / "jupyter-lab"
    jupyter.write_text("#!/bin/sh\nexit 3\n")
    jupyter.chmod(0o755)
    with server.http("carl") as http:
        body = {"name": "broken", "venv": str(tmp_path / "venv")}
        http.post("/workbenches", json=body).raise_for_status()
        failed = until_state(server, "carl", "broken", "failed")
        assert failed["job"]["end_reason"] == "launch_error"
        assert "Jupyter did not start" in failed["message"]
        assert "Jupyter has ended with 3" in http.get("/jobs/broken/logs").text


# ---------------------------------------------------------------- the command line


@pytest.fixture
def ann(server: CorralServer, tmp_path: Path) -> Person:
    return Person(server=server.url, home=tmp_path, env={"CORRAL_TOKEN": server.token("ann"), "DISPLAY": ""})


def test_the_command_line_goes_the_whole_way(server: CorralServer, ann: Person, keys: Path) -> None:
    made = ann.run("workbench", "create", "by-hand", "--ssh", "--gpus", "1", "--idle-stop", "2h")
    assert made.code == 0, made.err
    opened = ann.run("workbench", "open", "by-hand")
    assert opened.code == 0, opened.err
    address = opened.out.strip()
    assert httpx.get(f"{address}api/status", headers=token(server, "ann")).status_code == 200
    listed = ann.run("workbench", "ls", "-o", "json").document["items"]
    mine = next(view for view in listed if view["name"] == "by-hand")
    assert mine["ssh"]["command"].startswith("ssh -p ")
    assert "by-hand" in ann.run("workbench", "ls").out
    done = ann.run("workbench", "ssh", "-i", str(keys), "by-hand", "--", "echo $CORRAL_JOB_ID; exit 3")
    assert (done.code, done.out.strip()) == (3, mine["id"])
    other = ann.run("workbench", "ssh", "-i", str(keys.with_name("other")), "by-hand", "--", "true")
    assert other.code == 255
    assert ann.run("workbench", "stop", "by-hand").code == 0
    until_state(server, "ann", "by-hand", "stopped")
    assert ann.run("workbench", "start", "by-hand").code == 0
    until_ready(server, "ann", "by-hand")
    assert ann.run("workbench", "stop", "by-hand").code == 0
    until_state(server, "ann", "by-hand", "stopped")
    refused = ann.run("workbench", "open", "by-hand")
    assert refused.code == 1
    assert "corral workbench start by-hand" in refused.err
    assert ann.run("workbench", "rm", "by-hand", "-y").code == 0
    assert ann.run("workbench", "open", "by-hand").code == 4
