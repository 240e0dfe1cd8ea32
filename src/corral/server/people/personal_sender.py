"""Sends messages to personal channels: mail through the operators' mail server, everything else to a URL of the user.

Only mail goes through Apprise: it would follow redirects, and connect to any address that a user names.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from corral.control.people.inbox_channels import ChannelItem, ChannelMessage
from corral.control.ports import NoticeRefused, Notifier
from corral.control.records import PersonalChannelKind, PersonalChannelRecord
from corral.server.auth.secret_box import SecretBox, SecretUnreadable
from corral.server.people.outside_posts import OutsidePosts
from corral.server.schemas.base import rfc3339

#: One recipient and nothing else: Apprise splits its recipients at commas and spaces.
_MAIL = re.compile(r"[A-Za-z0-9._%+=-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
_CODE_DIGITS = 8
_MAX_TEXT = 3500
#: Characters of chats that call other people or begin links.
_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class PersonalSender:
    """`mail` is the Apprise URL of the operators' mail server, `public_url` the address of the console."""

    def __init__(
        self,
        *,
        box: SecretBox,
        notifier: Notifier,
        posts: OutsidePosts,
        mail: str | None,
        takes_hooks: bool,
        public_url: str | None,
    ) -> None:
        self._box = box
        self._notifier = notifier
        self._posts = posts
        self._mail = mail
        self._takes_hooks = takes_hooks
        self._public_url = (public_url or "").rstrip("/")

    @property
    def kinds(self) -> tuple[PersonalChannelKind, ...]:
        """The kinds that operators allow."""
        return tuple(kind for kind in PersonalChannelKind if self._takes(kind))

    def check(self, kind: PersonalChannelKind, address: str) -> str:
        """The form of the address that may be shown. Raises NoticeRefused. May ask for the address of a host."""
        if not self._takes(kind):
            raise NoticeRefused(
                "no mail server is set: an operator sets notification.personal_mail"
                if kind is PersonalChannelKind.MAIL
                else "an operator has switched off personal channels to URLs (notification.personal_hooks)"
            )
        if kind is PersonalChannelKind.MAIL:
            if len(address) > 254 or not _MAIL.fullmatch(address):
                raise NoticeRefused("this is no mail address")
            return address
        found = self._posts.check(address)
        port = "" if found.port in (80, 443) else f":{found.port}"
        return f"{'https' if found.is_encrypted else 'http'}://{found.host}{port}/…"

    def send(self, message: ChannelMessage) -> None:
        """Raises NoticeRefused, NoticeFailed, or SecretUnreadable."""
        channel = message.channel
        address = self._box.decrypt(channel.address)
        if not self._takes(channel.kind):
            raise NoticeRefused("an operator has switched off this kind of channel")
        if channel.kind is PersonalChannelKind.MAIL:
            self._send_mail(address, self._title(message), self._text(message))
        else:
            self._posts.post(address, self._body(message))

    def send_code(self, channel: PersonalChannelRecord, code: str) -> None:
        """Raises as `send`."""
        text = (
            f"{code} is the code that confirms this address for notices to {channel.user}.\n\n"
            "It is valid for an hour. If you did not ask for it, nothing needs to be done."
        )
        self._send_mail(self._box.decrypt(channel.address), "[corral] Confirm your address", text)

    def _takes(self, kind: PersonalChannelKind) -> bool:
        return self._mail is not None if kind is PersonalChannelKind.MAIL else self._takes_hooks

    def _send_mail(self, address: str, title: str, text: str) -> None:
        if self._mail is None:
            raise NoticeRefused("no mail server is set: an operator sets notification.personal_mail")
        self._notifier.send(mail_to(self._mail, address), title, text)

    def _title(self, message: ChannelMessage) -> str:
        count = len(message.items) + message.more
        if not count:
            return "[corral] Test message"
        return f"[corral] {message.items[0].sentence}" if count == 1 else f"[corral] {count} new items in your inbox"

    def _text(self, message: ChannelMessage) -> str:
        if not message.items:
            return f"This is a test of your channel {message.channel.name}. If you can read it, the channel works."
        lines = [_line(item) for item in message.items]
        if message.more:
            lines.append(f"and {message.more} more")
        if self._public_url:
            lines.append(f"{self._public_url}/inbox")
        return "\n".join(lines)[:_MAX_TEXT]

    def _body(self, message: ChannelMessage) -> dict[str, Any]:
        title, text = self._title(message), self._text(message)
        match message.channel.kind:
            case PersonalChannelKind.SLACK:
                return {"text": f"{title}\n{text}".translate(_SLACK)}
            case PersonalChannelKind.DISCORD:
                return {"content": f"{title}\n{text}"[:2000], "allowed_mentions": {"parse": []}}
            case PersonalChannelKind.TEAMS:
                blocks = [
                    {"type": "TextBlock", "text": part, "wrap": True} for part in (title, text.replace("\n", "\n\n"))
                ]
                card = {"type": "AdaptiveCard", "version": "1.4", "body": blocks}
                kind = "application/vnd.microsoft.card.adaptive"
                return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
            case _:
                return {
                    "title": title,
                    "text": text,
                    "items": [_fields(item) for item in message.items],
                    "more": message.more,
                }


def mail_to(server: str, address: str) -> str:
    """The URL of the mail server with this recipient alone."""
    base, _, query = server.partition("?")
    kept = [(key, value) for key, value in parse_qsl(query) if key.lower() not in ("to", "cc", "bcc")]
    return f"{base}?{urlencode([*kept, ('to', address)], quote_via=quote)}"


def new_code() -> str:
    return f"{secrets.randbelow(10**_CODE_DIGITS):0{_CODE_DIGITS}d}"


def digest_of(user: str, name: str, code: str) -> str:
    """The stored form of a code."""
    return hashlib.sha256(f"{user}\0{name}\0{code}".encode()).hexdigest()


def renewed(box: SecretBox, channels: list[PersonalChannelRecord]) -> dict[tuple[str, str], tuple[str, str]]:
    """Addresses that are encrypted with an older key: as they are stored, and under the newest key."""
    found = {}
    for channel in channels:
        try:
            if not box.is_current(channel.address):
                renewed = box.encrypt(box.decrypt(channel.address))
                found[channel.user, channel.name] = (channel.address, renewed)
        except SecretUnreadable:
            continue  # sending there says so to its user
    return found


def _line(item: ChannelItem) -> str:
    text = f": {item.text}" if item.text else ""
    return "".join(char if char.isprintable() else " " for char in f"{item.sentence}{text}")


def _fields(item: ChannelItem) -> dict[str, Any]:
    return {
        "id": item.id,
        "at": rfc3339(item.at),
        "kind": item.kind.value,
        "action": item.action,
        "subject": item.subject,
        "name": item.name,
        "text": item.text,
    }
