"""Who gets how much: ten users with unequal load on a saturated pool for a month, under each ordering.

Eight users always have work, two ask for less than their share. Jobs have a time limit that is longer than their run
time, as people do. Two cases: all users submit the same mix of jobs and differ in how many; or each also has jobs of
other sizes and lengths, from half an hour on one GPU to many hours on a whole node. Then what a score remembers counts:
who waits for a whole node for hours falls behind meanwhile, and a memory of six hours has forgotten it by the time that
the node is free; with one of a week it is made good. A score orders who goes first; it leaves no GPU idle to make
people equal. Gangs are in neither: they wait in a line of their own, which is not ordered against the other.

    python -m benchmarks.fairness [--seeds N] [--days N] [--same-mix] [--users]
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.tables import Row, print_table
from corral.core.snapshot.installation import BackfillRules
from corral.simulator.fleets import parse_fleet
from corral.simulator.outcome import HOUR, Outcome, jain_index
from corral.simulator.replay import Rules, replay
from corral.simulator.traces.job import TraceJob
from corral.simulator.workload import Workload

DAY = 24 * HOUR
FLEET = "8x8xV100"
GPUS = 64
USERS = 10
MOST_PERCENT = 5.0
FIRST_SEED = 42
#: as an installation comes: a score looks back over 6 hours, and one job of a line has a planned start
DEFAULT = Rules(policy="fair-share")
#: the same where `scheduling.score_settling_hours` is a week
LONG_MEMORY = Rules(policy="fair-share", score_time_constant=7 * DAY)
RUNS = (
    DEFAULT,
    LONG_MEMORY,
    Rules(policy="fair-share", backfill=BackfillRules(protected=4)),
    Rules(policy="fcfs"),
    Rules(policy="priority"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Habit:
    """How one user works."""

    user: str
    #: how much of a tenth of the pool the user asks for
    load: float
    sizes: tuple[int, ...]
    #: the median run time; single jobs differ by a factor of e and more
    hours: float
    priority: int

    @property
    def always_has_work(self) -> bool:
        return self.load > 1.4


HABITS = (
    Habit(user="u0", load=1.5, sizes=(1,), hours=0.5, priority=5),
    Habit(user="u1", load=2.0, sizes=(1, 2), hours=1.0, priority=5),
    Habit(user="u2", load=3.0, sizes=(4,), hours=2.0, priority=4),
    Habit(user="u3", load=4.0, sizes=(8,), hours=4.0, priority=5),
    Habit(user="u4", load=6.0, sizes=(1, 2, 4, 8), hours=1.0, priority=6),
    Habit(user="u5", load=1.5, sizes=(2,), hours=8.0, priority=5),
    Habit(user="u6", load=2.5, sizes=(1, 8), hours=0.25, priority=3),
    Habit(user="u7", load=5.0, sizes=(4, 8), hours=3.0, priority=5),
    Habit(user="u8", load=0.3, sizes=(1, 2), hours=1.0, priority=5),
    Habit(user="u9", load=0.6, sizes=(4, 8), hours=2.0, priority=5),
)


SAME_MIX = "same mix"
#: with the same mix of jobs for all users, and with a mix of each user
CASES: dict[str, tuple[Habit, ...]] = {
    SAME_MIX: tuple(replace(habit, sizes=(1, 1, 2, 4, 8), hours=1.0) for habit in HABITS),
    "own habits": HABITS,
}


def jobs_of(habit: Habit, draw: random.Random, days: float) -> list[TraceJob]:
    """What the user submits: a first batch as large as two days of the load, then one job after the other."""
    per_second = habit.load * GPUS / USERS
    jobs, asked, at = list[TraceJob](), 0.0, 0.0
    while at < days * DAY:
        gpus = draw.choice(habit.sizes)
        run_seconds = min(draw.lognormvariate(0.0, 0.8) * habit.hours * HOUR, DAY)
        jobs.append(
            TraceJob(
                name=f"{habit.user}-{len(jobs)}",
                user=habit.user,
                submitted_at=at,
                run_seconds=run_seconds,
                gpus=gpus,
                time_limit_seconds=run_seconds * draw.uniform(1.1, 3.0),
                priority=habit.priority,
            )
        )
        asked += gpus * run_seconds
        batch = 2 * DAY * per_second if habit.always_has_work else 0.0
        at = max(at, (asked - batch) / per_second)
    return jobs


def workload(habits: Sequence[Habit], seed: int, days: float) -> Workload:
    draw = random.Random(seed)
    jobs = sorted((job for habit in habits for job in jobs_of(habit, draw, days)), key=lambda job: job.submitted_at)
    return Workload(parse_fleet(FLEET), jobs, Counter())


def of_the_busy(outcome: Outcome) -> dict[str, float]:
    busy = [habit.user for habit in HABITS if habit.always_has_work]
    return {user: outcome.gpu_seconds_by_user.get(user, 0.0) / HOUR for user in busy}


def difference(hours: Sequence[float]) -> float:
    """Of the most from the least, in percent of the mean."""
    return 100 * (max(hours) - min(hours)) / statistics.fmean(hours)


def row(case: str, rules: Rules, outcomes: Sequence[Outcome]) -> Row:
    differences = [difference(list(of_the_busy(outcome).values())) for outcome in outcomes]
    busy = [jain_index(of_the_busy(outcome).values()) for outcome in outcomes]
    all_users = [outcome.jain for outcome in outcomes]
    used = statistics.fmean(outcome.utilization for outcome in outcomes)
    least, most = _extremes(outcomes)
    return Row(
        what=f"{_named(case, rules)}: GPU-hours of users that always have work differ by",
        value=f"{statistics.fmean(differences):.1f} %",
        spread=f"{min(differences):.1f} … {max(differences):.1f} %",
        target=f"< {MOST_PERCENT:g} %" if rules in (DEFAULT, LONG_MEMORY) else "",
        ratio=f"Jain {statistics.fmean(busy):.4f} of those, {statistics.fmean(all_users):.4f} of all; {used:.1%} used; "
        f"least {least}, most {most}",
    )


def _extremes(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """Who of those that always have work got the least and the most, in percent of their mean."""
    got = Counter[str]()
    for outcome in outcomes:
        got.update(of_the_busy(outcome))
    mean = statistics.fmean(got.values())
    parts = sorted((hours / mean, user) for user, hours in got.items())
    least, most = (f"{user} {part:.0%}" for part, user in (parts[0], parts[-1]))
    return least, most


def _named(case: str, rules: Rules) -> str:
    looks_back = f", score over {rules.score_time_constant / HOUR:g} h" if rules.policy == "fair-share" else ""
    return f"{case}, {rules.policy}, {rules.blocking}, {rules.backfill.protected} planned starts{looks_back}"


def _told(outcome: Outcome) -> str:
    hours = {habit.user: outcome.gpu_seconds_by_user.get(habit.user, 0.0) / HOUR for habit in HABITS}
    return ", ".join(f"{user} {got:,.0f}" for user, got in hours.items()) + " GPU-hours"


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.fairness", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 42 on (3)")
    parser.add_argument("--days", type=float, default=30.0, help="simulated days (30)")
    parser.add_argument("--same-mix", action="store_true", help="the first case only: the second takes minutes")
    parser.add_argument("--users", action="store_true", help="print each user's GPU-hours too")
    options = parser.parse_args(arguments)
    rows = []
    for case, habits in CASES.items():
        if case != SAME_MIX and options.same_mix:
            continue
        works = [workload(habits, seed, options.days) for seed in range(FIRST_SEED, FIRST_SEED + options.seeds)]
        for rules in RUNS:
            outcomes = [replay(work, rules, until=options.days * DAY) for work in works]
            rows.append(row(case, rules, outcomes))
            if options.users:
                print(f"{_named(case, rules)}: {_told(outcomes[0])}", flush=True)
    print_table(f"Fairness, {FLEET}, ten users, {options.days:g} days, {options.seeds} seeds", rows)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
