"""Looks the users of directories up again from time to time, so that those who have left lose sessions and tokens."""

from __future__ import annotations

import logging
from collections.abc import Callable

from corral.control.live.controller import Controller
from corral.control.live.worker import Worker
from corral.control.people import ldap_directories
from corral.control.ports import Clock, Store, Transaction
from corral.control.records import ProviderKind, ProviderRecord
from corral.server.auth.directory.directory import Directory
from corral.server.auth.outside import ProviderFailed
from corral.server.auth.secret_box import SecretBox, SecretUnreadable

log = logging.getLogger("corral.server.auth")

TICK_SECONDS = 30.0
_ANSWER_SECONDS = 60.0


class DirectoryUnavailable(Exception):
    """One or more directories cannot be asked for their people."""


class DirectoryWorker:
    """`forget` is called with the name of each user whose rights have changed."""

    def __init__(
        self, *, controller: Controller, store: Store, box: SecretBox, clock: Clock, forget: Callable[[str], None]
    ) -> None:
        self._controller = controller
        self._store = store
        self._box = box
        self._clock = clock
        self._forget = forget
        #: when each directory was asked successfully, in monotonic seconds
        self._asked_at: dict[str, float] = {}
        self._worker = Worker("directories", self.step, every_seconds=TICK_SECONDS)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def step(self) -> None:
        """Asks the directories that are due, each of them also if another one fails."""
        failures = []
        for provider, subjects in self._due():
            try:
                self.refresh(provider, subjects)
            except (ProviderFailed, SecretUnreadable) as failure:
                failures.append(f"{provider.id}: {failure}")
        if failures:
            raise DirectoryUnavailable("; ".join(failures))

    def refresh(self, provider: ProviderRecord, subjects: list[str]) -> None:
        if subjects:
            secret = self._box.decrypt(provider.client_secret) if provider.client_secret else ""
            directory = Directory(provider=provider, password=secret, now=self._clock.now)
            found = [
                ldap_directories.FoundPerson(subject=person.subject, member_of=person.member_of)
                for person in directory.present(subjects)
            ]
            answer = self._controller.execute(ldap_directories.refresh, provider, subjects, found)
            changed = answer.result(_ANSWER_SECONDS)
            for name in changed:
                self._forget(name)
            if changed:
                log.info("sign-in provider %s: the rights of %s have changed", provider.id, ", ".join(changed[:20]))
        self._asked_at[provider.id] = self._clock.monotonic()

    def _due(self) -> list[tuple[ProviderRecord, list[str]]]:
        now = self._clock.monotonic()
        with self._store.read() as tables:
            return [(item, ldap_directories.subjects_of(tables, item.id)) for item in self._refreshed(tables, now)]

    def _refreshed(self, tables: Transaction, now: float) -> list[ProviderRecord]:
        return [
            item
            for item in tables.providers.all()
            if item.kind is ProviderKind.LDAP
            and item.enabled
            and item.directory is not None
            and ldap_directories.can_refresh(item)
            and now - self._asked_at.get(item.id, float("-inf")) >= item.directory.refresh_minutes * 60
        ]
