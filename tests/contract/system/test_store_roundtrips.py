"""Every record is read back unchanged, with all its fields, on every database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.control.ports import Store, Transaction
from corral.control.records import (
    CredentialRecord,
    FlavorRecord,
    GroupRecord,
    IdentityRecord,
    ObjectStoreRecord,
    PackageRecord,
    PermissionGroupRecord,
    PoolRecord,
    ProviderKind,
    ProviderRecord,
    SshKeyRecord,
    UserRecord,
    VolumeQuotaRecord,
    VolumeRecord,
)
from corral.core.model import Queue
from tests.unit.stores.strategies import every_field

pytest_plugins = ("tests.servers.fixtures",)

#: what a text column can hold; texts within tuples are kept as JSON, and may be anything
COLUMN = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
ADA = UserRecord(name="ada")


def group(tx: Transaction, record: GroupRecord) -> Any:
    tx.people.save_group(record)
    return next(each for each in tx.people.groups() if each.name == record.name)


def package(tx: Transaction, record: PackageRecord) -> Any:
    if record.flavor is not None:
        tx.catalog.save_flavor(FlavorRecord(name=record.flavor))
    tx.catalog.save_package(record)
    return tx.catalog.packages()[0]


def flavor(tx: Transaction, record: FlavorRecord) -> Any:
    tx.catalog.save_flavor(record)
    return tx.catalog.flavors()[0]


def pool(tx: Transaction, record: PoolRecord) -> Any:
    tx.fleet.save_pool(record)
    return next(each for each in tx.fleet.pools() if each.name == record.name)


def permission_group(tx: Transaction, record: PermissionGroupRecord) -> Any:
    tx.people.save_permission_group(record)
    return next(each for each in tx.people.permission_groups() if each.name == record.name)


def user(tx: Transaction, record: UserRecord) -> Any:
    tx.people.delete_user("ada")
    tx.people.add_user(record)
    kept = tx.people.user(record.name)
    tx.people.save_user(record)
    assert tx.people.user(record.name) == kept
    return kept


def queue(tx: Transaction, record: Queue) -> Any:
    tx.fleet.save_queue(record)
    return next(each for each in tx.fleet.queues() if each.name == record.name)


def credential(tx: Transaction, record: CredentialRecord) -> Any:
    tx.credentials.add(record)
    return tx.credentials.by_hash(record.secret_hash)


def ssh_key(tx: Transaction, record: SshKeyRecord) -> Any:
    tx.ssh_keys.add(record)
    assert tx.ssh_keys.by_fingerprint(record.fingerprint) == tx.ssh_keys.of_user("ada")
    return tx.ssh_keys.of_user("ada")[0]


def provider(tx: Transaction, record: ProviderRecord) -> Any:
    tx.providers.save(record)
    return tx.providers.get(record.id)


def identity(tx: Transaction, record: IdentityRecord) -> Any:
    tx.providers.save(ProviderRecord(id=record.provider, kind=ProviderKind.OIDC))
    tx.providers.save_identities([record])
    return tx.providers.identity(record.provider, record.subject)


def volume_quota(tx: Transaction, record: VolumeQuotaRecord) -> Any:
    tx.people.save_volume_quota(record)
    kept = tx.people.volume_quotas()
    return kept[0] if kept else replace(record, max_bytes=None)


def volume(tx: Transaction, record: VolumeRecord) -> Any:
    tx.volumes.save(record)
    return tx.volumes.get(record.id)


def object_store(tx: Transaction, record: ObjectStoreRecord) -> Any:
    tx.volumes.save_object_store(record)
    return tx.volumes.object_stores()[0]


#: how a record of each kind goes in and comes out, and the fields whose values must exist elsewhere
TRIPS: list[tuple[type[Any], Callable[[Transaction, Any], Any], dict[str, st.SearchStrategy[Any]]]] = [
    (PoolRecord, pool, {}),
    (GroupRecord, group, {"pool": st.none()}),
    (PermissionGroupRecord, permission_group, {}),
    (UserRecord, user, {}),
    (Queue, queue, {}),
    (CredentialRecord, credential, {"user": st.just("ada")}),
    (SshKeyRecord, ssh_key, {"user": st.just("ada")}),
    (ProviderRecord, provider, {"group": st.sampled_from([None, "default"])}),
    (IdentityRecord, identity, {"user": st.sampled_from([None, "ada"])}),
    (VolumeQuotaRecord, volume_quota, {"user": st.just("ada")}),
    (VolumeRecord, volume, {"id": st.just("v-7")}),
    (ObjectStoreRecord, object_store, {}),
    (FlavorRecord, flavor, {}),
    (PackageRecord, package, {}),
]


class _Undo(Exception):
    pass


@contextmanager
def undone(store: Store) -> Iterator[Transaction]:
    """Removes everything before the next example."""
    try:
        with store.write() as transaction:
            transaction.people.add_user(ADA)
            yield transaction
            raise _Undo
    except _Undo:
        pass


@pytest.mark.parametrize(("kind", "trip", "own"), TRIPS, ids=[kind.__name__ for kind, _, _ in TRIPS])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_record_comes_back_the_same(
    store: Store,
    kind: type[Any],
    trip: Callable[[Transaction, Any], Any],
    own: dict[str, st.SearchStrategy[Any]],
    data: st.DataObject,
) -> None:
    record = data.draw(every_field(kind, texts=COLUMN, **own))
    with undone(store) as transaction:
        assert trip(transaction, record) == record
