"""Images at the edge: what an order's image is when it is launched, with the login unlocked; logins under new keys."""

from __future__ import annotations

import logging
from dataclasses import replace

from corral.control.errors import Refusal
from corral.control.jobs import images
from corral.control.ports import LaunchOrder, LaunchRefused, RegistryLogin, Store
from corral.control.records import RegistryCredentialRecord
from corral.server.auth.secret_box import SecretBox, SecretUnreadable

log = logging.getLogger("corral.server.images")


class ImageOrders:
    def __init__(self, *, store: Store, box: SecretBox) -> None:
        self._store = store
        self._box = box

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        """Launch step: add the image's address and login. Raises LaunchRefused."""
        if order.image is None:
            return order
        with self._store.read() as tables:
            try:
                source = images.source_of(tables, order.user, order.image)
            except Refusal as refusal:
                raise LaunchRefused(refusal.detail) from None
        login = self._unlocked(source.login, order.user) if source.login is not None else None
        return replace(order, image=source.address, login=login)

    def _unlocked(self, login: RegistryCredentialRecord, user: str) -> RegistryLogin:
        try:
            secret = self._box.decrypt(login.secret)
        except SecretUnreadable as error:
            log.error("the login %s of %s cannot be read: %s", login.name, login.owner or "the platform", error)
            raise LaunchRefused(
                f"the login {login.name} for {login.registry} cannot be read any more: give it again with "
                "corral registry login"
            ) from None
        return RegistryLogin(
            registry=login.registry, username=login.username, secret=secret, is_own=login.owner == user
        )

    def renewed(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Secrets that an older key has locked: as they are, and under the newest key."""
        with self._store.read() as tables:
            logins = tables.images.all_credentials()
        found = {}
        for login in logins:
            try:
                if not self._box.is_current(login.secret):
                    found[login.owner, login.name] = (login.secret, self._box.encrypt(self._box.decrypt(login.secret)))
            except SecretUnreadable as error:
                log.error("the login %s of %s cannot be read: %s", login.name, login.owner or "the platform", error)
        return found
