"""Groups, managed by operators: users who share one pool.

A user is in at most one group, a group has at most one pool, and a pool belongs to at most one group. Every
change of these is applied to the snapshot by `follow`, so that the next plan knows the group and pool of each user.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from corral.control.datasets import datasets
from corral.control.errors import InUse, Invalid, NotFound, Taken
from corral.control.jobs.admission import check_queue_name
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people import budgets, secrets
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import DEFAULT_GROUP, GroupRecord, ProviderRecord, ShareKind, UserRecord
from corral.control.scheduling.reservations import check_group_free
from corral.control.storage import volumes
from corral.core.people.budgets import Account, AccountKind
from corral.core.people.group_rules import read_rule
from corral.core.people.membership import Membership
from corral.core.snapshot.changes import PutMembership


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupView:
    record: GroupRecord
    #: sorted
    users: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupChange:
    """The requested changes of a group."""

    description: str | None = None
    add_users: tuple[str, ...] = ()
    remove_users: tuple[str, ...] = ()
    #: users who leave the group that they are in for this one
    move_users: tuple[str, ...] = ()
    #: whether `pool` counts; None as a pool detaches the one it has
    sets_pool: bool = False
    pool: str | None = None


def create(
    work: Work,
    caller: Caller,
    name: str,
    *,
    description: str = "",
    users: Sequence[str] = (),
    pool: str | None = None,
) -> GroupRecord:
    require_operator(caller, "manage groups")
    check_queue_name(name)
    if any(group.name == name for group in work.tx.people.groups()):
        raise Taken(f"there is a group {name!r} already", field="name", name=name)
    joining = _free_users(work.tx, users, field="users")
    _check_pool(work.tx, pool)
    group = GroupRecord(name=name, pool=pool, description=description, created_at=work.now)
    work.tx.people.save_group(group)
    work.record(caller, "group.created", name, detail={"users": [user.name for user in joining], "pool": pool})
    _put(work, caller, joining, name)
    return group


def edit(work: Work, caller: Caller, name: str, change: GroupChange) -> GroupRecord:
    """All of it or nothing. Jobs that wait stay; those whose user has lost their pool wait until it is back."""
    require_operator(caller, "manage groups")
    group = existing(work.tx, name)
    both = sorted((set(change.add_users) | set(change.move_users)) & set(change.remove_users))
    if both:
        raise Invalid(f"{', '.join(both)} cannot be added and removed at once", field="remove_users", users=both)
    joining = _free_users(work.tx, change.add_users, field="add_users")
    moving = [user for user in _users(work.tx, change.move_users, field="move_users") if user.group != name]
    leaving = _members(work.tx, group, change.remove_users)
    pool = change.pool if change.sets_pool else group.pool
    if pool != group.pool:
        _check_pool(work.tx, pool)
    changed = replace(
        group, pool=pool, description=group.description if change.description is None else change.description
    )
    work.tx.people.save_group(changed)
    detail = {
        "added": [user.name for user in (*joining, *moving)],
        "removed": [user.name for user in leaving],
        "pool": pool,
        "was": group.pool,
    }
    work.record(caller, "group.edited", name, detail=detail)
    _put(work, caller, leaving, None)
    _put(work, caller, [*joining, *moving], name)
    if pool != group.pool:
        follow(work, [user for user in work.tx.people.users() if user.group == name])
    return changed


def delete(work: Work, caller: Caller, name: str) -> None:
    """Deletes an empty group: one without users and without a pool."""
    require_operator(caller, "manage groups")
    group = existing(work.tx, name)
    if name == DEFAULT_GROUP:
        raise InUse("the default group cannot be deleted", field="name")
    users = sorted(user.name for user in work.tx.people.users() if user.group == name)
    if users:
        raise InUse(f"group {name} has users: {', '.join(users[:20])}; remove them first", field="name", users=users)
    if group.pool is not None:
        raise InUse(f"group {name} has pool {group.pool}: detach it first", field="name", pool=group.pool)
    shared = sorted(queue.name for queue in work.state.snapshot.queues.values() if name in queue.groups)
    if shared:
        raise InUse(f"group {name} is named by queues: {', '.join(shared)}", field="name", queues=shared)
    providers = [item.id for item in work.tx.providers.all() if name in (item.group, *groups_of_rules(item))]
    if providers:
        raise InUse(
            f"users of {', '.join(providers)} are put into group {name}: change that first",
            field="name",
            providers=providers,
        )
    check_group_free(work.tx, name, work.now)
    volumes.forget(work, ShareKind.GROUP, name)
    datasets.forget(work, ShareKind.GROUP, name)
    budgets.forget(work, Account(kind=AccountKind.GROUP, name=name))
    secrets.forget(work, Account(kind=AccountKind.GROUP, name=name))
    work.tx.people.delete_group(name)
    work.record(caller, "group.deleted", name)


def follow(work: Work, users: Iterable[UserRecord]) -> None:
    """Updates the memberships of these users in the snapshot."""
    pool_of = {group.name: group.pool for group in work.tx.people.groups()}
    for user in users:
        member = Membership(group=user.group, pool=pool_of.get(user.group) if user.group else None)
        if work.state.snapshot.memberships.get(user.name) != member:
            work.change(PutMembership(user=user.name, membership=member))


def place_user(work: Work, caller: Caller, user: UserRecord, name: str) -> UserRecord:
    """Moves a user into an existing group."""
    _put(work, caller, [user], existing(work.tx, name).name)
    return replace(user, group=name)


def groups_of_rules(provider: ProviderRecord) -> list[str]:
    """The groups that the rules of a sign-in provider put users into."""
    return [rule.group for rule in map(read_rule, provider.group_rules) if rule.group is not None]


def existing(tx: Transaction, name: str) -> GroupRecord:
    found = next((group for group in tx.people.groups() if group.name == name), None)
    if found is None:
        raise NotFound(f"there is no group {name!r}", field="group")
    return found


def group_views(tx: Transaction) -> list[GroupView]:
    users: dict[str | None, list[str]] = defaultdict(list)
    for user in tx.people.users():
        users[user.group].append(user.name)
    return [GroupView(record=group, users=tuple(sorted(users[group.name]))) for group in tx.people.groups()]


def _free_users(tx: Transaction, names: Sequence[str], *, field: str) -> list[UserRecord]:
    """Returns these users; refuses if one of them is in a group."""
    users = _users(tx, names, field=field)
    taken = [user for user in users if user.group is not None]
    if taken:
        text = ", ".join(f"{user.name} is in group {user.group}" for user in taken)
        raise InUse(
            f"only users in no group can be added: {text}; remove them there first",
            field=field,
            users=[user.name for user in taken],
            groups=sorted({str(user.group) for user in taken}),
        )
    return users


def _members(tx: Transaction, group: GroupRecord, names: Sequence[str]) -> list[UserRecord]:
    users = _users(tx, names, field="remove_users")
    outsiders = [user.name for user in users if user.group != group.name]
    if outsiders:
        raise Invalid(f"not in group {group.name}: {', '.join(outsiders)}", field="remove_users", users=outsiders)
    return users


def _users(tx: Transaction, names: Sequence[str], *, field: str) -> list[UserRecord]:
    if not names:
        return []
    known = {user.name: user for user in tx.people.users()}
    missing = [name for name in names if name not in known]
    if missing:
        raise Invalid(f"there is no user {', '.join(missing[:20])}", field=field, users=missing[:20])
    return [known[name] for name in dict.fromkeys(names)]


def _check_pool(tx: Transaction, pool: str | None) -> None:
    if pool is None:
        return
    known = [item.name for item in tx.fleet.pools()]
    if pool not in known:
        raise Invalid(f"there is no pool {pool!r}; there are: {', '.join(known)}", field="pool", known=known)
    owner = next((group.name for group in tx.people.groups() if group.pool == pool), None)
    if owner is not None:
        owned = {group.pool for group in tx.people.groups()}
        free = ", ".join(name for name in known if name not in owned) or "none"
        raise InUse(
            f"pool {pool} belongs to group {owner}: detach it there first. Pools without a group: {free}",
            field="pool",
            group=owner,
        )


def _put(work: Work, caller: Caller, users: Sequence[UserRecord], group: str | None) -> None:
    """Into the group, or out of the one that they are in."""
    moved = [replace(user, group=group) for user in users]
    for before, after in zip(users, moved, strict=True):
        work.tx.people.save_user(after)
        work.record(
            caller, "user.group-changed", after.name, owner=after.name, detail={"was": before.group, "is": group}
        )
    follow(work, moved)
