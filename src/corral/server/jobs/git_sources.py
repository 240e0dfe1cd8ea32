"""Git repositories of jobs at the edge: the commit is looked up at the submission, and the key unlocked at the launch.

The server asks the repository's host for its refs only, and never for files. It does so as `nobody` if it runs as root,
with the script that fetches the commit on the node. Users choose the address, so it must not lead to services of this
machine: hosts that resolve to it are refused unless the configuration names them, and the client connects to the
address that was checked.
"""

from __future__ import annotations

import contextlib
import fnmatch
import ipaddress
import logging
import os
import pwd
import signal
import socket
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corral.control.errors import Invalid, Refusal, about_item
from corral.control.jobs.jobs import JobChange, JobDraft
from corral.control.launch.git_checkout import FAILED, REASON_MARK, GitAccess, checkout_command, resolve_command
from corral.control.live.unit_of_work import Caller
from corral.control.people import secrets
from corral.control.ports import LaunchOrder, LaunchRefused, Store, Transaction
from corral.control.records import JobSpec
from corral.core.git_source import GitAddress, is_commit, parse_address
from corral.server.auth.secret_box import SecretBox
from corral.server.people.secret_orders import unlocked
from corral.server.settings.sections.server_sections import GitSettings
from corral.server.storage.readers import Readers

log = logging.getLogger("corral.server.git")

#: In the server's home: SSH keys of hosts, as they were when a host was first used.
KNOWN_HOSTS = "git-known-hosts"
_POWERLESS = "nobody"
_RESOLVE_SECONDS = 45.0
#: For the script to remove its directory and end its agent, which no signal to its group reaches.
_CLEAN_SECONDS = 5.0
_MAX_OUTPUT = 1 << 20
_MAX_HOSTS_BYTES = 64 << 10
_MAX_AUTHORITIES_BYTES = 64 << 10
#: What the clients need of the server's environment.
_PROXIES = ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
_INHERITED = ("PATH", "no_proxy", "NO_PROXY", *_PROXIES)
#: The fields of a clone that lead to another commit.
NEW_COMMIT = frozenset({"git", "git_ref", "git_secret"})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """A repository to ask, once for all jobs of a request that want the same."""

    url: str
    ref: str
    secret: str


class GitSources:
    """Looks up commits for routes, and is a launch step. Safe for use by several threads."""

    def __init__(self, *, store: Store, box: SecretBox, settings: GitSettings, home: Path, outside: Readers) -> None:
        """`outside` calls hosts: a slow one occupies threads of one user only."""
        self._store = store
        self._box = box
        self._settings = settings
        self._known_hosts = home / KNOWN_HOSTS
        self._lock = threading.Lock()
        self._outside = outside

    # ------------------------------------------------------------------------------------------- submissions

    async def with_commits(self, caller: Caller, drafts: Sequence[JobDraft]) -> list[JobDraft]:
        """The drafts with the commits of their repositories. Raises Refusal."""
        if all(not draft.spec.git for draft in drafts):
            return list(drafts)
        known: dict[_Wanted, str] = {}
        found = []
        for number, draft in enumerate(drafts):
            spec = draft.spec
            if spec.git:
                wanted = _Wanted(url=spec.git, ref=spec.git_ref, secret=spec.git_secret)
                with about_item(number):
                    if wanted not in known:
                        known[wanted] = await self._outside.call(caller.name, _Lookup(self, caller.name, wanted))
                draft = replace(draft, spec=replace(spec, git_commit=known[wanted]))
            found.append(draft)
        return found

    async def with_commit(self, caller: Caller, change: JobChange, original: JobSpec | None) -> JobChange:
        """A clone's change with the commit, if the clone has another repository, branch or secret than the original
        (None if the caller has no such job)."""
        if original is None or not change.given & NEW_COMMIT:
            return change
        new = change.draft.spec
        merged = {name: getattr(new if name in change.given else original, name) for name in NEW_COMMIT}
        if "git" in change.given and "git_ref" not in change.given:
            merged["git_ref"] = ""
        if not merged["git"]:
            merged = dict.fromkeys((*NEW_COMMIT, "git_dir"), "")
        given = change.given | merged.keys() | {"git_commit"}
        draft = replace(change.draft, spec=replace(new, **merged))
        (draft,) = await self.with_commits(caller, [draft])
        return replace(change, given=given, draft=draft)

    def commit_of(self, user: str, wanted: _Wanted) -> str:
        """The commit that a branch or tag names now. Takes as long as the repository's host. Raises Invalid."""
        address = parse_address(wanted.url)
        try:
            with self._store.read() as tables:
                access = self._access(tables, user, address, wanted.secret)
        except LaunchRefused as refused:
            raise Invalid(str(refused), field="git_secret") from None
        learns = address.is_ssh and not self._settings.known_hosts
        access = replace(access, learns_hosts=learns, pinned=self._pinned(address))
        refs = self._asked(resolve_command(wanted.url, wanted.ref), access, address)
        return _chosen(refs, wanted)

    # ------------------------------------------------------------------------------------------- launches

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        """Launch step: let the command begin in its commit. Raises LaunchRefused."""
        git = order.git
        if git is None:
            return order
        try:
            address = parse_address(git.url)
            with self._store.read() as tables:
                access = self._access(tables, order.user, address, git.secret)
        except Refusal as refusal:
            raise LaunchRefused(refusal.detail) from None
        except ValueError as error:
            raise LaunchRefused(str(error)) from None
        # The commit's id stands for its content: a host that this server never met can be accepted.
        access = replace(access, learns_hosts=address.is_ssh and not access.known_hosts)
        return replace(
            order,
            command=checkout_command(git.url, git.ref, git.commit, git.directory, order.command),
            secret_env={**order.secret_env, **access.environment()},
        )

    # ------------------------------------------------------------------------------------------- inside

    def _access(self, tables: Transaction, user: str, address: GitAddress, secret: str) -> GitAccess:
        """Raises Invalid, and LaunchRefused if the secret cannot be read any more."""
        authorities = "" if address.is_ssh else _text_of(self._settings.authorities, _MAX_AUTHORITIES_BYTES)
        access = GitAccess(known_hosts=self._hosts_of(address), authorities=authorities)
        if not secret:
            return access
        value = unlocked(self._box, secrets.named(tables, user, secret, field="git_secret"))
        value = value.replace("\r\n", "\n").strip()
        is_key = value.startswith("-----BEGIN ")
        if is_key != address.is_ssh:
            what, needed = ("a private key", "a token") if is_key else ("a token", "a private key")
            raise Invalid(
                f"the secret {secret} is {what}, and {address.scheme} needs {needed}: use the repository's other "
                "address",
                field="git_secret",
            )
        if is_key:
            return replace(access, key=f"{value}\n")
        if address.scheme == "http":
            raise Invalid("a token would travel in clear text: use the https address of the repository", field="git")
        user_name, colon, token = value.partition(":")
        if not colon:
            user_name, token = "git", value
        if not token or not value.isprintable():
            raise Invalid(f"the secret {secret} is no token: store it as TOKEN or USER:TOKEN", field="git_secret")
        return replace(access, token=token, user=user_name)

    def _pinned(self, address: GitAddress) -> str:
        """Where the host is, as an option of the client. Raises Invalid for hosts that this server must not ask."""
        named = self._settings.hosts
        is_named = any(fnmatch.fnmatchcase(address.host, pattern.lower()) for pattern in named)
        if named and not is_named:
            raise Invalid(
                f"repositories of {address.host} cannot be used here: an operator adds it to git.hosts", field="git"
            )
        if not address.is_ssh and any(name in os.environ for name in _PROXIES):
            # The proxy looks the host up, and decides what can be reached.
            return ""
        try:
            found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except OSError:
            raise Invalid(f"the host of {address.text} is not known", field="git") from None
        places = [ipaddress.ip_address(str(info[4][0]).partition("%")[0]) for info in found]
        if not is_named and any(map(_is_own, places)):
            raise Invalid(
                f"{address.host} is this machine, or on its own link: an operator adds it to git.hosts if jobs may "
                "read repositories there",
                field="git",
            )
        if address.is_ssh:
            return f"-o HostName={places[0]} -o 'HostKeyAlias={address.known_as}'"
        place = f"[{places[0]}]" if places[0].version == 6 else str(places[0])
        return f"{address.host}:{address.port}:{place}"

    def _asked(self, command: Sequence[str], access: GitAccess, address: GitAddress) -> Mapping[str, str]:
        """The commits by the names of the refs. Raises Invalid with the reason in a sentence."""
        env = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        code, output = _output(command, {**env, **access.environment()})
        for secret in filter(None, (access.key, access.token)):
            output = output.replace(secret, "***")
        # Not `splitlines`, which also ends lines at characters that names of refs can have.
        lines = output.split("\n")
        if code == FAILED:
            reason = next((line for line in lines if line.startswith(REASON_MARK)), "")
            raise Invalid(reason.removeprefix(REASON_MARK) or f"{address.text} cannot be read", field="git")
        if code != 0:
            raise Invalid(f"the host of {address.text} does not answer in time", field="git")
        self._learn(address, [line.removeprefix("host ") for line in lines if line.startswith("host ")])
        refs = (line.removeprefix("ref ").split("\t", 1) for line in lines if line.startswith("ref "))
        return {pair[1]: pair[0] for pair in refs if len(pair) == 2 and is_commit(pair[0])}

    def _hosts_of(self, address: GitAddress) -> str:
        """Lines of known hosts for the client: those of the operator's file, or what was learned about this host."""
        if not address.is_ssh:
            return ""
        if self._settings.known_hosts:
            return _text_of(self._settings.known_hosts, _MAX_HOSTS_BYTES)
        return "".join(f"{line}\n" for line in self._learned() if line.split(" ", 1)[0] == address.known_as)

    def _learned(self) -> list[str]:
        try:
            return self._known_hosts.read_text().splitlines()
        except FileNotFoundError:
            return []

    def _learn(self, address: GitAddress, lines: Iterable[str]) -> None:
        fresh = {line for line in lines if line.split(" ", 1)[0] == address.known_as}
        with self._lock:
            known = self._learned()
            if fresh - set(known):
                text = "".join(f"{line}\n" for line in [*known, *sorted(fresh - set(known))])
                draft = self._known_hosts.with_name(f".{KNOWN_HOSTS}")
                draft.write_text(text)
                draft.replace(self._known_hosts)


@dataclass(frozen=True, slots=True)
class _Lookup:
    sources: GitSources
    user: str
    wanted: _Wanted

    def __call__(self) -> str:
        return self.sources.commit_of(self.user, self.wanted)


def _is_own(place: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = getattr(place, "ipv4_mapped", None) or place
    return mapped.is_loopback or mapped.is_link_local or mapped.is_unspecified or mapped.is_multicast


def _chosen(refs: Mapping[str, str], wanted: _Wanted) -> str:
    """The commit of the ref that is meant. Raises Invalid."""
    if is_commit(wanted.ref):
        return wanted.ref  # the node finds out whether the repository has it
    if not wanted.ref:
        if "HEAD" not in refs:
            raise Invalid(f"{wanted.url} has no commits yet", field="git")
        return refs["HEAD"]

    def of(name: str) -> str | None:
        # The commit of an annotated tag is listed behind the tag.
        return refs.get(f"{name}^{{}}") or refs.get(name)

    whole, branch, tag = of(wanted.ref), of(f"refs/heads/{wanted.ref}"), of(f"refs/tags/{wanted.ref}")
    if wanted.ref.startswith("refs/") and whole is not None:
        return whole
    if branch and tag and branch != tag:
        raise Invalid(
            f"{wanted.ref} is a branch and a tag: give refs/heads/{wanted.ref} or refs/tags/{wanted.ref}",
            field="git_ref",
        )
    if (found := branch or tag) is None:
        raise Invalid(f"{wanted.url} has no branch or tag {wanted.ref}", field="git_ref")
    return found


def _text_of(path: str, most: int) -> str:
    """Raises LaunchRefused if an operator's file cannot be read."""
    if not path:
        return ""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        log.error("%s of the section git cannot be read: %s", path, error.strerror)
        raise LaunchRefused(f"{path} cannot be read by the server: an operator repairs the section git") from None
    if len(data) > most:
        raise LaunchRefused(f"{path} is larger than {most >> 10} KiB: an operator repairs the section git")
    return data.decode("utf-8", "replace")


def _output(command: Sequence[str], env: Mapping[str, str]) -> tuple[int | None, str]:
    """The exit code and the output of the script; None if it took too long. It and all that it started are ended."""
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(env),
        cwd="/",
        start_new_session=True,
        **_account(),
    )
    assert process.stdout is not None
    timers = [
        threading.Timer(_RESOLVE_SECONDS, _signal, [process, signal.SIGTERM]),
        threading.Timer(_RESOLVE_SECONDS + _CLEAN_SECONDS, _signal, [process, signal.SIGKILL]),
    ]
    for timer in timers:
        timer.start()
    try:
        output = process.stdout.read(_MAX_OUTPUT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_RESOLVE_SECONDS + _CLEAN_SECONDS)
    finally:
        for timer in timers:
            timer.cancel()
        _signal(process, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    code = process.returncode
    return (None if code < 0 else code), output.decode("utf-8", "replace")


def _account() -> dict[str, Any]:
    """The client of a root server has an account without rights: the address and the answers are those of strangers."""
    if os.geteuid() != 0:
        return {}
    try:
        powerless = pwd.getpwnam(_POWERLESS)
    except KeyError:
        return {}
    return {"user": powerless.pw_uid, "group": powerless.pw_gid, "extra_groups": []}


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
