"""Changes of pods through the API: create, begin, stop, remove. Each is idempotent by the name of the pod."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from corral.control.ports import EngineUnavailable, LaunchRefused
from corral.engines.kubernetes.api.client import (
    NO_RIGHT,
    ApiClient,
    ApiConflict,
    ApiError,
    ApiNotFound,
    ApiUnavailable,
    Json,
)
from corral.engines.kubernetes.api.exec import run_in_pod
from corral.engines.kubernetes.api.objects import CONTAINER, annotations_of, labels_of, name_of
from corral.engines.kubernetes.api.pod_refs import parts, ref_of
from corral.engines.kubernetes.api.refusals import is_full_quota, plain_refusal
from corral.engines.kubernetes.attempts.pods import (
    ATTEMPT_LABEL,
    FINALIZER,
    KEY_ANNOTATION,
    START_ANNOTATION,
)
from corral.engines.kubernetes.cluster.cache import INSTALLATION_LABEL
from corral.engines.kubernetes.devices.resource_claims import API_VERSION as CLAIM_API
from corral.engines.kubernetes.devices.resource_claims import is_of_pod

log = logging.getLogger("corral.engines.kubernetes")

_Answer = TypeVar("_Answer")
#: The kinds of objects that corral makes, with the place of their API.
_PLACES = {"pods": "/api/v1", "secrets": "/api/v1", "resourceclaims": f"/apis/{CLAIM_API}"}


class NameTaken(Exception):
    """Another user of Kubernetes has made a pod or a claim of the name that an attempt's pod must have."""


class EarlierPod(Exception):
    """A pod of the same attempt is there, from before this server's records: it must be gone first."""


def objects_path(kind: str, namespace: str) -> str:
    """All objects of a kind in a namespace: pods, secrets or resourceclaims."""
    return f"{_PLACES[kind]}/namespaces/{namespace}/{kind}"


def asked(ask: Callable[[], _Answer]) -> _Answer:
    """Call Kubernetes. Raises EngineUnavailable."""
    try:
        return ask()
    except (ApiError, ApiUnavailable) as error:
        raise EngineUnavailable(f"Kubernetes: {error}") from error


class PodCommands:
    """Safe for several threads. `check` is called before each change: it raises EngineUnavailable when another server
    has taken over. What passes it at that very moment is found by the other server: a pod that no attempt holds."""

    def __init__(self, api: ApiClient, namespace: str, check: Callable[[], None] = lambda: None) -> None:
        self._api = api
        self._check = check
        #: the namespace of references without one
        self.home = namespace

    def api_path(self, pod: Json) -> str:
        return self._pod(ref_of(pod, self.home))

    def log_path(self, reference: str) -> str:
        return f"{self._pod(reference)}/log"

    def create(self, pod: Json) -> Json:
        """Creates a pod, and returns it as Kubernetes has it. An existing one counts if it is this attempt's. Raises
        NameTaken, EarlierPod, LaunchRefused and EngineUnavailable.
        """
        try:
            return self._create("pods", pod)
        except ApiConflict:
            there = asked(lambda: self._api.get(self.api_path(pod)))
            message = f"there is a pod {name_of(pod)} in Kubernetes that is not this attempt's"
            if _owner(there) != _owner(pod):
                raise NameTaken(message) from None
            if key_of(there) != key_of(pod):
                raise EarlierPod(message) from None
            return there

    def create_claim(self, claim: Json, pod: Json) -> None:
        """Creates the claim of a pod. An existing one counts if it belongs to the pod. Raises NameTaken, LaunchRefused
        and EngineUnavailable."""
        reference = ref_of(claim, self.home)
        try:
            self._create("resourceclaims", claim)
        except ApiConflict:
            there = asked(lambda: self._tolerant(lambda: self._api.get(self._path("resourceclaims", reference))))
            if there and is_of_pod(there, pod):
                return
            message = f"there is a ResourceClaim {name_of(claim)} in Kubernetes that is not this pod's"
            if there and _owner(there)[0] != _owner(pod)[0]:
                raise NameTaken(message) from None
            # That of an earlier pod, which Kubernetes has not removed yet.
            self.remove_claim(reference)
            raise EngineUnavailable(f"Kubernetes: {message}: it is removed") from None

    def create_secret(self, secret: Json) -> None:
        try:
            self._create("secrets", secret)
        except ApiConflict:
            return

    def _create(self, kind: str, body: Json) -> Json:
        """Raises ApiConflict, LaunchRefused and EngineUnavailable."""
        self._check()
        namespace = body["metadata"].get("namespace") or self.home
        try:
            return self._api.create(objects_path(kind, namespace), body)
        except ApiConflict as conflict:
            if conflict.reason == "AlreadyExists":
                raise
            raise EngineUnavailable(f"Kubernetes: {conflict}") from conflict
        except ApiUnavailable as error:
            raise EngineUnavailable(f"Kubernetes: {error}") from error
        except ApiError as refusal:
            words = plain_refusal(str(refusal), namespace)
            if is_full_quota(str(refusal)) or refusal.status == 404 or NO_RIGHT.search(str(refusal)):
                # A quota frees up, a namespace can be made, and rights are given. An API server that starts may know of
                # no rights for a moment.
                raise EngineUnavailable(f"Kubernetes: {words}") from refusal
            raise LaunchRefused(f"Kubernetes refuses it: {words}") from refusal

    def open_gate(self, name: str) -> None:
        self._patch(name, {"spec": {"schedulingGates": []}})

    def begin(self, names: Iterable[str], address: str) -> None:
        """Starts the programs of a gang; `address` is that of its first instance."""
        body: Json = {"metadata": {"annotations": {START_ANNOTATION: address}}}
        for name in names:
            self._patch(name, body)

    def stop(self, name: str, grace_seconds: int) -> None:
        self._delete(self._pod(name), {"gracePeriodSeconds": grace_seconds})

    def kill(self, name: str) -> None:
        """End all processes of the job now. A kubelet does not shorten a grace time that has begun."""
        self._check()
        try:
            run_in_pod(self._api.access, self._pod(name), CONTAINER, ("/bin/sh", "-c", "kill -KILL -1"))
        except ApiUnavailable as error:
            raise EngineUnavailable(f"Kubernetes: {error}") from error
        except ApiError as refusal:
            # It has ended meanwhile, or the right to run commands in pods is missing: the grace time goes on.
            log.info("pod %s cannot be killed at once: %s", name, refusal)

    def take_back(self, pod: Json) -> bool:
        """Delete a pod that was not placed, unless it was placed meanwhile."""
        self._check()
        body: Json = {"preconditions": {"resourceVersion": pod["metadata"]["resourceVersion"]}}
        try:
            self._api.delete(self.api_path(pod), body)
        except ApiNotFound:
            return True
        except ApiConflict:
            return False
        except (ApiError, ApiUnavailable) as error:
            raise EngineUnavailable(f"Kubernetes: {error}") from error
        return True

    def find(self, name: str) -> Json | None:
        """Asked of the API server, which knows more than a watch that lags. Raises EngineUnavailable."""
        return asked(lambda: self._tolerant(lambda: self._api.get(self._pod(name)))) or None

    def last_failure(self, pod: Json) -> str:
        """The last failure that Kubernetes has noted about a pod, such as that a volume or a device cannot be prepared;
        "" if there is none, or this account may not see any."""
        namespace = pod["metadata"].get("namespace") or self.home
        chosen = {"fieldSelector": f"involvedObject.uid={pod['metadata']['uid']},type=Warning"}
        try:
            found = self._api.get(f"/api/v1/namespaces/{namespace}/events", chosen).get("items") or ()
        except (ApiError, ApiUnavailable) as error:
            log.info("pod %s: its events cannot be read: %s", name_of(pod), error)
            return ""
        # Others are about the pod's settings, and are noted again and again.
        failures = [event for event in found if str(event.get("reason")).startswith("Failed")]
        if not failures:
            return ""
        last = max(failures, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
        return f"{last.get('reason')}: {last.get('message')}"

    def remove(self, pod: Json) -> None:
        """The end is recorded: let the pod go. A pod that still runs is removed by its kubelet when it has ended; one
        that was not placed or is over goes at once. A new pod of the same name and finalizers of others stay."""
        self._check()
        path, uid = self.api_path(pod), pod["metadata"]["uid"]
        finalizers = pod["metadata"].get("finalizers") or ()
        try:
            self._api.delete(path, {"preconditions": {"uid": uid}})
            if FINALIZER in finalizers:
                kept = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
                self._api.patch(path, {"metadata": {"uid": uid, "finalizers": kept or None}})
        except ApiNotFound:
            return
        except ApiConflict as conflict:
            there = self.find(ref_of(pod, self.home))
            if there is not None and there["metadata"]["uid"] == uid:
                raise EngineUnavailable(f"Kubernetes: {conflict}") from conflict
        except (ApiError, ApiUnavailable) as error:
            raise EngineUnavailable(f"Kubernetes: {error}") from error

    def remove_secret(self, name: str) -> None:
        self._delete(self._path("secrets", name), {})

    def remove_claim(self, name: str) -> None:
        self._delete(self._path("resourceclaims", name), {})

    def _pod(self, reference: str) -> str:
        return self._path("pods", reference)

    def _path(self, kind: str, reference: str) -> str:
        namespace, name = parts(reference, self.home)
        return f"{objects_path(kind, namespace)}/{name}"

    def _patch(self, name: str, body: Json) -> None:
        self._check()
        asked(lambda: self._tolerant(lambda: self._api.patch(self._pod(name), body)))

    def _delete(self, path: str, body: Json) -> None:
        self._check()
        asked(lambda: self._tolerant(lambda: self._api.delete(path, body)))

    def _tolerant(self, ask: Callable[[], Json]) -> Json:
        try:
            return ask()
        except ApiNotFound:
            return {}


def key_of(pod: Json) -> str:
    return annotations_of(pod).get(KEY_ANNOTATION, "")


def _owner(pod: Json) -> tuple[str, str]:
    return labels_of(pod).get(INSTALLATION_LABEL, ""), annotations_of(pod).get(ATTEMPT_LABEL, "")
