"""Messages to personal channels: their recipients and their text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from corral.control.people.inbox_channels import ChannelItem, ChannelMessage
from corral.control.people.user_inbox import InboxKind
from corral.control.ports import NoticeRefused
from corral.control.records import PersonalChannelKind, PersonalChannelRecord
from corral.server.auth.secret_box import SecretBox
from corral.server.people.outside_posts import HookAddress, OutsidePosts
from corral.server.people.personal_sender import PersonalSender, digest_of, mail_to, new_code

SERVER = "mailtos://corral:pass@mail.example.org?from=corral@example.org&to=ops@example.org&bcc=ops@example.org"


class Mails:
    """Implements `Notifier`."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []

    def check(self, url: str) -> None: ...

    def shown(self, url: str) -> str:
        return url

    def send(self, url: str, title: str, body: str, attachments: Sequence[Path] = ()) -> None:
        self.sent.append((url, title, body))


class Posts(OutsidePosts):
    def __init__(self) -> None:
        super().__init__(look_up=lambda host, port: ["93.184.215.14"])
        self.sent: list[tuple[str, Mapping[str, Any]]] = []

    def check(self, url: str) -> HookAddress:
        return self.parse(url)

    def post(self, url: str, body: Mapping[str, Any]) -> None:
        self.sent.append((url, body))


def sender_of(
    home: Path, *, mail: str | None = SERVER, takes_hooks: bool = True
) -> tuple[PersonalSender, Mails, Posts]:
    mails, posts = Mails(), Posts()
    sender = PersonalSender(
        box=SecretBox(home),
        notifier=mails,
        posts=posts,
        mail=mail,
        takes_hooks=takes_hooks,
        public_url="https://corral.example.org/",
    )
    return sender, mails, posts


def message(home: Path, kind: PersonalChannelKind, address: str, *items: ChannelItem, more: int = 0) -> ChannelMessage:
    locked = SecretBox(home).encrypt(address)
    channel = PersonalChannelRecord(user="ann", name="mine", kind=kind, address=locked, shown="…")
    return ChannelMessage(channel=channel, items=items, more=more, until=7)


def item(name: str = "train", text: str = "") -> ChannelItem:
    return ChannelItem(
        id=7,
        at=1000.0,
        kind=InboxKind.FAILED,
        action="job.failed",
        subject="j-1",
        name=name,
        text=text,
        sentence=f"{name} has failed",
    )


def test_mail_goes_to_the_confirmed_address_alone(tmp_path: Path) -> None:
    sender, mails, _ = sender_of(tmp_path)
    sender.send(message(tmp_path, PersonalChannelKind.MAIL, "ann+gpu@example.org", item(text="exit code 1")))
    [(url, title, body)] = mails.sent
    assert url == "mailtos://corral:pass@mail.example.org?from=corral%40example.org&to=ann%2Bgpu%40example.org"
    assert title == "[corral] train has failed"
    assert body == "train has failed: exit code 1\nhttps://corral.example.org/inbox"
    assert mail_to("mailto://mail.example.org", "ann@example.org") == "mailto://mail.example.org?to=ann%40example.org"


@pytest.mark.parametrize(
    "address",
    [
        "ann@example.org,eve@example.org",
        "ann@example.org eve@example.org",
        "ann@example.org;eve@example.org",
        "ann@example.org\r\nBcc: eve@example.org",
        "Ann <ann@example.org>",
        "ann",
        "ann@localhost",
        "@example.org",
        "ann@exa&mple.org",
        f"{'a' * 65}@example.org",
    ],
)
def test_an_address_is_one_recipient(tmp_path: Path, address: str) -> None:
    with pytest.raises(NoticeRefused):
        sender_of(tmp_path)[0].check(PersonalChannelKind.MAIL, address)


def test_names_of_things_notify_no_one_else_in_chats(tmp_path: Path) -> None:
    sender, _, posts = sender_of(tmp_path)
    name = "<!channel> <https://evil.example|click> @everyone\n[x](y)"
    for kind in (PersonalChannelKind.SLACK, PersonalChannelKind.DISCORD, PersonalChannelKind.TEAMS):
        sender.send(message(tmp_path, kind, "https://chat.example.org/hook", item(name)))
    slack, discord, teams = (body for _, body in posts.sent)
    assert "<" not in slack["text"]
    assert discord["allowed_mentions"] == {"parse": []}
    assert len(discord["content"]) <= 2000
    assert teams["attachments"][0]["content"]["type"] == "AdaptiveCard"


def test_a_url_gets_the_items_as_fields(tmp_path: Path) -> None:
    sender, _, posts = sender_of(tmp_path)
    sender.send(message(tmp_path, PersonalChannelKind.WEBHOOK, "https://h.example.org/x", item(), item("two"), more=3))
    [(url, body)] = posts.sent
    assert url == "https://h.example.org/x"
    assert (body["title"], body["more"]) == ("[corral] 5 new items in your inbox", 3)
    assert body["items"][0] == {
        "id": 7,
        "at": "1970-01-01T00:16:40.000Z",
        "kind": "failed",
        "action": "job.failed",
        "subject": "j-1",
        "name": "train",
        "text": "",
    }
    sender.send(message(tmp_path, PersonalChannelKind.WEBHOOK, "https://h.example.org/x"))
    assert posts.sent[1][1]["items"] == []


def test_the_address_is_shown_without_its_secrets(tmp_path: Path) -> None:
    sender = sender_of(tmp_path)[0]
    hook = "https://hooks.slack.com/services/T0/B0/very-secret?key=secret"
    assert sender.check(PersonalChannelKind.SLACK, hook) == "https://hooks.slack.com/…"
    assert sender.check(PersonalChannelKind.WEBHOOK, "https://h.example.org:8443/x") == "https://h.example.org:8443/…"


def test_operators_decide_which_kinds_there_are(tmp_path: Path) -> None:
    only_mail, _, posts = sender_of(tmp_path, takes_hooks=False)
    assert only_mail.kinds == (PersonalChannelKind.MAIL,)
    with pytest.raises(NoticeRefused):
        only_mail.check(PersonalChannelKind.DISCORD, "https://chat.example.org/hook")
    with pytest.raises(NoticeRefused):
        only_mail.send(message(tmp_path, PersonalChannelKind.DISCORD, "https://chat.example.org/hook", item()))
    assert posts.sent == []
    only_hooks = sender_of(tmp_path, mail=None)[0]
    assert PersonalChannelKind.MAIL not in only_hooks.kinds
    with pytest.raises(NoticeRefused):
        only_hooks.check(PersonalChannelKind.MAIL, "ann@example.org")


def test_codes_differ_and_belong_to_one_channel() -> None:
    codes = {new_code() for _ in range(50)}
    assert len(codes) > 40
    assert all(len(code) == 8 and code.isdigit() for code in codes)
    assert digest_of("ann", "mine", "1") != digest_of("bob", "mine", "1")
