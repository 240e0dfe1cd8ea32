"""Git repositories as a way in: addresses that start programs or read files, repositories that run code, and hosts that
only the server can reach."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.attacks.conftest import SharedMachine, shared_machine
from tests.servers.git_server import HttpsServer, Repository, https_server

pytestmark = pytest.mark.slow


@dataclass(kw_only=True)
class Forge:
    machine: SharedMachine
    https: HttpsServer
    root: Path


@pytest.fixture(scope="module")
def forge(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forge]:
    root = tmp_path_factory.mktemp("forge")
    with https_server(root) as https, shared_machine(worker_id) as machine:
        machine.server.stop()
        with (machine.place / "corral.yaml").open("a") as config:
            config.write(f"git: {{hosts: [localhost], authorities: {https.certificate}}}\n")
        machine.start()
        yield Forge(machine=machine, https=https, root=root)


def refusal(machine: SharedMachine, user: str, **fields: str) -> httpx.Response:
    with machine.server.http(user) as http:
        return http.post("/jobs", json={"command": ["true"], **fields})


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c touch% {mark}",
        "--upload-pack=touch {mark}",
        "file://{secret}",
        "{secret}",
        "ssh://-oProxyCommand=touch%20{mark}/x",
        "git@-oProxyCommand=touch:x",
        "https://localhost/$(touch {mark})",
        "fd::0",
    ],
)
def test_an_address_starts_no_program_and_reads_no_directory(forge: Forge, address: str) -> None:
    mark, secret = forge.machine.place / "mark", forge.root / "private"
    answer = refusal(forge.machine, "eve", git=address.format(mark=mark, secret=secret))
    assert answer.status_code == 422, answer.text
    assert not mark.exists()


@pytest.mark.parametrize("ref", ["--upload-pack=touch {mark}", "-x", "main:refs/heads/x", "$(touch {mark})"])
def test_a_ref_is_no_option(forge: Forge, ref: str) -> None:
    mark = forge.machine.place / "mark"
    url = forge.https.url("public/any.git")
    assert refusal(forge.machine, "eve", git=url, git_ref=ref.format(mark=mark)).status_code == 422
    assert not mark.exists()


def test_hosts_that_are_not_named_are_not_asked(forge: Forge) -> None:
    before = len(forge.https.requests)
    for address in (f"https://127.0.0.1:{forge.https.port}/public/a.git", "ssh://git@169.254.169.254/a.git"):
        answer = refusal(forge.machine, "eve", git=address)
        assert (answer.status_code, "git.hosts" in answer.text) == (422, True)
    assert len(forge.https.requests) == before


def test_a_repository_runs_no_code_before_the_program(forge: Forge) -> None:
    machine, mark = forge.machine, forge.machine.place / "ran"
    repository = Repository.made(forge.root / "public", "traps")
    inner = Repository.made(forge.root / "public", "inner")
    inner.commit({"inside": "x"})
    other = forge.https.url("public/inner.git")
    hook = f"#!/bin/sh\ntouch {mark}\n"
    files = {
        ".githooks/post-checkout": hook,
        "hooks/post-checkout": hook,
        ".gitattributes": "* filter=trap\n*.txt diff=trap merge=trap\n",
        ".gitconfig": f'[core]\n\tfsmonitor = "touch {mark}"\n\thooksPath = .githooks\n',
        ".lfsconfig": f"[lfs]\n\turl = ext::touch {mark}\n",
        "text.txt": "word",
        ".gitmodules": f'[submodule "a"]\n\tpath = a\n\turl = {other}\n\tupdate = !touch {mark}\n',
    }
    for name, text in files.items():
        (repository.work / name).parent.mkdir(parents=True, exist_ok=True)
        (repository.work / name).write_text(text)
        (repository.work / name).chmod(0o755)
    os.symlink("/etc", repository.work / "out")
    commit = inner.git("rev-parse", "HEAD")
    repository.git("add", "-A")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},a")
    repository.git("commit", "-q", "-m", "traps")
    repository.push("main")
    url = forge.https.url("public/traps.git")
    ended, log = machine.run("eve", "cat text.txt; id -un; ls a | wc -l", git=url)
    assert (ended["state"], mark.exists()) == ("completed", False), log
    assert log.splitlines()[1:] == [f"word{machine.accounts['eve']}", "0"]
    ended, log = machine.run("eve", "pwd", git=url, git_dir="out")
    assert (ended["exit_code"], "leads out of the repository" in log) == (97, True), log


def test_variables_of_a_job_change_nothing_about_git(forge: Forge) -> None:
    machine, mark = forge.machine, forge.machine.place / "by-variable"
    repository = Repository.made(forge.root / "public", "plain")
    repository.commit({"text.txt": "word"})
    env = {
        "GIT_SSH_COMMAND": f"touch {mark}",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": f"touch {mark}",
        "GIT_TRACE_CURL": "1",
        "GIT_EXEC_PATH": str(machine.place),
        "GIT_DIR": "/nowhere",
    }
    ended, log = machine.run(
        "eve", "cat text.txt; echo; echo $GIT_DIR", git=forge.https.url("public/plain.git"), env=env
    )
    assert (ended["state"], mark.exists()) == ("completed", False), log
    assert log.splitlines()[1:] == ["word", "/nowhere"]


def test_a_secret_of_another_user_is_none(forge: Forge) -> None:
    with forge.machine.server.http("ann") as http:
        http.put("/secrets/deploy", json={"value": "anns-token"}).raise_for_status()
    answer = refusal(forge.machine, "eve", git=forge.https.url("private/x.git"), git_secret="deploy")
    assert (answer.status_code, "there is no secret" in answer.text) == (422, True)
    assert not [login for _, login in forge.https.requests if "YW5ucy10b2tlbg" in login]
