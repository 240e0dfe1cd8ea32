"""Judges by the reported steps whether a training progresses, has slowed down, or hangs. Pure.

A track has the reports of one attempt. Reports are summed up in windows; the rate of each window is compared with the
median of the earlier windows of the same attempt, so that no expectation has to be configured. A hang is a time without
steps that is long in itself and many times as long as a step usually takes. Without reports nothing is stated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median

#: The rates of the latest windows that a track keeps.
MAX_WINDOWS = 48
#: With fewer earlier windows, nothing is compared.
LEAST_WINDOWS = 3
#: After a restart of the server one report may be all that is known: the time of a step is unknown then.
UNKNOWN_STEP_FACTOR = 4.0


class Pace(StrEnum):
    STEADY = "steady"
    SLOW = "slow"
    HUNG = "hung"


@dataclass(frozen=True, kw_only=True, slots=True)
class PaceRules:
    enabled: bool = True
    #: the least time without a step that is a hang
    hung_seconds: float = 1200.0
    #: a hang is also at least so many times as long as a step usually takes
    hung_steps: float = 20.0
    #: a training is slow below this part of its usual rate
    slow_factor: float = 0.5
    #: over how long a rate is measured
    window_seconds: float = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A number of finished steps, and the time of the report."""

    step: int
    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Track:
    """The reports of one attempt."""

    first: Report
    last: Report
    #: where the present window began
    opened: Report
    #: steps per second of the closed windows, the oldest first
    rates: tuple[float, ...] = ()

    @property
    def usual_rate(self) -> float | None:
        """The median rate in steps per second; None while it is not known."""
        if len(self.rates) > 1:
            return median(self.rates[:-1])
        seconds, steps = self.last.at - self.first.at, self.last.step - self.first.step
        return steps / seconds if steps > 0 and seconds > 0 else None

    @property
    def present_rate(self) -> float | None:
        """Steps per second of the last closed window, or as far as it is known."""
        return self.rates[-1] if self.rates else self.usual_rate


def begun(report: Report) -> Track:
    return Track(first=report, last=report, opened=report)


def followed(track: Track, report: Report, rules: PaceRules) -> Track:
    """The track with one more report. A program that counts from the beginning again begins a new track; a report that
    brings nothing new changes nothing."""
    if report.step < track.last.step:
        return begun(report)
    if report.step == track.last.step or report.at <= track.last.at:
        return track
    seconds = report.at - track.opened.at
    if seconds < rules.window_seconds:
        return replace(track, last=report)
    rate = (report.step - track.opened.step) / seconds
    return replace(track, last=report, opened=report, rates=(*track.rates, rate)[-MAX_WINDOWS:])


def pace_of(track: Track, now: float, rules: PaceRules) -> Pace:
    if now - track.last.at >= hung_after(track, rules):
        return Pace.HUNG
    usual = track.usual_rate
    if len(track.rates) > LEAST_WINDOWS and usual is not None and track.rates[-1] < usual * rules.slow_factor:
        return Pace.SLOW
    return Pace.STEADY


def hung_after(track: Track, rules: PaceRules) -> float:
    """Seconds without a step after which the attempt counts as hung."""
    usual = track.usual_rate
    if usual is None or usual <= 0:
        return rules.hung_seconds * UNKNOWN_STEP_FACTOR
    return max(rules.hung_seconds, rules.hung_steps / usual)
