"""slurmrestd without one: what is sent in each version, what answers mean, and which token is shown when."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from corral.engines.slurm.cluster.partitions import UNLIMITED
from corral.engines.slurm.slurm_api.commands import Account, SlurmCommands, SlurmRefused, SlurmUnavailable, Submission
from corral.engines.slurm.slurm_api.rest import SlurmRest
from corral.engines.slurm.slurm_api.rest_format import (
    VERSIONS,
    answer_of,
    best_version,
    defer_body,
    job_body,
    options_of,
    parse_place,
    signal_query,
)
from corral.engines.slurm.slurm_api.rest_tokens import Tokens
from corral.engines.slurm.slurm_api.slurm_records import SlurmJob

GANG = Submission(
    name="corral-1-j-1.1",
    comment="corral-1-j-1.1",
    script="#!/bin/sh\nexec true\n",
    nodes=("node1", "node2"),
    gpus={"": 2},
    cpus=3,
    memory_mib=100,
    minutes=7,
    partition="gpu",
    account="physics",
    env={"PATH": "/bin", "HOME": "/"},
    extra=("--reservation=corral",),
)
NO_PROGRAMS = SlurmCommands(programs="/no/such/place")


def made_token(**claims: Any) -> str:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{part}.c2lnbmVk"


def rest(
    tmp_path: Path,
    handler: Callable[[httpx.Request], httpx.Response],
    *,
    version: str = "v0.0.38",
    programs: SlurmCommands = NO_PROGRAMS,
    **claims: Any,
) -> SlurmRest:
    (tmp_path / "token").write_text(made_token(**(claims or {"sun": "corral"})))
    return SlurmRest(
        url="http://slurm:6820",
        tokens=Tokens(file=str(tmp_path / "token")),
        commands=programs,
        version=version,
        transport=httpx.MockTransport(handler),
    )


def answering(document: Mapping[str, Any], status: int = 200) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(status, json=document)


def saying(status: int, text: str) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(status, text=text)


def failing(code: int, words: str, status: int = 500) -> Callable[[httpx.Request], httpx.Response]:
    return answering({"errors": [{"error_number": code, "error": words}]}, status)


def test_a_job_says_the_same_in_every_version() -> None:
    classic = job_body(GANG, "v0.0.38")
    assert classic["script"] == "#!/bin/sh\nexec true\n"
    mine = classic["job"]
    assert (mine["nodelist"], mine["nodes"], mine["gres"]) == ("node1,node2", [2, 2], "gpu:2")
    assert (mine["memory_per_node"], mine["time_limit"], mine["no_requeue"]) == (100, 7, True)
    assert mine["environment"] == {"PATH": "/bin", "HOME": "/"}
    for version in VERSIONS[1:]:
        newer = job_body(GANG, version)["job"]
        assert (newer["required_nodes"], newer["minimum_nodes"], newer["maximum_nodes"]) == (["node1", "node2"], 2, 2)
        assert (newer["tres_per_node"], newer["memory_per_node"]["number"]) == ("gres/gpu:2", 100)
        assert (newer["time_limit"]["number"], newer["requeue"]) == (7, False)
        assert newer["environment"] == ["PATH=/bin", "HOME=/"]
        same = ("name", "comment", "tasks", "tasks_per_node", "cpus_per_task", "partition", "account", "reservation")
        assert {name: newer[name] for name in same} == {name: mine[name] for name in same}


def test_types_and_no_limit_are_said_in_every_version() -> None:
    job = replace(GANG, gpus={"V100": 1, "a100": 2}, minutes=UNLIMITED)
    classic = job_body(job, "v0.0.38")["job"]
    assert (classic["gres"], classic["time_limit"]) == ("gpu:V100:1,gpu:a100:2", 0)
    for version in VERSIONS[1:]:
        newer = job_body(job, version)["job"]
        assert newer["tres_per_node"] == "gres/gpu:V100:1,gres/gpu:a100:2"
        assert (newer["time_limit"]["set"], newer["time_limit"]["infinite"]) == (True, True)


def test_unrequested_fields_are_left_to_slurm() -> None:
    plain = Submission(name="a", comment="a", script="", nodes=("node1",))
    for version in VERSIONS:
        body = job_body(plain, version)["job"]
        absent = {"gres", "tres_per_node", "memory_per_node", "time_limit", "partition", "account", "qos"}
        assert not absent & body.keys()
        assert None not in body.values()


def test_an_answer_about_something_else_is_no_empty_cluster(tmp_path: Path) -> None:
    slurm = rest(tmp_path, answering({"sinfo": [], "errors": []}))
    with pytest.raises(SlurmUnavailable, match="there are no nodes in what Slurm answered, but sinfo, errors"):
        slurm.nodes()
    with pytest.raises(SlurmUnavailable, match="there are no jobs"):
        slurm.live()


def test_a_job_of_others_may_be_called_anything(tmp_path: Path) -> None:
    body = b'{"jobs": [{"job_id": 7, "name": "caf\xe9", "job_state": ["RUNNING"]}], "errors": []}'
    (job,) = rest(tmp_path, lambda request: httpx.Response(200, content=body), version="v0.0.41").live()
    assert (job.id, job.name) == (7, "caf\ufffd")


def test_the_newest_version_that_both_know_is_spoken() -> None:
    def offered(*versions: str) -> dict[str, Any]:
        return {"paths": {f"/slurm/{version}/jobs/": {} for version in versions}}

    assert best_version(offered("v0.0.36", "v0.0.38")) == "v0.0.38"
    assert best_version(offered("v0.0.39", "v0.0.40", "v0.0.41", "v0.0.99")) == "v0.0.41"
    assert best_version(offered("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")) == "v0.0.45"
    assert best_version(offered("v0.0.36")) is None
    assert best_version({}) is None


@pytest.mark.parametrize(
    ("version", "to_steps", "query"),
    [
        ("v0.0.38", True, {"signal": "URG"}),
        ("v0.0.38", False, {"signal": "URG"}),
        ("v0.0.41", True, {"signal": "TERM", "flags": "FULL_STEPS_ONLY"}),
        ("v0.0.41", False, {"signal": "TERM", "flags": "BATCH_JOB"}),
    ],
)
def test_a_stop_reaches_the_script_or_the_steps(version: str, to_steps: bool, query: dict[str, str]) -> None:
    assert signal_query("TERM", to_steps=to_steps, version=version) == query


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://login1:6820/", ("http://login1:6820", None)),
        ("https://slurm.example.org/rest", ("https://slurm.example.org/rest", None)),
        ("unix:/run/s.sock", ("http://localhost", "/run/s.sock")),
        ("unix:///run/s.sock", ("http://localhost", "/run/s.sock")),
    ],
)
def test_where_slurmrestd_is(url: str, found: tuple[str, str | None]) -> None:
    assert parse_place(url) == found


@pytest.mark.parametrize(
    "url", ["login1:6820", "ftp://login1", "http://", "unix:run/s.sock", "http://u:p@login1", "http://h:x"]
)
def test_invalid_address_is_reported(url: str) -> None:
    with pytest.raises(ValueError, match=r"form (http://login1:6820|unix:/run)"):
        parse_place(url)


def test_only_some_options_go_without_sbatch() -> None:
    assert options_of(["--constraint=ib", "--wckey=x"]) == {"constraints": "ib", "wckey": "x"}
    for bad in ("--exclusive", "--reservation", "-C ib"):
        with pytest.raises(ValueError, match="--constraint=…, --licenses=…"):
            options_of([bad])


def test_errors_count_whatever_the_status_says() -> None:
    found = answer_of(200, {"errors": [{"error": "Unable to parse time", "error_code": 2054}]}, "")
    assert (found.is_good, found.message) == (False, "Unable to parse time")
    assert answer_of(
        200, {"errors": [{"error_number": 9003, "error": "Nothing found with query"}], "jobs": []}, ""
    ).is_good
    assert answer_of(401, None, "Authentication\n failure").message == "Authentication failure"
    assert answer_of(500, {}, "").message == "HTTP status 500"


@pytest.mark.parametrize(
    ("handler", "error", "words"),
    [
        (failing(2014, "Requested node configuration is not available"), SlurmRefused, "^Requested node configuration"),
        (failing(-1, "Unspecified error"), SlurmUnavailable, "controller does not answer"),
        (failing(5005, "Zero Bytes were transmitted or received"), SlurmUnavailable, "Zero Bytes"),
        (failing(7000, "Unable to connect to database"), SlurmUnavailable, "accounting does not answer"),
        (failing(1007, "Protocol authentication error", 511), SlurmUnavailable, "rejects the token"),
        (saying(401, "Authentication failure"), SlurmUnavailable, "rejects the token"),
        (saying(404, "Unable find requested URL"), SlurmUnavailable, "does not know slurm/v0.0.38"),
        (answering({"errors": []}), SlurmUnavailable, "gave no job id"),
        # of 24.11, while its controller is away
        (failing(1, "Operation not permitted"), SlurmUnavailable, "controller does not answer"),
        (answering({"errors": [], "warnings": []}, 502), SlurmUnavailable, "^HTTP status 502"),
        # and of 26.05
        (failing(1, "Operation not permitted", 403), SlurmUnavailable, "controller does not answer"),
        (failing(2002, "Access/permission denied", 403), SlurmRefused, "^Access/permission denied"),
        (saying(503, "Service Unavailable"), SlurmUnavailable, "^Service Unavailable"),
    ],
)
def test_passing_errors_are_tried_again_and_others_are_refused(
    tmp_path: Path, handler: Callable[[httpx.Request], httpx.Response], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        rest(tmp_path, handler).submit(GANG)


@pytest.mark.parametrize("problem", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.ReadError("gone")])
def test_a_lost_connection_is_unavailable(tmp_path: Path, problem: Exception) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise problem

    with pytest.raises(SlurmUnavailable, match="slurmrestd at http://slurm:6820"):
        rest(tmp_path, handler).jobs()


def test_ended_job_is_not_cancelled(tmp_path: Path) -> None:
    for code in (2017, 2021, 2084):
        slurm = rest(tmp_path, failing(code, "over"))
        slurm.cancel(7)
        slurm.signal(7, "TERM", to_steps=False)
    with pytest.raises(SlurmRefused, match="denied"):
        rest(tmp_path, failing(2002, "Access/permission denied")).cancel(7)


def refused_in_24_11(code: int, words: str) -> dict[str, Any]:
    """A refusal of version v0.0.42, with status 200."""
    error = {"string": words, "code": code, "message": words}
    job = {"set": True, "infinite": False, "number": 4}
    return {
        "status": [{"error": error, "step_id": "4", "job_id": job, "federation": {"sibling": ""}}],
        "errors": [],
        "warnings": [],
    }


def test_refusal_with_a_good_status_is_no_success(tmp_path: Path) -> None:
    denied = rest(tmp_path, answering(refused_in_24_11(2002, "Access/permission denied")), version="v0.0.42")
    for ask in (lambda: denied.cancel(4), lambda: denied.signal(4, "TERM", to_steps=True)):
        with pytest.raises(SlurmRefused, match=r"^Access/permission denied$"):
            ask()
    over = refused_in_24_11(2021, "Job/step already completing or completed")
    done: dict[str, Any] = {"status": [], "errors": [], "warnings": []}
    for document in (over, done):
        slurm = rest(tmp_path, answering(document), version="v0.0.42")
        slurm.cancel(4)
        slurm.signal(4, "TERM", to_steps=False)
    assert answer_of(200, over, "").is_over
    assert answer_of(200, done, "").is_good


def test_only_what_waits_is_cancelled(tmp_path: Path) -> None:
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        running = request.method == "POST" and request.url.path.endswith("/8")
        return failing(2073, "Job is no longer pending execution")(request) if running else answering({})(request)

    slurm = rest(tmp_path, handler)
    slurm.cancel(7, only_pending=True)
    slurm.cancel(8, only_pending=True)
    assert asked == ["POST", "DELETE", "POST"]
    assert defer_body(5.0, "v0.0.41")["begin_time"]["number"] > 5


def test_jobs_are_submitted_in_the_name_of_their_users(tmp_path: Path) -> None:
    names: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        names.append(request.headers["X-SLURM-USER-NAME"])
        return answering({"job_id": 5})(request)

    slurm = rest(tmp_path, handler, sun="slurm")
    assert slurm.submit(Submission(name="a", comment="a", script="", nodes=("n",), run_as=Account(uid=0, gid=0))) == 5
    slurm.submit(GANG)
    assert names == ["root", "slurm"]
    with pytest.raises(SlurmRefused, match="no account with the number 4000000000"):
        slurm.submit(
            Submission(name="a", comment="a", script="", nodes=("n",), run_as=Account(uid=4_000_000_000, gid=0))
        )
    alone = SlurmRest(
        url="unix:/s", tokens=Tokens(), commands=NO_PROGRAMS, version="v0.0.38", transport=httpx.MockTransport(handler)
    )
    with pytest.raises(SlurmRefused, match=r"without a token .* in the name of root"):
        alone.submit(Submission(name="a", comment="a", script="", nodes=("n",), run_as=Account(uid=0, gid=0)))


def test_a_refused_token_is_read_again_and_no_job_is_sent_twice_for_it(tmp_path: Path) -> None:
    shown: list[tuple[str, str]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        shown.append((request.method, request.headers["X-SLURM-USER-TOKEN"]))
        good = shown[-1][1] == fresh
        return answering({"jobs": [], "job_id": 3})(request) if good else failing(-1, "Unspecified error")(request)

    slurm = rest(tmp_path, handler)
    old, fresh = (tmp_path / "token").read_text(), made_token(sun="corral", n=2)
    with pytest.raises(SlurmUnavailable):
        slurm.jobs()
    assert shown == [("GET", old)], "the file had no other"
    (tmp_path / "token").write_text(f"SLURM_JWT={fresh}\n")
    with pytest.raises(SlurmUnavailable):
        slurm.submit(GANG)
    assert shown[1:] == [("POST", old)], "it may have come through"
    assert slurm.submit(GANG) == 3
    assert slurm.jobs() == []


def test_missing_program_is_reported(tmp_path: Path) -> None:
    slurm = rest(tmp_path, saying(404, "Unable find requested URL"))
    with pytest.raises(SlurmRefused, match=r"cannot change nodes \(v0.0.38\), and scontrol is not here"):
        slurm.set_node("node1", is_withheld=True, reason="x")
    with pytest.raises(SlurmRefused, match=r"offers no accounting .* sacct is not here"):
        slurm.ended([7])


@pytest.mark.parametrize(
    "handler", [saying(404, "Unable find requested URL"), failing(7000, "Unable to connect to database", 502)]
)
def test_accounting_that_slurmrestd_lacks_is_asked_of_sacct(
    tmp_path: Path, handler: Callable[[httpx.Request], httpx.Response]
) -> None:
    sacct = tmp_path / "sacct"
    sacct.write_text('#!/bin/sh\necho \'{"jobs": [{"job_id": 7, "state": {"current": "FAILED"}}]}\'\n')
    sacct.chmod(0o755)
    (tmp_path / "token").write_text(made_token(sun="corral"))
    slurm = SlurmRest(
        url="http://slurm:6820",
        tokens=Tokens(file=str(tmp_path / "token")),
        commands=SlurmCommands(programs=str(tmp_path)),
        version="v0.0.38",
        transport=httpx.MockTransport(handler),
    )
    assert [(one.id, one.state) for one in slurm.ended([7])] == [(7, "FAILED")]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_books_are_asked_for_certain_jobs_only(tmp_path: Path, version: str) -> None:
    asked: list[list[tuple[str, str]]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params.multi_items())
        return failing(9003, "Nothing found with query", 200)(request)

    slurm = rest(tmp_path, handler, version=version)
    assert slurm.ended([7, 9]) == slurm.named("corral-1-j-1.1", 1_700_000_000.5) == slurm.ended([]) == []
    steps = ["7,9"] if version == "v0.0.38" else ["7", "9"]
    assert asked == [
        [*(("step", step) for step in steps), ("skip_steps", "true")],
        [("job_name", "corral-1-j-1.1"), ("start_time", "uts1700000000"), ("skip_steps", "true")],
    ]


def test_newer_versions_change_nodes_themselves(tmp_path: Path) -> None:
    sent: list[tuple[str, Any]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        sent.append((request.url.path, json.loads(request.content)))
        return answering({})(request)

    slurm = rest(tmp_path, handler, version="v0.0.41")
    slurm.set_node("node1", is_withheld=True, reason="corral: x")
    slurm.set_node("node1", is_withheld=False, reason="")
    path = "/slurm/v0.0.41/node/node1"
    assert sent == [(path, {"state": ["DRAIN"], "reason": "corral: x"}), (path, {"state": ["RESUME"]})]


class Squeue(SlurmCommands):
    """Answers with one job, until it does not answer at all."""

    answers = True

    def has(self, program: str) -> bool:
        return program == "squeue"

    def live(self) -> list[SlurmJob]:
        if not self.answers:
            raise SlurmUnavailable("Munge decode failed")
        return [SlurmJob(id=1, name="by squeue", state="RUNNING")]


@pytest.mark.parametrize(
    ("uid", "user", "by_squeue"), [(0, "corral", True), (4711, "corral", True), (4711, "root", False)]
)
def test_live_jobs_are_read_by_squeue_where_it_shows_as_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, user: str, by_squeue: bool
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: uid)
    monkeypatch.setattr(SlurmRest, "_name_of", lambda self, account: "corral")
    squeue = Squeue()
    far = answering({"jobs": [{"job_id": 2, "name": "by slurmrestd", "job_state": "RUNNING"}], "errors": []})
    slurm = rest(tmp_path, far, programs=squeue, sun=user)
    assert [job.id for job in slurm.live()] == [1 if by_squeue else 2]
    squeue.answers = False
    assert [job.id for job in slurm.live()] == [2]
    squeue.answers = True
    assert [job.id for job in slurm.live()] == [2], "it is not tried again at once"
