"""Python functions as jobs on a real server: calls, arrays, futures, the asynchronous twin and notebook cells."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, wait
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from corral import AsyncClient, Client
from corral.client import CallFailed, ClientError, LogEnd, LogText
from corral.client.functions.executor import JobExecutor
from corral.client.functions.payload import RemoteTraceback
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    made = CorralServer(tmp_path_factory.mktemp("functions") / "server", "--virtual-gpus", "4xA100-80G")
    made.start()
    yield made
    with made.client() as client:
        for job in client.jobs.list(states=["queued", "starting", "running"]):
            client.jobs.stop(job["id"])
    made.stop()


@pytest.fixture
def client(server: CorralServer) -> Iterator[Client]:
    with server.client() as made:
        yield made


def local(scale: float) -> Callable[..., dict[str, Any]]:
    """A function with a closure and no module that a job could import."""

    def train(rate: float, *, epochs: int = 1) -> dict[str, Any]:
        print(f"rate {rate}", flush=True)  # noqa: T201
        return {"loss": rate * scale * epochs, "gpus": os.environ["CUDA_VISIBLE_DEVICES"], "pid": os.getpid()}

    train.__module__ = "__main__"
    return train


def in_job(function: Callable[..., Any]) -> Callable[..., Any]:
    """Sent by value, as functions of a program's main module are."""
    function.__module__ = "__main__"
    return function


class TestCalls:
    def test_the_result_of_a_function_with_arguments_comes_back(self, client: Client) -> None:
        call = client.functions(gpus=1, time="5m", name="call-one").submit(local(2.0), 0.5, epochs=3)
        result = call.result(timeout=60)
        assert result["loss"] == 3.0
        assert result["gpus"] in {"0", "1", "2", "3"}
        assert result["pid"] != os.getpid()
        assert "".join(call.logs()) == "rate 0.5\n"
        assert call.job["description"] == "calls the Python function train"
        again = client.functions().attach("call-one")
        assert again.result()["loss"] == 3.0

    def test_an_exception_of_the_function_is_raised_with_its_traceback(self, client: Client) -> None:
        @in_job
        def fails() -> None:
            raise KeyError("no such layer")

        call = client.functions().submit(fails)
        with pytest.raises(KeyError, match="no such layer") as caught:
            call.result(timeout=60)
        assert isinstance(caught.value.__cause__, RemoteTraceback)
        assert "in fails" in str(caught.value.__cause__)
        assert call.state == "failed"

    def test_a_job_that_dies_has_no_result_and_its_last_lines_are_shown(self, client: Client) -> None:
        @in_job
        def dies() -> None:
            print("out of luck", flush=True)  # noqa: T201
            os._exit(9)

        with pytest.raises(CallFailed, match="out of luck"):
            client.functions().submit(dies).result(timeout=60)

    def test_waiting_ends_after_its_time_and_the_job_goes_on(self, client: Client) -> None:
        @in_job
        def sleeps() -> None:
            time.sleep(600)

        call = client.functions().submit(sleeps)
        with pytest.raises(TimeoutError, match="has not ended within"):
            call.result(timeout=0.2)
        assert not call.done()
        call.stop()
        assert call.wait(timeout=60)["state"] == "stopped"

    def test_results_of_other_users_are_not_unpickled(self, client: Client, server: CorralServer) -> None:
        server.add_user("mallory")
        with server.client("mallory") as theirs:
            call = theirs.functions(workdir="/tmp").submit(local(1.0), 1.0)
            call.wait(timeout=60)
        with pytest.raises(CallFailed, match="only results of your own jobs"):
            client.functions().attach(call.id).result()

    def test_a_job_that_calls_no_function_cannot_be_attached(self, client: Client) -> None:
        job = client.jobs.submit({"command": ["true"]})
        with pytest.raises(CallFailed, match="does not call a function"):
            client.functions().attach(job["id"])

    def test_too_large_arguments_are_refused_before_a_job_exists(self, client: Client) -> None:
        with pytest.raises(ClientError, match="at most 256 KiB can be sent"):
            client.functions(name="never-made").submit(len, os.urandom(300_000))
        assert not list(client.jobs.list(name="never-made"))


class TestArrays:
    def test_map_is_one_array_in_the_order_of_its_inputs(self, client: Client) -> None:
        calls = client.functions(name="squares").map(in_job(lambda number: number**2), [3, 1, 2])
        assert [call.result(timeout=60) for call in calls] == [9, 1, 4]
        assert {job["id"] for job in client.jobs.list(array="squares")} == {call.id for call in calls}
        assert client.functions().map(len, []) == []


class TestExecutor:
    def test_futures_complete_with_results_and_exceptions(self, client: Client) -> None:
        with client.executor(time="5m") as executor:
            assert isinstance(executor, Executor)
            good: Future[int] = executor.submit(len, [1, 2, 3])
            bad: Future[int] = executor.submit(int, "no number")
            done, _ = wait([good, bad], timeout=60)
            assert done == {good, bad}
            assert good.result() == 3
            with pytest.raises(ValueError, match="invalid literal"):
                bad.result()
            assert list(executor.map(pow, [2, 3], [3, 2])) == [8, 9]
        with pytest.raises(RuntimeError, match="after the executor was shut down"):
            executor.submit(len, [])

    def test_a_cancelled_future_stops_its_waiting_job(self, client: Client) -> None:
        blocker = client.jobs.submit({"command": ["sleep", "600"], "gpus": 4})
        executor = JobExecutor(client, {"gpus": 4})
        future = executor.submit(len, [1])
        assert future.cancel()
        assert future.cancelled()
        executor.shutdown()
        states = [job["state"] for job in client.jobs.list(states=["stopped"])]
        assert states
        client.jobs.stop(blocker["id"])

    def test_more_calls_than_a_few_are_followed_by_lists(self, client: Client) -> None:
        with client.executor() as executor:
            assert list(executor.map(abs, range(-10, 0))) == list(range(10, 0, -1))


class TestAsyncClient:
    def test_jobs_are_submitted_waited_for_and_their_logs_followed(self, server: CorralServer) -> None:
        async def story() -> tuple[str, str, object, list[int], list[str]]:
            async with AsyncClient.from_environment(server.url, server.token()) as corral:
                job = await corral.jobs.submit({"command": ["sh", "-c", "echo hello"], "name": "async-one"})
                ended, text = await asyncio.gather(corral.jobs.wait(job["id"]), _log(corral, job["id"]))
                calls = await corral.functions().map(abs, [-1, -2])
                me = await corral.run(corral.client.people.me)
                names = [view["name"] async for view in corral.jobs.list(states=["completed"], limit=500)]
                return ended["state"], text, me["name"], [await call for call in calls], names

        state, text, me, values, names = asyncio.run(story())
        assert (state, text, me, values) == ("completed", "hello\n", "operator", [1, 2])
        assert "async-one" in names

    def test_the_event_loop_is_free_while_a_job_is_waited_for(self, server: CorralServer) -> None:
        async def story() -> str:
            async with AsyncClient.from_environment(server.url, server.token()) as corral:
                job = await corral.jobs.submit({"command": ["sleep", "600"]})
                waiting = asyncio.create_task(corral.jobs.wait(job["id"]))
                await corral.jobs.stop(job["id"])
                return (await waiting)["state"]

        assert asyncio.run(story()) == "stopped"


async def _log(corral: AsyncClient, job: str) -> str:
    text = ""
    async for part in corral.jobs.follow_log(job):
        if isinstance(part, LogText):
            text += part.text
        else:
            assert isinstance(part, LogEnd)
    return text


class TestNotebook:
    def test_a_cell_runs_as_a_job_and_exchanges_names_with_the_notebook(
        self, server: CorralServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CORRAL_SERVER", server.url)
        monkeypatch.setenv("CORRAL_TOKEN", server.token())
        notebook = nbformat.v4.new_notebook(
            cells=[
                nbformat.v4.new_code_cell("%load_ext corral\nrates = [0.1, 0.2]"),
                nbformat.v4.new_code_cell(
                    "%%corral --gpus 1 --time 5m --name cell --take rates --give best\n"
                    "import os\nprint('on', os.environ['CORRAL_NODE'])\nbest = max(rates)\nbest"
                ),
                nbformat.v4.new_code_cell("print('best is', best)"),
            ]
        )
        NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
        shown = notebook.cells[1].outputs
        text = "".join(part.text for part in shown if part.output_type == "stream")
        assert text.startswith("on ")
        assert text.endswith("0.2\n")
        progress = [part.data["text/plain"] for part in shown if part.output_type == "display_data"]
        assert len(progress) == 1, "one line that is replaced"
        assert "completed after" in progress[0]
        assert notebook.cells[2].outputs[0].text == "best is 0.2\n"
        with server.client() as client:
            wait_until(lambda: client.jobs.get("cell")["state"] == "completed", "the job of the cell is completed")


def test_the_client_is_light() -> None:
    """Neither cloudpickle nor the executor is loaded by the client."""
    import subprocess

    script = "import corral.client.client, sys; print([m for m in ('cloudpickle', 'IPython') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
