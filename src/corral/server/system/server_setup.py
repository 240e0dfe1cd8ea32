"""The files of a new server: configuration, systemd unit and proxy block, from a few answers.

A pure function of the answers, so that questions and files can be tested apart. The templates are in `deploy/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml

UNIT = "corral.service"
SINGLE_USER = "single-user.conf"
NGINX = "nginx.conf"
CONFIG = "corral.yaml"
ENVIRONMENT = "environment"
DEFAULT_HOME = "/var/lib/corral"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerAnswers:
    #: several users with accounts of their own, or one
    is_shared: bool
    engine: str
    #: sqlite, or the address of a PostgreSQL database
    store: str
    #: none (this machine only), proxy (nginx has the certificate) or files (the server has it)
    tls: str
    #: the account of this machine for jobs of the first operator; only for several users
    operator_account: str | None
    #: the server's name for browsers; needed with TLS
    name: str = ""
    certificate: str = ""
    key: str = ""
    #: with Slurm: the directory that the server and the nodes share
    shared_directory: str = ""
    cluster: str = "local"
    port: int = 8470
    home: str = DEFAULT_HOME
    #: where the configuration will be
    directory: str = "/etc/corral"
    #: the program
    corral: str = "/opt/corral/.venv/bin/corral"


def files_for(answers: ServerAnswers) -> dict[str, str]:
    """The text of each file by its name."""
    made = {
        CONFIG: _configuration(answers),
        ENVIRONMENT: f"CORRAL_CONFIG={answers.directory}/{CONFIG}\n",
        UNIT: _unit(answers),
    }
    if not answers.is_shared:
        made[SINGLE_USER] = template(SINGLE_USER)
    if answers.tls == "proxy":
        made[NGINX] = _proxy(answers)
    return made


def template(name: str) -> str:
    return (files("corral.server.system") / "deploy" / name).read_text(encoding="utf-8")


def _configuration(answers: ServerAnswers) -> str:
    body: dict[str, Any] = {"cluster": _cluster(answers)}
    if answers.store != "sqlite":
        body["storage"] = {"database": answers.store}
    body["server"] = _server(answers)
    if answers.tls == "proxy":
        body["workbench"] = {"url": f"https://{{workbench}}.wb.{answers.name}"}
    if answers.operator_account:
        body["local"] = {"run_as": {"users": {"operator": answers.operator_account}}}
    head = "# Written by `corral init server`. `corral config check` checks it, `corral config show` lists every key.\n"
    return head + yaml.safe_dump(body, sort_keys=False, allow_unicode=True)


def _cluster(answers: ServerAnswers) -> Mapping[str, Any]:
    cluster: dict[str, Any] = {"name": answers.cluster, "engine": answers.engine}
    if answers.engine == "slurm" and answers.shared_directory:
        cluster["slurm"] = {"root": answers.shared_directory}
    return cluster


def _server(answers: ServerAnswers) -> Mapping[str, Any]:
    server: dict[str, Any] = {"host": "0.0.0.0" if answers.tls == "files" else "127.0.0.1", "port": answers.port}
    if answers.tls == "files":
        server |= {"tls_certificate": answers.certificate, "tls_key": answers.key}
    if answers.tls == "proxy":
        server["trusted_proxies"] = ["127.0.0.1"]
    if answers.tls != "none":
        port = f":{answers.port}" if answers.tls == "files" and answers.port != 443 else ""
        server["public_url"] = f"https://{answers.name}{port}"
    return server


def _unit(answers: ServerAnswers) -> str:
    lines = []
    for line in template(UNIT).splitlines():
        if line.startswith("StateDirectory") and answers.home != DEFAULT_HOME:
            continue  # the server makes its home
        if line.startswith("ExecStart="):
            line = f"ExecStart={answers.corral} up"
        elif line.startswith("Environment=CORRAL_HOME="):
            line = f"Environment=CORRAL_HOME={answers.home}"
        elif line.startswith("EnvironmentFile="):
            line = f"EnvironmentFile=-{answers.directory}/{ENVIRONMENT}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _proxy(answers: ServerAnswers) -> str:
    text = template(NGINX).replace("127.0.0.1:8470", f"127.0.0.1:{answers.port}")
    text = text.replace("/etc/ssl/hub.example.org.pem", answers.certificate or f"/etc/ssl/{answers.name}.pem")
    text = text.replace("/etc/ssl/hub.example.org.key", answers.key or f"/etc/ssl/{answers.name}.key")
    return text.replace("*.wb.example.org", f"*.wb.{answers.name}").replace("hub.example.org", answers.name)
