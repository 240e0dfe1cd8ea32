"""Shared by drills that kill parts of real servers under load: a witness of what really ran, a durable database."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from tests.servers.postgres import HOW_TO_INSTALL, PostgresServer, find_account, find_programs

#: What was committed must be on the disk: for tests, PostgreSQL is quick and forgetful.
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Witness:
    """The programs that really ran: they leave their process ids under the names of their jobs, so a double is
    detected.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(mode=0o755)
        self.lines = directory / "lines"
        self.lines.touch()

    def command(self, seconds: float) -> list[str]:
        mine = f'"{self.directory}/$CORRAL_JOB_ID-$CORRAL_RANK"'
        line = f'echo "$CORRAL_ATTEMPT_ID/$CORRAL_RANK %s" >> "{self.lines}"'
        taken = f'[ -s {mine} ] && kill -0 "$(cat {mine})" 2>/dev/null && {{ {line % "doubled"}; exit 1; }}'
        return [
            "sh",
            "-c",
            f"{taken}; echo $$ > {mine}; {line % 'begun'}; sleep {seconds}; {line % 'completed'}; : > {mine}",
        ]

    def of(self, word: str) -> Counter[str]:
        found = (line.split() for line in self.lines.read_text().splitlines())
        return Counter(parts[0] for parts in found if len(parts) == 2 and parts[1] == word)

    def doubled(self) -> list[str]:
        """Instances that began twice, and programs that found another one alive."""
        return sorted(name for name, count in self.of("begun").items() if count > 1) + sorted(self.of("doubled"))


def durable_postgres(directory: Path, **options: Any) -> PostgresServer:
    programs, account = find_programs(), find_account()
    if programs is None or account is None:
        sys.exit(HOW_TO_INSTALL)
    directory.mkdir()
    shutil.chown(directory, user=account)
    server = PostgresServer(directory=directory, programs=programs, account=account, settings=DURABLE, **options)
    server.start()
    return server


def all_jobs(http: httpx.Client) -> dict[str, dict[str, Any]]:
    """Every job, by id."""
    found: dict[str, dict[str, Any]] = {}
    cursor = None
    while True:
        page = http.get("/jobs", params={"limit": 500, **({"cursor": cursor} if cursor else {})}).json()
        found |= {job["id"]: job for job in page["items"]}
        cursor = page.get("next_cursor")
        if not cursor:
            return found
