"""A real mail server for tests: it speaks SMTP on a free port and keeps what it gets."""

from __future__ import annotations

import threading
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller

from tests.servers.corral_server import free_port


class SmtpServer:
    """`refusing` makes it answer every mail with a temporary error."""

    def __init__(self) -> None:
        self.port = free_port()
        self.mails: list[EmailMessage] = []
        self.refusing = False
        self._lock = threading.Lock()
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)

    @property
    def url(self) -> str:
        """The URL for Apprise to send mail to the server."""
        return f"mailto://127.0.0.1:{self.port}?from=corral@example.org&to=ops@example.org&mode=insecure"

    @property
    def subjects(self) -> list[str]:
        with self._lock:
            return [str(mail["Subject"]) for mail in self.mails]

    def bodies(self) -> list[str]:
        with self._lock:
            parts = [mail.get_body(("plain", "html")) for mail in self.mails]
        return [str(part.get_content()) for part in parts if part is not None]

    def __enter__(self) -> SmtpServer:
        self._controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refusing:
            return "451 Try again later"
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        with self._lock:
            self.mails.append(mail)
        return "250 Taken"
