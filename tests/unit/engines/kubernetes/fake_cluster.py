"""The pods and nodes of an API server in memory: for faults that a real one shows rarely, at the very moment of a test.

The contract tests of the engine run against a real API server.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from tests.unit.engines.kubernetes.api_server import Answer, Asked, answer, refusal
from tests.unit.engines.kubernetes.objects import Json, node

NAMESPACE = "jobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
ALL_CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
_WATCH_SECONDS = 0.2


class FakeCluster:
    """Give `respond` to `api_server`."""

    def __init__(self) -> None:
        self.nodes: dict[str, Json] = {"gpu1": node()}
        self.pods: dict[str, Json] = {}
        self.secrets: set[str] = set()
        #: ResourceSlices, and the claims of all namespaces; a watch shows all of them again
        self.slices: list[Json] = []
        self.claims: dict[str, Json] = {}
        #: warnings, each about all pods
        self.events: list[Json] = []
        #: answers some requests in place of this cluster
        self.fault: Callable[[Asked], Answer | None] = lambda _: None
        self._changed = threading.Condition()
        self._events: list[tuple[str, str, Json]] = []
        self._uids = 0

    def put(self, pod: Json) -> None:
        """Make or change a pod, as another user of Kubernetes or a kubelet does."""
        with self._changed:
            kind = "MODIFIED" if pod["metadata"]["name"] in self.pods else "ADDED"
            if kind == "ADDED":
                self._uids += 1
                pod["metadata"]["uid"] = f"uid-{self._uids}"
                pod.setdefault("status", {"phase": "Pending"})
            self.pods[pod["metadata"]["name"]] = pod
            self._note(kind, pod)

    def state(self, name: str, state: Json, phase: str = "Running") -> None:
        """Sets the state of the container, on its node."""
        pod = json.loads(json.dumps(self.pods[name]))
        pod["spec"]["nodeName"] = "gpu1"
        pod["status"] = {"phase": phase, "containerStatuses": [{"name": "job", "state": state}]}
        self.put(pod)

    def respond(self, asked: Asked) -> Answer:
        if (faulty := self.fault(asked)) is not None:
            return faulty
        if asked.params.get("watch"):
            return self._watched(asked)
        with self._changed:
            if asked.path == "/api/v1/nodes":
                return self._listed(self.nodes)
            if asked.method == "GET" and asked.path in ("/api/v1/pods", PODS):
                return self._listed(self.pods)
            if asked.path == SLICES:
                return answer({"metadata": {"resourceVersion": "1"}, "items": self.slices})
            if asked.path.startswith((ALL_CLAIMS, CLAIMS)):
                return self._claim(asked)
            if asked.path.endswith("/events"):
                return answer({"items": self.events})
            if asked.path.endswith("/log"):
                return Answer(parts=[b"2026-01-01T00:00:00.000000001Z corral-up 0\n"])
            if asked.path.startswith(SECRETS):
                return self._secret(asked)
            return self._pod(asked)

    def _pod(self, asked: Asked) -> Answer:
        name = asked.body["metadata"]["name"] if asked.method == "POST" else asked.path.rpartition("/")[2]
        known = self.pods.get(name)
        if asked.method == "POST":
            if known is not None:
                return refusal(409, f'pods "{name}" already exists', "AlreadyExists")
            self.put(asked.body)
            return answer(asked.body, 201)
        if known is None:
            return refusal(404, f'pods "{name}" not found', "NotFound")
        if asked.method == "DELETE":
            if asked.body.get("preconditions", {}).get("uid", known["metadata"]["uid"]) != known["metadata"]["uid"]:
                return refusal(409, "the UID in the precondition does not match", "Conflict")
            known["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z"
        if asked.method == "PATCH":
            changes = asked.body["metadata"]
            if "finalizers" in changes:
                known["metadata"]["finalizers"] = changes["finalizers"] or []
        if asked.method in ("DELETE", "PATCH"):
            if "deletionTimestamp" in known["metadata"] and not known["metadata"].get("finalizers"):
                del self.pods[name]
                self._note("DELETED", known)
            else:
                self._note("MODIFIED", known)
        return answer(known)

    def _claim(self, asked: Asked) -> Answer:
        name = asked.path.rpartition("/")[2]
        if asked.path in (ALL_CLAIMS, CLAIMS) and asked.method == "GET":
            return self._listed(self.claims)
        if asked.method == "POST":
            if (name := asked.body["metadata"]["name"]) in self.claims:
                return refusal(409, f'resourceclaims "{name}" already exists', "AlreadyExists")
            self.claims[name] = asked.body
            asked.body["metadata"]["resourceVersion"] = "1"
            return answer(asked.body, 201)
        if name not in self.claims:
            return refusal(404, f'resourceclaims "{name}" not found', "NotFound")
        return answer(self.claims.pop(name) if asked.method == "DELETE" else self.claims[name])

    def _secret(self, asked: Asked) -> Answer:
        if asked.method == "GET":
            return answer({"items": []})
        if asked.method == "POST":
            self.secrets.add(asked.body["metadata"]["name"])
        else:
            self.secrets.discard(asked.path.rpartition("/")[2])
        return answer({})

    def _listed(self, objects: dict[str, Json]) -> Answer:
        return answer({"metadata": {"resourceVersion": str(len(self._events))}, "items": list(objects.values())})

    def _note(self, kind: str, pod: Json) -> None:
        pod["metadata"]["resourceVersion"] = str(len(self._events) + 1)
        self._events.append(("pods", kind, json.loads(json.dumps(pod))))
        self._changed.notify_all()

    def _watched(self, asked: Asked) -> Answer:
        if asked.path in ("/api/v1/nodes", SLICES, ALL_CLAIMS):
            threading.Event().wait(_WATCH_SECONDS)
            known = self.slices if asked.path == SLICES else [*self.claims.values()] if "claims" in asked.path else []
            return Answer(parts=[json.dumps({"type": "MODIFIED", "object": one}).encode() + b"\n" for one in known])
        since = int(asked.params["resourceVersion"])
        with self._changed:
            self._changed.wait_for(lambda: len(self._events) > since, _WATCH_SECONDS)
            found: list[Any] = [{"type": kind, "object": body} for _, kind, body in self._events[since:]]
        return Answer(parts=[json.dumps(one).encode() + b"\n" for one in found])
