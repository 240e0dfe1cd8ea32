"""Writes the page `docs/reference/cli.md` from the commands: `python -m corral.cli.terminal.reference`.

The page contains the help of each command, so that both always agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from corral.cli.main import application
from corral.cli.terminal.failures import EXIT_CODES

WIDTH = 100

INTRODUCTION = """\
# The command line

This page is generated from the commands: after a change run
`python -m corral.cli.terminal.reference > docs/reference/cli.md`. A test fails while it is out of date.

## Common to all commands

- `-o json` prints JSON for programs, `-o table` (the default) text for people, before or after the command's name.
  Answers go to stdout; notes and errors go to stderr.
- `--server URL` or `CORRAL_SERVER` names the server. Without them it is `http://127.0.0.1:8470`, with the port of
  `CORRAL_PORT` if that is set.
- `--token TOKEN` or `CORRAL_TOKEN` signs in. Without them the token of `corral login` is used. It is stored per server
  in `credentials.json` under `CORRAL_HOME`, or else in the user's config directory, readable by its owner only.
- JOB is a job's id (`j-12`), or the name of one of your own jobs.
- Tables are cut at the width of the terminal, never wrapped. In a pipe they are not cut; `COLUMNS` sets a width.
- Times are shown relative to now; the JSON has them in full, as RFC 3339 in UTC.

## Exit codes

| code | meaning |
|---|---|
"""

AFTER_EXIT_CODES = """
`corral submit --wait` and `corral logs -f` exit with the job's own exit code: 0 when it completed, its exit code if it
has one (128 + N for a program that died of signal N), and 1 when it failed or was stopped without one. `corral doctor`
exits with 1 when a check fails, `corral submit --dry-run` with 1 when the job would be refused.

`corral up` has codes of its own:

| code | meaning |
|---|---|
| 0 | it was stopped, by SIGTERM or Ctrl-C |
| 1 | another server has taken over the store |
| 2 | wrong usage, or a configuration that cannot be read |
| 3 | another server uses the same home, or the home cannot be used |
| 4 | the port cannot be listened on |
| 5 | the store cannot be opened, and waiting would not help: a wrong address, a wrong password, a newer schema |
| 6 | the store is another home's, or jobs of it live elsewhere: see `--take-over` |

With `-o json` an error is one JSON object on stderr: problem details (RFC 9457) with `type`, `title`, `detail`, the
server's `status` and numbers where it refused, and `hint`.

## The job file

`corral submit -f job.yaml` has the same keys as the flags. Flags win; `env` and `label` of both are merged. A
command that is a list is run directly, a command that is a text is run by `/bin/sh -c`. A relative `workdir` is
relative to the file's directory.

```yaml
name: resnet
gpus: 4
time: 2h
model: [A100-80G, H200]
label: {zone: a}
env:
  EPOCHS: 90
workdir: .
retries: 2
command: python train.py --lr 0.1
```

## Commands
"""


def reference() -> str:
    """The whole page."""
    codes = "".join(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES)
    root: Any = typer.main.get_command(application())
    # the page does not depend on the terminal: fixed width, no colour
    settings = {**root.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH, "color": False}
    ctx = root.context_class(root, info_name="corral", **settings)
    return INTRODUCTION + codes + AFTER_EXIT_CODES + "".join(_sections(ctx))


def _sections(ctx: Any) -> Iterator[str]:
    yield f"\n### `{ctx.command_path}`\n\n```text\n{ctx.get_help().rstrip()}\n```\n"
    for name, found in getattr(ctx.command, "commands", {}).items():
        yield from _sections(found.context_class(found, info_name=name, parent=ctx, **found.context_settings))


if __name__ == "__main__":
    typer.echo(reference(), nl=False)
