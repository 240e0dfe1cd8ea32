"""The contract of every engine with the control layer, as stories with real processes."""

from __future__ import annotations

import signal

import pytest

from corral.control.ports import AttemptPhase, EngineUnavailable, LaunchRefused
from corral.core.model import EndReason
from tests.contract.engine_harness import EngineHarness, order, script, wait_until

pytest_plugins = ("tests.servers.fixtures",)

RUNNING, ENDED = AttemptPhase.RUNNING, AttemptPhase.ENDED


def test_a_job_runs_and_its_exit_code_is_reported(cluster: EngineHarness) -> None:
    cluster.launch(order(*script("echo hello; exit 3")))
    ended = cluster.listener.ended()
    assert (ended.reason, ended.exit_code, ended.message) == (EndReason.EXIT_CODE, 3, "exit code 3")
    assert cluster.listener.phases() == [RUNNING, ENDED]
    assert cluster.listener.running().at <= ended.at
    assert cluster.output() == "hello\n"
    assert cluster.status() == ended


def test_success_is_exit_code_0_without_a_message(cluster: EngineHarness) -> None:
    cluster.launch(order("true"))
    ended = cluster.listener.ended()
    assert (ended.reason, ended.exit_code, ended.message) == (EndReason.EXIT_CODE, 0, "")


def test_a_job_killed_by_a_signal_ends_as_a_shell_would_say(cluster: EngineHarness) -> None:
    cluster.launch(order(*script("kill -SEGV $$")))
    ended = cluster.listener.ended()
    assert (ended.reason, ended.exit_code, ended.message) == (EndReason.EXIT_CODE, 139, "killed by SIGSEGV")


def test_a_job_sees_its_own_environment_and_not_the_servers(cluster: EngineHarness) -> None:
    cluster.launch(order("env", gpus=2, env={"LEARNING_RATE": "0.1"}, attempt_id="j-7.2"))
    cluster.listener.ended("j-7.2")
    env = dict(line.split("=", 1) for line in cluster.output("j-7.2").splitlines())
    expected = {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "CORRAL_JOB_ID": "j-7",
        "CORRAL_ATTEMPT": "2",
        "CORRAL_ATTEMPT_ID": "j-7.2",
        "CORRAL_NODE": cluster.node_name(0),
        "CORRAL_RANK": "0",
        "LEARNING_RATE": "0.1",
    }
    assert {name: env.get(name) for name in expected} == expected
    assert "PATH" in env
    assert not {"CORRAL_TOKEN", "AWS_SECRET_ACCESS_KEY", "MASTER_PORT"} & env.keys()


def test_a_job_without_gpus_sees_none_and_reads_an_empty_input(cluster: EngineHarness) -> None:
    cluster.launch(order(*script('cat; echo "gpus=[$CUDA_VISIBLE_DEVICES]"')))
    cluster.listener.ended()
    assert cluster.output() == "gpus=[]\n"


def test_a_job_runs_in_its_working_directory(cluster: EngineHarness, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("project")
    place.chmod(0o755)
    cluster.launch(order("pwd", workdir=str(place)))
    cluster.listener.ended()
    assert cluster.output() == f"{place}\n"


def test_logs_are_read_by_offset_and_followed_to_their_end(cluster: EngineHarness) -> None:
    go = cluster.root / "go"
    cluster.launch(order(*script(f"echo one; while [ ! -e {go} ]; do sleep 0.01; done; echo two >&2")))
    wait_until(lambda: cluster.output() == "one\n", "the first line")
    first = cluster.engine.logs("j-1.1", 0, 0, 100)
    assert (first.data, first.next_offset, first.at_end) == (b"one\n", 4, False)
    assert cluster.engine.logs("j-1.1", 0, 1, 2).data == b"ne"
    go.touch()
    cluster.listener.ended()
    rest = cluster.engine.logs("j-1.1", 0, first.next_offset, 100)
    assert (rest.data, rest.next_offset, rest.at_end) == (b"two\n", 8, True)
    tail = cluster.engine.logs("j-1.1", 0, -5, 100)
    assert (tail.data, tail.at_end) == (b"\ntwo\n", True)
    assert cluster.engine.logs("j-1.1", 0, -1000, 3).data == b"one"


def test_a_chatty_job_neither_blocks_nor_fills_the_disk(cluster: EngineHarness) -> None:
    cluster.launch(order(*script("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo the end")))
    assert cluster.listener.ended().exit_code == 0
    wait_until(lambda: cluster.bytes_kept() <= cluster.log_limit_bytes, "the log is short again")
    whole = cluster.engine.logs("j-1.1", 0, 0, 10_000_000)
    assert len(whole.data) <= cluster.log_limit_bytes
    assert whole.next_offset == 3_000_009  # offsets count what was written, not what was kept
    assert whole.data.endswith(b"x\nthe end\n")
    assert whole.at_end


def test_launching_twice_starts_once(cluster: EngineHarness) -> None:
    runs = cluster.root / "runs.txt"
    once = order(*script(f"echo run >> {runs}; exec sleep 60"))
    cluster.launch(once)
    cluster.launch(once)
    cluster.listener.running()
    cluster.launch(once)
    engine, listener = cluster.restart()
    engine.launch(once)
    cluster.crash_helper()
    engine.launch(once)
    # A later job shows that everything before it was handled.
    cluster.launch(order("true", attempt_id="j-2.1"))
    listener.ended("j-2.1")
    assert runs.read_text() == "run\n"
    engine.stop("j-1.1", 5.0)
    listener.ended()
    engine.launch(once)
    engine.forget(["j-1.1"])
    with pytest.raises(LaunchRefused, match="over here already"):
        engine.launch(once)
    cluster.launch(order("true", attempt_id="j-3.1"))
    listener.ended("j-3.1")
    assert runs.read_text() == "run\n"


def test_stop_sends_sigterm_first_and_reports_how_it_ended(cluster: EngineHarness) -> None:
    cluster.launch(order(*script("trap 'echo saved; exit 9' TERM; echo ready; while :; do sleep 0.02; done")))
    wait_until(lambda: "ready" in cluster.output(), "the trap")
    cluster.engine.stop("j-1.1", 10.0)
    ended = cluster.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.EXIT_CODE, 9)
    assert "saved" in cluster.output()


def test_a_program_that_ignores_the_request_is_killed_after_the_grace_time(cluster: EngineHarness) -> None:
    cluster.launch(order(*script("trap '' TERM; echo ready; while :; do sleep 0.02; done")))
    wait_until(lambda: "ready" in cluster.output(), "the trap")
    cluster.engine.stop("j-1.1", 0.2)
    ended = cluster.listener.ended()
    assert (ended.exit_code, ended.message) == (137, "killed by SIGKILL")


def test_a_shorter_grace_time_may_follow_a_longer_one(cluster: EngineHarness) -> None:
    cluster.launch(order(*script("trap '' TERM; echo ready; while :; do sleep 0.02; done")))
    wait_until(lambda: "ready" in cluster.output(), "the trap")
    cluster.engine.stop("j-1.1", 600.0)
    cluster.engine.stop("j-1.1", 0.1)
    assert cluster.listener.ended().exit_code == 137


def test_stop_ends_every_process_also_daemons(cluster: EngineHarness) -> None:
    daemon = "setsid sh -c 'trap \"\" TERM; echo daemon $$; while :; do sleep 0.02; done' &"
    cluster.launch(order(*script(f"{daemon} sleep 60 & echo child $!; echo main $$; wait")))
    pids = [cluster.number_from_output(word) for word in ("daemon", "child", "main")]
    assert all(cluster.process_exists(pid) for pid in pids)
    cluster.engine.stop("j-1.1", 0.2)
    cluster.listener.ended()
    assert not [pid for pid in pids if cluster.process_exists(pid)]


def test_children_of_a_stopped_shell_keep_the_grace_time(cluster: EngineHarness) -> None:
    trainer = "trap 'sleep 0.3; echo checkpoint saved; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
    cluster.launch(order(*script(f'sh -c "{trainer}" & wait')))
    wait_until(lambda: "ready" in cluster.output(), "the trainer")
    cluster.engine.stop("j-1.1", 10.0)
    cluster.listener.ended()
    assert "checkpoint saved" in cluster.output()


def test_a_finished_job_leaves_nothing_running_and_a_leaked_output_does_not_hold_it(cluster: EngineHarness) -> None:
    cluster.launch(order(*script("setsid sleep 300 & echo child $!; exit 0")))
    ended = cluster.listener.ended()
    assert ended.exit_code == 0
    assert not cluster.process_exists(cluster.number_from_output("child"))


def test_stop_right_after_launch_is_not_lost(cluster: EngineHarness) -> None:
    for number in range(10):
        attempt_id = cluster.launch(order("sleep", "60", attempt_id=f"j-{number}.1"))
        cluster.engine.stop(attempt_id, 5.0)
    for number in range(10):
        ended = cluster.listener.ended(f"j-{number}.1")
        assert ended.reason is EndReason.EXIT_CODE
        assert ended.exit_code in (None, 128 + signal.SIGTERM)


def test_the_time_limit_ends_a_job(cluster: EngineHarness) -> None:
    cluster.launch(order("sleep", "60", time_limit_seconds=0.2))
    ended = cluster.listener.ended()
    assert ended.reason is EndReason.TIMED_OUT
    assert "time limit of 0.2 s" in ended.message
    assert 0.2 <= ended.at - cluster.listener.running().at < 5.0


def test_the_time_limit_gives_the_grace_time(cluster: EngineHarness) -> None:
    saving = "trap 'sleep 0.3; echo saved; exit 9' TERM; while :; do sleep 0.02; done"
    cluster.launch(order(*script(saving), time_limit_seconds=1.0, grace_seconds=60.0))
    ended = cluster.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.TIMED_OUT, 9)
    assert "saved" in cluster.output()


def test_running_attempts_are_adopted_by_the_next_server(cluster: EngineHarness) -> None:
    go = cluster.root / "go"
    cluster.launch(order(*script(f"while [ ! -e {go} ]; do sleep 0.01; done; exit 4")))
    running = cluster.listener.running()
    _, listener = cluster.restart()
    assert cluster.status() == running
    assert listener.of("j-1.1") == []  # `observe` reports earlier changes
    go.touch()
    assert listener.ended().exit_code == 4
    assert listener.phases() == [ENDED]


def test_an_end_while_no_server_lived_is_found(cluster: EngineHarness) -> None:
    go = cluster.root / "go"
    cluster.launch(order(*script(f"while [ ! -e {go} ]; do sleep 0.01; done; echo bye; exit 5")))
    cluster.listener.running()
    cluster.stop_server()
    go.touch()
    wait_until(lambda: not cluster.is_alive(), "the end of the job")
    _, listener = cluster.start()
    status = cluster.status()
    assert status is not None
    assert (status.phase, status.reason, status.exit_code) == (ENDED, EndReason.EXIT_CODE, 5)
    assert cluster.output() == "bye\n"
    assert listener.of("j-1.1") == []


def test_a_running_job_can_be_stopped_by_the_next_server(cluster: EngineHarness) -> None:
    cluster.launch(order("sleep", "60"))
    cluster.listener.running()
    engine, listener = cluster.restart()
    engine.stop("j-1.1", 5.0)
    assert listener.ended().message == "killed by SIGTERM"


@pytest.mark.parametrize(
    ("command", "workdir", "words"),
    [
        ("no-such-program", None, "no-such-program: command not found"),
        ("/no/such/program", None, "/no/such/program: No such file"),
        ("{root}/plain", None, "{root}/plain: Permission denied"),
        ("{root}/not-a-script", None, "{root}/not-a-script: not a program"),
        ("{root}/no-interpreter", None, "{root}/no-interpreter: the interpreter"),
        ("{root}", None, "{root}: Permission denied"),
        ("a\0b", None, "'a\\x00b': execve: embedded null"),
        ("true", "/no/such/place", "working directory /no/such/place: No such file"),
    ],
)
def test_program_that_cannot_start_has_its_reason(
    cluster: EngineHarness, command: str, workdir: str | None, words: str
) -> None:
    for name, text, mode in (
        ("plain", "text", 0o644),
        ("not-a-script", "echo hello", 0o755),
        ("no-interpreter", "#!/no/such/python\n", 0o755),
    ):
        path = cluster.root / name
        path.write_text(text)
        path.chmod(mode)
    cluster.launch(order(command.format(root=cluster.root), workdir=workdir))
    ended = cluster.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.LAUNCH_ERROR, None)
    assert ended.message.startswith(words.format(root=cluster.root))
    assert cluster.listener.phases() == [ENDED]


def test_orders_that_can_never_run_are_refused(cluster: EngineHarness) -> None:
    for bad in (
        order(),
        order("true", attempt_id="../escape.1"),
        order("true", attempt_id="no-number"),
        order("true", workdir="relative/place"),
        order("true", env={"HUGE": "x" * (5 << 20)}),
        order("true", nodes=0),
    ):
        with pytest.raises(LaunchRefused):
            cluster.engine.launch(bad)
    assert cluster.engine.observe().attempts == ()


def test_a_gang_meets_at_one_address_and_ends_together(cluster: EngineHarness) -> None:
    cluster.launch(order(*script("env; exit 0"), nodes=3, gpus=4))
    assert cluster.listener.ended().exit_code == 0
    envs = [dict(line.split("=", 1) for line in cluster.output(rank=rank).splitlines()) for rank in range(3)]
    assert [env["NODE_RANK"] for env in envs] == ["0", "1", "2"]
    assert [env["CORRAL_NODE"] for env in envs] == [cluster.node_name(rank) for rank in range(3)]
    assert len({env["MASTER_PORT"] for env in envs}) == 1
    assert int(envs[0]["MASTER_PORT"]) > 0
    address = cluster.master_addr or envs[0]["MASTER_ADDR"]
    shared = {"MASTER_ADDR": address, "NNODES": "3", "GPUS_PER_NODE": "4", "WORLD_SIZE": "12"}
    shared |= {"PET_NNODES": "3", "PET_NPROC_PER_NODE": "4", "PET_MASTER_ADDR": address}
    assert all({name: env[name] for name in shared} == shared for env in envs)
    assert cluster.listener.phases() == [RUNNING, ENDED]


def test_the_first_failure_of_a_gang_stops_the_others(cluster: EngineHarness) -> None:
    go = cluster.root / "go"
    fail = f"while [ ! -e {go} ]; do sleep 0.01; done; exit 3"
    cluster.launch(order(*script(f"[ $CORRAL_RANK = 1 ] || exec sleep 60; {fail}"), nodes=3))
    cluster.listener.running()
    go.touch()
    ended = cluster.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.EXIT_CODE, 3)
    assert ended.message == f"instance 1 on {cluster.node_name(1)}: exit code 3"


def test_all_of_a_gang_are_asked_first(cluster: EngineHarness) -> None:
    trap = "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
    cluster.launch(order(*script(trap), nodes=2))
    wait_until(lambda: all("ready" in cluster.output(rank=rank) for rank in range(2)), "the traps")
    cluster.engine.stop("j-1.1", 30.0)
    assert cluster.listener.ended().exit_code == 0
    assert all("saved" in cluster.output(rank=rank) for rank in range(2))


def test_a_gang_that_broke_while_no_server_lived_is_cleared_up(cluster: EngineHarness) -> None:
    go = cluster.root / "go"
    fail = f"while [ ! -e {go} ]; do sleep 0.01; done; exit 3"
    cluster.launch(order(*script(f"[ $CORRAL_RANK = 1 ] || exec sleep 60; {fail}"), nodes=2))
    cluster.listener.running()
    cluster.stop_server()
    go.touch()
    wait_until(lambda: not cluster.is_alive(rank=1), "the end of instance 1")
    cluster.start()
    wait_until(lambda: (status := cluster.status()) and status.phase is ENDED, "the end of the gang")
    status = cluster.status()
    assert status is not None
    assert status.message == f"instance 1 on {cluster.node_name(1)}: exit code 3"


def test_forgotten_attempts_are_not_reported_but_keep_their_logs(cluster: EngineHarness) -> None:
    cluster.launch(order("echo", "kept"))
    cluster.launch(order("echo", "gone", attempt_id="j-2.1"))
    cluster.listener.ended()
    cluster.listener.ended("j-2.1")
    cluster.engine.forget(["j-1.1"])
    cluster.engine.forget(["j-2.1"], delete_logs=True)
    assert cluster.engine.observe().attempts == ()
    cluster.restart()
    assert cluster.engine.observe().attempts == ()
    assert cluster.output("j-1.1") == "kept\n"
    assert cluster.output("j-2.1") == ""
    cluster.engine.forget(["j-1.1"], delete_logs=True)
    assert cluster.output("j-1.1") == ""


def test_a_running_attempt_is_never_forgotten(cluster: EngineHarness) -> None:
    cluster.launch(order("sleep", "60"))
    cluster.listener.running()
    cluster.engine.forget(["j-1.1"], delete_logs=True)
    status = cluster.status()
    assert status is not None
    assert status.phase is RUNNING


def test_an_unknown_attempt_is_tolerated(cluster: EngineHarness) -> None:
    cluster.engine.stop("j-404.1", 1.0)
    cluster.engine.forget(["j-404.1", "../../etc"], delete_logs=True)
    for attempt_id in ("j-404.1", "../../etc"):
        chunk = cluster.engine.logs(attempt_id, 0, 0, 100)
        assert (chunk.data, chunk.at_end) == (b"", True)


def test_a_closed_engine_says_that_it_is(cluster: EngineHarness) -> None:
    cluster.launch(order("sleep", "60"))
    cluster.listener.running()
    engine = cluster.engine
    engine.close()
    engine.close()
    with pytest.raises(EngineUnavailable):
        engine.launch(order("true", attempt_id="j-2.1"))
    assert cluster.is_alive()
