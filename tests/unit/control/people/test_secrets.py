"""Secrets: who sets and uses them, and that no event has their values."""

from __future__ import annotations

import pytest

from corral.control.errors import Forbidden, Invalid, NotFound, OverLimit
from corral.control.jobs import jobs
from corral.control.people import groups, secrets
from corral.control.people.user_accounts import create_user, delete_user
from corral.control.ports import Store
from corral.control.records import JobSpec
from corral.core.people.budgets import AccountKind
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft


@pytest.fixture
@once
def staffed(store: Store) -> Desk:
    desk = Desk(store)
    for name in ("root", "ann", "bob"):
        desk.do(create_user, ROOT, name, password_hash="hash")
    return desk


def with_secrets(name: str, *texts: str) -> jobs.JobDraft:
    return draft(name, spec=JobSpec(command=("run",), secrets=texts))


def names(desk: Desk, caller: object) -> list[tuple[str, str]]:
    with desk.store.read() as tx:
        return [(one.name, one.owner.name) for one in secrets.visible(tx, caller)]  # type: ignore[arg-type]


def value(desk: Desk, user: str, name: str) -> str:
    with desk.store.read() as tx:
        return secrets.found(tx, user, [name])[name].value


def test_a_name_means_ones_own_secret_and_then_the_groups(staffed: Desk) -> None:
    staffed.do(secrets.put, ROOT, "wandb", "of the group", group="default")
    assert value(staffed, "ann", "wandb") == value(staffed, "bob", "wandb") == "of the group"
    staffed.do(secrets.put, ANN, "wandb", "of ann")
    assert (value(staffed, "ann", "wandb"), value(staffed, "bob", "wandb")) == ("of ann", "of the group")
    assert names(staffed, ANN) == [("wandb", "default"), ("wandb", "ann")]
    assert names(staffed, BOB) == names(staffed, ROOT) == [("wandb", "default")]
    staffed.do(secrets.put, ANN, "wandb", "newer")
    assert value(staffed, "ann", "wandb") == "newer"
    actions = [event.action for event in staffed.events() if event.action.startswith("secret.")]
    assert actions == ["secret.created", "secret.created", "secret.replaced"]
    assert "of ann" not in str(staffed.events())


def test_secrets_of_groups_are_for_operators(staffed: Desk) -> None:
    with pytest.raises(Forbidden):
        staffed.do(secrets.put, ANN, "wandb", "x", group="default")
    with pytest.raises(NotFound, match="no group"):
        staffed.do(secrets.put, ROOT, "wandb", "x", group="nowhere")
    with pytest.raises(NotFound, match="no secret"):
        staffed.do(secrets.delete, BOB, "wandb")


def test_a_job_names_only_secrets_that_its_user_has(staffed: Desk) -> None:
    staffed.do(secrets.put, ANN, "wandb", "x")
    [made] = staffed.do(jobs.submit, ANN, [with_secrets("job-one", "wandb")])
    assert made.spec.secrets == ("wandb",)
    for caller, name in ((BOB, "wandb"), (ANN, "nothing")):
        with pytest.raises(Invalid, match=f"corral secret set {name}"):
            staffed.do(jobs.submit, caller, [with_secrets("job-two", name)])


def test_names_and_numbers_are_limited(staffed: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Invalid, match="not allowed"):
        staffed.do(secrets.put, ANN, "../key", "x")
    monkeypatch.setattr(secrets, "MAX_SECRETS", 1)
    staffed.do(secrets.put, ANN, "first", "x")
    staffed.do(secrets.put, ANN, "first", "y")
    with pytest.raises(OverLimit, match="remove one first"):
        staffed.do(secrets.put, ANN, "second", "x")


def test_secrets_end_with_their_user_or_group(staffed: Desk) -> None:
    staffed.do(secrets.put, BOB, "mine", "x")
    staffed.do(groups.create, ROOT, "vision")
    staffed.do(secrets.put, ROOT, "ours", "x", group="vision")
    staffed.do(delete_user, ROOT, "bob")
    staffed.do(groups.delete, ROOT, "vision")
    with staffed.store.read() as tx:
        assert tx.secrets.all() == []


def test_a_value_that_was_replaced_meanwhile_is_not_renewed(staffed: Desk) -> None:
    staffed.do(secrets.put, ANN, "one", "old-1")
    staffed.do(secrets.put, ANN, "two", "given anew")
    staffed.do(
        secrets.renew,
        {(AccountKind.USER, "ann", "one"): ("old-1", "new-1"), (AccountKind.USER, "ann", "two"): ("old-2", "new-2")},
    )
    assert (value(staffed, "ann", "one"), value(staffed, "ann", "two")) == ("new-1", "given anew")
