"""Jobs from Git repositories, by the commands: `git http-backend` with tokens, and a real `sshd` with deploy keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.servers.corral_server import CorralServer
from tests.servers.git_server import TOKEN, USER, HttpsServer, Repository, SshServer, https_server, ssh_server

pytestmark = pytest.mark.slow
PROGRAM = 'import os, pathlib; print(pathlib.Path("word").read_text(), os.environ["CORRAL_GIT_COMMIT"])\n'


@dataclass(kw_only=True)
class Place:
    server: CorralServer
    ann: Person
    operator: Person
    https: HttpsServer
    ssh: SshServer
    public: Repository
    private: Repository


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("git")
    public, private = Repository.made(root / "public", "demo"), Repository.made(root / "private", "model")
    public.commit({"word": "first", "program.py": PROGRAM, "sub/word": "below", "sub/program.py": PROGRAM})
    private.commit({"word": "hidden", "program.py": PROGRAM})
    with https_server(root) as https, ssh_server(root) as ssh:
        (root / "corral.yaml").write_text(f"git: {{hosts: [localhost], authorities: {https.certificate}}}\n")
        with cli_server(root, "--virtual-gpus", "4xA10", "--config", str(root / "corral.yaml")) as server:
            operator = operator_of(server)
            ann = scientist(server, operator, "ann")
            ann.ok("secret", "set", "token", stdin=f"{USER}:{TOKEN}")
            ann.ok("secret", "set", "deploy-key", stdin=ssh.key)
            yield Place(server=server, ann=ann, operator=operator, https=https, ssh=ssh, public=public, private=private)


def run(place: Place, *flags: str, state: str = "completed") -> tuple[dict[str, object], str]:
    job = place.ann.submit("--gpus", "1", *flags, "--", "python3", "program.py")
    return place.ann.wait_for(job, state), place.ann.ok("logs", job)


def test_a_branch_is_looked_up_once_and_kept_as_a_commit(place: Place) -> None:
    url, first = place.https.url("public/demo.git"), place.public.git("rev-parse", "main")
    view, log = run(place, "--git", url, "--git-ref", "main")
    assert view["git_commit"] == first
    assert log == f"corral: git: {url} at {first} (main)\nfirst {first}\n"
    second = place.public.commit({"word": "second"})
    # The same job again begins in the same commit; with a branch a clone looks again.
    again = place.ann.read("clone", str(view["id"]))["id"]
    assert place.ann.wait_for(again, "completed")["git_commit"] == first
    newest = place.ann.read("clone", str(view["id"]), "--git-ref", "main", "--git-dir", "sub")["id"]
    assert place.ann.wait_for(newest, "completed")["git_commit"] == second
    assert place.ann.ok("logs", newest).endswith(f"below {second}\n")
    old, log = run(place, "--git", url, "--git-ref", first)
    assert log.endswith(f"first {first}\n")
    shown = place.ann.ok("show", str(old["id"]))
    assert url in shown
    assert first in shown
    elsewhere = place.ann.read("clone", str(view["id"]), "--git", "none", "--", "echo", "plain")["id"]
    assert place.ann.wait_for(elsewhere, "completed")["git_commit"] == ""
    assert place.ann.ok("logs", elsewhere) == "plain\n"


def test_a_tag_with_a_message_is_the_commit_that_it_names(place: Place) -> None:
    commit = place.public.commit({"word": "tagged"})
    place.public.git("tag", "-a", "v1", "-m", "version 1")
    place.public.push("v1")
    view, log = run(place, "--git", place.https.url("public/demo.git"), "--git-ref", "v1")
    assert (view["git_commit"], log.splitlines()[-1]) == (commit, f"tagged {commit}")


@pytest.mark.parametrize("way", ["https", "ssh"])
def test_a_private_repository_is_read_with_a_secret_that_stays_hidden(place: Place, way: str, tmp_path: Path) -> None:
    url = getattr(place, way).url("private/model.git")
    secret = {"https": "token", "ssh": "deploy-key"}[way]
    hidden = TOKEN if way == "https" else place.ssh.key.splitlines()[1]
    file = tmp_path / "job.yaml"
    seen = "cat word; echo; env; cat /proc/*/cmdline | tr '\\000' ' '; grep -r . .git/config; ls -a"
    file.write_text(
        json.dumps({"name": f"private-{way}", "git": url, "git-secret": secret, "command": ["sh", "-c", seen]})
    )
    job = place.ann.submit("-f", str(file))
    place.ann.wait_for(job, "completed")
    log = place.ann.ok("logs", job)
    assert "hidden" in log
    assert "CORRAL_GIT_TOKEN" not in log
    assert "CORRAL_GIT_KEY=" not in log
    texts = [log, place.ann.ok("show", job), json.dumps(place.ann.read("show", job)), place.server.log()]
    texts += [
        path.read_text(errors="replace") for path in place.server.home.glob(f"jobs/*/{job}/**/*") if path.is_file()
    ]
    texts += [path.read_text(errors="replace") for path in place.server.home.glob("local/**/*") if path.is_file()]
    assert not [text for text in texts if hidden in text]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["public/none.git"], "there is no repository"),
        (["public/demo.git", "--git-ref", "nowhere"], "has no branch or tag nowhere"),
        (["private/model.git"], "does not exist, or needs a token"),
        (["private/model.git", "--git-secret", "wrong"], "the token was refused"),
        (["private/model.git", "--git-secret", "deploy-key"], "is a private key, and https needs a token"),
        (["private/model.git", "--git-secret", "missing"], "there is no secret 'missing'"),
        (["moved/demo.git"], "leads elsewhere"),
    ],
)
def test_errors_are_reported_at_the_submission(place: Place, flags: list[str], reason: str) -> None:
    place.ann.ok("secret", "set", "wrong", stdin="not-the-token")
    url, *others = flags
    refused = place.ann.run("submit", "--git", place.https.url(url), *others, "--", "true", code=2)
    assert reason in refused.err


def test_a_refused_key_and_a_missing_one_are_said(place: Place) -> None:
    place.ann.ok("secret", "set", "other-key", stdin=place.ssh.other_key)
    url = place.ssh.url("private/model.git")
    for flags, reason in (
        (["--git-secret", "other-key"], "the key was refused"),
        ([], "needs a key"),
        (["--git-secret", "token"], "is a token, and ssh needs a private key"),
    ):
        assert reason in place.ann.run("submit", "--git", url, *flags, "--", "true", code=2).err


def test_a_commit_that_is_gone_ends_the_job_with_the_reason_in_its_log(place: Place) -> None:
    for server, secret in ((place.https, "token"), (place.ssh, "deploy-key")):
        flags = ("--git", server.url("private/model.git"), "--git-secret", secret, "--git-ref", "0" * 39 + "1")
        view, log = run(place, *flags, state="failed")
        assert view["exit_code"] == 97
        assert "the commit 0000000000000000000000000000000000000001 is not in" in log
        waited = place.ann.run("submit", *flags, "--wait", "--", "true", code=97)
        assert "97 means, for a job with --git" in waited.err


def test_fields_that_exclude_each_other_are_refused(place: Place) -> None:
    url = place.https.url("public/demo.git")
    assert "leave workdir out" in place.ann.run("submit", "--git", url, "--workdir", "/", "--", "true", code=2).err
    assert "give git, too" in place.ann.run("submit", "--git-dir", "sub", "--", "true", code=2).err


def test_an_array_and_a_retry_fetch_no_more_than_they_need(place: Place, tmp_path: Path) -> None:
    url = place.https.url("public/demo.git")
    before = len([path for path, _ in place.https.requests if "/info/refs" in path])
    jobs = place.ann.read("submit", "--name", "three", "--array", "0-2", "--git", url, "--", "cat", "word")["items"]
    asked = [path for path, _ in place.https.requests if "/info/refs" in path][before:]
    assert len(asked) <= 1 + 2 * len(jobs), asked
    for job in jobs:
        place.ann.wait_for(job["id"], "completed")
    mark = tmp_path / "mark"
    flags = ["--git", url, "--retries", "1", "--retry-on", "exit"]
    # What the first attempt left beside the files of the commit is still there.
    script = f"test -e {mark} && exec cat left; touch {mark}; echo kept > left; exit 3"
    job = place.ann.submit(*flags, "--", "sh", "-c", script)
    place.ann.wait_for(job, "completed")
    assert place.ann.ok("logs", job).endswith("kept\n")
