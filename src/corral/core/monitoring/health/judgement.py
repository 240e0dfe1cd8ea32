"""Derives a GPU's health from its readings: how signs are confirmed, and how a GPU recovers.

One bad reading makes a GPU suspect: it gets no new jobs. Readings that confirm it, or a fatal one, make it failed; a
failed GPU recovers only by an operator or a passed self-test. A suspect GPU is healthy again after a time without bad
readings, which doubles with every relapse within a day.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from corral.core.model import GpuHealth
from corral.core.monitoring.health.model import (
    DAY,
    KEPT_EVIDENCE,
    Condition,
    Evidence,
    Finding,
    GpuFacts,
    HealthRules,
    HolderFacts,
    Memory,
    Sight,
    Sign,
    Weight,
)
from corral.core.monitoring.health.signs import PERSISTENT, SIGNS, Look
from corral.core.monitoring.health.signs.idle import NOTHING_DONE, held_for_work, idle_since

Found = Sequence[tuple[Look, Finding]]
NO_MEMORY = Memory()


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    condition: Condition
    memory: Memory


def judge(
    condition: Condition,
    reading: GpuFacts,
    holders: Sequence[HolderFacts],
    rules: HealthRules,
    memory: Memory = NO_MEMORY,
    working: Collection[str] = (),
) -> Judgement:
    """A GPU's condition and memory after a reading. A reading that is older than the last one is ignored."""
    if reading.at <= memory.at:
        return Judgement(condition=condition, memory=memory)
    memory = _of_this_condition(memory, condition, reading.at)
    sight = Sight(reading=reading, holders=holders, working=working, memory=memory, rules=rules)
    found = [(sign, sign.look(sight)) for sign in SIGNS]
    bad = [(sign, finding) for sign, finding in found if finding.weight >= Weight.BAD]
    counts = _counted(memory, found) if bad or memory.counts else ()
    after = condition
    if bad:
        certain = any(_is_certain(sign, finding, dict(counts), rules) for sign, finding in bad)
        after = _with_evidence(condition, bad, reading.at, GpuHealth.FAILED if certain else GpuHealth.SUSPECT)
    memory = _remembered(sight, found, counts, had_bad=bool(bad))
    if condition.health is GpuHealth.SUSPECT and not bad and _has_recovered(condition, memory, rules):
        after = replace(condition, health=GpuHealth.HEALTHY, since=reading.at)
        memory = replace(memory, counts=(), last_bad_at=None)
    if after.health is not memory.health:
        memory = replace(memory, health=after.health)
    return Judgement(condition=after, memory=memory)


def put(condition: Condition, health: GpuHealth, evidence: Sequence[Evidence], at: float) -> Condition:
    """The condition with the same or a worse health, and more evidence."""
    since, episodes = condition.since, condition.episodes
    if health is not condition.health:
        since = at
    if condition.health is GpuHealth.HEALTHY:
        episodes = (*(begin for begin in episodes if begin > at - DAY), at)
    return replace(
        condition,
        health=health,
        since=since,
        evidence=(*condition.evidence, *evidence)[-KEPT_EVIDENCE:],
        episodes=episodes,
    )


def recover_seconds(condition: Condition, rules: HealthRules, at: float) -> float:
    """How long a suspect GPU must be without bad readings: doubled with each relapse within a day."""
    relapses = sum(begin > at - DAY for begin in condition.episodes) - 1
    # 2 ** 30 recover times are more than any cap
    return min(DAY, rules.recover_seconds * 2.0 ** min(30, max(0, relapses)))


def _of_this_condition(memory: Memory, condition: Condition, at: float) -> Memory:
    """The memory, corrected if an operator has changed the GPU's health in between, or after a restart."""
    if condition.health is memory.health:
        return memory
    if condition.health is GpuHealth.HEALTHY:
        # Reset by an operator: earlier bad readings do not count any more; the counters keep their values.
        return Memory(
            at=memory.at,
            ecc_uncorrected=memory.ecc_uncorrected,
            remapped_rows=memory.remapped_rows,
            worked=memory.worked,
        )
    signs = {item.sign for item in condition.fresh_evidence}
    return replace(memory, health=condition.health, unresolved=frozenset(signs & PERSISTENT), last_bad_at=at)


def _counted(memory: Memory, found: Found) -> tuple[tuple[Sign, int], ...]:
    """Bad readings in a row. An unknown finding neither adds to them nor ends the row."""
    before = dict(memory.counts)
    counts = []
    for look, finding in found:
        count = before.get(look.sign, 0)
        if finding.weight >= Weight.BAD:
            count += 1
        elif finding.weight is Weight.FINE:
            count = 0
        if count:
            counts.append((look.sign, count))
    return tuple(counts)


def _is_certain(look: Look, finding: Finding, counts: dict[Sign, int], rules: HealthRules) -> bool:
    confirmed = look.is_counted and counts.get(look.sign, 0) >= rules.confirm_readings
    return finding.weight is Weight.FATAL or confirmed


def _with_evidence(condition: Condition, bad: Found, at: float, health: GpuHealth) -> Condition:
    """The condition with new evidence. Health only gets worse here."""
    if condition.health is GpuHealth.FAILED:
        health = GpuHealth.FAILED
    known = {_key(item.sign, item.value) for item in condition.fresh_evidence}
    worse = health is not condition.health
    evidence = tuple(
        Evidence(sign=look.sign, at=at, text=finding.text, advice=finding.advice, value=finding.value)
        for look, finding in bad
        if worse or _key(look.sign, finding.value) not in known
    )
    return put(condition, health, evidence, at) if evidence else condition


def _key(sign: Sign, value: float | None) -> tuple[Sign, float | None]:
    """The identity of evidence: another sign or another XID is new, another reading of a hot GPU is not."""
    return sign, value if sign is Sign.XID else None


def _remembered(sight: Sight, found: Found, counts: tuple[tuple[Sign, int], ...], *, had_bad: bool) -> Memory:
    reading, memory = sight.reading, sight.memory
    unresolved = memory.unresolved
    if had_bad or unresolved:
        persistent = [(look.sign, finding.weight) for look, finding in found if look.is_persistent]
        unresolved = frozenset(
            sign
            for sign, weight in persistent
            if weight >= Weight.BAD or (weight is Weight.UNKNOWN and sign in unresolved)
        )
    worked, idle_attempt, since, until = memory.worked, memory.idle_attempt, memory.idle_since, memory.idle_until
    use = reading.utilization
    if use is not None and sight.holders:
        holder = held_for_work(sight)
        if use >= NOTHING_DONE:
            idle_attempt = ""
            if len(sight.holders) == 1:
                worked = sight.holders[0].attempt_id
        elif holder is not None:
            since, until, idle_attempt = idle_since(sight, holder), reading.at, holder.attempt_id
    return Memory(
        at=reading.at,
        health=memory.health,
        ecc_uncorrected=memory.ecc_uncorrected if reading.ecc_uncorrected is None else reading.ecc_uncorrected,
        remapped_rows=memory.remapped_rows if reading.remapped_rows is None else reading.remapped_rows,
        worked=worked,
        idle_attempt=idle_attempt,
        idle_since=since,
        idle_until=until,
        counts=counts,
        unresolved=unresolved,
        last_bad_at=reading.at if had_bad else memory.last_bad_at,
    )


def _has_recovered(condition: Condition, memory: Memory, rules: HealthRules) -> bool:
    if memory.unresolved or any(item.sign in (Sign.OPERATOR, Sign.CHECK) for item in condition.fresh_evidence):
        # A persistent sign is still bad; or an operator or a check has set the health, which good readings cannot
        # disprove.
        return False
    last_bad_at = condition.since if memory.last_bad_at is None else memory.last_bad_at
    return memory.at - last_bad_at >= recover_seconds(condition, rules, memory.at)
