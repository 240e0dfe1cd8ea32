"""Versions of datasets that an order mounts when it is launched: still to be had, and how their bytes are reached."""

from __future__ import annotations

import json
from dataclasses import replace

from corral.control.datasets import datasets, targets
from corral.control.errors import Refusal
from corral.control.ports import LaunchOrder, LaunchRefused, StorageKind, StorageOrder, Store, Transaction
from corral.objects.access import NotReachable
from corral.server.auth.secret_box import SecretBox
from corral.server.datasets.dataset_access import dataset_key, storage_access
from corral.server.settings.settings import Settings


class DatasetOrders:
    def __init__(self, *, store: Store, settings: Settings, box: SecretBox) -> None:
        self._store = store
        self._settings = settings
        self._box = box

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        """Launch step: check the access to dataset versions, and add where their bytes are. Raises LaunchRefused if the
        order's user may not mount a version any more, or the version is gone."""
        if all(item.kind is not StorageKind.DATASET for item in order.storage):
            return order
        with self._store.read() as tables:
            return replace(order, storage=tuple(self._completed(tables, order.user, item) for item in order.storage))

    def _completed(self, tables: Transaction, user: str, item: StorageOrder) -> StorageOrder:
        if item.kind is not StorageKind.DATASET:
            return item
        try:
            dataset, version = datasets.mountable(tables, user, item.id, item.version)
            target = targets.existing(tables, dataset.target)
            storage = storage_access(tables, target, self._settings, self._box)
        except Refusal as refusal:
            raise LaunchRefused(refusal.detail) from None
        except NotReachable as error:
            raise LaunchRefused(str(error)) from None
        access = {"storage": json.dumps(storage), "tree": version.tree, "name": dataset_key(dataset)}
        return replace(item, access=access)
