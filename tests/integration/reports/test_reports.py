"""Reports of a real server, in every format, against numbers that are computed again from the raw rows.

The second computation is SQL and a walk through the CSV: it shares nothing with the code that made the report.
"""

from __future__ import annotations

import csv
import io
import re
import sqlite3
import struct
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pypdfium2
import pytest

from corral.control.records import ReportPeriod, ReportSchedule
from corral.stores import open_store
from tests.integration.api import api_server, problem
from tests.integration.cli_harness import Person, operator_of
from tests.integration.report_month import DAY, DAYS, fill, month
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.smtp import SmtpServer

pytestmark = pytest.mark.slow


def rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def moment_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def made(http: httpx.Client, **asked: Any) -> dict[str, Any]:
    """The report once it is ready."""
    answer = http.post("/reports", json=asked)
    assert answer.status_code == 201, answer.text
    seen: list[dict[str, Any]] = [answer.json()]

    def is_over() -> bool:
        seen.append(http.get(f"/reports/{seen[0]['id']}").json())
        return bool(seen[-1]["state"] != "working")

    wait_until(is_over, "the report is made")
    assert seen[-1]["state"] == "ready", seen[-1]
    return seen[-1]


def file_of(http: httpx.Client, report: dict[str, Any], form: str) -> httpx.Response:
    answer = http.get(f"/reports/{report['id']}/file", params={"format": form})
    assert answer.status_code == 200, answer.text
    return answer


def lines_of(http: httpx.Client, report: dict[str, Any]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file_of(http, report, "csv").text, newline="")))


def text_of(pdf: bytes) -> str:
    with pypdfium2.PdfDocument(pdf) as opened:
        return "\n".join(page.get_textpage().get_text_range() for page in opened)


def number_after(label: str, text: str) -> float:
    found = re.search(rf"{re.escape(label)}\s+([\d,.]+)", text)
    assert found is not None, f"{label} is not in the report"
    return float(found[1].replace(",", ""))


def png(pixels: Any) -> bytes:
    """An image of the page as pdfium draws it (blue, green, red)."""
    height, width = pixels.shape[:2]
    raw = b"".join(b"\0" + pixels[line, :, 2::-1].tobytes() for line in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


# ---------------------------------------------------------------- what a server has seen itself


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-gpus", "4xA100-80G", users=("ann",)) as running:
        yield running


def test_a_report_on_jobs_that_really_ran(server: CorralServer) -> None:
    began = time.time() - 3600
    with server.http("ann") as ann, server.http() as operator:
        jobs = [
            {"command": ["sh", "-c", "sleep 1.5"], "gpus": 4, "name": "four-gpus"},
            {"command": ["sh", "-c", "sleep 0.5; exit 3"], "gpus": 1, "name": "will-fail"},
            {"command": ["sleep", "600"], "gpus": 2, "name": "will-be-stopped"},
        ]
        ids = [ann.post("/jobs", json=job).raise_for_status().json()["id"] for job in jobs]
        wait_until(lambda: ann.get(f"/jobs/{ids[2]}").json()["state"] == "running", "the last one runs")
        ann.post(f"/jobs/{ids[2]}/stop").raise_for_status()
        states = ["completed", "failed", "stopped"]
        wait_until(lambda: [ann.get(f"/jobs/{job}").json()["state"] for job in ids] == states, "all have ended")

        report = made(operator, since=rfc3339(began))
        page, paper, data = (file_of(operator, report, form) for form in ("html", "pdf", "csv"))

    with sqlite3.connect(f"file:{server.home / 'corral.db'}?mode=ro", uri=True) as raw:
        [(gpu_hours,)] = raw.execute("SELECT SUM((ended_at - planned_at) * gpu_milli / 1000.0 / 3600) FROM usage")
    lines = list(csv.DictReader(io.StringIO(data.text, newline="")))
    assert sorted(line["job_name"] for line in lines) == ["four-gpus", "will-be-stopped", "will-fail"]
    assert sum(float(line["gpu_hours"]) for line in lines) == pytest.approx(gpu_hours)
    text = text_of(paper.content)
    assert number_after("GPU-hours held", text) == pytest.approx(gpu_hours, abs=6e-5)
    assert number_after("Jobs completed", text) == 1
    assert "1 failed, 1 stopped" in text
    assert "3 jobs were submitted" in text
    assert "the program ended with an error" in text
    assert "1 failed, 1 stopped" in page.text

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("sandbox;")
    assert page.headers["content-security-policy"].endswith("frame-ancestors 'self'"), "the console shows it in a frame"
    assert page.headers["x-frame-options"] == "SAMEORIGIN"
    assert (paper.headers["x-frame-options"], data.headers["x-frame-options"]) == ("DENY", "DENY")
    assert paper.headers["content-type"] == "application/pdf"
    assert data.headers["content-type"] == "text/csv; charset=utf-8"
    assert re.fullmatch(r'attachment; filename="corral-report-\d{8}-\d{8}\.pdf"', paper.headers["content-disposition"])


def test_a_report_is_listed_and_goes_with_its_files(server: CorralServer) -> None:
    with server.http() as http:
        report = made(http, period="24h")
        listed = http.get("/reports", params={"limit": 1}).json()
        assert listed["items"] == [report]
        assert (server.home / "reports" / report["id"]).is_dir()
        assert http.delete(f"/reports/{report['id']}").status_code == 204
        assert not (server.home / "reports" / report["id"]).exists()
        problem(http.get(f"/reports/{report['id']}/file"), 404)


def test_a_report_survives_a_restart(server: CorralServer) -> None:
    with server.http() as http:
        report = made(http, period="1h")
        before = file_of(http, report, "pdf").content
    server.kill()
    server.start()
    with server.http() as http:
        assert file_of(http, report, "pdf").content == before


# ---------------------------------------------------------------- a month that was put there


@pytest.fixture(scope="module")
def until() -> float:
    """The last midnight."""
    return time.time() // DAY * DAY


@pytest.fixture(scope="module")
def smtp() -> Iterator[SmtpServer]:
    with SmtpServer() as running:
        yield running


@pytest.fixture(scope="module")
def full_server(tmp_path_factory: pytest.TempPathFactory, until: float, smtp: SmtpServer) -> Iterator[CorralServer]:
    """A server that finds a month of usage in its store, and a schedule that was due while it was down."""
    directory = tmp_path_factory.mktemp("full")
    home = directory / "state"
    home.mkdir(mode=0o700)
    store = open_store(f"sqlite:///{home / 'corral.db'}")
    fill(store, month(until), until)
    missed = ReportSchedule(
        name="every-day", period=ReportPeriod.DAILY, hour=0, channels=("config-1",), created_at=until - 5 * DAY
    )
    with store.write() as tx:
        tx.reports.save_schedule(missed)
    store.close()
    config = directory / "corral.yaml"
    config.write_text(f"notification:\n  channels: ['{smtp.url}']\n")
    server = CorralServer(home, "--config", str(config), "--virtual-nodes", "7x4xA10,4x4xA100-80G")
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def operator(full_server: CorralServer) -> Person:
    return operator_of(full_server)


def test_the_numbers_of_a_month_are_those_of_the_raw_rows(
    full_server: CorralServer, until: float, tmp_path: Path
) -> None:
    since = until - DAYS * DAY
    with full_server.http() as http:
        report = made(http, since=rfc3339(since), until=rfc3339(until))
        pdf, lines = file_of(http, report, "pdf").content, lines_of(http, report)
    text = text_of(pdf)

    with sqlite3.connect(f"file:{full_server.home / 'corral.db'}?mode=ro", uri=True) as raw:
        # Part of an attempt's time that lies in the month; one that still runs has been running until now.
        within = f"""(MAX(0, MIN(COALESCE(ended_at, {until}), {until}) - MAX(planned_at, {since})))"""
        held = f"{within} * gpu_milli / 3600000.0"
        part = f"{within} / (COALESCE(ended_at, {time.time()}) - planned_at)"
        [(gpu_hours, kwh, users)] = raw.execute(
            f"SELECT SUM({held}), SUM(energy_joules * {part}) / 3.6e6, COUNT(DISTINCT user_name) FROM usage "
            f"WHERE {within} > 0"
        )
        ends = dict(
            raw.execute(
                f"SELECT outcome, COUNT(*) FROM usage WHERE ended_at >= {since} AND ended_at < {until} GROUP BY 1"
            )
        )
        by_user = dict(raw.execute(f"SELECT user_name, SUM({held}) FROM usage GROUP BY 1"))
        [(starts, longest)] = raw.execute(
            f"SELECT COUNT(*), MAX(planned_at - queued_at) FROM usage "
            f"WHERE planned_at >= {since} AND planned_at < {until}"
        )

    # the PDF against the raw rows
    assert number_after("GPU-hours held", text) == pytest.approx(gpu_hours, abs=0.5)
    assert number_after("Energy", text) == pytest.approx(kwh, rel=2e-3)
    assert number_after("Jobs completed", text) == ends["completed"]
    assert f"{ends['failed']} failed, {ends['stopped']} stopped" in text
    assert number_after("Active users", text) == users == 12
    assert f"half of the {starts:,} starts" in text
    largest = max(by_user, key=lambda user: by_user[user])
    assert number_after(largest, text[text.index("Largest users") :]) == pytest.approx(by_user[largest], abs=0.5)
    assert number_after("all users", text) == pytest.approx(gpu_hours, abs=0.5)
    assert number_after("all models", text) == pytest.approx(gpu_hours, abs=0.5)

    # the CSV against the raw rows
    assert sum(float(line["gpu_hours"]) for line in lines) == pytest.approx(gpu_hours)
    assert sum(float(line["energy_kwh"]) for line in lines) == pytest.approx(kwh, rel=1e-4)
    sums: defaultdict[str, float] = defaultdict(float)
    for line in lines:
        sums[line["user"]] += float(line["gpu_hours"])
    assert sums == pytest.approx({user: hours for user, hours in by_user.items() if user in sums})

    assert max(float(line["wait_seconds"]) for line in lines if line["planned_at"] >= rfc3339(since)) == longest

    # and it can be looked at
    with pypdfium2.PdfDocument(pdf) as opened:
        assert 3 <= len(opened) <= 6
        for number, page in enumerate(opened):
            pixels = page.render(scale=1.5).to_numpy()
            dark = (pixels.max(axis=2) < 128).mean()
            assert 0.002 < dark < 0.4, f"page {number + 1} is neither empty nor black: {dark}"
            (tmp_path / f"page-{number + 1}.png").write_bytes(png(pixels))


def test_a_scheduled_report_comes_by_mail_once(full_server: CorralServer, until: float, smtp: SmtpServer) -> None:
    wait_until(lambda: any("Daily report" in subject for subject in smtp.subjects), "the report is in the mail")
    [mail] = [mail for mail in smtp.mails if "Daily report" in str(mail["Subject"])]
    [attached] = mail.iter_attachments()
    assert attached.get_content_type() == "application/pdf"
    assert str(attached.get_filename()).endswith(".pdf")
    text = text_of(attached.get_content())
    with sqlite3.connect(f"file:{full_server.home / 'corral.db'}?mode=ro", uri=True) as raw:
        [(gpu_hours,)] = raw.execute(
            f"SELECT SUM(MAX(0, MIN(COALESCE(ended_at, {until}), {until}) - MAX(planned_at, {until - DAY})) "
            "* gpu_milli / 3600000.0) FROM usage"
        )
    assert number_after("GPU-hours held", text) == pytest.approx(gpu_hours, abs=0.06)
    body = mail.get_body(("plain", "html"))
    assert body is not None
    assert number_after("GPU-hours held:", str(body.get_content())) == pytest.approx(gpu_hours, abs=0.06)
    with full_server.http() as http:
        kept = [report for report in http.get("/reports").json()["items"] if report["schedule"] == "every-day"]
        schedule = http.get("/report-schedules/every-day").json()
    assert len(kept) == 1, "only the last of those that were missed"
    assert schedule["last_until"] == kept[0]["until"]
    assert moment_of(kept[0]["until"]) == until


def test_the_command_line_makes_and_keeps_reports(full_server: CorralServer, operator: Person) -> None:
    said = operator.ok("report", "--period", "30d", "--format", "pdf", "-f", "month.pdf")
    assert "Saved Usage report" in said
    assert (operator.home / "month.pdf").read_bytes().startswith(b"%PDF")
    kept = operator.read("report", "--format", "csv", "-f", "week.csv")
    assert (operator.home / "week.csv").read_text().startswith("attempt,job,job_name,user")
    assert operator.read("report", "ls")["items"][0]["id"] == kept["id"]
    assert kept["id"] in operator.ok("report", "ls")
    assert "ready" in operator.ok("report", "show", kept["id"])
    assert operator.ok("report", "get", kept["id"], "-f", "-").startswith("<!doctype html>")
    operator.ok("report", "get", kept["id"])
    assert list(operator.home.glob(f"corral-report-*-{kept['id']}.html"))
    operator.ok("report", "rm", "-y", kept["id"])
    operator.run("report", "show", kept["id"], code=4)
    operator.run("report", "--format", "docx", code=2)
    operator.run("report", "--period", "7d", "--since", "2026-01-01T00:00:00Z", code=2)
    assert "at most 366 days" in operator.run("report", "--period", "500d", code=2).err


def test_the_command_line_keeps_schedules(operator: Person) -> None:
    said = operator.ok("report", "schedule", "create", "weekly", "--weekday", "fri", "--hour", "7")
    assert "every Friday at 07:00 UTC" in said
    views = {view["name"]: view for view in operator.read("report", "schedule", "ls")["items"]}
    view = views["weekly"]
    assert (view["period"], view["weekday"], view["hour"]) == ("weekly", 4, 7)
    assert view["next_run"] is not None
    assert "switched off" in operator.ok("report", "schedule", "edit", "weekly", "--disable")
    assert "on the 1st" in operator.ok("report", "schedule", "edit", "weekly", "--period", "monthly", "--enable")
    operator.run("report", "schedule", "edit", "weekly", code=2)
    operator.run("report", "schedule", "create", "x", "--weekday", "someday", code=2)
    assert "no channel" in operator.run("report", "schedule", "create", "x", "--channel", "nowhere", code=2).err
    operator.ok("report", "schedule", "rm", "-y", "weekly")
    assert "weekly" not in operator.ok("report", "schedule")
