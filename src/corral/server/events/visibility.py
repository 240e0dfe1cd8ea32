"""The visibility of events, and of other users' jobs in answers.

Operators see all. Other users see events about themselves and the fleet; of others' jobs they see only the existence,
the owner and the size, unless their permission group allows more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from corral.control.live.unit_of_work import Caller
from corral.control.people.permissions import may_see_job
from corral.control.records import EventRecord, Function
from corral.core.model import Job
from corral.core.scheduling.explain.reasons import Explanation

#: Nouns of actions that all users may see, because they explain the queue.
PUBLIC_NOUNS = frozenset({"node", "gpu", "queue", "cluster", "pool", "reservation", "maintenance"})
#: Nouns of actions on jobs, for callers who may see others' jobs.
JOB_NOUNS = frozenset({"job", "task"})
#: a job id, optionally followed by the job's name
_JOB = re.compile(r"\b(j-\d+)\b(?: \(([A-Za-z0-9_-]+)\))?")


def may_see_event(event: EventRecord, caller: Caller) -> bool:
    if caller.is_operator or caller.name in (event.owner, event.actor):
        return True
    noun = event.action.partition(".")[0]
    if noun in JOB_NOUNS:
        return caller.may(Function.SEE_OTHERS_JOBS)
    return event.owner == "" and noun in PUBLIC_NOUNS


@dataclass(frozen=True, kw_only=True, slots=True)
class JobIdFilter:
    """Hides the ids of others' jobs from a caller. `jobs` are the live jobs."""

    caller: Caller
    jobs: Mapping[str, Job]

    def hides(self, job: Job) -> bool:
        return not may_see_job(self.caller, job.user)

    def over(self, explanation: Explanation) -> Explanation:
        """The same reasons, without the ids of jobs that the caller may not see."""
        if self.caller.may(Function.SEE_OTHERS_JOBS):
            return explanation
        reasons = tuple(
            replace(reason, detail=self._hide_ids(reason.detail), jobs=tuple(filter(self._shows, reason.jobs)))
            for reason in explanation.reasons
        )
        return replace(explanation, summary=self._hide_ids(explanation.summary), reasons=reasons)

    def _shows(self, job_id: str) -> bool:
        job = self.jobs.get(job_id)
        return job is not None and not self.hides(job)

    def _hide_ids(self, text: str) -> str:
        return _JOB.sub(lambda found: found[0] if self._shows(found[1]) else self._replacement(found), text)

    def _replacement(self, found: re.Match[str]) -> str:
        job = self.jobs.get(found[1])
        # The text in parentheses may be the job's name, or its state.
        rest = "" if found[2] is None or (job is not None and job.name == found[2]) else f" ({found[2]})"
        return (f"a job of {job.user}" if job is not None else "another job") + rest
