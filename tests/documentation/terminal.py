"""A person at a terminal: runs shell scripts on a pseudo terminal and answers what is asked there.

Variables and the directory stay from one script to the next, as in one shell.
"""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

#: A prompt at the end of the output, and the answer: None for the password.
PROMPTS: tuple[tuple[re.Pattern[str], str | None], ...] = (
    (re.compile(r"(password|repeat for confirmation)[^\n]*: ?$", re.IGNORECASE), None),
    (re.compile(r"\[y/N\]:? ?$"), "y"),
    (re.compile(r"\[[^\]\n]*\]: ?$"), ""),
)
SECONDS = 180.0


@dataclass(kw_only=True)
class Terminal:
    directory: Path
    environment: dict[str, str]
    password: Callable[[], str]
    output: str = field(default="", init=False)

    @property
    def _state(self) -> Path:
        return self.directory / "shell-state"

    def run(self, script: str, *, ctrl_c_after: str | None = None) -> tuple[int, str]:
        """The exit code of the first command that fails, else 0, and what the terminal shows."""
        self.directory.mkdir(parents=True, exist_ok=True)
        program = self.directory / "block.sh"
        state = self._state
        program.write_text(
            f"[ ! -f '{state}' ] || . '{state}'\n"
            f'trap \'code=$?; {{ export -p; printf "cd %q\\n" "$PWD"; }} > {state}; exit $code\' EXIT\n'
            f"set -aeo pipefail\n{script}\n"
        )
        shown, keyboard = pty.openpty()
        termios.tcsetwinsize(keyboard, (60, 180))
        process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", "bash", str(program)],
            stdin=keyboard,
            stdout=keyboard,
            stderr=keyboard,
            env=self.environment,
            cwd=self.environment["PWD"],
        )
        os.close(keyboard)
        try:
            return self._converse(process, shown, ctrl_c_after)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(shown)

    def _converse(self, process: subprocess.Popen[bytes], shown: int, ctrl_c_after: str | None) -> tuple[int, str]:
        output = ""
        answered = 0
        deadline = time.monotonic() + SECONDS
        while True:
            if select.select([shown], [], [], 0.05)[0]:
                try:
                    output += os.read(shown, 65536).decode(errors="replace").replace("\r", "")
                except OSError:  # every process has closed the terminal
                    return process.wait(timeout=SECONDS), output
            elif process.poll() is not None:
                return process.returncode, output
            if (answer := self._answer(output[answered:], shown)) is not None:
                answered = len(output)
                os.write(shown, f"{answer}\n".encode())
            if ctrl_c_after is not None and ctrl_c_after in output:
                os.write(shown, b"\x03")
                ctrl_c_after = None
            if time.monotonic() > deadline:
                os.write(shown, b"\x03")
                process.send_signal(signal.SIGTERM)
                return 124, output + "\n(did not end)"

    def _answer(self, output: str, shown: int) -> str | None:
        for prompt, answer in PROMPTS:
            if prompt.search(output):
                if answer is not None:
                    return answer
                # What is typed before the program hides it is thrown away.
                return None if termios.tcgetattr(shown)[3] & termios.ECHO else self.password()
        return None
