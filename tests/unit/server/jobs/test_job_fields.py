"""The table of job fields: each row reaches every place of a job, and each field of a job is a row or listed here."""

from __future__ import annotations

from dataclasses import fields
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest

from corral.control.datasets import datasets
from corral.control.errors import NotFound, WrongState
from corral.control.jobs import job_clone, job_edit, jobs
from corral.control.people import secrets
from corral.control.ports import AttemptPhase, Store
from corral.control.records import DEFAULT_TARGET, JobFilter, JobRecord, JobSpec
from corral.core.jobs.field_types import SUBMIT, WORKBENCH_CREATE, Edit, JobField, Kept
from corral.core.jobs.job_fields import JOB_FIELDS, KEPT_BY_JOB, KEPT_BY_SPEC, editable
from corral.core.model import Job
from corral.server.jobs.drafts import change_of, clone_of, draft_of
from corral.server.schemas.jobs.job_bodies import JobArray, JobClone, JobCreate, JobEdit
from corral.server.schemas.jobs.jobs import JobView, job_view
from corral.server.schemas.workbenches.workbenches import WorkbenchCreate
from corral.stores.jobs import job_body
from tests.unit.control.copied_desks import copied_desk
from tests.unit.control.world import ANN, BOB, ROOT, Desk

PLAIN = (*KEPT_BY_JOB, *KEPT_BY_SPEC)
#: Two values of each plain field that differ from its default, as requests have them.
SAMPLES: dict[str, tuple[Any, Any]] = {
    "description": ("Baseline\nfor the paper", "Second try"),
    "priority": (3, 7),
    "time": (3600.0, 7200.0),
    "grace": (12.0, 60.0),
    "secrets": (("wandb=WANDB_API_KEY", "deploy:file"), ("wandb",)),
    "app": ("tensorboard", "mlflow"),
    "port": (8080, 0),
    "app_name": ("demo", "other"),
    "workdir": ("/data/a", "/data/b"),
    "git": ("https://git.example/a.git", "git@git.example:b.git"),
    "git_ref": ("main", "v1"),
    "git_dir": ("a", "b/c"),
    "git_secret": ("deploy", "wandb"),
    "image": ("registry.example/a:1", "registry.example/b:1"),
    "venv": ("/envs/a", "/envs/b"),
    "max_retries": (1, 9),
    "retry_on": (("exit", "75"), ("any",)),
    "idles": (True, False),
    "restart_if_hung": (True, False),
    "preemptible": (False, True),
    "restart_unsaved": (True, False),
    "checkpoint_interval": (60.0, 90.0),
    "commit_outputs": ("weights=best", "weights"),
}
#: Fields that others of the samples exclude.
EXCLUDED = frozenset({"venv", "port", "git", "git_ref", "git_dir", "git_secret"})
#: What corral itself writes into a job: its identity and its life. Everything else is a field of the table.
LIFE = frozenset(
    [
        "id",
        "name",
        "user",
        "kind",
        "state",
        "queue",
        "request",
        "created_at",
        "queued_at",
        "aged_from",
        "pinned_at",
        "user_order",
        "attempt",
        "allocation",
        "allocated_at",
        "started_at",
        "ended_at",
        "stopping_for",
        "end_reason",
        "exit_code",
        "message",
        "retries",
        "hung_since",
        "slow_since",
        "faults",
        "not_before",
        "given_back",
        "avoid_nodes",
        "avoid_gpus",
        "only_gpus",
        "after",
        "elastic",
        "next_allocation",
        "resized_at",
        "ran_seconds",
        "utilization",
        "ceiling",
        "checkpointed_at",
        "saved_seconds",
        "attained_seconds",
        "reached_seconds",
        "predicted",
        "preempted_for",
        "preemptions",
        "mounts",
        "local_bytes",
        "version",
    ]
)
#: Parts of a spec that are combined with others, or that only workbenches, arrays and tasks have.
OTHER_SPEC = frozenset(
    [
        "command",
        "env",
        "labels",
        "jupyter",
        "ssh",
        "idle_stop_seconds",
        "array_index",
        "array_name",
        "array_size",
        "items",
        "parameters",
        "mounts",
        "git_commit",
        "task",
        "task_mode",
    ]
)


def _submittable() -> list[JobField]:
    """Plain fields that a job without a preset may have."""
    return [row for row in PLAIN if row.name != "preset"]


@pytest.fixture
def desk(store: Store) -> Desk:
    made = copied_desk(store, Desk)
    for name in ("wandb", "deploy"):
        made.do(secrets.put, ANN, name, "encrypted")
    made.do(datasets.create, ANN, name="weights", target=DEFAULT_TARGET, description="")
    return made


def _sample(row: JobField, which: int) -> Any:
    assert row.name in SAMPLES, f"give two values of the new field {row.name!r} in SAMPLES"
    return SAMPLES[row.name][which]


def _body(which: int, **others: Any) -> dict[str, Any]:
    """A submission with every plain field; an image excludes a virtual environment, an app the port of a program."""
    body = {row.name: _sample(row, which) for row in _submittable()} | {"command": ["run"], "gpus": 1, **others}
    return {name: value for name, value in body.items() if name not in EXCLUDED}


def _value(record: JobRecord, row: JobField) -> Any:
    return getattr(record.job if row.kept is Kept.JOB else record.spec, row.attribute)


def test_every_field_of_a_job_is_a_row_of_the_table() -> None:
    why = "a new field of a job is a row of JOB_FIELDS; a value that only corral sets is listed in this test"
    assert {field.name for field in fields(Job)} == {row.attribute for row in KEPT_BY_JOB} | LIFE, why
    assert {field.name for field in fields(JobSpec)} == {row.attribute for row in KEPT_BY_SPEC} | OTHER_SPEC, why


def test_every_row_is_in_the_draft_the_requests_and_the_view() -> None:
    assert set(JOB_FIELDS) == set(JobArray.model_fields)
    assert set(JOB_FIELDS) - {"array", "pack"} == set(JobCreate.model_fields)
    assert {row.attribute for row in KEPT_BY_JOB} <= {field.name for field in fields(jobs.JobDraft)}
    assert {row.attribute for row in PLAIN} <= set(JobView.model_fields)
    assert editable(Edit.ALWAYS, Edit.WAITING, Edit.UNSTARTED) == set(JobEdit.model_fields)


def test_every_row_has_options_for_the_commands() -> None:
    for row in JOB_FIELDS.values():
        commands = {command for option in row.options for command in option.help}
        assert not commands or SUBMIT in commands, row.name
        if WORKBENCH_CREATE in commands:
            assert row.name in WorkbenchCreate.model_fields
        assert not row.is_searched or (row.kept is Kept.SPEC and not row.is_private), row.name


def test_fields_without_a_writer_are_plain_values() -> None:
    hints = get_type_hints(Job)
    for name in job_body._PLAIN:
        kinds = set(get_args(hints[name])) or {hints[name]}
        assert kinds <= {str, int, float, bool, NoneType}, f"{name} needs a writer and a reader in job_body"


def test_every_row_reaches_the_job_the_store_and_the_view(desk: Desk) -> None:
    [made] = desk.do(jobs.submit, ANN, [draft_of(JobCreate.model_validate(_body(0)))])
    stored = desk.record(made.job.id)
    view = job_view(stored, ANN).model_dump()
    for row in _submittable():
        if row.name not in EXCLUDED:
            assert _value(stored, row) == _sample(row, 0) == view[row.attribute], row.name
    other = job_view(stored, BOB).model_dump()
    for row in _submittable():
        assert (other[row.attribute] is None) == (row.is_private or view[row.attribute] is None), row.name


def test_a_clone_keeps_every_row_and_takes_every_change(desk: Desk) -> None:
    [made] = desk.do(jobs.submit, ANN, [draft_of(JobCreate.model_validate(_body(0)))])
    same = desk.do(job_clone.clone, ANN, made.job.id, clone_of(JobClone()))
    for row in _submittable():
        assert _value(same, row) == _value(made, row), row.name
    for row in _submittable():
        if row.name in EXCLUDED:
            continue
        change = clone_of(JobClone.model_validate({row.name: _sample(row, 1)}))
        other = desk.do(job_clone.clone, ANN, made.job.id, change)
        assert _value(other, row) == _sample(row, 1), row.name


def test_an_edit_changes_every_editable_row_and_the_audit_log_has_it(desk: Desk) -> None:
    [made] = desk.do(jobs.submit, ANN, [draft_of(JobCreate.model_validate(_body(0, hold=True)))])
    for row in _submittable():
        if row.edit is Edit.NEVER:
            continue
        change = change_of(JobEdit.model_validate({row.name: _sample(row, 1)}))
        desk.do(job_edit.edit, ANN, made.job.id, change)
        assert _value(desk.record(made.job.id), row) == _sample(row, 1), row.name
        event = [event for event in desk.events() if event.action == "job.edited"][-1]
        assert event.detail == {row.attribute: {"was": _sample(row, 0), "is": _sample(row, 1)}}, row.name


# -------------------------------------------------------------------------------------------- descriptions


def _description(text: str) -> jobs.JobChange:
    return change_of(JobEdit.model_validate({"description": text}))


def test_a_description_is_changed_at_any_time_by_the_owner_and_operators(desk: Desk) -> None:
    body = JobCreate.model_validate({"command": ["run"], "gpus": 1, "description": "first"})
    [made] = desk.do(jobs.submit, ANN, [draft_of(body)])
    desk.cycle()
    running = desk.job(made.job.id)
    assert running.attempt == 1
    desk.do(job_edit.edit, ROOT, made.job.id, _description("by an operator"))
    assert desk.record(made.job.id).spec.description == "by an operator"
    assert desk.job(made.job.id).version == running.version, "the job itself is not written"
    with pytest.raises(NotFound):
        desk.do(job_edit.edit, BOB, made.job.id, _description("by another user"))
    with pytest.raises(WrongState, match="for any time: description"):
        desk.do(job_edit.edit, ANN, made.job.id, change_of(JobEdit(description="x", priority=1)))
    desk.hear(running, AttemptPhase.ENDED, exit_code=0)
    desk.do(job_edit.edit, ANN, made.job.id, _description(""))
    assert desk.record(made.job.id).spec.description == ""


def test_a_search_finds_descriptions_as_they_are_now(desk: Desk) -> None:
    texts = ("Baseline for the paper", "", "100% of the data")
    bodies = [JobCreate(command=["run"], gpus=1, name=f"job-x{n}", description=text) for n, text in enumerate(texts)]
    records = desk.do(jobs.submit, ANN, [draft_of(body) for body in bodies])

    def found(text: str) -> list[str]:
        with desk.store.read() as tx:
            page = tx.jobs.page(JobFilter(text=text), sort="id", cursor=None, limit=10)
        return [record.job.name for record in page.items]

    assert found("THE PAPER") == ["job-x0"]
    assert found("100% of") == ["job-x2"]
    assert found("job-x") == ["job-x0", "job-x1", "job-x2"]
    desk.do(job_edit.edit, ANN, records[0].job.id, _description("Ablation"))
    assert found("paper") == []
    assert found("ablation") == ["job-x0"]


@pytest.mark.parametrize("text", ["x" * 501, "bell \a", "\x1b[31mred", "right to left \u202e", "NUL \x00"])
def test_a_description_with_control_characters_or_of_excessive_length_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="description"):
        JobCreate.model_validate({"command": ["run"], "description": text})


def test_a_description_has_line_breaks_and_is_trimmed() -> None:
    body = JobCreate.model_validate({"command": ["run"], "description": " one\r\ntwo\tthree \n"})
    assert body.description == "one\ntwo\tthree"
