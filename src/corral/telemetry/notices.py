"""Notices through Apprise: mail, chats, webhooks and a hundred other services, each with its own kind of URL.

Decides which addresses are valid and how much of an address may be shown. Apprise returns only whether a notice was
accepted, and writes the reason to its log. So its log lines are captured here, per thread, and written nowhere else:
they may contain secrets.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from corral.control.ports import NoticeFailed, NoticeRefused

if TYPE_CHECKING:
    from apprise import NotifyBase

EXAMPLES = (
    "mailto://user:password@mail.example.org?to=ops@example.org, slack://TOKEN_A/TOKEN_B/TOKEN_C/#channel, "
    "json://example.org/hook"
)
#: Services whose path is chosen by the receiver, often a secret.
_PLAIN_HOOKS = frozenset({"json", "jsons", "xml", "xmls", "form", "forms"})
#: Lines of Apprise's log with the answer of the service or the network.
_REASON = re.compile(r"(?:Socket Exception|Email Exception|.*Exception|Response Details)\s*:\s*(.+)", re.DOTALL)
#: Lines that say only that the address is wrong.
_EMPTY = re.compile(r"Un(parseable|supported)|No hosts")
_SHORTEST_SECRET = 4
MAX_REASON = 300


class AppriseNotifier:
    """Implements `corral.control.ports.Notifier`. Safe for use by several threads."""

    def check(self, url: str) -> None:
        self._service(url)

    def shown(self, url: str) -> str:
        whole: str = self._service(url).url(privacy=True)  # type: ignore[no-untyped-call]
        shown = whole.partition("?")[0].rstrip("/")
        scheme, _, rest = shown.partition("://")
        if scheme in _PLAIN_HOOKS and "/" in rest:
            return f"{scheme}://{rest.partition('/')[0]}/…"
        return unquote(shown)

    def send(self, url: str, title: str, body: str, attachments: Sequence[Path] = ()) -> None:
        from apprise import AppriseAttachment, NotifyFormat, NotifyType

        service = self._service(url)
        # The text is plain; mail would otherwise treat it as HTML.
        service.notify_format = NotifyFormat.TEXT
        missing = [path.name for path in attachments if not path.is_file()]
        if missing:
            raise NoticeRefused(f"attached files are missing: {', '.join(missing[:5])}")
        attached = AppriseAttachment([str(path) for path in attachments]) if attachments else None
        with _caught() as lines:
            try:
                # Not through Apprise's front end: that sends on another thread, whose log lines are not captured.
                taken = service.notify(body=body, title=title, notify_type=NotifyType.INFO, attach=attached)
            except Exception as error:  # noqa: BLE001 - a plugin's own mistake is one of the ways it can fail
                raise NoticeFailed(_without_secrets(f"{type(error).__name__}: {error}", url)) from None
        if not taken:
            raise NoticeFailed(_without_secrets(_reason(lines), url))

    def _service(self, url: str) -> NotifyBase:
        _prepare()
        from apprise import Apprise, AppriseAsset

        asset = AppriseAsset(app_id="corral", app_desc="corral")
        with _caught() as lines:
            try:
                service = Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
            except Exception:  # noqa: BLE001 - whatever it is, the address cannot be used
                service = None
        if service is None:
            scheme = url.partition("://")[0] if "://" in url else ""
            reason = next((text for level, text in lines if level >= logging.WARNING and not _EMPTY.match(text)), "")
            reason = _without_secrets(reason, url)
            kind = f" of kind {scheme}://" if re.fullmatch(r"[A-Za-z0-9+]{1,20}", scheme) else ""
            raise NoticeRefused(
                f"this address{kind} is not understood{f' ({reason})' if reason else ''}. Examples: {EXAMPLES}"
            )
        return service


# ------------------------------------------------------------------------------------------------ Apprise's log


class _Catcher(logging.Handler):
    """Captures the lines of threads that listen."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._listening: dict[int, list[tuple[int, str]]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        lines = self._listening.get(record.thread or 0)
        if lines is not None:
            lines.append((record.levelno, record.getMessage()))

    @contextmanager
    def listening(self) -> Iterator[list[tuple[int, str]]]:
        lines: list[tuple[int, str]] = []
        self._listening[threading.get_ident()] = lines
        try:
            yield lines
        finally:
            del self._listening[threading.get_ident()]


_CATCHER = _Catcher()
_PREPARING = threading.Lock()


def _caught() -> AbstractContextManager[list[tuple[int, str]]]:
    return _CATCHER.listening()


def _prepare() -> None:
    """Once: keep addresses out of the server's own log, at any log level."""
    with _PREPARING:
        log = logging.getLogger("apprise")
        if _CATCHER not in log.handlers:
            log.addHandler(_CATCHER)
            log.setLevel(logging.DEBUG)
            log.propagate = False
            # Apprise sends with requests, whose log lines contain the path of every address.
            logging.getLogger("urllib3").setLevel(logging.WARNING)


def _reason(lines: Sequence[tuple[int, str]]) -> str:
    """The answer of the service, as far as Apprise reports it."""
    reason = [text for level, text in lines if level >= logging.WARNING]
    details = [match[1] for level, text in lines if level < logging.WARNING and (match := _REASON.match(text))]
    return ": ".join([*reason[-1:], *details[-1:]]) or "the service did not accept it and gave no reason"


def _without_secrets(text: str, url: str) -> str:
    """The text without anything that can come only from the address."""
    try:
        parts = urlsplit(url)
        secrets = [parts.path, parts.query, parts.fragment, parts.password or "", parts.username or ""]
        secrets += [*parts.path.split("/"), *(value for _, value in parse_qsl(parts.query))]
    except ValueError:
        secrets = [url]
    for secret in sorted({*secrets, *map(unquote, secrets), url}, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return " ".join(text.split())[:MAX_REASON]
