"""The work of `corral simulate`: makes a workload and rules of the options, runs them, and writes the files.

Only that command imports this module, because the scheduler and the charts take time to load.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from corral.cli.terminal.changes import given_fields
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal
from corral.cli.whatif.simulation_options import SimulationOptions
from corral.core.counts import counted
from corral.core.model import Blocking, Node
from corral.core.quantities import parse_duration
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.scheduling.placement import POLICIES as PLACEMENTS
from corral.core.snapshot.installation import DEFAULT_PREEMPTION
from corral.reporting.simulation_charts import Bar, Curve, draw_gantt, draw_utilization, draw_waiting
from corral.reporting.simulation_csv import JobTable, write_summaries, write_utilization
from corral.simulator.fleets import parse_fleet
from corral.simulator.outcome import Held, Outcome, Ran
from corral.simulator.replay import Progress, Rules, replay
from corral.simulator.summary import Summary, summary
from corral.simulator.traces import FORMATS, detect, history, openb
from corral.simulator.traces.job import LeftOut, TraceJob
from corral.simulator.workload import TimeLimits, Workload, in_order

#: In place of a file: the finished jobs of the server.
HISTORY = "history"
ENDED = ("completed", "failed", "stopped")
NO, YES = "no", "yes"
#: in the names of runs
_PREEMPTS = {False: "waits", True: "preempts"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Simulated:
    name: str
    summary: Summary
    outcome: Outcome
    bars: list[Bar]
    #: real time
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    trace: str
    options: SimulationOptions
    workload: Workload
    format_name: str
    left_out: LeftOut
    runs: tuple[tuple[str, Rules], ...]
    files: list[str] = field(default_factory=list)

    def written(self, done: Sequence[Simulated]) -> list[str]:
        """Write the tables and charts that compare the runs. Returns the names of all files that were written."""
        if self.options.csv is not None:
            path = self.path(self.options.csv, "summary.csv")
            with path.open("w", encoding="utf-8", newline="") as file:
                write_summaries(file, [(outcome.name, outcome.summary) for outcome in done])
        if self.options.plots is not None:
            used = [Curve(name=outcome.name, points=tuple(outcome.outcome.used_gpus())) for outcome in done]
            waits = [Curve(name=outcome.name, points=tuple(outcome.outcome.waits.cumulative())) for outcome in done]
            self._draw("utilisation.svg", draw_utilization(used, self.workload.gpus))
            self._draw("waiting.svg", draw_waiting(waits))
            for outcome in done:
                title = f"{outcome.name}: the first {counted(min(self.options.gantt, len(self.workload.jobs)), 'job')}"
                self._draw(f"gantt-{outcome.name}.svg", draw_gantt(outcome.bars, title))
        return self.files

    def path(self, folder: str, name: str) -> Path:
        path = Path(folder) / name
        self.files.append(str(path))
        return path

    def _draw(self, name: str, svg: str) -> None:
        assert self.options.plots is not None
        self.path(self.options.plots, name).write_text(svg, encoding="utf-8")


def prepare(terminal: Terminal, trace: str, options: SimulationOptions) -> Prepared:
    """Check every name before anything is read, read the trace once, and make the folders."""
    rules = _rules(options)
    if options.time_limits not in tuple(TimeLimits):
        raise WrongUsage(f"--time-limits: {options.time_limits!r} is not one of {', '.join(TimeLimits)}")
    left_out: LeftOut = Counter()
    format_name, jobs, nodes = _read(terminal, trace, options, left_out)
    workload = Workload(nodes, jobs, left_out, time_limits=TimeLimits(options.time_limits), any_model=options.any_model)
    if not workload.jobs:
        reasons = "; ".join(f"{counted(count, 'job')}: {reason}" for reason, count in left_out.items() if count)
        raise WrongUsage(f"{trace} has no job that could run{': ' + reasons if reasons else ''}")
    for folder in filter(None, (options.csv, options.plots)):
        Path(folder).mkdir(parents=True, exist_ok=True)
    return Prepared(
        trace=trace,
        options=options,
        workload=workload,
        format_name=format_name,
        left_out=left_out,
        runs=tuple(zip(_names(rules), rules, strict=True)),
    )


def run(prepared: Prepared, name: str, rules: Rules, on_progress: Callable[[Progress], None]) -> Simulated:
    """One run; its jobs are written while they end."""
    options, workload, bars = prepared.options, prepared.workload, list[Bar]()
    with ExitStack() as files:
        table: JobTable | None = None
        if options.csv is not None:
            path = prepared.path(options.csv, f"jobs-{name}.csv")
            table = JobTable(files.enter_context(path.open("w", encoding="utf-8", newline="")), workload.since)

        def note(event: Ran | Held) -> None:
            if isinstance(event, Ran):
                if table is not None:
                    table.add(event)
            elif options.plots is not None and event.job.serial <= options.gantt:
                bars.extend(_bars(event, workload.since))

        begun = time.perf_counter()
        outcome = replay(workload, rules, on_detail=note, on_progress=on_progress)
        seconds = time.perf_counter() - begun
    if options.csv is not None:
        with prepared.path(options.csv, f"utilisation-{name}.csv").open("w", encoding="utf-8", newline="") as file:
            write_utilization(file, outcome)
    return Simulated(name=name, summary=summary(rules, outcome), outcome=outcome, bars=bars, seconds=seconds)


def _bars(held: Held, since: float) -> Iterable[Bar]:
    job = held.job
    return (
        Bar(gpu=gpu, job=job.id, user=job.user, since=held.since - since, until=held.until - since)
        for gpu in held.allocation.gpus
    )


def _rules(options: SimulationOptions) -> list[Rules]:
    policies = _listed("--policy", options.policy, tuple(POLICIES))
    placements = _listed("--placement", options.placement, tuple(PLACEMENTS))
    blockings = _listed("--blocking", options.blocking, tuple(Blocking))
    preempt = _listed("--preempt", options.preempt, (NO, YES))
    preemption = replace(
        DEFAULT_PREEMPTION,
        **_given(min_run_seconds=_given_seconds("--min-run", options.min_run), margin=options.margin),
        moves=options.moves,
    )
    ordering = OrderingRules(
        **_given(
            ageing=options.ageing,
            size_power=options.size_power,
            unknown_seconds=_given_seconds("--unknown-run", options.unknown_run),
        )
    )
    cost = _seconds("--preemption-cost", options.preemption_cost)
    return [
        Rules(
            policy=policy,
            blocking=Blocking(blocking),
            placement=placement,
            preempts=_does_preempt(policy, preempts),
            preemption=preemption,
            preemption_cost=cost,
            ordering=ordering,
        )
        for policy, blocking, placement, preempts in product(policies, blockings, placements, preempt)
    ]


def _given(**values: float | None) -> dict[str, Any]:
    """The options that were named; all others keep the value of a fresh installation."""
    return given_fields(values)


def _given_seconds(option: str, text: str | None) -> float | None:
    return None if text is None else _seconds(option, text)


def _listed(option: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise WrongUsage(f"{option} names nothing")
    for name in names:
        if name not in known:
            raise WrongUsage(f"{option}: {name!r} is not one of {', '.join(known)}")
    return names


def _does_preempt(policy: str, answer: str) -> bool:
    if answer == YES and POLICIES[policy].rank is None:
        able = ", ".join(name for name, known in POLICIES.items() if known.rank is not None)
        raise WrongUsage(f"--preempt: the order {policy} never preempts; {able} do")
    return answer == YES


def _seconds(option: str, text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise WrongUsage(f"{option}: {error}") from error


def _names(rules: Sequence[Rules]) -> list[str]:
    """The names of runs: the policy, and the rules in which they differ."""
    parts = [(rule.policy, rule.blocking.value, rule.placement, _PREEMPTS[rule.preempts]) for rule in rules]
    differing = [place for place in range(4) if place == 0 or len({part[place] for part in parts}) > 1]
    return ["-".join(part[place] for place in differing) for part in parts]


def _read(
    terminal: Terminal, trace: str, options: SimulationOptions, left_out: LeftOut
) -> tuple[str, list[TraceJob], list[Node]]:
    if options.format_name is not None and options.format_name not in FORMATS:
        raise WrongUsage(f"--format: {options.format_name!r} is not one of {', '.join(FORMATS)}")
    given = None if options.nodes is None else _fleet(options.nodes)
    if trace == HISTORY:
        return _read_server(terminal, options.limit, given, left_out)
    path = Path(trace)
    found = FORMATS[options.format_name] if options.format_name is not None else detect(path)
    name = next(name for name, known in FORMATS.items() if known is found)
    nodes = found.fleet(path) if given is None else given
    return name, in_order(found.read(path, left_out), options.limit), nodes


def _read_server(
    terminal: Terminal, limit: int | None, given: list[Node] | None, left_out: LeftOut
) -> tuple[str, list[TraceJob], list[Node]]:
    with terminal.client() as client:
        nodes = history.fleet_of(client.fleet.nodes()) if given is None else given
        ended = client.jobs.list(states=ENDED, limit=limit)
        return "this server's jobs", in_order(history.jobs_of(ended, client.jobs.attempts, left_out)), nodes


def _fleet(text: str) -> list[Node]:
    """The nodes of a node list if `text` names a file, else of a fleet such as 8x8xV100."""
    if Path(text).is_file():
        return openb.read_node_list(Path(text))
    try:
        return parse_fleet(text)
    except ValueError as error:
        raise WrongUsage(f"--nodes: {error}") from error
