"""Who may see which event: operators all, others what concerns them and what happens to the fleet."""

from __future__ import annotations

from corral.control.records import EventRecord, Role

#: Nouns of actions that everybody may know about: without them nobody understands the queue.
PUBLIC_NOUNS = frozenset({"node", "gpu", "queue", "cluster", "pool"})


def may_see(event: EventRecord, user: str, role: Role) -> bool:
    if role is Role.OPERATOR or event.owner == user or event.actor == user:
        return True
    return event.owner == "" and event.action.partition(".")[0] in PUBLIC_NOUNS
