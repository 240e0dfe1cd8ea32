"""Alerts, silences and alert rules. Scientists see alerts about their jobs and volumes; the rest is for operators."""

from __future__ import annotations

import secrets
from typing import Annotated, Literal

from fastapi import Path, Query, Response

from corral.control.alerts import alerts
from corral.control.errors import NotFound
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import AlertFilter
from corral.core.alerts.model import Alert, AlertState, Severity, Silence
from corral.core.alerts.signals import SIGNALS
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.http.paging import Cursor, Filter, Limit, page_of
from corral.server.http.problems import invalid_field
from corral.server.http.query_times import time_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.alerts.alerts import (
    Acknowledgement,
    AlertView,
    RuleCreate,
    RuleEdit,
    RuleView,
    SignalView,
    SilenceCreate,
    SilenceView,
    alert_view,
    changes_of,
    rule_of,
    rule_view,
    signal_view,
    silence_view,
)
from corral.server.schemas.base import ListView

router = resource_router("", "alerts")

AlertId = Annotated[int, Path(ge=1)]


@router.get("/alerts", operation_id="list_alerts", responses=problems())
async def list_alerts(
    caller: AnyCaller,
    context: Context,
    state: Annotated[list[Literal["pending", "firing", "resolved"]], Query()] = [],  # noqa: B006 - FastAPI copies
    severity: Annotated[list[Literal["info", "warning", "critical"]], Query()] = [],  # noqa: B006
    rule: Filter = None,
    subject: Filter = None,
    since: Filter = None,
    until: Filter = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[AlertView]:
    """Alerts, newest first. Scientists see alerts about their own jobs and volumes.

    `since` and `until` bound when an alert began, which is some time before it fires.
    """
    where = AlertFilter(
        states=tuple(AlertState(word) for word in state),
        severities=tuple(Severity(word) for word in severity),
        rule=rule,
        subject=subject,
        owner=None if caller.is_operator else caller.name,
        since=time_of("since", since),
        until=time_of("until", until),
    )
    try:
        return await context.read(_page, where, cursor, limit)
    except ValueError as error:
        raise invalid_field("cursor", str(error)) from None


@router.get("/alerts/{alert}", operation_id="get_alert", responses=problems(404))
async def get_alert(alert: AlertId, caller: AnyCaller, context: Context) -> AlertView:
    """One alert with its subject, values, acknowledgement and notices."""
    return await context.read(_shown, caller, alert)


@router.post("/alerts/{alert}/acknowledge", operation_id="acknowledge_alert", responses=problems(403, 404, 409))
async def acknowledge_alert(alert: AlertId, body: Acknowledgement, caller: Operator, context: Context) -> AlertView:
    """Mark the alert as being taken care of, until it is resolved."""
    await context.execute(alerts.acknowledge, caller, alert, body.note)
    return await context.read(_shown, caller, alert)


@router.get("/silences", operation_id="list_silences", responses=problems(403))
async def list_silences(
    caller: Operator, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[SilenceView]:
    """Silences that are not over."""
    now = context.clock.now()
    found = await context.read(lambda tables: [item for item in tables.alerts.silences() if item.ends_at > now])
    views = [silence_view(item) for item in found]
    return page_of(views, key=lambda view: (view.ends_at, view.id), limit=limit, cursor=cursor)


@router.post("/silences", status_code=201, operation_id="create_silence", responses=problems(403))
async def create_silence(body: SilenceCreate, caller: Operator, context: Context) -> SilenceView:
    """Send no notices about matching alerts for a while. Alerts are still recorded; a notice is sent if an alert fires
    longer than the silence."""
    silence = Silence(
        id=secrets.token_hex(4),
        rule=body.rule,
        subject=body.subject,
        ends_at=context.clock.now() + body.duration,
        reason=body.reason,
    )
    return silence_view(await context.execute(alerts.create_silence, caller, silence))


@router.delete("/silences/{silence}", status_code=204, operation_id="delete_silence", responses=problems(403, 404))
async def delete_silence(silence: str, caller: Operator, context: Context) -> Response:
    """End a silence. Matching alerts send notices again."""
    await context.execute(alerts.delete_silence, caller, silence)
    return Response(status_code=204)


@router.get("/alert-signals", operation_id="list_alert_signals", responses=problems(403))
async def list_alert_signals(caller: Operator) -> ListView[SignalView]:
    """The signals that rules can watch."""
    return ListView(items=[signal_view(name, signal) for name, signal in SIGNALS.items()])


@router.get("/alert-rules", operation_id="list_alert_rules", responses=problems(403))
async def list_alert_rules(
    caller: Operator, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[RuleView]:
    """All alert rules, built-in ones included, by name."""
    found = await context.read(lambda tables: tables.alerts.rules())
    views = [rule_view(rule) for rule in found]
    return page_of(views, key=lambda view: (view.name,), limit=limit, cursor=cursor)


@router.post("/alert-rules", status_code=201, operation_id="create_alert_rule", responses=problems(403, 409))
async def create_alert_rule(body: RuleCreate, caller: Operator, context: Context) -> RuleView:
    """Create an alert rule over one signal, with its threshold, duration, action and channels."""
    return rule_view(await context.execute(alerts.create_rule, caller, rule_of(body)))


@router.get("/alert-rules/{name}", operation_id="get_alert_rule", responses=problems(403, 404))
async def get_alert_rule(name: str, caller: Operator, context: Context) -> RuleView:
    """One alert rule with its settings."""
    return rule_view(await context.read(alerts.existing_rule, name))


@router.patch("/alert-rules/{name}", operation_id="edit_alert_rule", responses=problems(403, 404, 409))
async def edit_alert_rule(name: str, body: RuleEdit, caller: Operator, context: Context) -> RuleView:
    """Change the given fields of a rule. Alerts that fire are evaluated by the new settings at the next reading."""
    return rule_view(await context.execute(alerts.edit_rule, caller, name, changes_of(body)))


@router.delete(
    "/alert-rules/{name}", status_code=204, operation_id="delete_alert_rule", responses=problems(403, 404, 409)
)
async def delete_alert_rule(name: str, caller: Operator, context: Context) -> Response:
    """Delete a rule. Built-in rules can be switched off, but not deleted."""
    await context.execute(alerts.delete_rule, caller, name)
    return Response(status_code=204)


@router.post("/alert-rules/{name}/reset", operation_id="reset_alert_rule", responses=problems(403, 404, 409))
async def reset_alert_rule(name: str, caller: Operator, context: Context) -> RuleView:
    """Reset a built-in rule to its default settings."""
    return rule_view(await context.execute(alerts.reset_rule, caller, name))


def _page(tables: Transaction, where: AlertFilter, cursor: str | None, limit: int) -> ListView[AlertView]:
    rules = {rule.name: rule for rule in tables.alerts.rules()}
    page = tables.alerts.page(where, cursor=cursor, limit=limit)
    return ListView(items=[alert_view(item, rules) for item in page.items], next_cursor=page.next_cursor)


def _shown(tables: Transaction, caller: Caller, alert_id: int) -> AlertView:
    alert = tables.alerts.get(alert_id)
    if alert is None or not _may_see(caller, alert):
        raise NotFound(f"there is no alert {alert_id}", field="alert")
    return alert_view(alert, {rule.name: rule for rule in tables.alerts.rules()})


def _may_see(caller: Caller, alert: Alert) -> bool:
    return caller.is_operator or alert.owner == caller.name
