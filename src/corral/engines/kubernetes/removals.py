"""Pods and secrets that are not needed any more: kept in mind until Kubernetes has removed them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial

from corral.control.ports import EngineUnavailable
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import labels_of
from corral.engines.kubernetes.api.pod_refs import namespace_of, ref
from corral.engines.kubernetes.attempts.pod_attempt import Attempt
from corral.engines.kubernetes.attempts.pod_commands import PodCommands
from corral.engines.kubernetes.attempts.pods import env_secret_name, secret_name
from corral.engines.kubernetes.attempts.records import Records
from corral.engines.kubernetes.cluster.cache import INSTALLATION_LABEL


class Removals:
    """Safe for several threads. After a crash, the list of pods shows which are left, and the records which secrets."""

    def __init__(self, records: Records, commands: PodCommands, live: Iterable[Attempt]) -> None:
        self._records = records
        self._commands = commands
        self._lock = threading.Lock()
        self._pods: set[str] = set()
        self._secrets = records.secrets() - {name for attempt_id in live for name in self._names(attempt_id)}

    def add(self, *pods: str) -> None:
        with self._lock:
            self._pods.update(pods)

    def add_attempt(self, attempt: Attempt) -> None:
        """Removes the objects of an attempt whose end is recorded and reported."""
        with self._lock:
            self._pods.update(attempt.pods)
            self._secrets.update(self._names(attempt))

    def drop(self, pod: str) -> None:
        """Forgets a pod that is removed."""
        with self._lock:
            self._pods.discard(pod)

    def work(self, known: Callable[[str], Json | None]) -> None:
        """Remove what is left; one that fails holds up no other. `known` are pods of the watch. Raises
        EngineUnavailable."""
        with self._lock:
            pods, secrets = sorted(self._pods), sorted(self._secrets)
        steps = [partial(self._remove_pod, name, known) for name in pods]
        steps += [partial(self._remove_secret, name) for name in secrets]
        failures = []
        for step in steps:
            try:
                step()
            except EngineUnavailable as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _remove_pod(self, name: str, known: Callable[[str], Json | None]) -> None:
        """Removes a pod of this installation, but not another user's pod of the same name."""
        pod = known(name) or self._commands.find(name)
        if pod is not None and labels_of(pod).get(INSTALLATION_LABEL) == self._records.installation:
            self._commands.remove(pod)
        self.drop(name)

    def _remove_secret(self, name: str) -> None:
        self._commands.remove_secret(name)
        self._records.drop_secret(name)
        with self._lock:
            self._secrets.discard(name)

    def _names(self, attempt: Attempt) -> list[str]:
        """The secrets of an attempt."""
        kinds = ((attempt.has_login, secret_name), (attempt.has_secrets, env_secret_name))
        home = self._commands.home
        namespace = namespace_of(attempt.pods[0], home)
        names = (name(self._records.installation, attempt.id) for has_one, name in kinds if has_one)
        return [ref(namespace, name, home) for name in names]
