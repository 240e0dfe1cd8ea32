"""Programs that record that they ran, whatever servers believe."""

from __future__ import annotations

from pathlib import Path


class Witness:
    """The programs that really ran: each program leaves its process id under the name of its job."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def command(self, seconds: float) -> list[str]:
        """Runs so long, or until a signal ends it, and records how it ended."""
        mine = f"{self.directory}/$CORRAL_JOB_ID.pid"
        say = f'echo "$CORRAL_ATTEMPT_ID %s" >> {self.directory}/lines'
        taken = f'[ -s "{mine}" ] && kill -0 "$(cat "{mine}")" 2>/dev/null && {{ {say % "doubled"}; exit 1; }}'
        ended = f"trap '{say % 'ended'}; exit 143' TERM"
        return ["sh", "-c", f'{taken}; echo $$ > "{mine}"; {ended}; {say % "begun"}; sleep {seconds} & wait']

    def of(self, word: str) -> list[str]:
        lines = self.directory / "lines"
        found = [line.split() for line in lines.read_text().splitlines()] if lines.exists() else []
        return [attempt for attempt, what in found if what == word]

    def running(self) -> set[str]:
        """The jobs whose programs live."""
        return {path.stem for path in self.directory.glob("*.pid") if Path("/proc", path.read_text().strip()).exists()}
