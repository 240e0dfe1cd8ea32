"""GPUs that are too hot, or much hotter than the other GPUs of their node: dust, a fan, the position in the rack."""

from __future__ import annotations

from statistics import median

from corral.core.alerts.model import Severity
from corral.core.model import Gpu, Node
from corral.core.quantities import format_duration
from corral.core.reports.analysis.model import AnalysisInput, Finding, FindingKind


def find(seen: AnalysisInput) -> list[Finding]:
    found = []
    for node, gpu in seen.gpus().values():
        temperature = seen.recent_temperature.get(gpu.id)
        if temperature is None:
            continue
        beside = _beside(seen, node, gpu)
        excess = temperature - beside if beside is not None else 0.0
        is_hot = temperature >= seen.rules.hot_celsius
        stands_out = temperature >= seen.rules.warm_celsius and excess >= seen.rules.hotter_than_neighbours_celsius
        if is_hot or stands_out:
            found.append(_finding(seen, node, gpu, temperature, beside, is_hot=is_hot))
    return found


def _beside(seen: AnalysisInput, node: Node, gpu: Gpu) -> float | None:
    """The usual temperature of the node's other GPUs of the same model."""
    others = [
        seen.recent_temperature[other.id]
        for other in node.gpus
        if other.id != gpu.id and other.model == gpu.model and other.id in seen.recent_temperature
    ]
    return median(others) if others else None


def _finding(
    seen: AnalysisInput, node: Node, gpu: Gpu, temperature: float, beside: float | None, *, is_hot: bool
) -> Finding:
    evidence: dict[str, float | int | str] = {
        "temperature_celsius": temperature,
        "threshold_celsius": seen.rules.hot_celsius,
        "node": node.id,
        "model": gpu.model,
    }
    window = format_duration(seen.recent_seconds)
    compared = ""
    if beside is not None:
        evidence["neighbours_celsius"] = beside
        compared = f"; the GPUs beside it had {beside:.0f} °C"
    limit = f" (the limit is {seen.rules.hot_celsius:.0f} °C)" if is_hot else ""
    alone = beside is not None and temperature - beside >= seen.rules.hotter_than_neighbours_celsius
    return Finding(
        kind=FindingKind.HOT_GPU,
        severity=Severity.WARNING if is_hot else Severity.INFO,
        subject=gpu.id,
        title=f"GPU {gpu.id} is {temperature:.0f} °C hot",
        evidence=evidence,
        text=f"Its mean over the last {window} was {temperature:.0f} °C{limit}{compared}.",
        proposal=(
            f"Look at this GPU's own fan, heat sink and place in {node.id}; until then: corral nodes drain {node.id}."
            if alone
            else f"Look at the cooling of {node.id} and of the room; a lower power limit helps until then."
        ),
        weight=temperature,
    )
