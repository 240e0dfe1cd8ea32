"""The source of a job in a Git repository: which addresses, refs and directories are accepted. Pure.

Git takes some texts for options, or for programs to start (`ext::sh -c …`, `--upload-pack=…`), and `file://` for a
directory of the machine that reads it. So an address has one of three forms, and everything else is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_ADDRESS_CHARS = 1000
MAX_REF_CHARS = 250
MAX_DIRECTORY_CHARS = 1000

_HOST = r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
_USER = r"(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)"
_PATH = r"(?P<path>[A-Za-z0-9_.~%+@:=,/-]+)"
_URL = re.compile(rf"(?P<scheme>https?|ssh)://(?:{_USER}@)?{_HOST}(?::(?P<port>[0-9]{{1,5}}))?/{_PATH}")
#: As users copy it from a forge: git@git.example.org:team/project.git
_SHORT = re.compile(rf"{_USER}@{_HOST}:{_PATH}")
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+@=,#-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DEFAULT_PORTS = {"https": 443, "http": 80, "ssh": 22}
_EXAMPLES = "such as https://git.example.org/team/project.git or git@git.example.org:team/project.git"


@dataclass(frozen=True, kw_only=True, slots=True)
class GitAddress:
    """A repository's address, taken apart."""

    text: str
    #: https, http or ssh
    scheme: str
    host: str
    port: int

    @property
    def is_ssh(self) -> bool:
        return self.scheme == "ssh"

    @property
    def known_as(self) -> str:
        """The name of the host in files of known hosts of SSH."""
        return self.host if self.port == _DEFAULT_PORTS["ssh"] else f"[{self.host}]:{self.port}"


def parse_address(text: str) -> GitAddress:
    """Raises ValueError for an address that is none, that holds a login, or that is not read over a network."""
    if len(text) > MAX_ADDRESS_CHARS:
        raise ValueError(f"the address of a repository has at most {MAX_ADDRESS_CHARS} characters")
    found = _URL.fullmatch(text)
    scheme, port = (found["scheme"], found["port"]) if found is not None else ("ssh", None)
    found = found or _SHORT.fullmatch(text)
    if found is None:
        if re.match(r"https?://[^/]*@", text):
            raise ValueError("the address holds a login: store it with corral secret set, and name it with git_secret")
        raise ValueError(f"{text[:80]!r} is not the address of a Git repository, {_EXAMPLES}")
    if found["user"] and scheme != "ssh":
        raise ValueError("the address holds a login: store it with corral secret set, and name it with git_secret")
    if found["path"].startswith("-") or not found["path"].strip("/."):
        raise ValueError(f"{text[:80]!r} names no repository of its host, {_EXAMPLES}")
    number = int(port) if port else _DEFAULT_PORTS[scheme]
    if not 0 < number < 65_536:
        raise ValueError(f"{number} is not a port")
    return GitAddress(text=text, scheme=scheme, host=found["host"].strip("[]").lower(), port=number)


def check_ref(text: str) -> str:
    """A branch, a tag, a whole ref or a whole commit; "" is the repository's default branch. Raises ValueError."""
    is_wrong = (
        len(text) > MAX_REF_CHARS
        or _REF.fullmatch(text) is None
        or any(part in ("", ".", "..") or part.endswith(".lock") for part in text.split("/"))
        or ".." in text
        or text.endswith(".")
        or "@{" in text
    )
    if text and is_wrong:
        raise ValueError(f"{text[:80]!r} is not the name of a branch or tag, or a commit")
    if re.fullmatch(r"[0-9a-f]{7,39}", text):
        raise ValueError(f"{text!r} looks like a part of a commit's id: give all 40 characters")
    return text


def is_commit(text: str) -> bool:
    return _COMMIT.fullmatch(text) is not None


def check_directory(text: str) -> str:
    """A directory of the repository; "" is its top. Raises ValueError."""
    parts = text.split("/")
    if text and (
        len(text) > MAX_DIRECTORY_CHARS
        or not text.isprintable()
        or any(part in ("", ".", "..") for part in parts)
        or parts[0] == ".git"
    ):
        raise ValueError(f"{text[:80]!r} is not a directory of a repository, such as experiments/first")
    return text
