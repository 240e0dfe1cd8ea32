"""The base of all sections of `corral.yaml`, and kinds of values that several sections have."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from corral.core.quantities import parse_bytes, parse_duration


class Section(BaseModel):
    """Strict: `port: "8470"` is reported as an error, not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


Texts = Annotated[tuple[str, ...], Field(strict=False)]
Size = Annotated[int, BeforeValidator(parse_bytes)]
Duration = Annotated[float, BeforeValidator(parse_duration), Field(ge=60)]
GpuCount = Annotated[int, Field(ge=0, le=1_000_000)]
Fraction = Annotated[float, Field(ge=0, le=1)]
