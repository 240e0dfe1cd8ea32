"""One frame of `corral top`: a pure function of the snapshot and the size of the terminal.

A stale value is shown as stale, and an unknown value as "-", never as zero. Colour only repeats text and bars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from rich.text import Text

from corral.cli.terminal import formats
from corral.cli.terminal.columns import STYLES

if TYPE_CHECKING:
    from corral.client.views import GpuView, HolderView, JobView, NodeView, OverviewView, ReadingView

NARROWEST = 60
FEWEST_LINES = 8
#: degrees Celsius
WARM, TOO_HOT = 75, 85
_NO_JOBS = "No jobs run or wait."


class Sort(StrEnum):
    NODE = "node"
    USE = "use"
    MEMORY = "memory"
    HEAT = "heat"


class Pane(StrEnum):
    GPUS = "GPUs"
    JOBS = "jobs"


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The answers of the server at one moment."""

    at: float
    server: str
    overview: OverviewView
    nodes: Sequence[NodeView]
    #: jobs that hold resources, and the first of the waiting ones
    running: Sequence[JobView]
    waiting: Sequence[JobView]


@dataclass(frozen=True, kw_only=True, slots=True)
class Display:
    """The user's choices for the display: sort order, pane and scroll offsets."""

    sort: Sort = Sort.NODE
    focus: Pane = Pane.GPUS
    gpu_offset: int = 0
    job_offset: int = 0

    def scrolled(self, lines: int) -> Display:
        """Never before the beginning; an offset after the end is drawn as the end."""
        if self.focus is Pane.GPUS:
            return replace(self, gpu_offset=max(0, self.gpu_offset + lines))
        return replace(self, job_offset=max(0, self.job_offset + lines))

    def to_end(self) -> Display:
        return self.scrolled(1_000_000)

    def to_start(self) -> Display:
        return self.scrolled(-1_000_000_000)

    def next_sort(self) -> Display:
        order = list(Sort)
        return replace(self, sort=order[(order.index(self.sort) + 1) % len(order)], gpu_offset=0)

    def next_pane(self) -> Display:
        return replace(self, focus=Pane.JOBS if self.focus is Pane.GPUS else Pane.GPUS)


def frame(
    snapshot: Snapshot, display: Display, *, width: int, height: int, now: float, trouble: str = ""
) -> tuple[list[Text], Display]:
    """The lines of the terminal, and the display with its offsets limited to the content."""
    if width < NARROWEST or height < FEWEST_LINES:
        said = f"The terminal is too small: {width}×{height}; needed are {NARROWEST}×{FEWEST_LINES}. q quits."
        return [Text(said[index : index + width]) for index in range(0, len(said), width)][:height], display
    header = _header(snapshot, width, now, trouble)
    jobs = job_lines(snapshot, width, now)
    room = height - len(header) - 1
    # A third is enough to see the next jobs; the GPUs get the rest.
    job_room = min(len(jobs), max(3, room // 3))
    gpus = gpu_lines(snapshot, display.sort, width, now)
    gpu_room = room - job_room
    gpu_offset = min(display.gpu_offset, max(0, len(gpus) - gpu_room))
    job_offset = min(display.job_offset, max(0, len(jobs) - job_room))
    display = replace(display, gpu_offset=gpu_offset, job_offset=job_offset)
    shown = gpus[gpu_offset : gpu_offset + gpu_room]
    shown += [Text("")] * (gpu_room - len(shown))
    shown += jobs[job_offset : job_offset + job_room]
    footer = _footer(display, _place(gpu_offset, gpu_room, len(gpus)), _place(job_offset, job_room, len(jobs)))
    lines = [*header, *shown, footer]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines, display


def whole(snapshot: Snapshot, sort: Sort, *, width: int, now: float) -> list[Text]:
    """All lines, for a pipe or a log."""
    lines = [
        *_header(snapshot, width, now, ""),
        *gpu_lines(snapshot, sort, width, now),
        Text(""),
        *job_lines(snapshot, width, now),
    ]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


# ---------------------------------------------------------------------------------------------- header and footer


def _header(snapshot: Snapshot, width: int, now: float, trouble: str) -> list[Text]:
    view = snapshot.overview
    first = Text("corral ", style="bold").append(snapshot.server, style="not bold")
    age = max(0.0, now - snapshot.at)
    if trouble:
        first.append(f"  AWAY, {formats.duration(age)} old: {trouble}", style="bold red")
    else:
        first.append(f"  {formats.clock(snapshot.at)}", style="not bold")
    use = view["utilization"]
    second = Text(f"GPUs {view['gpus']}: {formats.number(view['gpus_allocated'])} held, {view['gpus_free']} free")
    second.append("   use ")
    second.append_text(_bar(use, 12))
    second.append(f" {formats.percent(use)}")
    if view["power_watts"] is not None:
        second.append(f"   {_watts(view['power_watts'])}")
    if view["temperature_celsius"] is not None:
        second.append(f"   hottest {view['temperature_celsius']:.0f}°C", style=_heat_style(view["temperature_celsius"]))
    third = Text(f"Jobs {_holding(view)} running, {view['queued']} waiting")
    for said, style in _troubles(view):
        third.append("   ")
        third.append(said, style=style)
    return [first, second, third, Text("─" * width, style="dim")]


def _troubles(view: OverviewView) -> list[tuple[str, str]]:
    alerts = [f"{count} {severity}" for severity, count in reversed(view["alerts"].items()) if count]
    found = [
        (f"{formats.count(view['gpus_failed'], 'GPU')} failed", "bold red", view["gpus_failed"]),
        (f"{formats.count(view['gpus_suspect'], 'GPU')} suspect", "yellow", view["gpus_suspect"]),
        (f"{formats.count(view['gpus_stale'], 'GPU')} not read", "yellow", view["gpus_stale"]),
        (f"alerts: {', '.join(alerts)}", "bold red" if view["alerts"].get("critical") else "yellow", bool(alerts)),
    ]
    return [(text, style) for text, style, there in found if there] or [("all healthy", "green")]


def _holding(view: OverviewView) -> int:
    return sum(view["jobs"].get(state, 0) for state in ("starting", "running", "stopping"))


def _footer(display: Display, gpus: str, jobs: str) -> Text:
    line = Text("q quit  j/k ↑/↓ scroll  space/b page  ", style="dim")
    line.append(f"s sort: {display.sort}  ", style="not dim")
    for pane, place in ((Pane.GPUS, gpus), (Pane.JOBS, jobs)):
        mark = "▸" if display.focus is pane else " "
        line.append(f"{mark}{pane} {place}  ", style="bold not dim" if display.focus is pane else "not dim")
    return line.append("tab changes")


def _place(offset: int, room: int, length: int) -> str:
    return f"{offset + 1}-{min(offset + room, length)}/{length}" if length > room else f"{length}"


# ---------------------------------------------------------------------------------------------- GPUs


def gpu_lines(snapshot: Snapshot, sort: Sort, width: int, now: float) -> list[Text]:
    """GPUs grouped by node, or one list sorted by a measure, largest first."""
    if not snapshot.nodes:
        return [Text("No nodes. What is wrong: corral doctor")]
    if sort is Sort.NODE:
        lines = []
        for node in snapshot.nodes:
            lines.append(_node_line(node))
            lines += [_gpu_line(gpu, f"  {gpu['index']:>2}", width, now) for gpu in node["gpus"]]
        return lines
    gpus = [gpu for node in snapshot.nodes for gpu in node["gpus"]]
    longest = min(24, max((len(gpu["id"]) for gpu in gpus), default=0))
    ordered = sorted(gpus, key=lambda gpu: -_MEASURES[sort](gpu["reading"]))
    return [_gpu_line(gpu, f"{gpu['id'][-longest:]:<{longest}}", width, now) for gpu in ordered]


def _known(value: Callable[[ReadingView], float | None]) -> Callable[[ReadingView | None], float]:
    """Unknown and stale values come last."""

    def measure(reading: ReadingView | None) -> float:
        found = None if reading is None or reading["stale"] else value(reading)
        return -1.0 if found is None else found

    return measure


_MEASURES = {
    Sort.USE: _known(lambda reading: reading["utilization"]),
    Sort.MEMORY: _known(lambda reading: reading["memory_used_bytes"]),
    Sort.HEAT: _known(lambda reading: reading["temperature_celsius"]),
}


def _node_line(node: NodeView) -> Text:
    models = formats.listed(sorted({gpu["model"] for gpu in node["gpus"]}))
    line = Text(node["id"], style="bold")
    line.append(f"  {node['state']}", style=f"not bold {STYLES.get(node['state'], '')}")
    free = formats.number(node["gpus_free"])
    line.append(f"  {formats.count(node['gpus_total'], 'GPU')} {models}, {free} free", style="not bold")
    return line


def _gpu_line(gpu: GpuView, name: str, width: int, now: float) -> Text:
    line = Text(f"{name} ")
    bar_width = max(6, min(20, (width - len(name) - 66) // 2))
    reading = gpu["reading"]
    if reading is None or reading["stale"]:
        missing = "no reading yet" if reading is None else f"stale: read {formats.ago(reading['at'], now)}"
        line.append(f"{'[' + missing + ']':<{2 * bar_width + 33}}", style="dim")
    else:
        line.append_text(_bar(reading["utilization"], bar_width))
        line.append(f" {formats.percent(reading['utilization']):>4} ")
        used, total = reading["memory_used_bytes"], reading["memory_total_bytes"] or gpu["memory_bytes"]
        line.append_text(_bar(used / total if used is not None and total else None, bar_width))
        line.append(f" {_gib(used):>4}/{_gib(total):<4}")
        celsius, watts = reading["temperature_celsius"], reading["power_watts"]
        heat = formats.NOTHING if celsius is None else f"{celsius:.0f}°C" + ("!" if celsius > TOO_HOT else "")
        line.append(f" {heat:>5}", style=_heat_style(celsius))
        line.append(f" {formats.NOTHING if watts is None else f'{watts:.0f}W':>5} ")
    line.append(f"{gpu['health']:<8}", style=STYLES.get(gpu["health"], ""))
    return line.append(f" {_held_by(gpu['jobs'])}")


def _held_by(jobs: Iterable[HolderView]) -> str:
    texts = []
    for job in jobs:
        share = f"×{formats.number(job['gpus'])}" if job["gpus"] < 1 else ""
        texts.append(f"{job['user']} {job['name'] or ''}".strip() + share)
    return ", ".join(texts)


# ---------------------------------------------------------------------------------------------- jobs


def job_lines(snapshot: Snapshot, width: int, now: float) -> list[Text]:
    if not snapshot.running and not snapshot.waiting:
        return [Text(_NO_JOBS, style="dim")]
    title = f"{'JOB':<9} {'NAME':<18} {'USER':<10} {'STATE':<9} {'GPUS':>4} {'TIME':>8}  WHERE"
    lines = [Text(f"{title:<{width}}", style="bold")]
    for job in snapshot.running:
        since = job["started_at"] or job["queued_at"]
        nodes = [grant["node"] for grant in job["allocation"]["grants"]] if job["allocation"] else []
        lines.append(_job_line(job, since, formats.listed(nodes), now))
    lines += [_job_line(job, job["queued_at"], f"queue {job['queue']}", now) for job in snapshot.waiting]
    hidden = snapshot.overview["queued"] - len(snapshot.waiting)
    if hidden > 0:
        lines.append(Text(f"… and {hidden} more that wait", style="dim"))
    return lines


def _job_line(job: JobView, since: str | None, where: str, now: float) -> Text:
    name = job["name"] if len(job["name"]) <= 18 else job["name"][:17] + "…"
    line = Text(f"{job['id']:<9} {name:<18} {job['user'][:10]:<10} ")
    line.append(f"{job['state']:<9}", style=STYLES.get(job["state"], ""))
    gpus = formats.number(job["gpus"] * job["nodes"])
    return line.append(f" {gpus:>4} {formats.between(since, None, now):>8}  {where}")


# ---------------------------------------------------------------------------------------------- small parts


def _bar(part: float | None, width: int) -> Text:
    """A bar in brackets; an unknown value is shown as a question mark, not as an empty bar."""
    if part is None:
        return Text("[" + "?".center(width) + "]", style="dim")
    full = round(min(1.0, max(0.0, part)) * width)
    bar = Text("[")
    bar.append("█" * full, style="cyan" if part < 0.9 else "blue")
    bar.append("·" * (width - full), style="dim")
    return bar.append("]")


def _heat_style(celsius: float | None) -> str:
    return "" if celsius is None or celsius < WARM else "yellow" if celsius <= TOO_HOT else "bold red"


def _watts(watts: float) -> str:
    return f"{watts / 1000:.1f} kW" if watts >= 1000 else f"{watts:.0f} W"


def _gib(count: int | None) -> str:
    return formats.NOTHING if count is None else f"{count / (1 << 30):.0f}G"
