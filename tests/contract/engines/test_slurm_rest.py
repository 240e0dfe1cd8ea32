"""Features of the access through slurmrestd: tokens, names of users, and error texts. The engine's contract runs
through it too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corral.core.model import EndReason
from corral.engines.slurm.slurm_api.commands import Account, SlurmCommands, SlurmRefused, SlurmUnavailable, Submission
from corral.engines.slurm.slurm_api.rest import SlurmRest
from corral.engines.slurm.slurm_api.rest_tokens import Tokens
from corral.engines.slurm.slurm_api.slurm_records import SlurmJob, SlurmNode
from tests.contract.engine_harness import order, wait_until
from tests.contract.slurm_harness import SlurmRestHarness
from tests.servers.accounts import temporary_account
from tests.servers.slurm import SlurmCluster, has_groups

pytest_plugins = ("tests.servers.fixtures",)

ACCOUNT = "corral-test-rest"


@pytest.fixture
def token_file(slurm_rest: SlurmCluster, tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(slurm_rest.token())
    return path


@pytest.fixture
def slurm(slurm_rest: SlurmCluster, token_file: Path) -> SlurmRest:
    return access(slurm_rest, Tokens(file=str(token_file)))


def access(cluster: SlurmCluster, tokens: Tokens, url: str = "") -> SlurmRest:
    return SlurmRest(url=url or cluster.start_rest(), tokens=tokens, commands=SlurmCommands(conf=str(cluster.conf)))


def job(name: str, script: str = "sleep 600", **options: Any) -> Submission:
    shown = {"nodes": ("node1",), "env": {"PATH": "/usr/bin:/bin", "HOME": "/"}, **options}
    return Submission(name=name, comment=name, script=f"#!/bin/sh\n{script}\n", **shown)


def found(slurm: SlurmRest, job_id: int) -> SlurmJob:
    return next(one for one in slurm.jobs() if one.id == job_id)


def wait_for(slurm: SlurmRest, job_id: int, *states: str) -> SlurmJob:
    wait_until(lambda: found(slurm, job_id).state in states, f"job {job_id} becomes {states}")
    return found(slurm, job_id)


def node(slurm: SlurmRest, name: str) -> SlurmNode:
    return next(one for one in slurm.nodes() if one.name == name)


def test_commands_and_rest_interface_give_the_same_answers(slurm: SlurmRest, slurm_rest: SlurmCluster) -> None:
    commands = SlurmCommands(conf=str(slurm_rest.conf))
    assert [one.name for one in slurm.nodes()] == [one.name for one in commands.nodes()] == slurm_rest.node_names
    began = time.time() - 60
    gang = slurm.submit(job("both", nodes=("node1", "node2"), gpus={"": 3}, cpus=2, memory_mib=120, minutes=5))
    seen = wait_for(slurm, gang, "RUNNING")
    assert (seen.nodes, seen.gpus, seen.cpus, seen.memory_mib) == (("node1", "node2"), 3, 2, 120)
    assert seen == next(one for one in commands.jobs() if one.id == gang)
    # The table says the same as the JSON, but for which devices they are, when the time limit is reached, and the
    # comment.
    listed = next(one for one in commands.live() if one.id == gang)
    unsaid: dict[str, Any] = {"gpu_counts": {}, "gpu_indexes": {}, "exit_code": None, "signal": None, "ended_at": None}
    unsaid |= {"comment": "", "user": ""}
    assert listed == replace(seen, **unsaid, reason=listed.reason)
    assert node(slurm, "node1").used_gpus == 3
    slurm.cancel(gang)
    wait_for(slurm, gang, "CANCELLED")
    other = slurm.submit(job("another", "true"))
    wait_for(slurm, other, "COMPLETED")
    # Its end may be booked before its name.
    booked = lambda: [(one.id, one.name) for one in slurm.ended([gang, 999_999]) if one.is_over]  # noqa: E731
    wait_until(lambda: booked() == [(gang, "both")], "accounting knows")
    (mine,), (theirs,) = (way.ended([gang]) for way in (slurm, commands))
    assert (mine.name, mine.state, mine.nodes, mine.ended_at) == ("both", "CANCELLED", theirs.nodes, theirs.ended_at)
    assert all(way.named("both", began)[-1].id == gang for way in (slurm, commands))
    assert all(way.ended([999_999]) == way.named("no-such-job", began) == [] for way in (slurm, commands))


def test_jobs_of_all_are_one_request(slurm: SlurmRest) -> None:
    ids = [slurm.submit(job(f"many-{number}", "true")) for number in range(5)]
    slurm.calls.clear()
    assert set(ids) <= {one.id for one in slurm.jobs()}
    assert slurm.calls == {"jobs": 1}


def test_a_job_that_has_begun_is_not_taken_back(slurm: SlurmRest) -> None:
    first = slurm.submit(job("first", gpus={"": 8}))
    wait_for(slurm, first, "RUNNING")
    second = slurm.submit(job("second", gpus={"": 8}))
    try:
        for job_id in (first, second):
            slurm.cancel(job_id, only_pending=True)
        assert wait_for(slurm, second, "CANCELLED").nodes == ()
        assert found(slurm, first).state == "RUNNING"
        slurm.cancel(second)
        slurm.signal(second, "TERM", to_steps=False)
        slurm.cancel(999_999)
    finally:
        slurm.cancel(first)
    wait_for(slurm, first, "CANCELLED")


def users(cluster: SlurmCluster, *jobs: int) -> set[tuple[str, ...]]:
    """The names of jobs, and whose they are."""
    rows = cluster.run("squeue", "-h", "--states=all", f"--jobs={','.join(map(str, jobs))}", "-o", "%j %u")
    return {tuple(row.split()) for row in rows.splitlines()}


def test_a_job_is_its_users_and_only_with_a_token_that_may(
    slurm: SlurmRest, slurm_rest: SlurmCluster, tmp_path: Path
) -> None:
    with temporary_account(ACCOUNT, 61_735) as person:
        who = Account(uid=person.pw_uid, gid=person.pw_gid)
        theirs = slurm.submit(job("theirs", run_as=who))
        own = slurm.submit(job("own"))
        assert users(slurm_rest, theirs, own) == {("theirs", ACCOUNT), ("own", "root")}
        # At once, and no job is taken for another user's.
        mixed = [
            job(f"mixed-{name}", "true", run_as=one) for _ in range(6) for name, one in (("own", None), ("their", who))
        ]
        with ThreadPoolExecutor(4) as together:
            sent = set(together.map(slurm.submit, mixed))
        assert users(slurm_rest, *sent) == {("mixed-own", "root"), ("mixed-their", ACCOUNT)}
        # A token of that user is valid for that user's jobs, and for no others.
        small = tmp_path / "small"
        small.write_text(slurm_rest.run("scontrol", "token", f"username={ACCOUNT}"))
        limited = access(slurm_rest, Tokens(file=str(small)))
        with pytest.raises(SlurmRefused, match=r"Access/permission denied"):
            limited.cancel(own)
        with pytest.raises(SlurmUnavailable):
            limited.submit(job("not allowed", run_as=Account(uid=0, gid=0)))
        limited.cancel(theirs)
        slurm.cancel(own)
        for job_id in (theirs, own):
            wait_for(slurm, job_id, "CANCELLED")
        wait_until(lambda: not slurm_rest.run("squeue", "-h", f"--user={ACCOUNT}"), "nothing of that account runs")
    assert "not allowed" not in {one.name for one in slurm.jobs()}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gpus": {"": 9}}, "Requested node configuration is not available"),
        ({"nodes": ("nowhere",)}, "Invalid node name specified"),
        ({"partition": "none"}, "Invalid partition name specified"),
        ({"extra": ("--exclusive",)}, "'--exclusive' cannot be given through slurmrestd"),
    ],
)
def test_a_refusal_is_in_slurms_words(slurm: SlurmRest, options: dict[str, Any], words: str) -> None:
    with pytest.raises(SlurmRefused, match=f"^{words}"):
        slurm.submit(job("refused", **options))


@pytest.mark.skipif(
    not has_groups(),
    reason="no control group limits memory here: run as root, on a machine with writable control groups",
)
def test_memory_is_limited_and_its_excess_reported(slurm_rest: SlurmCluster, tmp_path: Path) -> None:
    harness = SlurmRestHarness(tmp_path / "engine", slurm_rest)
    hog = "held = []\nwhile True: held.append(b'x' * (1 << 20))"
    try:
        harness.launch(order(sys.executable, "-c", hog, memory_bytes=64 << 20))
        ended = harness.listener.ended()
        assert (ended.reason, ended.exit_code) == (EndReason.OOM_KILLED, 137)
    finally:
        harness.clean_up()


def test_a_node_is_drained_and_resumed(slurm: SlurmRest) -> None:
    slurm.set_node("node4", is_withheld=True, reason="corral: cordoned by ann")
    drained = node(slurm, "node4")
    assert ("DRAIN" in drained.flags, drained.reason) == (True, "corral: cordoned by ann")
    slurm.set_node("node4", is_withheld=False, reason="")
    assert "DRAIN" not in node(slurm, "node4").flags


def test_an_expired_token_is_replaced_in_the_file(
    slurm_rest: SlurmCluster, token_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = token_file.read_text()
    short = slurm_rest.token(seconds=1)
    token_file.write_text(short)
    slurm = access(slurm_rest, Tokens(file=str(token_file)))
    wait_until(lambda: _is_unavailable(slurm.jobs), "the token expires")
    with pytest.raises(SlurmUnavailable, match=r"or the token is bad|rejects the token") as caught:
        slurm.submit(job("too late"))
    token_file.write_text(good)
    assert len(slurm.nodes()) == 4
    assert not [secret for secret in (good, short) if secret in caplog.text + str(caught.value)]
    by_command = access(slurm_rest, Tokens(command=["scontrol", "token"], conf=str(slurm_rest.conf)))
    assert len(by_command.nodes()) == 4


def test_a_socket_is_an_address_too(slurm_rest: SlurmCluster, token_file: Path) -> None:
    slurm = access(slurm_rest, Tokens(file=str(token_file)), url=f"unix:{slurm_rest.rest_socket}")
    assert [one.name for one in slurm.nodes()] == slurm_rest.node_names
    bare = access(slurm_rest, Tokens(), url=f"unix:{slurm_rest.rest_socket}")
    with pytest.raises(SlurmUnavailable, match="rejects the token"):
        bare.nodes()


def test_a_slurmrestd_that_dies_is_found_again(slurm: SlurmRest, slurm_rest: SlurmCluster) -> None:
    assert slurm.nodes()
    slurm_rest.kill_rest()
    try:
        with pytest.raises(SlurmUnavailable, match="slurmrestd at http"):
            slurm.jobs()
    finally:
        slurm_rest.start_rest()
    assert slurm.nodes()


def test_a_controller_that_is_away_is_no_refusal(slurm: SlurmRest, slurm_rest: SlurmCluster) -> None:
    slurm_rest.kill_controller()
    try:
        asks = (slurm.jobs, slurm.nodes, lambda: slurm.submit(job("never submitted")), lambda: slurm.cancel(1))
        # At once, as each waits for a while: slurmrestd itself tries again.
        with ThreadPoolExecutor() as together:
            assert all(together.map(_is_unavailable, asks))
    finally:
        slurm_rest.start_controller()
    wait_until(lambda: not _is_unavailable(slurm.jobs), "the controller answers again")


def _is_unavailable(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except SlurmUnavailable:
        return True
    return False
