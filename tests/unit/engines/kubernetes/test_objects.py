"""Quantities and the requests of pods, as Kubernetes counts them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from corral.engines.kubernetes.api.objects import moment, quantity, requests_of


@pytest.mark.parametrize(
    ("text", "value"),
    [("100m", "0.1"), ("2", "2"), ("16Gi", str(16 * 2**30)), ("1e3", "1000"), ("1.5k", "1500"), ("5M", "5000000")],
)
def test_quantities(text: str, value: str) -> None:
    assert quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "many", "1GiB", "1..2", None])
def test_invalid_quantity_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantity(text)


def container(**requests: str) -> dict[str, object]:
    return {"resources": {"requests": requests}}


def test_a_pod_holds_its_containers_or_a_larger_init_container_and_the_overhead() -> None:
    spec = {
        "initContainers": [container(cpu="3"), {**container(cpu="250m"), "restartPolicy": "Always"}],
        "containers": [container(cpu="1", memory="1Gi"), {"resources": {"limits": {"nvidia.com/gpu": "2"}}}],
        "overhead": {"cpu": "50m"},
    }
    found = requests_of({"spec": spec})
    assert found == {"cpu": 3050, "memory": 2**30, "nvidia.com/gpu": 2, "pods": 1}


def test_sidecars_count_beside_the_containers() -> None:
    spec = {"initContainers": [{**container(cpu="1"), "restartPolicy": "Always"}], "containers": [container(cpu="1")]}
    assert requests_of({"spec": spec})["cpu"] == 2000


def test_times_may_have_nine_digits() -> None:
    assert moment("1970-01-01T00:00:01.123456789Z") == 1.123456
    assert moment("") is None
    assert moment("yesterday") is None
