"""Everything in a store beside jobs: fleet, scores, people, credentials, events, cycles, on every database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.ports import NameTaken, Store, StoreConflict
from corral.control.records import (
    CredentialKind,
    CredentialRecord,
    CycleRecord,
    EventFilter,
    EventRecord,
    QuotaRecord,
    Role,
    UserRecord,
)
from corral.core.model import Blocking, Gpu, GpuHealth, JobKind, Node, NodeState, Queue
from corral.core.people.quota import Quota
from corral.core.people.scores import Score
from tests.servers.stores import StorePlace

pytest_plugins = ("tests.servers.fixtures",)


# ------------------------------------------------------------------------------------------------ fleet


def gpu(name: str, index: int) -> Gpu:
    return Gpu(id=name, index=index, model="A100-80G", memory_bytes=80 << 30)


def test_a_new_store_has_the_default_queue_and_keeps_it_deleted(store_place: StorePlace) -> None:
    store = store_place.open()
    with store.write() as transaction:
        assert transaction.fleet.queues() == [Queue(name="default")]
        transaction.fleet.delete_queue("default")
    store.close()
    with store_place.open().read() as transaction:
        assert transaction.fleet.queues() == []


def test_queues_are_inserted_or_replaced_by_name(store: Store) -> None:
    night = Queue(
        name="night",
        pool="夜",
        policy="fcfs",
        blocking=Blocking.STRICT,
        placement="spread",
        weight=0.1,
        guaranteed_gpus=2,
        max_gpus=8,
        max_length=100,
        max_seconds=3600.5,
        kinds=(JobKind.TRAINING, JobKind.PRESET),
        min_job_gpus=0,
        max_job_gpus=4,
        preempts=True,
    )
    with store.write() as transaction:
        transaction.fleet.save_queue(night)
        transaction.fleet.save_queue(Queue(name="default", weight=3.0))
        transaction.fleet.delete_queue("unknown")
    with store.read() as transaction:
        assert transaction.fleet.queues() == [Queue(name="default", weight=3.0), night]


def test_nodes_are_kept_with_their_gpus(store: Store) -> None:
    rich = Node(
        id="node-b",
        cluster="lab",
        state=NodeState.DRAINING,
        cpu_milli=64_000,
        memory_bytes=1 << 40,
        gpus=(
            gpu("b/0", 0),
            replace(gpu("b/1", 1), health=GpuHealth.FAILED, pool="vision", link_group="nvlink-0", next_pool="big"),
        ),
        labels=(("rack", "r 1"), ("zone", "北")),
        load=0.25,
    )
    plain = Node(id="node-a", gpus=(gpu("a/0", 0),))
    with store.write() as transaction:
        transaction.fleet.save_nodes([rich, plain])
    with store.read() as transaction:
        assert transaction.fleet.nodes() == [plain, rich]
    fewer = replace(rich, state=NodeState.READY, gpus=(gpu("b/1", 0),), load=None)
    with store.write() as transaction:
        transaction.fleet.save_nodes([fewer])
        transaction.fleet.save_nodes([])
        transaction.fleet.delete_nodes(["node-a", "unknown", "\0"])
    with store.read() as transaction:
        assert transaction.fleet.nodes() == [fewer]


def test_a_gpu_may_move_between_nodes(store: Store) -> None:
    first, second = Node(id="n1", gpus=(gpu("x", 0), gpu("y", 1))), Node(id="n2")
    with store.write() as transaction:
        transaction.fleet.save_nodes([first, second])
    moved = [replace(first, gpus=(gpu("x", 0),)), replace(second, gpus=(gpu("y", 0),))]
    for order in (moved, moved[::-1]):
        with store.write() as transaction:
            transaction.fleet.save_nodes(order)
            assert transaction.fleet.nodes() == moved


def test_health_and_pool_of_a_known_gpu_change(store: Store) -> None:
    sick = replace(gpu("x", 0), health=GpuHealth.SUSPECT, pool="vision")
    with store.write() as transaction:
        transaction.fleet.save_nodes([Node(id="n1", gpus=(gpu("x", 0), gpu("y", 1)))])
        transaction.fleet.save_gpus([sick])
    with store.read() as transaction:
        assert transaction.fleet.nodes()[0].gpus == (sick, gpu("y", 1))
    with pytest.raises(StoreConflict, match="no GPU z"), store.write() as transaction:
        transaction.fleet.save_gpus([gpu("z", 0)])


# ------------------------------------------------------------------------------------------------ scores, meta


def test_scores_are_inserted_or_replaced(store: Store) -> None:
    with store.write() as transaction:
        assert transaction.scores.all() == {}
        transaction.scores.save({("ada", "A10"): Score(value=1.5, usage=2, at=3), ("zoë", ""): Score()})
        transaction.scores.save({("ada", "A10"): Score(value=0.1 + 0.2, usage=1, at=4)})
        transaction.scores.save({})
    with store.read() as transaction:
        assert transaction.scores.all() == {("ada", "A10"): Score(value=0.1 + 0.2, usage=1, at=4), ("zoë", ""): Score()}


def test_named_values(store: Store) -> None:
    with store.write() as transaction:
        assert transaction.meta.get("secret") is None
        transaction.meta.put("secret", "一")
        transaction.meta.put("secret", "two")
    with store.read() as transaction:
        assert transaction.meta.get("secret") == "two"
        assert transaction.meta.get("SECRET") is None


# ------------------------------------------------------------------------------------------------ people

ADA = UserRecord(name="ada", role=Role.OPERATOR, password_hash="$argon2id$x", must_change_password=True, created_at=1.5)


def token(number: int, **changes: object) -> CredentialRecord:
    plain = CredentialRecord(id=f"t{number}", kind=CredentialKind.TOKEN, user="ada", secret_hash=f"hash-{number}")
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_users_are_added_once_changed_and_deleted(store: Store) -> None:
    zoe = UserRecord(name="zoë")
    with store.write() as transaction:
        transaction.people.add_user(zoe)
        transaction.people.add_user(ADA)
        assert transaction.people.users() == [ADA, zoe]
        assert transaction.people.user("ada") == ADA
        assert [transaction.people.user(name) for name in ("Ada", "", "ad\0a", "\udc80")] == [None] * 4
    with pytest.raises(NameTaken, match="user name 'ada' is taken") as caught, store.write() as transaction:
        transaction.people.add_user(UserRecord(name="ada"))
    assert caught.value.kind == "user"
    changed = replace(ADA, role=Role.SCIENTIST, password_hash=None, must_change_password=False, disabled=True)
    with store.write() as transaction:
        transaction.people.save_user(changed)
        transaction.people.delete_user("zoë")
        transaction.people.delete_user("unknown")
    with store.read() as transaction:
        assert transaction.people.users() == [changed]
    with pytest.raises(StoreConflict, match="no user bob"), store.write() as transaction:
        transaction.people.save_user(UserRecord(name="bob"))


def test_a_deleted_user_takes_credentials_and_quotas_along(store: Store) -> None:
    bob = UserRecord(name="bob")
    with store.write() as transaction:
        for user in (ADA, bob):
            transaction.people.add_user(user)
            transaction.people.save_quota(QuotaRecord(user=user.name, kind=JobKind.TRAINING, quota=Quota(gpu_milli=1)))
        transaction.credentials.add(token(1))
        transaction.credentials.add(token(2, user="bob"))
        transaction.people.delete_user("ada")
    with store.read() as transaction:
        assert [quota.user for quota in transaction.people.quotas()] == ["bob"]
        assert transaction.credentials.by_hash("hash-1") is None
        assert transaction.credentials.by_hash("hash-2") == token(2, user="bob")


def test_quotas_are_replaced_and_vanish_without_limits(store: Store) -> None:
    training = QuotaRecord(user="ada", kind=JobKind.TRAINING, quota=Quota(gpu_milli=2000, memory_bytes=1 << 45))
    workbench = QuotaRecord(user="ada", kind=JobKind.WORKBENCH, quota=Quota(cpu_milli=0))
    with store.write() as transaction:
        transaction.people.add_user(ADA)
        transaction.people.save_quota(replace(training, quota=Quota(gpu_milli=1)))
        transaction.people.save_quota(training)
        transaction.people.save_quota(workbench)
        assert transaction.people.quotas() == [training, workbench]
        transaction.people.save_quota(replace(training, quota=Quota()))
        assert transaction.people.quotas() == [workbench]


def test_credentials(store: Store) -> None:
    session = token(
        3, kind=CredentialKind.SESSION, name="浏览器", csrf="c", created_at=1.0, expires_at=9.0, last_used_at=2.0
    )
    with store.write() as transaction:
        transaction.people.add_user(ADA)
        for credential in (token(2, created_at=5.0), token(1, created_at=6.0), session):
            transaction.credentials.add(credential)
        transaction.credentials.touch("t1", 7.5)
        transaction.credentials.touch("unknown", 7.5)
    with store.read() as transaction:
        assert transaction.credentials.by_hash("hash-3") == session
        assert transaction.credentials.by_hash("hash-\0") is None
        tokens = transaction.credentials.of_user("ada", CredentialKind.TOKEN)
        assert tokens == [token(2, created_at=5.0), token(1, created_at=6.0, last_used_at=7.5)]
        assert transaction.credentials.of_user("bob", CredentialKind.TOKEN) == []
    with store.write() as transaction:
        transaction.credentials.delete(["t1", "t3", "unknown"])
        transaction.credentials.delete([])
        assert transaction.credentials.of_user("ada", CredentialKind.SESSION) == []
        assert transaction.credentials.by_hash("hash-2") is not None


def test_a_secret_is_known_once_and_belongs_to_a_user(store: Store) -> None:
    with store.write() as transaction:
        transaction.people.add_user(ADA)
        transaction.credentials.add(token(1))
    for wrong in (token(2, secret_hash="hash-1"), token(1, secret_hash="other"), token(3, user="nobody")):
        with pytest.raises(StoreConflict) as caught, store.write() as transaction:
            transaction.credentials.add(wrong)
        assert "hash-1" not in str(caught.value)


# ------------------------------------------------------------------------------------------------ events


def event(at: float, **changes: object) -> EventRecord:
    plain = EventRecord(at=at, actor="ada", action="job.submitted", subject="j-1")
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_events_get_ids_in_order_and_are_followed_by_them(store: Store) -> None:
    rich = event(2.0, owner="zoë", source="::1", detail={"数": [1, 2.5, None, {"a": "\0"}], "state": JobKind.TRAINING})
    with store.write() as transaction:
        assert transaction.events.last_id() == 0
        assert transaction.events.append([]) == []
        first = transaction.events.append([event(1.0), rich])
    with store.write() as transaction:
        second = transaction.events.append([event(0.5)])
        assert transaction.events.last_id() == 3
    assert [record.id for record in first + second] == [1, 2, 3]
    assert replace(first[1], id=0) == rich
    with store.read() as transaction:
        assert transaction.events.after(0, 10) == first + second
        assert transaction.events.after(1, 1) == [first[1]]
        assert transaction.events.after(3, 10) == []
        assert transaction.events.after(10**30, 10) == []


def test_an_event_may_contain_any_text(store: Store) -> None:
    with store.write() as transaction:
        transaction.events.append([event(1.0, actor="\0root", subject="\udc80", source="x\0")])
        (kept,) = transaction.events.after(0, 1)
    assert (kept.actor, kept.subject, kept.source) == ("\ufffdroot", "?", "x\ufffd")


EVENT_FILTERS: list[tuple[EventFilter, list[int]]] = [
    (EventFilter(), [5, 4, 3, 2, 1]),
    (EventFilter(actor="bob"), [2]),
    (EventFilter(action="job.stopped"), [4, 3]),
    (EventFilter(subject="j-2"), [5, 3]),
    (EventFilter(owner="zoë"), [5]),
    (EventFilter(since=20.0), [5, 4, 3, 2]),
    (EventFilter(until=20.0), [1]),
    (EventFilter(since=20.0, until=40.0, actor="ada"), [3]),
    (EventFilter(subject="\0"), []),
]


def test_events_are_listed_newest_first_by_filter_and_page(store: Store) -> None:
    with store.write() as transaction:
        transaction.events.append(
            [
                event(10.0),
                event(20.0, actor="bob"),
                event(30.0, action="job.stopped", subject="j-2"),
                event(40.0, action="job.stopped"),
                event(50.0, subject="j-2", owner="zoë"),
            ]
        )
    with store.read() as transaction:
        for where, expected in EVENT_FILTERS:
            seen, cursor = [], None
            while True:
                page = transaction.events.page(where, cursor=cursor, limit=2)
                seen += [record.id for record in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert seen == expected, where


def test_events_are_searched_for_text(store: Store) -> None:
    with store.write() as transaction:
        transaction.events.append(
            [
                event(1.0, actor="zoë"),
                event(2.0, action="queue.edited", subject="night_A"),
                event(3.0, detail={"名": "100% \\ 'x'", "n": 4}),
            ]
        )
    with store.read() as transaction:
        for text, expected in (
            ("ZO", [1]),
            ("zoë", [1]),
            ("QUEUE.", [2]),
            ("night_a", [2]),
            ("nightXa", []),
            ("名", [3]),
            ("100%", [3]),
            ("1%0", []),
            ("\\ 'x'", [3]),
            ("", [3, 2, 1]),
            ("\0", []),
        ):
            page = transaction.events.page(EventFilter(text=text), cursor=None, limit=10)
            assert [record.id for record in page.items] == expected, text


def test_a_cursor_of_events_is_checked(store: Store) -> None:
    with store.write() as transaction:
        transaction.events.append([event(1.0), event(2.0)])
    with store.read() as transaction:
        for cursor in ("garbage", "", "WyItaWQiLDEsMV0"):
            with pytest.raises(ValueError, match="cursor"):
                transaction.events.page(EventFilter(), cursor=cursor, limit=1)
        with pytest.raises(ValueError, match="limit"):
            transaction.events.page(EventFilter(), cursor=None, limit=0)


# ------------------------------------------------------------------------------------------------ cycles


def cycle(at: float, *, base: bool = False) -> CycleRecord:
    return CycleRecord(at=at, is_base=base, digest=f"d{at}", changes=b"\x00\xff", plan=b"")


def test_the_journal_is_read_from_its_newest_base(store: Store) -> None:
    with store.write() as transaction:
        assert transaction.cycles.since_base() == []
        assert transaction.cycles.prune(1000.0) == 0
        entries = [cycle(1, base=True), cycle(2), cycle(3, base=True), cycle(4), cycle(5)]
        assert [transaction.cycles.append(entry) for entry in entries] == [1, 2, 3, 4, 5]
    with store.read() as transaction:
        kept = transaction.cycles.since_base()
    assert kept == [replace(entry, id=number) for number, entry in enumerate(entries[2:], 3)]


def test_only_whole_runs_that_ended_are_pruned(store: Store) -> None:
    with store.write() as transaction:
        for entry in (cycle(1, base=True), cycle(2), cycle(3, base=True), cycle(4), cycle(5, base=True), cycle(6)):
            transaction.cycles.append(entry)
    for before, gone in ((2.0, 0), (2.5, 2), (4.0, 0), (1000.0, 2), (1000.0, 0)):
        with store.write() as transaction:
            assert transaction.cycles.prune(before) == gone, before
            assert [entry.id for entry in transaction.cycles.since_base()] == [5, 6]
