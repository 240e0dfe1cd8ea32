"""`corral top`: what a frame shows, in every size, and the live view in a real terminal."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from corral.cli.fleet.top_view import Display, Pane, Snapshot, Sort, frame, whole
from tests.unit.cli.fleet_views import NODES, NOW, OVERVIEW, RUNNING, WAITING, answers, gpu, job, node
from tests.unit.cli.runner import corral
from tests.unit.client.scripted_server import Answer, Seen, as_json, scripted


def snapshot(**changes: Any) -> Snapshot:
    usual = {"at": NOW, "server": "http://c:8470", "overview": OVERVIEW, "nodes": NODES}
    return Snapshot(**{**usual, "running": RUNNING, "waiting": WAITING, **changes})


def text(look: Display | None = None, *, width: int = 100, height: int = 24, trouble: str = "", **changes: Any) -> str:
    lines, _ = frame(snapshot(**changes), look or Display(), width=width, height=height, now=NOW, trouble=trouble)
    return "\n".join(line.plain for line in lines)


def line_of(shown: str, start: str) -> str:
    return next(line for line in shown.splitlines() if line.startswith(start))


def test_a_frame_shows_totals_gpus_by_node_and_jobs() -> None:
    shown = text()
    assert "GPUs 4: 1 held, 3 free" in shown
    assert "1.2 kW" in shown
    assert "hottest 91°C" in shown
    assert "1 GPU failed   2 GPUs not read   alerts: 2 critical" in shown
    assert line_of(shown, "n1") == "n1  ready  2 GPUs A10, 1 free"
    assert "down" in line_of(shown, "n2")
    busy = line_of(shown, "   0")
    assert " 97% " in busy
    assert "12G/24G" in busy
    assert "91°C!" in busy
    assert busy.endswith("healthy  ann train-j-1")
    assert line_of(shown, "j-1").endswith("running      1       3s  n1")
    assert line_of(shown, "j-2").endswith("queued       4       3s  queue default")
    assert "… and 2 more that wait" in shown


def test_old_or_unknown_readings_are_never_shown_as_zero() -> None:
    shown = whole(snapshot(), Sort.NODE, width=100, now=NOW)
    plain = [line.plain for line in shown]
    stale = next(line for line in plain if "stale" in line)
    assert "stale: read 2m ago" in stale
    assert "%" not in stale
    failed = next(line for line in plain if "failed " in line and "no reading yet" in line)
    assert "%" not in failed
    unknown = next(line for line in plain if "?" in line)
    assert "[      " in unknown
    assert "   - " in unknown
    blind = text(overview={**OVERVIEW, "utilization": None, "power_watts": None, "temperature_celsius": None})
    assert "use [     ?      ] -" in blind
    assert "0%" not in blind.splitlines()[1]


def test_an_unreachable_server_is_shown_with_the_age_of_the_data() -> None:
    lines, _ = frame(snapshot(), Display(), width=80, height=24, now=NOW + 65, trouble="cannot reach http://c:8470")
    assert "AWAY, 1m5s old: cannot reach" in lines[0].plain


def test_gpus_can_be_ordered_by_what_they_do() -> None:
    hot = text(Display(sort=Sort.HEAT))
    ids = [line.split()[0] for line in hot.splitlines() if "-gpu" in line.split(" ")[0]]
    # what is not known comes last, in the order of the nodes
    assert ids == ["n1-gpu0", "n2-gpu1", "n1-gpu1", "n2-gpu0"]


def test_keys_scroll_inside_what_there_is() -> None:
    many = [node(f"n{number}", [gpu(f"n{number}", index) for index in range(8)]) for number in range(10)]
    seen = snapshot(nodes=many)
    lines, look = frame(seen, Display().to_end(), width=80, height=24, now=NOW)
    shown = [line.plain for line in lines]
    assert look.gpu_offset > 50
    assert any(line.startswith("   7") for line in shown)
    assert not any(line.startswith("n0 ") for line in shown)
    assert f"{look.gpu_offset + 1}-90/90" in shown[-1]
    lines, again = frame(seen, look.scrolled(5), width=80, height=24, now=NOW)
    assert again == look
    assert frame(seen, look.to_start(), width=80, height=24, now=NOW)[1].gpu_offset == 0
    jobs = snapshot(running=[job(f"j-{number}") for number in range(50)])
    _, moved = frame(jobs, Display(focus=Pane.JOBS).scrolled(7), width=80, height=24, now=NOW)
    assert (moved.job_offset, moved.gpu_offset) == (7, 0)


@given(width=st.integers(10, 250), height=st.integers(2, 70), gpus=st.integers(0, 40), jobs=st.integers(0, 40))
def test_a_frame_never_leaves_the_terminal(width: int, height: int, gpus: int, jobs: int) -> None:
    seen = snapshot(
        nodes=[*NODES, node("n9", [gpu("n9", index) for index in range(gpus)])] if gpus else [],
        running=[job(f"j-{number}", name="x" * 63) for number in range(jobs)],
    )
    for look in (Display(), Display(sort=Sort.USE, focus=Pane.JOBS).to_end()):
        lines, _ = frame(seen, look, width=width, height=height, now=NOW, trouble="")
        assert len(lines) <= height
        assert all(line.cell_len <= width for line in lines)


# ---------------------------------------------------------------------------------------------- against a server


def test_without_a_terminal_one_frame_is_printed() -> None:
    with scripted(answers) as server:
        done = corral("top", CORRAL_SERVER=server.url, COLUMNS="90")
    assert done.exit_code == 0
    assert "GPUs 4: 1 held, 3 free" in done.stdout
    assert "j-2" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_frame_as_json() -> None:
    with scripted(answers) as server:
        done = corral("top", "-o", "json", CORRAL_SERVER=server.url)
    document = json.loads(done.stdout)
    assert document["overview"]["gpus_failed"] == 1
    assert [found["id"] for found in document["nodes"]] == ["n1", "n2"]
    assert [found["id"] for found in document["running"]] == ["j-1"]


def test_a_server_that_was_never_there_is_an_error() -> None:
    assert corral("top").exit_code == 5
    assert corral("top", "--sort", "name").exit_code == 2


def test_the_classic_status_keeps_its_shape_and_says_what_needs_attention() -> None:
    def answer(seen: Seen, number: int) -> Answer:
        if "/tasks" in seen.path:
            return as_json({"items": [], "next_cursor": None})
        return answers(seen, number)

    with scripted(answer) as server:
        page = corral("status", "--classic", CORRAL_SERVER=server.url).stdout.splitlines()
        document = json.loads(corral("status", "-o", "json", CORRAL_SERVER=server.url).stdout)
    assert page[3:9] == [
        "Total Nodes: 2",
        "Total GPUs: 4",
        "Free GPUs: 3",
        "Allocated GPUs: 1",
        "Active Tasks: 1",
        "Queued Tasks: 3",
    ]
    assert page[9:13] == [
        "GPU Utilization: 24%",
        "Attention: 1 GPU failed: corral gpus",
        "Attention: 2 GPUs without a fresh reading: corral gpus",
        "Attention: firing alerts, 2 critical: corral alert ls",
    ]
    assert (document["failed_gpus"], document["firing_alerts"]["critical"]) == (1, 2)


def test_status_fits_80_columns_and_says_what_needs_attention() -> None:
    def answer(seen: Seen, number: int) -> Answer:
        if "/tasks" in seen.path:
            return as_json({"items": [], "next_cursor": None})
        return answers(seen, number)

    with scripted(answer) as server:
        page = corral("status", CORRAL_SERVER=server.url, COLUMNS="80").stdout.splitlines()
    assert page[:3] == [
        "GPUs       3 free of 4 GPUs, 1 allocated, 24% utilization",
        "Nodes      1 ready of 2 nodes",
        "Jobs       1 running, 3 queued",
    ]
    assert [line for line in page if line.startswith("Attention")] == [
        "Attention  1 GPU failed: corral gpus",
        "Attention  2 GPUs without a fresh reading: corral gpus",
        "Attention  firing alerts, 2 critical: corral alert ls",
    ]
    assert all(len(line) <= 80 for line in page)
    assert not any("=====" in line for line in page)
