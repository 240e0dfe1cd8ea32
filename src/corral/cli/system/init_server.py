"""`corral init server`: asks five questions, or takes flags, and writes the files of a new server."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.system.configuration import config_failure
from corral.cli.terminal.failures import Refused, WrongUsage
from corral.cli.terminal.terminal import Terminal, command

if TYPE_CHECKING:
    from corral.server.system.server_setup import ServerAnswers

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")
_USERS = ("single", "shared")
_TLS = ("none", "proxy", "files")


def register(app: typer.Typer) -> None:
    command(
        app,
        "server",
        connects=False,
        examples=[
            "corral init server",
            "corral init server --users single --engine local --store sqlite --tls none --directory ~/.corral",
            "corral init server --users shared --engine slurm --shared-directory /shared/corral --store sqlite "
            "--tls proxy --name hub.example.org --operator-account labadmin",
        ],
    )(init_server)


def init_server(
    terminal: Terminal,
    users: Annotated[str | None, typer.Option(metavar="single|shared", help="One user, or several.")] = None,
    engine: Annotated[str | None, typer.Option(metavar="ENGINE", help="Where jobs run: local, slurm, …")] = None,
    store: Annotated[str | None, typer.Option(metavar="sqlite|URL", help="The store; a URL of PostgreSQL.")] = None,
    tls: Annotated[
        str | None, typer.Option(metavar="none|proxy|files", help="HTTPS: none, by nginx, or by the server itself.")
    ] = None,
    operator_account: Annotated[
        str | None, typer.Option(metavar="ACCOUNT", help="The machine's account for jobs of the first operator.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="HOST", help="The server's name for browsers, with TLS.")] = None,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="The certificate with its chain.")] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="The key of the certificate.")] = None,
    shared_directory: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With Slurm: a directory that server and nodes share.")
    ] = None,
    port: Annotated[int, typer.Option(metavar="PORT", min=1, max=65_535)] = 8470,
    home: Annotated[Path | None, typer.Option(metavar="DIR", help="The server's home, on a local disk.")] = None,
    directory: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to write the files.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace files that exist.")] = False,
) -> None:
    """Write a checked corral.yaml, a systemd unit and, with TLS by a proxy, the block for nginx."""
    from corral.engines.registry import ENGINES
    from corral.server.system.server_setup import ServerAnswers

    is_shared = _asked(terminal, "users", users, _USERS, "1. One user, or several (shared)?") == "shared"
    engine = _asked(terminal, "engine", engine, tuple(ENGINES), "2. Where do jobs run?")
    store = store or _prompt(
        terminal, "store", "3. The store: sqlite, or postgresql://user:password@host/name", "sqlite"
    )
    tls = _asked(terminal, "tls", tls, _TLS, "4. HTTPS: none (this machine only), proxy (nginx) or files?")
    if tls != "none":
        name = name or _prompt(terminal, "name", "   The server's name for browsers, such as hub.example.org", "")
        if not _NAME.fullmatch(name):
            raise WrongUsage(f"{name!r} is not a host name", hint="Give --name, such as hub.example.org.")
    if tls == "files" and (certificate is None or key is None):
        raise WrongUsage("TLS by the server needs its files", hint="Give --certificate and --key.")
    if is_shared and operator_account is None:
        question = "5. Which account of this machine do jobs of the first operator run as?"
        operator_account = _prompt(terminal, "operator-account", question, "")
    in_home = home or (Path("/var/lib/corral") if is_shared or os.geteuid() == 0 else _own_home())
    where = (directory or (Path("/etc/corral") if os.geteuid() == 0 else in_home)).expanduser().absolute()
    answers = ServerAnswers(
        is_shared=is_shared,
        engine=engine,
        store=store,
        tls=tls,
        operator_account=_account(operator_account) if is_shared else None,
        name=name or "",
        certificate=str(certificate.absolute()) if certificate else "",
        key=str(key.absolute()) if key else "",
        shared_directory=str(shared_directory.absolute()) if shared_directory else "",
        cluster=engine,
        port=port,
        home=str(in_home.expanduser().absolute()),
        directory=str(where),
        corral=os.path.abspath(shutil.which("corral") or sys.argv[0]),
    )
    _write(terminal, answers, where, replace=replace)


def _write(terminal: Terminal, answers: ServerAnswers, where: Path, *, replace: bool) -> None:
    from corral.server.settings.config_file import ConfigError
    from corral.server.settings.settings_sources import check_config
    from corral.server.system.server_setup import CONFIG, files_for
    from corral.server.wiring.tls import check_certificate

    if answers.tls == "files" and (problem := check_certificate(answers.certificate, answers.key)):
        raise Refused(f"the certificate {answers.certificate} cannot be used: {problem}")
    texts = files_for(answers)
    present = [name for name in texts if (where / name).exists()]
    if present and not replace:
        raise Refused(f"{where / present[0]} exists already", hint="Look at it, then use --replace or --directory.")
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = where / f".{CONFIG}.new"
        _write_privately(draft, texts[CONFIG])
        if problems := check_config(draft):
            draft.unlink()
            raise config_failure(ConfigError(problems))
        for name, text in texts.items():
            if name != CONFIG:
                _write_privately(where / name, text)
        draft.replace(where / CONFIG)
    except OSError as error:
        raise Refused(f"{where} cannot be written: {error.strerror}", hint="Give --directory.") from error
    steps = _next_steps(answers, where)
    body = {"directory": str(where), "files": sorted(texts), "next": steps}
    lines = [f"Written to {where}: {', '.join(sorted(texts))}. Next:", *(f"  {step}" for step in steps)]
    if terminal.as_json:
        terminal.json(body)
    else:
        for line in lines:
            terminal.say(line)


def _next_steps(answers: ServerAnswers, where: Path) -> list[str]:
    steps = []
    if os.geteuid() == 0:
        steps.append(f"cp {where}/corral.service /etc/systemd/system/ && systemctl daemon-reload")
        if not answers.is_shared:
            steps.append("useradd --system --home-dir /var/lib/corral corral")
            folder = "/etc/systemd/system/corral.service.d"
            steps.append(f"mkdir -p {folder} && cp {where}/single-user.conf {folder}/")
        if answers.tls == "proxy":
            steps.append(f"cp {where}/nginx.conf /etc/nginx/conf.d/corral.conf && nginx -t && systemctl reload nginx")
        steps.append("systemctl enable --now corral && journalctl -u corral")
    else:
        steps.append(f"corral up --home {answers.home} --config {where}/corral.yaml")
    steps.append("corral doctor")
    steps.append("corral login --user operator")
    return steps


def _asked(terminal: Terminal, option: str, given: str | None, choices: tuple[str, ...], question: str) -> str:
    answer = given or _prompt(terminal, option, f"{question} [{'/'.join(choices)}]", choices[0])
    if answer not in choices:
        raise WrongUsage(f"--{option} must be one of {', '.join(choices)}, not {answer!r}")
    return answer


def _prompt(terminal: Terminal, option: str, question: str, default: str) -> str:
    if not terminal.is_interactive:
        raise WrongUsage(f"--{option} is missing, and there is no terminal to ask", hint="Give it as a flag.")
    return str(typer.prompt(question, default=default or None, err=True))


def _account(name: str | None) -> str | None:
    """The account must exist: jobs of the operator would be refused otherwise."""
    if not name:
        return None
    try:
        pwd.getpwnam(name)
    except KeyError:
        raise Refused(f"this machine has no account {name}", hint=f"useradd --create-home {name}") from None
    return name


def _own_home() -> Path:
    from corral.server.settings.settings_sources import default_home

    return Path(os.environ["CORRAL_HOME"]) if os.environ.get("CORRAL_HOME") else default_home(os.environ)


def _write_privately(path: Path, text: str) -> None:
    """The configuration may hold a password of the database."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
