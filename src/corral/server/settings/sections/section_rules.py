"""Validators of values of `corral.yaml` and their error messages, shared by its sections."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from pydantic import AfterValidator

from corral.server.http.validation import unknown_name


def one_of(options: Iterable[str], what: str) -> AfterValidator:
    known = tuple(options)

    def check(value: str) -> str:
        if value not in known:
            raise ValueError(f"{value!r}: {unknown_name(value, known, what=what)}")
        return value

    return AfterValidator(check)


def matching(pattern: re.Pattern[str], example: str) -> AfterValidator:
    def check(value: str) -> str:
        if pattern.fullmatch(value) is None:
            raise ValueError(f"{value!r} is not of the form {example}")
        return value

    return AfterValidator(check)


def readable_by(parse: Callable[[str], object]) -> AfterValidator:
    """A text that `parse` accepts; the text itself is kept."""

    def check(value: str) -> str:
        parse(value)
        return value

    return AfterValidator(check)


def each_readable_by(parse: Callable[[str], object]) -> AfterValidator:
    def check(values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            parse(value)
        return values

    return AfterValidator(check)


def warning_way(value: str) -> str:
    """How a task's program is warned."""
    if value in ("restart", "file"):
        return value
    if value in signal.Signals.__members__ and value not in ("SIGKILL", "SIGSTOP"):
        return value
    raise ValueError(f"{value!r} is neither restart, nor file, nor a signal such as SIGUSR1")


def database_place(url: str) -> str:
    if url == "sqlite" or url.startswith(("sqlite:///", "postgresql://", "postgresql+psycopg://")):
        return url
    raise ValueError(f"{url!r} is neither sqlite, nor sqlite:///FILE, nor postgresql://USER@HOST/NAME")


def public_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address or parts.path.strip("/") or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{url!r} is not of the form https://corral.example.org")
    return url.rstrip("/")


def workbench_address(url: str) -> str:
    """Each workbench must have an origin of its own: pages of one origin could use each other's workbenches."""
    example = "https://{workbench}.wb.example.org or https://gpu.example.org:{port}"
    is_one = url.count("{workbench}") + url.count("{port}") == 1
    head, _, rest = url.partition("://")
    has_place = "{workbench}" in rest.partition(":")[0] or rest.rstrip("/").endswith(":{port}")
    if not is_one or not has_place:
        raise ValueError(f"{url!r} gives workbenches no origin of their own: write it as {example}")
    try:
        public_address(url.replace("{workbench}", "j-1").replace("{port}", "1"))
    except ValueError:
        raise ValueError(f"{url!r} is not of the form {example}") from None
    return f"{head.lower()}://{rest.rstrip('/').lower()}"


def absolute_path(value: str) -> str:
    if not value.startswith("/"):
        raise ValueError(f"{value!r} is not an absolute path")
    return value


def metrics_place(value: str) -> str:
    if value == "embedded" or value.startswith(("http://", "https://")):
        return value
    raise ValueError(f"{value!r} is neither embedded nor the URL of a Prometheus server")


def whole_path(path: str) -> str:
    if path and (not path.startswith("/") or ".." in path.split("/")):
        raise ValueError(f"{path!r} is not a directory's whole path, such as /srv/datasets")
    return path


def parse_ports(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not (dash and first.isdigit() and last.isdigit() and 1024 <= int(first) <= int(last) <= 65_535):
        raise ValueError(f"{text!r} is not a range of ports from 1024 on, such as 40000-49999")
    return int(first), int(last)
