"""The caller's first steps on this server."""

from __future__ import annotations

from corral.control.live.state import State
from corral.control.people import first_steps
from corral.control.people.first_steps import FirstSteps, Server
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.people.first_steps import FirstStepsEdit, FirstStepsView, first_steps_view

router = resource_router("/me/first-steps", "me")


@router.get("", operation_id="get_first_steps", responses=problems())
async def get_first_steps(caller: AnyCaller, context: Context) -> FirstStepsView:
    """The first steps of an operator, or of a scientist, and which of them are done."""
    return first_steps_view(await _read(caller, context))


@router.put("", operation_id="set_first_steps", responses=problems(403))
async def set_first_steps(body: FirstStepsEdit, caller: AnyCaller, context: Context) -> FirstStepsView:
    """Hide the first steps from the caller, or show them again."""
    await context.execute(first_steps.dismiss, caller, dismissed=body.dismissed)
    return first_steps_view(await _read(caller, context))


async def _read(caller: AnyCaller, context: Context) -> FirstSteps:
    server = Server(gpus=await context.inspect(_gpus), backs_up=bool(context.settings.backup.to))
    return await context.read(first_steps.first_steps, caller, server)


def _gpus(state: State) -> int:
    return state.fleet().total().gpus
