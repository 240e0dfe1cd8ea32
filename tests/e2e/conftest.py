"""A server with people, a real browser, and real SSH keys."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from ctypes.util import find_library
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.e2e.console import BUILT, NOT_BUILT, Console
from tests.integration.api import api_server
from tests.servers.corral_server import CorralServer

CHROMIUM = "/usr/bin/chromium"
#: Devices of clusters that tests beside it start and stop would end its requests.
LAUNCHER = Path(__file__).with_name("chromium-without-netlink")
CHROMIUM_OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-proxy-server"]
#: Playwright's 5 s are short where two cores carry browsers and servers. What is there is found at once.
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "8xA100-80G", users=("ann", "bob", "carl")) as running:
        yield running
        with running.http() as http:
            for view in http.get("/workbenches?state=running&state=starting").json()["items"]:
                http.post(f"/workbenches/{view['id']}/stop")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for all, with a context for each person; not for longer, because no other test can use asyncio meanwhile."""
    if not Path(CHROMIUM).exists():
        pytest.skip("there is no Chromium: install it with scripts/install-test-servers (package chromium)")
    if find_library("atomic") is None:
        pytest.skip("Playwright's Node.js needs libatomic: install it with scripts/install-test-servers (libatomic1)")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=LAUNCHER, args=CHROMIUM_OPTIONS)
        yield launched
        launched.close()


#: `visit("ann")` is ann's signed-in browser; `visit("ann", phone=True)` a small one
Visit = Callable[..., Console]


@pytest.fixture
def visit(browser: Browser, server: CorralServer) -> Iterator[Visit]:
    """People at the console of the module's `server`. Their browsers must not have complained in the end."""
    if not BUILT.exists():
        pytest.skip(NOT_BUILT)
    people: list[Console] = []

    def arrive(user: str = "operator", *, phone: bool = False) -> Console:
        people.append(Console(browser, server, user, phone=phone).sign_in())
        return people[-1]

    yield arrive
    for person in people:
        person.close()


@pytest.fixture(scope="session")
def ssh_programs() -> None:
    path = "/usr/sbin:/usr/bin:/bin:/usr/local/bin"
    missing = [name for name in ("sshd", "ssh", "ssh-keygen") if shutil.which(name, path=path) is None]
    if missing:
        pytest.skip(
            f"there is no {', '.join(missing)}: install it with scripts/install-test-servers "
            "(packages openssh-server, openssh-client)"
        )


def new_key(directory: Path, name: str) -> Path:
    """A fresh pair of keys; the private one's path."""
    path = directory / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


@pytest.fixture
def keys(server: CorralServer, ssh_programs: None, tmp_path: Path) -> Path:
    """A key that ann has registered; `other` beside it is not registered."""
    path = new_key(tmp_path, "ann")
    new_key(tmp_path, "other")
    with server.http("ann") as http:
        body = {"name": tmp_path.name, "public_key": path.with_suffix(".pub").read_text()}
        http.post("/me/ssh-keys", json=body).raise_for_status()
    return path
