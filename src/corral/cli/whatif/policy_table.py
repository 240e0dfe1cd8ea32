"""The comparison of all policies on the terminal: the recommendation, and each policy with its price for each size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Terminal

if TYPE_CHECKING:
    from corral.client.views import PolicyPartView, PolicyView, ResultView

#: Sizes of jobs in the table, and their titles.
_SIZES = {"1 GPU": "1 GPU>", "one node": "ONE NODE>", "several nodes": "SEVERAL NODES>"}


def say_policies(terminal: Terminal, result: ResultView) -> None:
    """Nothing, unless all policies were compared."""
    policies, recommendation = result.get("policies"), result.get("recommendation")
    if not policies or not recommendation:
        return
    terminal.say("")
    shown = {recommendation["shown"]: "shown below"}
    if recommendation["recommended"] is not None:
        shown[recommendation["recommended"]] = "recommended"
    sizes = [name for name in _SIZES if any(part["name"] == name for policy in policies for part in policy["sizes"])]
    order = sorted(range(len(policies)), key=lambda number: policies[number]["completion_mean_seconds"])
    terminal.table(
        (
            "POLICY", "COMPLETION>", "CHANGE>", "P99>", "WAIT>", *(_SIZES[name] for name in sizes), "PREEMPTIONS>",
            "LOST GPU-HOURS>", "",
        ),
        order,
        lambda number: (*_cells(policies[number], sizes), _remark(policies[number], shown.get(number, ""))),
        empty="",
    )  # fmt: skip
    terminal.say(recommendation["text"])


def _cells(view: PolicyView, sizes: list[str]) -> tuple[str, ...]:
    parts = {part["name"]: part for part in view["sizes"]}
    return (
        f"{view['policy']}, preempts" if view["preempts"] else view["policy"],
        formats.duration(view["completion_mean_seconds"]),
        _percent(view["percent"]),
        formats.duration(view["completion_p99_seconds"]),
        formats.duration(view["wait_mean_seconds"]),
        *(_part(parts.get(name)) for name in sizes),
        str(view["preemptions"]),
        formats.number(view["lost_gpu_hours"]),
    )


def _part(part: PolicyPartView | None) -> str:
    """The mean completion time of the jobs of one size, with its change."""
    if part is None:
        return formats.NOTHING
    return f"{formats.duration(part['completion_mean_seconds'])} {_percent(part['percent'])}"


def _percent(percent: float | None) -> str:
    return formats.NOTHING if percent is None else f"{percent:+.0f}%"


def _remark(view: PolicyView, shown: str) -> str:
    return ", ".join(word for word in ("at present" if view["is_present"] else "", shown) if word)
