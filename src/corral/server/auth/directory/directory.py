"""Questions to a directory: whose password this is, who is there, and whether the settings are right.

Decides whether an answer proves an identity. The use cases decide who of the directory may sign in.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from corral.control.records import DirectoryRecord, ProviderRecord
from corral.core.people.directory_names import LOGIN, escaped, filled
from corral.server.auth.directory.accounts import (
    id_value,
    is_disabled,
    person_of,
    subject_of,
    wanted_attributes,
)
from corral.server.auth.directory.connection import DirectoryConnection, Entry, connected
from corral.server.auth.directory.memberships import BATCH, groups_of, parsed
from corral.server.auth.outside import Person, ProviderFailed

if TYPE_CHECKING:
    from sansldap import LDAPFilter

log = logging.getLogger("corral.server.auth")

SIGN_IN_SECONDS = 10.0
#: For all people of a directory.
REFRESH_SECONDS = 300.0
MAX_PEOPLE = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Directory:
    provider: ProviderRecord
    #: the password of the service account
    password: str
    now: Callable[[], float]

    @property
    def settings(self) -> DirectoryRecord:
        assert self.provider.directory is not None, "a provider of this kind has a directory"
        return self.provider.directory

    def person(self, login: str, password: str) -> Person | None:
        """The person with this login, if the password is theirs and the account is not disabled. The proof is always a
        bind with the name of the entry that was found, and that was the only one."""
        if not LOGIN.fullmatch(login) or not password or "\0" in password:
            return None
        with self._connection(SIGN_IN_SECONDS) as connection:
            if self.settings.bind_as:
                if not connection.bind(filled(self.settings.bind_as, login), password):
                    return None
            else:
                self._bind(connection)
            entry = self._entry_of(connection, login)
            if not self._is_password(connection, entry.name if entry is not None else self._missing_entry(), password):
                return None
            if entry is None or is_disabled(entry, self.now()):
                return None
            return person_of(self.settings, entry, groups_of(connection, self.provider, entry, login))

    def people(self) -> list[Person]:
        """Everybody who could sign in, without their groups."""
        with self._connection(REFRESH_SECONDS) as connection:
            self._bind(connection)
            return [
                person
                for entry in self._people(connection, [], most=MAX_PEOPLE)
                if not is_disabled(entry, self.now()) and (person := person_of(self.settings, entry, ())) is not None
            ]

    def present(self, subjects: Collection[str]) -> list[Person]:
        """People among these whom the directory still has and has not disabled, with their groups. Raises
        ProviderFailed if it seems to have no person at all: its settings, or the rights to read it, have changed."""
        from sansldap import FilterEquality, FilterOr

        found: list[Person] = []
        asked = sorted(subjects)
        attribute = self.settings.id_attribute
        with self._connection(REFRESH_SECONDS) as connection:
            self._bind(connection)
            if not self._people(connection, [], most=1):
                raise ProviderFailed("The directory shows no person.", hint="Check its base, filter and rights.")
            for begin in range(0, len(asked), BATCH):
                values = [id_value(self.settings, subject) for subject in asked[begin : begin + BATCH]]
                ids: list[LDAPFilter] = [FilterEquality(attribute, value) for value in values if value is not None]
                for entry in self._people(connection, [FilterOr(ids)] if ids else [], most=2 * BATCH) if ids else ():
                    if is_disabled(entry, self.now()) or subject_of(self.settings, entry) not in subjects:
                        continue
                    login = entry.text(self.settings.login_attribute)
                    person = person_of(self.settings, entry, groups_of(connection, self.provider, entry, login))
                    if person is not None:
                        found.append(person)
        return found

    def first_entries(self, connection: DirectoryConnection) -> Sequence[Entry]:
        """One entry of a person, for a test of the settings."""
        return self._people(connection, [], most=1)

    @contextmanager
    def bound(self) -> Iterator[DirectoryConnection]:
        """A connection on which the service account is signed in, for a test of the settings."""
        with self._connection(SIGN_IN_SECONDS) as connection:
            self._bind(connection)
            yield connection

    @contextmanager
    def _connection(self, seconds: float) -> Iterator[DirectoryConnection]:
        """A connection to the first address that answers."""
        addresses = (self.provider.issuer, *self.settings.more_addresses)
        for index, address in enumerate(addresses):
            try:
                connection = connected(address, self.settings, seconds=seconds)
                break
            except ProviderFailed as failure:
                if index == len(addresses) - 1:
                    raise
                log.warning("sign-in provider %s: %s; asking the next address", self.provider.id, failure)
        try:
            yield connection
        finally:
            connection.close()

    def _bind(self, connection: DirectoryConnection) -> None:
        """Signs the service account in; without one the search is anonymous."""
        if not self.provider.client_id:
            if self.settings.bind_as:
                raise ProviderFailed("People cannot be looked up without a service account.", hint="Give one.")
            return
        if not connection.bind(self.provider.client_id, self.password):
            hint = "An operator has to correct the name or the password of the service account."
            raise ProviderFailed("The directory does not accept the service account.", hint=hint)

    def _entry_of(self, connection: DirectoryConnection, login: str) -> Entry | None:
        from sansldap import FilterEquality

        chosen = FilterEquality(self.settings.login_attribute, login.encode())
        found = self._people(connection, [chosen], most=2)
        if len(found) > 1:
            log.error("sign-in provider %s has two people with the login %s", self.provider.id, login)
        return found[0] if len(found) == 1 and found[0].name else None

    def _people(self, connection: DirectoryConnection, more: Sequence[LDAPFilter], *, most: int) -> list[Entry]:
        from sansldap import FilterAnd

        chosen = FilterAnd([parsed(self.settings.user_filter), *more])
        attributes = wanted_attributes(self.settings, self.provider.groups_claim)
        return connection.search(self.settings.base, chosen, attributes, most=most)

    def _is_password(self, connection: DirectoryConnection, name: str, password: str) -> bool:
        """Binds on the same connection if it was the person's anyway, else on another one: groups are read with the
        rights of the service account."""
        if self.settings.bind_as:
            return connection.bind(name, password)
        with self._connection(SIGN_IN_SECONDS) as other:
            return other.bind(name, password)

    def _missing_entry(self) -> str:
        """The name of an entry that is not there: a login that is not known takes as long as a wrong password."""
        return f"cn={escaped(secrets.token_hex(8))},{self.settings.base}"
