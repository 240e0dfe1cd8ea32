"""The groups of a person in a directory: those that the entry names, those that name the person, and the groups of
these groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from corral.control.records import ProviderRecord
from corral.core.people.directory_names import group_key, short_name
from corral.server.auth.directory.connection import DirectoryConnection, Entry
from corral.server.auth.outside import MAX_GROUPS

if TYPE_CHECKING:
    from sansldap import LDAPFilter

#: Groups in groups in groups: so many steps are followed.
MOST_STEPS = 10
#: So many members are asked for with one search.
BATCH = 50
#: Members of these attributes are named by their login and not by their place.
_BY_LOGIN = frozenset({"memberuid"})


def groups_of(connection: DirectoryConnection, provider: ProviderRecord, entry: Entry, login: str) -> list[str]:
    """The names of all groups of the person, and their short names if they lie directly where groups are searched."""
    directory = provider.directory
    assert directory is not None, "a provider of this kind has a directory"
    found: dict[str, str] = {}
    new = _added(found, entry.texts(provider.groups_claim))
    by_login = directory.member_attribute.casefold() in _BY_LOGIN
    if directory.group_base:
        new += _added(found, _groups_with(connection, provider, [login if by_login else entry.name]))
    if directory.nested and not by_login:
        for _ in range(MOST_STEPS):
            if not new or len(found) >= MAX_GROUPS:
                break
            new = _added(found, _groups_with(connection, provider, new))
    names = list(found.values())[:MAX_GROUPS]
    short = (short_name(name, directory.group_base) for name in names)
    return [*names, *(name for name in short if name is not None)]


def _groups_with(connection: DirectoryConnection, provider: ProviderRecord, members: Sequence[str]) -> Iterator[str]:
    """The groups with one of these members."""
    from sansldap import FilterAnd, FilterEquality, FilterOr

    directory = provider.directory
    assert directory is not None, "a provider of this kind has a directory"
    attribute = directory.member_attribute
    for begin in range(0, len(members), BATCH):
        batch: list[LDAPFilter] = [FilterEquality(attribute, name.encode()) for name in members[begin : begin + BATCH]]
        chosen = FilterAnd([parsed(directory.group_filter), FilterOr(batch)])
        base = directory.group_base or directory.base
        yield from (group.name for group in connection.search(base, chosen, ["1.1"], most=MAX_GROUPS))


def parsed(text: str) -> LDAPFilter:
    """A filter that an operator has written. Raises ValueError."""
    from sansldap import LDAPFilter

    return LDAPFilter.from_string(text)


def _added(found: dict[str, str], names: Iterable[str]) -> list[str]:
    """Adds the names that are new, by the key under which two names are the same; returns these."""
    new = []
    for name in names:
        key = group_key(name)
        if key and key not in found:
            found[key] = name
            new.append(name)
    return new
