"""The routes of presets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import JobView, PresetAssetView, PresetView


class Presets:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[PresetView]:
        """The built-in presets, and those that operators have added."""
        return self._transport.pages("/presets")

    def get(self, name: str) -> PresetView:
        """One preset with its parameters and their limits."""
        return cast("PresetView", self._transport.get(f"/presets/{segment(name)}"))

    def add(self, yaml: str, *, replace: bool = False) -> PresetView:
        """Add a template, given as YAML text (operators)."""
        return cast("PresetView", self._transport.post("/presets", {"yaml": yaml, "replace": replace}))

    def remove(self, name: str) -> None:
        """Remove a preset."""
        self._transport.delete(f"/presets/{segment(name)}")

    def assets(self) -> Iterator[PresetAssetView]:
        """Registered models and data sets."""
        return self._transport.pages("/preset-assets")

    def add_asset(self, kind: str, name: str, asset: Mapping[str, Any]) -> PresetAssetView:
        """Register a model or a data set (operators)."""
        return cast("PresetAssetView", self._transport.post("/preset-assets", {"kind": kind, "name": name, **asset}))

    def remove_asset(self, kind: str, name: str) -> None:
        """Remove a model or a data set from the list."""
        self._transport.delete(f"/preset-assets/{segment(kind)}/{segment(name)}")

    def run(
        self,
        preset: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> JobView:
        """Make a job of a preset; `overrides` are fields of a submission, such as gpus or time."""
        body = {"name": name, "parameters": dict(parameters or {}), "overrides": dict(overrides or {})}
        return cast("JobView", self._transport.post(f"/presets/{segment(preset)}/run", body))
