"""Base classes of request bodies and answers: requests are validated strictly, times are written in one form."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from corral.core.names import VARIABLE_NAME
from corral.core.quantities import parse_bytes, parse_duration
from corral.core.visible_text import visible

Item = TypeVar("Item")

#: Unknown fields of one object that are named one by one.
MOST_UNKNOWN = 5


class Body(BaseModel):
    """A request body. Unknown fields are refused, and no value is converted: "5" is not 5, and true is not 1."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _has_few_unknown_fields(cls, value: Any) -> Any:
        """One error for many unknown fields: pydantic makes one of each, and a body has room for very many."""
        if isinstance(value, dict) and not cls.model_fields.keys() >= value.keys():
            unknown = [name for name in value if name not in cls.model_fields]
            if len(unknown) > MOST_UNKNOWN:
                first = ", ".join(str(name)[:40] for name in unknown[:MOST_UNKNOWN])
                raise ValueError(f"has {len(unknown)} unknown fields, such as {first}")
        return value


class View(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(frozen=True)


class ListView(View, Generic[Item]):
    items: list[Item]
    #: where the next page begins; null on the last one
    next_cursor: str | None = None


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        if "\x00" in value:
            raise ValueError("must not contain NUL characters")
        # JSON can spell half a surrogate pair, which neither a store nor a process takes.
        if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            raise ValueError("must be valid Unicode text")
    return value


_NUMBER_OR_TEXT = {"anyOf": [{"type": "number"}, {"type": "string"}]}

#: Text that can be stored, shown and passed to a process.
Text = Annotated[str, BeforeValidator(_storable)]
#: A short text such as a name. The use cases decide which names are allowed.
Label = Annotated[Text, Field(max_length=253)]
Duration = Annotated[
    float, BeforeValidator(parse_duration), WithJsonSchema({**_NUMBER_OR_TEXT, "examples": [7200, "2h", "1d12h"]})
]


def described_bounds(least: float, most: float) -> WithJsonSchema:
    """The bounds of a duration in seconds, for the API's description."""
    number = {"type": "number", "minimum": least, "maximum": most}
    return WithJsonSchema({"anyOf": [number, {"type": "string"}], "examples": [least or most, f"{round(most / 60)}m"]})


Size = Annotated[
    int, BeforeValidator(parse_bytes), WithJsonSchema({**_NUMBER_OR_TEXT, "examples": [17179869184, "16GiB"]})
]


#: A text of some sentences, written by a user.
Description = Annotated[Text, Field(max_length=1000)]


def _plain_text(text: str) -> str:
    """Line breaks and tabs are fine; other control characters could change a terminal or the direction of a text."""
    text = text.replace("\r\n", "\n").strip()
    if visible(text) != text:
        raise ValueError("must not contain control characters")
    return text


#: A short text that describes something, shown in lists and terminals.
Note = Annotated[Text, AfterValidator(_plain_text), Field(max_length=500)]
#: An amount that is mostly whole: shown as 2, or as 0.5.
Number = Annotated[int | float, WithJsonSchema({"type": "number"})]


#: The first and the last second that a text can show. Times of files are what programs set them to.
_FIRST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
#: Times that users give stay so far from both ends that the same time in another zone can be shown, and what follows.
YEAR_SECONDS = 366 * 86400.0


def shown_time(at: float) -> float:
    """The nearest time that can be shown."""
    return max(_FIRST, min(_LAST, at))


def rfc3339(at: float) -> str:
    """A time as the API writes it: UTC, to the millisecond, never later than `at`.

    A shown time can thus be given back as `since`: what was shown with it is included."""
    at = shown_time(at)
    millis = round(at * 1000)
    if millis / 1000 > at:
        millis -= 1
    moment = datetime.fromtimestamp(millis // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{millis % 1000:03d}Z"


def rfc3339_or_none(at: float | None) -> str | None:
    return None if at is None else rfc3339(at)


def parse_time(text: str) -> float:
    """Seconds since the epoch from an RFC 3339 time. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time such as 2026-01-03T10:00:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone: end it with Z for UTC")
    at = moment.timestamp()
    if not _FIRST + YEAR_SECONDS <= at <= _LAST - YEAR_SECONDS:
        raise ValueError(f"{text!r} is too far away: give a time between the years 2 and 9998")
    return at


def _moment(value: object) -> float:
    if not isinstance(value, str):
        raise ValueError("must be a time such as 2026-01-03T10:00:00Z")
    return parse_time(value)


Moment = Annotated[
    float,
    BeforeValidator(_moment),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-01-03T18:00:00Z"]}),
]


def number(value: float) -> int | float:
    """Whole amounts as whole numbers: two GPUs are 2, not 2.0."""
    return int(value) if value == int(value) else value


def environment(values: dict[str, str]) -> dict[str, str]:
    """The rule for variables of jobs, and for those that the configuration sets for all jobs. Raises ValueError."""
    for name in values:
        if VARIABLE_NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not a name of an environment variable: letters, digits and _")
    return values
