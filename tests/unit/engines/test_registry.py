"""Every engine of the registry can be loaded and opened."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from corral.engines.registry import ENGINES
from corral.server.settings.sections.cluster_sections import ClusterSettings


@pytest.mark.parametrize("name", ENGINES)
def test_every_registered_engine_has_a_factory(name: str) -> None:
    factory = import_module(ENGINES[name]).open_engine
    assert list(inspect.signature(factory).parameters) == ["setup"]


def test_the_configuration_accepts_the_registered_engines_only() -> None:
    for name in ENGINES:
        assert ClusterSettings(engine=name).engine == name
    with pytest.raises(ValueError, match="engine"):
        ClusterSettings(engine="nomad")
