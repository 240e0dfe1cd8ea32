"""API schemas: first steps."""

from __future__ import annotations

from pydantic import Field

from corral.control.people.first_steps import FirstSteps, Step
from corral.server.schemas.base import Body, View


class FirstStepView(View):
    name: Step
    done: bool = Field(description="Whether the result of the step is there; false again if it is removed.")


class FirstStepsView(View):
    steps: list[FirstStepView] = Field(description="In the best order; empty if the caller has dismissed them.")
    dismissed: bool


class FirstStepsEdit(Body):
    dismissed: bool = Field(description="True hides the steps from the caller, false shows them again.")


def first_steps_view(found: FirstSteps) -> FirstStepsView:
    steps = [FirstStepView(name=name, done=done) for name, done in found.steps]
    return FirstStepsView(steps=steps, dismissed=found.dismissed)
