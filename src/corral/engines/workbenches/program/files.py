"""Names of the files in a workbench's directory, and the exit codes of its program."""

from __future__ import annotations

SETTINGS = "settings.json"
KEYS = "authorized_keys"
STATUS = "status.json"
SOCKET = "jupyter.sock"
RELAY = "relay.py"
RELAY_KEY = "relay.pem"
RELAY_PORT = "relay_port"

#: Exit codes if it cannot start; `corral.control.workbenches.workbenches` has the message for each.
NO_JUPYTER = 81
NO_SSHD = 82
JUPYTER_FAILED = 84
SSHD_FAILED = 85
NO_LOGIN = 86
RELAY_FAILED = 87
KILLED = 89


def say(text: str) -> None:
    """Writes a line to the job's log."""
    print(f"corral: {text}", flush=True)  # noqa: T201
