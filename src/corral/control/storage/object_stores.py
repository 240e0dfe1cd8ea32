"""Object stores: the buckets that operators open for volumes, and how they are reached.

Their secrets are encrypted here; the server decrypts them when it opens a bucket (`server/auth/secret_box`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from corral.control.errors import InUse, Invalid, NotFound, Taken
from corral.control.live.unit_of_work import PLATFORM, SYSTEM, Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import ObjectStoreKind, ObjectStoreRecord
from corral.core.counts import counted
from corral.core.names import IMAGE_NAME

BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
MAX_PREFIX = 512
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def existing(tx: Transaction, name: str, *, field: str = "object_store") -> ObjectStoreRecord:
    store = tx.volumes.object_store(name)
    if store is None:
        there = ", ".join(store.name for store in tx.volumes.object_stores()[:10]) or "none"
        refusal = NotFound if field == "object-store" else Invalid
        raise refusal(f"there is no object store {name!r}; there are: {there}", field=field)
    return store


def volumes_of(tx: Transaction) -> dict[str, int]:
    """How many volumes are parts of each."""
    counts: dict[str, int] = {}
    for volume in tx.volumes.all():
        if volume.object_store is not None:
            counts[volume.object_store] = counts.get(volume.object_store, 0) + 1
    return counts


def create(work: Work, caller: Caller, store: ObjectStoreRecord) -> ObjectStoreRecord:
    require_operator(caller, "manage object stores")
    if not IMAGE_NAME.fullmatch(store.name):
        raise Invalid(
            f"the name {store.name!r} is not allowed: up to 63 small letters, digits, '.', '_' and '-'", field="name"
        )
    if work.tx.volumes.object_store(store.name) is not None:
        raise Taken(f"there is an object store {store.name!r} already", field="name", name=store.name)
    made = _checked(replace(store, created_at=work.now))
    work.tx.volumes.save_object_store(made)
    work.record(caller, "object-store.created", made.name, detail=_detail(made))
    return made


def edit(work: Work, caller: Caller, name: str, changes: Mapping[str, Any]) -> ObjectStoreRecord:
    """How the same bucket is reached. Whether it may be written holds for its volumes from now on."""
    require_operator(caller, "manage object stores")
    before = existing(work.tx, name, field="object-store")
    if "endpoint" in changes and changes["endpoint"] != before.endpoint and before.secret and "secret" not in changes:
        raise Invalid("give the secret again: the one that is kept belongs to another endpoint", field="secret")
    after = _checked(replace(before, **changes))
    if after == before:
        return before
    work.tx.volumes.save_object_store(after)
    if after.allow_write != before.allow_write:
        for volume in work.tx.volumes.all():
            if volume.object_store == name:
                work.tx.volumes.save(replace(volume, read_only=not after.allow_write))
    work.record(caller, "object-store.edited", name, detail={**_detail(after), "changed": sorted(changes)})
    return after


def delete(work: Work, caller: Caller, name: str) -> None:
    """Deletes an object store; the bucket is not changed."""
    require_operator(caller, "manage object stores")
    existing(work.tx, name, field="object-store")
    users = [volume for volume in work.tx.volumes.all() if volume.object_store == name]
    if users:
        names = ", ".join(f"{volume.owner}/{volume.name}" for volume in users[:5])
        raise InUse(
            f"{counted(len(users), 'volume is a part', 'volumes are parts')} of object store {name}: {names}",
            field="object-store",
            volumes=[volume.id for volume in users[:20]],
        )
    targets = [target.name for target in work.tx.datasets.targets() if target.object_store == name]
    if targets:
        raise InUse(
            f"datasets are kept in object store {name}: targets {', '.join(targets[:5])}",
            field="object-store",
            targets=targets[:20],
        )
    work.tx.volumes.delete_object_store(name)
    work.record(caller, "object-store.deleted", name)


def renew_secrets(work: Work, renewed: Mapping[str, tuple[str, str]]) -> None:
    """The same secrets under a newer key: by name, as they were and as they are now."""
    for name, (before, after) in renewed.items():
        store = work.tx.volumes.object_store(name)
        # An operator may have replaced the secret meanwhile.
        if store is not None and store.secret == before:
            work.tx.volumes.save_object_store(replace(store, secret=after))
    work.record(SYSTEM, "object-store.secrets-renewed", PLATFORM, detail={"secrets": len(renewed)})


def clean_prefix(prefix: str, field: str = "prefix") -> str:
    """Returns the prefix without slashes at its ends; refuses one that contains `..` or is too long."""
    parts = prefix.strip("/").split("/") if prefix.strip("/") else []
    if any(part in ("", ".", "..") for part in parts) or _CONTROL.search(prefix) or len(prefix) > MAX_PREFIX:
        raise Invalid(
            f"the prefix {prefix[:80]!r} is not allowed: words with single slashes between them, "
            f"{MAX_PREFIX} characters at most",
            field=field,
        )
    return "/".join(parts)


def whole_prefix(store: ObjectStoreRecord, prefix: str) -> str:
    """The part of the bucket that a volume is."""
    return "/".join(part for part in (store.prefix, prefix) if part)


def _checked(store: ObjectStoreRecord) -> ObjectStoreRecord:
    if not BUCKET_NAME.fullmatch(store.bucket):
        raise Invalid(f"{store.bucket!r} is not the name of a bucket", field="bucket")
    for field in ("region", "access_key"):
        value = getattr(store, field)
        if _CONTROL.search(value) or " " in value:
            raise Invalid(f"{field} must not contain blanks", field=field)
    if store.kind is ObjectStoreKind.S3 and bool(store.access_key) != bool(store.secret):
        missing = "secret" if store.access_key else "access_key"
        raise Invalid(f"an access key and its secret belong together: give {missing} as well", field=missing)
    if store.kind is ObjectStoreKind.GCS and store.access_key:
        raise Invalid("the key of a GCS account is the secret alone: leave access_key out", field="access_key")
    endpoint = store.endpoint or None
    if endpoint is not None:
        _check_endpoint(endpoint)
    return replace(store, endpoint=endpoint, prefix=clean_prefix(store.prefix))


def _check_endpoint(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
        # The port is read only when it is asked for, and may be nonsense.
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address or parts.query or parts.fragment or parts.username or _CONTROL.search(endpoint):
        raise Invalid(f"{endpoint!r} is not an address such as https://minio.example.org:9000", field="endpoint")


def _detail(store: ObjectStoreRecord) -> dict[str, Any]:
    """The details of an object store for the audit log, without secrets, even encrypted ones."""
    return {
        "kind": store.kind.value,
        "bucket": store.bucket,
        "prefix": store.prefix,
        "endpoint": store.endpoint,
        "allow_write": store.allow_write,
    }
