"""The tools for assistants. Each call uses the client of its caller, so that it has the caller's own rights.

A tool that changes something does nothing unless `confirm` is true: its answer says first what would happen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, cast

from corral.cli.assistant import answers
from corral.client.client import Client
from corral.client.jobs.jobs import LIVE_STATES
from corral.client.views import JobCreate

Opened = Callable[[], AbstractContextManager[Client]]

MOST_JOBS = 50
MOST_LINES = 200
NOT_DONE = "Nothing was done. Show this to the user, and call the tool again with confirm=true if the user agrees."


class Tools:
    """`opened` yields the client of the caller of the current request."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def status(self) -> dict[str, Any]:
        """The whole installation: free and allocated GPUs, nodes, running and queued jobs, firing alerts."""
        with self._opened() as client:
            overview = client.fleet.overview()
            nodes = [
                {"node": node["id"], "state": node["state"], "free": node["gpus_free"], "gpus": node["gpus_total"]}
                for node in client.fleet.nodes()
            ]
        keys = ("gpus", "gpus_free", "gpus_allocated", "queued", "utilization", "jobs", "alerts")
        return {**{key: overview.get(key) for key in keys}, "nodes": nodes[:MOST_JOBS], "node_count": len(nodes)}

    def list_jobs(self, mine: bool = True, ended: bool = False, search: str = "", limit: int = 20) -> dict[str, Any]:
        """Jobs, the newest first: only the caller's own unless `mine` is false; with `ended`, ended jobs, too."""
        with self._opened() as client:
            found = client.jobs.list(
                states=() if ended else LIVE_STATES,
                user=client.people.me()["name"] if mine else None,
                text=search or None,
                sort="-created_at",
                limit=max(1, min(limit, MOST_JOBS)),
            )
            return {"jobs": [answers.job(view) for view in found]}

    def show_job(self, job: str) -> dict[str, Any]:
        """One job, by id or by the name of one of the caller's own: command, state, nodes, and how it ended."""
        with self._opened() as client:
            return answers.job_detail(client.jobs.get(job))

    def why(self, job: str) -> dict[str, Any]:
        """Why a job waits: the rules that hold it, its place in the line, and changes that would let it start."""
        with self._opened() as client:
            return answers.why(client.jobs.why(job))

    def estimate(self, job: str) -> dict[str, Any]:
        """When a waiting job is expected to start, and the planned start at the latest."""
        with self._opened() as client:
            view = client.jobs.why(job)
        return {key: view.get(key) for key in ("job_id", "state", "estimate", "planned_start", "planned_nodes")}

    def dry_run(
        self,
        command: list[str],
        gpus: float | None = None,
        nodes: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The result of a submission now, without submitting: start, wait (until when, behind how many jobs) or refusal
        (why). `options` are further fields of a job file, such as time, queue, priority, env, workdir.
        """
        with self._opened() as client:
            return answers.plan(client.jobs.plan(_job(command, gpus, nodes, options)))

    def submit(
        self,
        command: list[str],
        gpus: float | None = None,
        nodes: int | None = None,
        options: dict[str, Any] | None = None,
        confirm: bool = False,
    ) -> dict[str, Any]:
        """Submit a job. Without `confirm` only the dry run is answered. `options` as in dry_run, and `name`."""
        body = _job(command, gpus, nodes, options)
        with self._opened() as client:
            if not confirm:
                return {"not_done": NOT_DONE, "dry_run": answers.plan(client.jobs.plan(body))}
            return answers.job(client.jobs.submit(body))

    def logs(self, job: str, tail: int = 50, search: str = "") -> dict[str, Any]:
        """The last lines of a job's output, or the lines that contain a text."""
        lines = max(1, min(tail, MOST_LINES))
        with self._opened() as client:
            if not search:
                return {"text": answers.cut(client.jobs.log(job, tail=lines))}
            found = list(client.jobs.search_log(job, search, limit=lines))
        return {"lines": [{"line": match["line"], "text": answers.cut(match["text"])} for match in found]}

    def stop(self, job: str, confirm: bool = False) -> dict[str, Any]:
        """Stop a job: its program gets SIGTERM, and SIGKILL after the grace time. Needs `confirm`."""
        with self._opened() as client:
            view = client.jobs.get(job)
            if not confirm and view["state"] in LIVE_STATES:
                return {"not_done": NOT_DONE, "would_stop": answers.job(view)}
            return answers.job(client.jobs.stop(view["id"]))

    def what_if(
        self, changes: dict[str, Any], days: float = 7, name: str = "", confirm: bool = False
    ) -> dict[str, Any]:
        """Replay the jobs of past days with changed rules or another fleet, and compare (operators). `changes` are
        those of POST /simulations: {"policy": "shortest"}, {"scale": 1.5}. It uses a processor for minutes and needs
        `confirm`."""
        with self._opened() as client:
            if not confirm:
                return {"not_done": NOT_DONE, "would_replay": {"days": days, "changes": changes}}
            asked = client.simulations.create({"candidate": changes, "days": days, "name": name})
            return answers.simulation(client.simulations.wait(asked["id"]))

    def analysis(self, period: str = "7d", limit: int = 10) -> dict[str, Any]:
        """Findings about waste: idle jobs, oversized requests, fragmentation, with proposals (operators)."""
        with self._opened() as client:
            return answers.analysis(client.analysis.analyse(period=period), max(1, min(limit, MOST_JOBS)))

    def reports(self, limit: int = 10) -> dict[str, Any]:
        """The newest reports about the use of the GPUs (operators)."""
        with self._opened() as client:
            return {
                "reports": [answers.report(view) for view in client.reports.list(limit=max(1, min(limit, MOST_JOBS)))]
            }

    def report(self, report: str = "", period: str = "7d", confirm: bool = False) -> dict[str, Any]:
        """The numbers of a report as CSV, by its id; without an id one is made, which needs `confirm` (operators)."""
        with self._opened() as client:
            if not report:
                if not confirm:
                    return {"not_done": NOT_DONE, "would_make": {"period": period}}
                report = client.reports.wait(client.reports.create({"period": period})["id"])["id"]
            view = client.reports.get(report)
            text = client.reports.file(report, "csv").decode() if view["state"] == "ready" else ""
        return {**answers.report(view), "csv": answers.cut_table(text)}


def tools_of(tools: Tools) -> Mapping[str, Callable[..., dict[str, Any]]]:
    """The tools by name; those that change something have the parameter `confirm`."""
    found = (
        *(tools.status, tools.list_jobs, tools.show_job, tools.why, tools.estimate, tools.dry_run, tools.submit),
        *(tools.logs, tools.stop, tools.what_if, tools.analysis, tools.reports, tools.report),
    )
    return {tool.__name__: tool for tool in found}


def _job(command: list[str], gpus: float | None, nodes: int | None, options: Mapping[str, Any] | None) -> JobCreate:
    """The fields of the submission. A size that is not given is left to the options, such as a package."""
    whole = int(gpus) if gpus is not None and gpus.is_integer() else gpus
    sizes = {key: value for key, value in (("gpus", whole), ("nodes", nodes)) if value is not None}
    return cast("JobCreate", {**(options or {}), "command": command, **sizes})
