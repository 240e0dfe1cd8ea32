"""The sections about the server and its machine: `storage`, `server`, `images`, `git`, `workbench`, `local`."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from corral.control.system.licence import check_public_key
from corral.core.quantities import parse_bytes
from corral.engines.local.virtual import parse_virtual_gpus, parse_virtual_nodes
from corral.server.settings.sections.section_base import Section, Size, Texts
from corral.server.settings.sections.section_rules import (
    database_place,
    matching,
    metrics_place,
    parse_ports,
    public_address,
    readable_by,
    whole_path,
    workbench_address,
)

_REGISTRY_PLACE = re.compile(r"(http://)?[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?")
_HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]*")
_HOST_PATTERN = re.compile(r"(\*\.)?[A-Za-z0-9][A-Za-z0-9.:-]*")


class StorageSettings(Section):
    #: `sqlite` is a file in `CORRAL_HOME`; also `sqlite:///FILE` and `postgresql://…`
    database: Annotated[str, AfterValidator(database_place)] = "sqlite"
    #: where readings are kept: `embedded`, or the URL of a Prometheus
    metrics: Annotated[str, AfterValidator(metrics_place)] = "embedded"
    #: directory of volumes; empty: in the home directory
    volumes: Annotated[str, AfterValidator(whole_path)] = ""
    #: directory of jobs' local disk space on the node; empty: in the home directory
    scratch: Annotated[str, AfterValidator(whole_path)] = ""
    #: cache of buckets on the nodes; empty: in the home directory
    object_cache: Annotated[str, AfterValidator(whole_path)] = ""
    #: size of that cache; 0: 50 GiB, or a tenth of the disk if that is less
    object_cache_size: Annotated[int, BeforeValidator(parse_bytes), Field(ge=0)] = 0
    #: directory of the built-in dataset target; empty: in the home directory
    datasets: Annotated[str, AfterValidator(whole_path)] = ""
    #: cache of mounted dataset versions on the nodes; empty: in the home directory
    dataset_cache: Annotated[str, AfterValidator(whole_path)] = ""
    #: size of that cache; unused versions are removed beyond it
    dataset_cache_size: Annotated[int, BeforeValidator(parse_bytes), Field(ge=0)] = 100 * 2**30


class ServerSettings(Section):
    #: the address at which the server listens
    host: Annotated[str, Field(min_length=1, max_length=253)] = "127.0.0.1"
    #: 0: any free port, which the server prints
    port: Annotated[int, Field(ge=0, le=65_535)] = 8470
    #: files of a certificate (with its chain) and of its key: the server speaks HTTPS, and reads changed files again
    tls_certificate: Annotated[str, AfterValidator(whole_path)] = ""
    #: the key of `tls_certificate`
    tls_key: Annotated[str, AfterValidator(whole_path)] = ""
    #: /metrics can be read without signing in
    metrics_open: bool = False
    #: some metrics have a label with the user; every reader of /metrics then sees each user's usage
    metrics_per_user: bool = False
    #: /metrics has the series of every GPU; without them a large fleet is read in a fraction of the time
    metrics_per_gpu: bool = True
    #: how long a browser stays signed in
    session_hours: Annotated[float, Field(gt=0, le=8760)] = 12
    #: lifetime of a token that sets none
    token_days: Annotated[float, Field(gt=0, le=3650)] = 90
    #: wrong passwords for a user from one address before pauses follow; an address from which the user never
    #: signed in may fail four times as often over all users
    login_attempts: Annotated[int, Field(ge=1, le=1000)] = 5
    #: longest pause between two attempts; the first pause is one second, each further one is twice as long
    login_window_seconds: Annotated[float, Field(ge=1, le=86_400)] = 60
    #: time within which the header of a request must arrive, also the first one of a new connection
    header_seconds: Annotated[float, Field(ge=1, le=600)] = 10
    #: a body must arrive with at least 256 bytes per second, on average over so many seconds
    body_seconds: Annotated[float, Field(ge=1, le=600)] = 30
    #: time that a connection stays open between two requests
    idle_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    #: simultaneous connections of one address, which may be that of a whole institute; trusted_proxies have no limit
    max_connections_per_address: Annotated[int, Field(ge=4, le=1_000_000)] = 512
    #: tunnels, shells, pages of workbenches and apps, and followed logs that one user may have open at a time
    max_connections_per_user: Annotated[int, Field(ge=4, le=1_000_000)] = 256
    #: send the session cookie over HTTPS only; switch on behind a TLS proxy
    secure_cookie: bool = False
    #: the server's public address, if it is behind a reverse proxy; sign-in providers redirect to it
    public_url: Annotated[str, AfterValidator(public_address)] | None = None
    #: addresses of reverse proxies whose X-Forwarded-For is trusted
    trusted_proxies: Texts = ()
    #: public key for licence tokens (Ed25519, 32 bytes in base64url), instead of the built-in one
    licence_public_key: Annotated[str, readable_by(check_public_key)] | None = None
    #: file of the server's own log, besides standard error; a relative path is in the home directory; null: none
    log_file: Annotated[str, Field(min_length=1)] | None = "corral.log"
    #: size at which that file is rotated, and how many older ones are kept
    log_file_size: Annotated[int, BeforeValidator(parse_bytes), Field(ge=4096)] = 10 * 2**20
    #: older log files that are kept
    log_file_count: Annotated[int, Field(ge=1, le=1000)] = 5
    #: the form of the server's own log
    log_format: Literal["plain", "json"] = "plain"
    #: the least severity of the server's own log
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _both_tls_files(self) -> ServerSettings:
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise ValueError("give tls_certificate and tls_key, or neither")
        return self

    @property
    def has_tls(self) -> bool:
        return bool(self.tls_certificate)


class ImageSettings(Section):
    #: registries whose images the server lists for users who have a login there: a host, with a port if it has one;
    #: http:// before it for a registry without TLS
    registries: Annotated[
        list[Annotated[str, matching(_REGISTRY_PLACE, "gitlab.example.org:5050")]], Field(max_length=100)
    ] = Field(default_factory=list)


class GitSettings(Section):
    """Git repositories of jobs."""

    #: hosts whose repositories jobs may use, such as `git.example.org` or `*.example.org`; empty: all but this machine
    hosts: Annotated[
        list[Annotated[str, Field(max_length=253), matching(_HOST_PATTERN, "git.example.org")]], Field(max_length=100)
    ] = Field(default_factory=list)
    #: a file of SSH's known hosts: no other host is used; empty: the key of a host is kept when it is first used
    known_hosts: Annotated[str, AfterValidator(whole_path)] = ""
    #: a file of certificates (PEM) of authorities that are trusted beside those of the machines
    authorities: Annotated[str, AfterValidator(whole_path)] = ""


class WorkbenchSettings(Section):
    #: the host name or address for SSH to the nodes; null: that of this server
    ssh_host: Annotated[str, Field(min_length=1, max_length=253), matching(_HOST_NAME, "gpu1.example.org")] | None = (
        None
    )
    #: ports for the SSH servers of workbenches
    ssh_ports: Annotated[str, readable_by(parse_ports)] = "40000-49999"
    #: the origin of each workbench's pages, with {workbench} in its host name or {port} as its port; null: a name below
    #: localhost for browsers on this machine, and a port of this server for others
    url: Annotated[str, AfterValidator(workbench_address)] | None = None
    #: ports of this server for the pages of workbenches, one for each workbench
    ports: Annotated[str, readable_by(parse_ports)] = "8471-8670"
    #: operators may open other users' workbenches in a browser
    operators_open: bool = False

    @property
    def port_range(self) -> tuple[int, int]:
        return parse_ports(self.ssh_ports)

    @property
    def page_ports(self) -> range:
        first, last = parse_ports(self.ports)
        return range(first, last + 1)


class RunAsSettings(Section):
    """The operating system accounts of jobs, if the server runs as root."""

    #: `{user}` is the user's name: a user with an account of that name gets it, except for system accounts
    account: Annotated[str, Field(min_length=1, max_length=64)] = "{user}"
    #: accounts by user, for users whose account has another name
    users: dict[str, str] = Field(default_factory=dict)
    #: the account of users without an account, with share_default
    default: Annotated[str, Field(min_length=1, max_length=64)] | None = "nobody"
    #: all users without an account share the default one: they can read and change each other's files and processes.
    #: false: their jobs are refused
    share_default: bool = False


class LocalSettings(Section):
    """The local engine: virtual GPUs replace the real ones; a machine without GPUs gets eight virtual ones."""

    #: virtual GPUs instead of the real ones, such as `8xA100-80G`
    virtual_gpus: Annotated[str, readable_by(parse_virtual_gpus)] | None = None
    #: several virtual nodes, such as `11x4xA10`; not together with `virtual_gpus`
    virtual_nodes: Annotated[str, readable_by(parse_virtual_nodes)] | None = None
    #: size of one job process's log, before the oldest part is dropped
    log_limit_bytes: Annotated[Size, Field(ge=4096)] = 64 * 1024 * 1024
    run_as: RunAsSettings = RunAsSettings()
    #: if the server runs as root: true: jobs run as root, too, unless run_as sets an account; false: no job does;
    #: null: only jobs of the first operator, who owns the server, run as root
    allow_root: bool | None = None
    #: setuid programs and file capabilities, such as sudo, give a job no privileges, if jobs have accounts
    no_new_privileges: bool = True
    #: limit on processes and threads of one instance together; null: no limit
    max_processes: Annotated[int, Field(ge=16, le=4_194_304)] | None = 8192
    #: NVIDIA's MPS limits jobs to their shares of a GPU, except for jobs in images
    mps: bool = False

    @model_validator(mode="after")
    def _one_fleet(self) -> LocalSettings:
        if self.virtual_gpus and self.virtual_nodes:
            raise ValueError("give virtual_gpus (one node) or virtual_nodes (several), not both")
        return self
