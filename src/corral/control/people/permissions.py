"""Permission groups: which functions their users may use. Decides what a function allows; the use cases ask here.

A group holds for scientists only: operators may do everything.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from corral.control.errors import InUse, Invalid, NotFound, NotPermitted, Taken
from corral.control.jobs.admission import check_queue_name
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import EVERYONE, Function, JobSpec, PermissionGroupRecord, Role, UserRecord
from corral.core.counts import counted
from corral.core.model import JobKind

_OF_KIND = {
    JobKind.TRAINING: Function.TRAIN,
    JobKind.PRESET: Function.TRAIN,
    JobKind.DISTRIBUTED: Function.DISTRIBUTE,
    JobKind.WORKBENCH: Function.WORKBENCH,
}
#: by function, what its users may do
ALLOWS = {
    Function.TRAIN: "submit training jobs",
    Function.DISTRIBUTE: "submit distributed jobs",
    Function.WORKBENCH: "open workbenches",
    Function.TASKS: "hold GPUs with tasks",
    Function.VOLUMES: "manage volumes",
    Function.DATASETS: "manage datasets",
    Function.IMAGES: "manage images",
    Function.SEE_OTHERS_JOBS: "see other users' jobs",
    Function.TOKENS: "create tokens",
}


# ---------------------------------------------------------------- asking


def require(caller: Caller, function: Function) -> None:
    """Refuse unless the caller's permission group has the function."""
    if not caller.may(function):
        raise NotPermitted(
            f"you may not {ALLOWS[function]}: your permission group lacks the function {function.value!r}",
            function=function.value,
        )


def function_for(kind: JobKind, spec: JobSpec) -> Function:
    """The function that a user needs to start such a job."""
    return Function.TASKS if spec.task is not None else _OF_KIND[kind]


def may_see_job(caller: Caller, owner: str) -> bool:
    return caller.name == owner or caller.may(Function.SEE_OTHERS_JOBS)


def functions_of(tx: Transaction, user: UserRecord) -> frozenset[Function]:
    """The functions that a user may use now."""
    if user.role is Role.OPERATOR:
        return frozenset(Function)
    for group in tx.people.permission_groups():
        if group.name == user.permission_group:
            return frozenset(group.functions)
    return frozenset()


# ---------------------------------------------------------------- changing


def create(work: Work, caller: Caller, name: str, functions: Collection[Function], description: str = "") -> str:
    require_operator(caller, "manage permission groups")
    check_queue_name(name)
    if any(group.name == name for group in work.tx.people.permission_groups()):
        raise Taken(f"there is a permission group {name!r} already", field="name", name=name)
    group = PermissionGroupRecord(
        name=name, functions=_in_order(functions), description=description, created_at=work.now
    )
    work.tx.people.save_permission_group(group)
    work.record(caller, "permission-group.created", name, detail={"functions": _names(group)})
    return name


def edit(
    work: Work,
    caller: Caller,
    name: str,
    *,
    functions: Collection[Function] | None = None,
    description: str | None = None,
) -> None:
    """Changes a permission group. Jobs that already wait or run are not affected."""
    require_operator(caller, "manage permission groups")
    group = existing(work.tx, name)
    changed = replace(
        group,
        functions=group.functions if functions is None else _in_order(functions),
        description=group.description if description is None else description,
    )
    work.tx.people.save_permission_group(changed)
    work.record(caller, "permission-group.edited", name, detail={"functions": _names(changed), "before": _names(group)})


def assign(work: Work, caller: Caller, name: str, users: Sequence[str]) -> None:
    """Put users into a permission group, all of them or none; each leaves the one before."""
    require_operator(caller, "manage permission groups")
    existing(work.tx, name)
    wanted = set(users)
    found = [user for user in work.tx.people.users() if user.name in wanted]
    unknown = sorted(wanted - {user.name for user in found})
    if unknown:
        raise Invalid(f"there is no user {', '.join(unknown[:5])}", field="users", unknown=unknown[:20])
    for user in found:
        if user.permission_group != name:
            work.tx.people.save_user(replace(user, permission_group=name))
            detail = {"permission_group": name, "before": user.permission_group}
            work.record(caller, "user.permission-group-set", user.name, owner=user.name, detail=detail)


def delete(work: Work, caller: Caller, name: str) -> None:
    require_operator(caller, "manage permission groups")
    existing(work.tx, name)
    if name == EVERYONE:
        raise InUse(f"the permission group {EVERYONE} cannot be deleted: new users come into it", field="name")
    users = [user.name for user in work.tx.people.users() if user.permission_group == name]
    if users:
        raise InUse(
            f"permission group {name} has {counted(len(users), 'user')}: {', '.join(users[:5])}; "
            "assign them to another first",
            field="name",
            users=users[:20],
        )
    work.tx.people.delete_permission_group(name)
    work.record(caller, "permission-group.deleted", name)


def existing(tx: Transaction, name: str) -> PermissionGroupRecord:
    for group in tx.people.permission_groups():
        if group.name == name:
            return group
    raise NotFound(f"there is no permission group {name!r}", field="permission_group")


def _in_order(functions: Collection[Function]) -> tuple[Function, ...]:
    """Each once, as they are listed everywhere."""
    return tuple(function for function in Function if function in set(functions))


def _names(group: PermissionGroupRecord) -> list[str]:
    return [function.value for function in group.functions]
