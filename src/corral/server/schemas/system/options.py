"""API schemas: choices that this server offers."""

from __future__ import annotations

from pydantic import Field

from corral.control.people.permissions import ALLOWS
from corral.control.records import Function
from corral.core.scheduling.ordering import POLICIES as ORDERING_POLICIES
from corral.core.scheduling.ordering import OrderingPolicy
from corral.core.scheduling.placement import POLICIES as PLACEMENT_POLICIES
from corral.server.schemas.base import View


class OptionView(View):
    name: str = Field(description="The value in requests and answers.")
    description: str = Field(description="In English, for users.")


class OrderingPolicyView(OptionView):
    ranks_jobs: bool = Field(description="Queues with this policy can preempt by their order (`preempts`).")
    uses_own_order: bool = Field(description="Users can order their own waiting jobs.")
    uses_score: bool = Field(description="The order depends on the scores of the users.")


class FunctionView(View):
    name: Function
    description: str = Field(description="Rights that the function gives, in English.")


class OptionsView(View):
    """Each list in the order in which the options are shown, the default one first."""

    ordering_policies: list[OrderingPolicyView]
    placement_policies: list[OptionView]
    functions: list[FunctionView] = Field(description="Functions that a permission group can allow.")


def options_view() -> OptionsView:
    return OptionsView(
        ordering_policies=[_ordering_view(name, policy) for name, policy in ORDERING_POLICIES.items()],
        placement_policies=[
            OptionView(name=name, description=policy.description) for name, policy in PLACEMENT_POLICIES.items()
        ],
        functions=[FunctionView(name=function, description=ALLOWS[function]) for function in Function],
    )


def _ordering_view(name: str, policy: OrderingPolicy) -> OrderingPolicyView:
    return OrderingPolicyView(
        name=name,
        description=policy.description,
        ranks_jobs=policy.rank is not None,
        uses_own_order=policy.uses_own_order,
        uses_score=policy.uses_score,
    )
