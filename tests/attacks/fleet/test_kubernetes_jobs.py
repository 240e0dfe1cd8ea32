"""Jobs and shells in pods of a real Kubernetes: no job gets out of its pod, into another job, or at corral's secrets.

The server is root, gives every user an account of their own, and shares its home with the pods by one claim.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.contract.kubernetes_harness import NAMESPACE
from tests.integration.kubernetes_server import clean_up, pods_of, server_on
from tests.integration.waiting import wait_until
from tests.servers.accounts import temporary_account
from tests.servers.corral_server import CorralServer
from tests.servers.kubernetes.access import KubernetesAccess

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ACCOUNTS = {"ann": ("corral-annk", 48201), "eve": ("corral-evek", 48202)}
ENDED = ("completed", "failed", "stopped")


@pytest.fixture(scope="module")
def server(kubernetes_access: KubernetesAccess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    """`ann` is the victim and `eve` the attacker."""
    place = tmp_path_factory.mktemp("attacked")
    for path in (place, *list(place.parents)[:2]):
        path.chmod(0o755)
    users = ", ".join(f"{user}: {account}" for user, (account, _) in ACCOUNTS.items())
    settings = f"\nlocal: {{run_as: {{users: {{{users}}}}}}}\n"
    with temporary_account(*ACCOUNTS["ann"]), temporary_account(*ACCOUNTS["eve"]):
        started = server_on(kubernetes_access, place / "corral", settings=settings)
        started.start(CORRAL_ALLOW_ROOT="false")
        try:
            for user in ACCOUNTS:
                started.add_user(user)
            yield started
        finally:
            started.kill()
            clean_up(kubernetes_access, started)


def submitted(server: CorralServer, user: str, script: str, **fields: Any) -> str:
    body = {"command": ["/bin/sh", "-c", script], "time": "10m", "grace": "1s", **fields}
    with server.http(user) as http:
        answer = http.post("/jobs", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


def job(server: CorralServer, user: str, job_id: str) -> dict[str, Any]:
    with server.http(user) as http:
        found: dict[str, Any] = http.get(f"/jobs/{job_id}").raise_for_status().json()
    return found


def log(server: CorralServer, user: str, job_id: str) -> str:
    with server.http(user) as http:
        return http.get(f"/jobs/{job_id}/logs").raise_for_status().text


def running(server: CorralServer, user: str, script: str = "sleep 600", **fields: Any) -> str:
    job_id = submitted(server, user, script, **fields)
    wait_until(lambda: job(server, user, job_id)["state"] == "running", "it runs", seconds=120)
    return job_id


def ran(server: CorralServer, user: str, script: str, **fields: Any) -> tuple[dict[str, Any], str]:
    """The ended job and its log."""
    job_id = submitted(server, user, script, **fields)
    wait_until(lambda: job(server, user, job_id)["state"] in ENDED, "it ends", seconds=120)
    return job(server, user, job_id), log(server, user, job_id)


@pytest.fixture(scope="module")
def secret_of_ann(server: CorralServer) -> str:
    value = "the-secret-of-ann"
    with server.http("ann") as http:
        http.put("/secrets/token", json={"value": value}).raise_for_status()
    return value


@pytest.fixture(scope="module")
def job_of_ann(server: CorralServer, secret_of_ann: str) -> str:
    script = 'umask 077; echo private > "$CORRAL_OUTPUT_DIR/private"; sleep 600'
    job_id = running(server, "ann", script, secrets=["token=TOKEN"])
    path = server.home / "jobs"
    wait_until(lambda: any(path.rglob("private")), "it has written")
    return job_id


def test_a_job_has_no_privilege_and_sees_no_other_process(server: CorralServer) -> None:
    ended, text = ran(
        server,
        "eve",
        "id -u; grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; ls /proc | grep -c '^[0-9]*$';"
        "mount -t tmpfs none /mnt 2>/dev/null && echo mounted; chroot / true 2>/dev/null && echo chrooted;"
        "ls /var/run/secrets/kubernetes.io /run/secrets 2>/dev/null; cat /proc/1/root/etc/shadow 2>/dev/null; true",
    )
    lines = text.split("\n")
    assert ended["state"] == "completed", text
    assert lines[0] == str(ACCOUNTS["eve"][1])
    found = dict(line.split(":\t") for line in lines if ":\t" in line)
    assert (found["CapEff"], found["CapBnd"], found["NoNewPrivs"]) == ("0" * 16, "0" * 16, "1")
    assert found["Seccomp"] == "2"
    assert "mounted" not in text
    assert "chrooted" not in text
    assert "serviceaccount" not in text
    # Its shell, the program, and what it starts itself.
    assert int(next(line for line in lines if line.isdigit() and line != lines[0])) < 10


def test_a_job_has_no_right_in_kubernetes(
    server: CorralServer, kubernetes_access: KubernetesAccess, job_of_ann: str
) -> None:
    pods = pods_of(kubernetes_access, server, job_of_ann)
    assert pods
    for pod in pods:
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert not any("serviceaccount" in one["mountPath"] for one in pod["spec"]["containers"][0]["volumeMounts"])
        assert not any(pod["spec"].get(word) for word in ("hostPID", "hostNetwork", "hostIPC"))
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets"
    _, text = ran(
        server,
        "eve",
        f'wget -T 5 -qO- --no-check-certificate "https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT{path}" 2>&1;'
        "true",
    )
    assert "SecretList" not in text


def test_the_values_of_secrets_are_in_no_pod_and_no_job_of_another(
    server: CorralServer, kubernetes_access: KubernetesAccess, job_of_ann: str, secret_of_ann: str
) -> None:
    assert secret_of_ann not in json.dumps(pods_of(kubernetes_access, server, job_of_ann))
    _, text = ran(server, "eve", "env; cat /proc/*/environ 2>/dev/null; true")
    assert secret_of_ann not in text
    with server.http("eve") as http:
        refused = http.post("/jobs", json={"command": ["env"], "secrets": ["token=TOKEN"], "time": "1m"})
    assert refused.status_code in (404, 422)


def test_the_home_that_pods_share_shows_a_job_its_own_directory_only(server: CorralServer, job_of_ann: str) -> None:
    home = server.home
    own = '"$CORRAL_JOB_DIR"'
    ended, text = ran(
        server,
        "eve",
        f"ls -a {home} {home}/jobs; cat {home}/corral.db {home}/corral.yaml | head -c 200;"
        f"find {home} -name private; ls {own}/../..;"
        # Links are resolved in the pod, by the kubelet and by the server: none leads out of the job's own place.
        f"ln -s ../../.. {own}/up; cat {own}/up/corral.db | head -c 100; ls {own}/up/jobs;"
        f'ln -s {home}/corral.db "$CORRAL_OUTPUT_DIR/database"; ln -s /etc/shadow "$CORRAL_OUTPUT_DIR/shadow";'
        'mkfifo "$CORRAL_OUTPUT_DIR/pipe"; ln -s ../../.. "$CORRAL_OUTPUT_DIR/above"; true',
    )
    assert ended["state"] == "completed", text
    assert "SQLite format" not in text
    assert "private" not in text
    assert job_of_ann not in text
    with server.http("eve") as http:
        for name in ("database", "shadow", "pipe", "above/corral.db", "above"):
            assert http.get(f"/jobs/{ended['id']}/files/content", params={"path": name}).status_code in (403, 404), name
        archive = http.get(f"/jobs/{ended['id']}/files/content")
        with tarfile.open(fileobj=io.BytesIO(archive.content)) as packed:
            members = packed.getmembers()
    assert not any(member.isreg() for member in members)
    planted = {path.name for path in server.home.joinpath("jobs").rglob("*") if path.is_symlink()}
    assert {"database", "shadow", "above", "up"} <= planted


def test_a_replaced_directory_is_not_mounted_by_the_next_attempt(server: CorralServer, job_of_ann: str) -> None:
    """The kubelet follows links below a claim, and the whole home is on it: a job that is started again must not get
    what its directory leads to."""
    private = next(server.home.joinpath("jobs").rglob("private"))
    first = submitted(
        server,
        "eve",
        'cd "$CORRAL_JOB_DIR"; ls >&2; for one in *; do mv "$one" "$one.old" && ln -s ../.. "$one"; done;'
        f"cat {private} ../../corral.db 2>/dev/null | head -c 200;"
        'for one in "$CORRAL_OUTPUT_DIR" "$CORRAL_CHECKPOINT_DIR"; do ls -a "$one"; cat "$one"/corral.db | head -c 99;'
        " done 2>/dev/null; exit 1",
        max_retries=1,
        retry_on=["exit"],
    )
    wait_until(lambda: job(server, "eve", first)["state"] in ENDED, "it ends", seconds=180)
    text = log(server, "eve", first)
    with server.http("eve") as http:
        for number in range(1, job(server, "eve", first)["attempt"] + 1):
            text += http.get(f"/jobs/{first}/logs", params={"attempt": number}).text
    assert "SQLite format" not in text
    assert "private" not in text
    assert private.read_text() == "private\n"
    assert job(server, "ann", job_of_ann)["state"] == "running"


@pytest.mark.parametrize(
    ("written", "state", "code"),
    [
        ("corral exit_code 0 1 2 3 ", "failed", 3),
        ("corral launch_error - - - - \x1b[31mforged", "failed", 3),
        ("corral stopped 0 1 2 nan ", "failed", 3),
        ("x" * 60_000, "failed", 3),
    ],
)
def test_an_end_that_the_program_writes_itself_does_not_count(
    server: CorralServer, written: str, state: str, code: int
) -> None:
    script = "printf '%s\\n' \"$FORGED\" > /dev/termination-log; echo forged; exit 3"
    ended, text = ran(server, "eve", script, env={"FORGED": written})
    assert (ended["state"], ended["exit_code"], text) == (state, code, "forged\n")
    assert "\x1b" not in json.dumps(ended)


def test_output_of_a_program_is_its_log_and_nothing_else(server: CorralServer) -> None:
    """Lines like those of the wrapper and of the kubelet, lines without an end, and bytes that are no text."""
    script = (
        "echo corral-up GPU-11111111-1111-1111-1111-111111111111,GPU-2;"
        "echo '2026-01-01T00:00:00.000000000Z stdout F forged'; printf '\\377\\000\\033[2J\\n';"
        "head -c 3000000 /dev/zero | tr '\\000' y; echo; echo end"
    )
    ended, text = ran(server, "eve", script)
    assert ended["state"] == "completed"
    assert text.startswith("corral-up GPU-11111111-1111-1111-1111-111111111111,GPU-2\n2026-01-01T00")
    assert text.endswith("y\nend\n")
    assert text.count("y") >= 3_000_000


# ---------------------------------------------------------------- shells


def shell(server: CorralServer, user: str, job_id: str, *command: str, query: str = "") -> ClientConnection:
    words = "".join(f"&command={httpx.QueryParams({'c': word})['c']}" for word in command)
    return connect(
        f"ws://127.0.0.1:{server.port}/api/v1/jobs/{job_id}/shell?stdin=true{query}{words}",
        additional_headers={"Authorization": f"Bearer {server.token(user)}"},
        proxy=None,
        max_size=None,
        open_timeout=60,
    )


def heard(connection: ClientConnection) -> tuple[str, dict[str, Any]]:
    """The output until the end, and the last message."""
    text = b""
    while isinstance(message := connection.recv(timeout=60), bytes):
        text += message[1:]
    last: dict[str, Any] = json.loads(message)
    return text.decode(errors="replace"), last


def said(server: CorralServer, user: str, job_id: str, script: str, *, query: str = "") -> tuple[str, dict[str, Any]]:
    with shell(server, user, job_id, query=query) as connection:
        connection.send(b"\0" + f"{script}\nexit 0\n".encode())
        return heard(connection)


def test_a_shell_is_as_small_as_its_job(server: CorralServer, job_of_ann: str, secret_of_ann: str) -> None:
    mine = running(server, "eve")
    with pytest.raises(InvalidStatus) as refused:
        shell(server, "eve", job_of_ann)
    assert refused.value.response.status_code == 404
    text, last = said(
        server,
        "eve",
        mine,
        "id -u; id -G; grep -E 'CapEff|NoNewPrivs' /proc/self/status; cat /etc/shadow; echo x > /etc/passwd;"
        f"cat {server.home}/corral.db | head -c 50; ls {server.home}/jobs; env; cat /proc/1/environ;"
        "kill -KILL 1; su -c id; mount -t tmpfs none /mnt; ls /var/run/secrets; ps",
    )
    assert last == {"exit_code": 0}
    uid = str(ACCOUNTS["eve"][1])
    # Output and errors come by two streams, so their lines may change places.
    assert text.split("\n").count(uid) == 2
    assert "CapEff:\t0000000000000000" in text
    assert "NoNewPrivs:\t1" in text
    assert "root:" not in text
    assert "SQLite format" not in text
    assert secret_of_ann not in text
    assert job_of_ann not in text
    assert server.token("eve") not in text
    assert job(server, "eve", mine)["state"] == "running"


@pytest.mark.parametrize(
    "message",
    [
        '{"resize": [0, 0]}',
        '{"resize": [-1, 99999999999999999999]}',
        '{"resize": [true, "80"]}',
        '{"resize": ["$(id)", {}]}',
        '{"end": "no"}',
        "[" * 100_000,
        '{"a":' * 50_000,
        "9" * 5_000,
        "\x00\x1b[2J",
        "{}" * 1000,
    ],
)
def test_wrong_messages_end_no_session(server: CorralServer, message: str) -> None:
    mine = _job_for_shells(server)
    with shell(server, "eve", mine, query="&tty=true") as connection:
        connection.send(message)
        connection.send(json.dumps({"resize": [91, 33]}))
        connection.send(b"")
        connection.send(b"\x07not a channel")
        # The kubelet sets the size beside the input.
        connection.send(b'\0until [ "$(stty size)" = "33 91" ]; do sleep 0.1; done; stty size; exit 5\n')
        text, last = heard(connection)
    assert "\n33 91" in text
    assert last == {"exit_code": 5}


_JOBS: dict[str, str] = {}


def _job_for_shells(server: CorralServer) -> str:
    """One job for many shells."""
    if server.url not in _JOBS:
        _JOBS[server.url] = running(server, "eve")
    return _JOBS[server.url]


def test_much_input_and_output_delays_no_other_user(server: CorralServer) -> None:
    mine = _job_for_shells(server)
    before = _resident_bytes(server)
    # The one does not read its input, and this client does not read the output of the other.
    with shell(server, "eve", mine, "sleep", "600") as deaf, shell(server, "eve", mine, "cat", "/dev/zero") as loud:
        assert loud.recv(timeout=60)
        deaf.socket.settimeout(5)
        try:
            for _ in range(512):
                deaf.socket.sendall(_frame(b"\0" + b"x" * (1 << 17)))
        except TimeoutError:
            pass  # the server takes no more than the command reads
        with server.http("ann") as http:
            assert http.get("/jobs").is_success
        assert _resident_bytes(server) - before < 100 << 20


def _frame(data: bytes) -> bytes:
    """A masked binary message of a WebSocket."""
    return bytes([0x82, 0xFF]) + len(data).to_bytes(8, "big") + b"\0\0\0\0" + data


def _resident_bytes(server: CorralServer) -> int:
    assert server.process is not None
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_shell_ends_when_its_user_loses_access(server: CorralServer) -> None:
    mine = _job_for_shells(server)
    with server.http("eve") as http:
        token = http.post("/me/tokens", json={"name": "short"}).raise_for_status().json()
    with connect(
        f"ws://127.0.0.1:{server.port}/api/v1/jobs/{mine}/shell?command=sleep&command=600",
        additional_headers={"Authorization": f"Bearer {token['token']}"},
        proxy=None,
    ) as connection:
        with server.http("eve") as http:
            http.delete(f"/me/tokens/{token['id']}").raise_for_status()
        try:
            _, last = heard(connection)
        except ConnectionClosed:
            return
        assert "error" in last
