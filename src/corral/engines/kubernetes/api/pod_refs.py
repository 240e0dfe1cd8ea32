"""References to pods and secrets: NAME of one in the engine's own namespace, NAMESPACE:NAME of one in another. Pure.

No name in Kubernetes has a colon. References are recorded with attempts, so those of older versions are names.
"""

from __future__ import annotations

from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import name_of


def ref(namespace: str, name: str, home: str) -> str:
    """`home` is the engine's own namespace."""
    return name if namespace == home else f"{namespace}:{name}"


def ref_of(body: Json, home: str) -> str:
    return ref(body["metadata"].get("namespace") or home, name_of(body), home)


def parts(reference: str, home: str) -> tuple[str, str]:
    """Namespace and name."""
    namespace, colon, name = reference.partition(":")
    return (namespace, name) if colon else (home, reference)


def namespace_of(reference: str, home: str) -> str:
    return parts(reference, home)[0]
