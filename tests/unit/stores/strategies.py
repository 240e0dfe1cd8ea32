"""Values of any dataclass, with every field drawn."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

INTEGERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False)
#: lone surrogates included: a program's environment and output may hold them
TEXTS = st.text(st.characters())
MAPPINGS = st.dictionaries(TEXTS, TEXTS)


def values_of(hint: Any, texts: st.SearchStrategy[str] = TEXTS) -> st.SearchStrategy[Any]:
    """`texts` are those that are not within a tuple."""
    plain: dict[Any, st.SearchStrategy[Any]] = {int: INTEGERS, float: FLOATS, str: texts, type(None): st.none()}
    if hint in plain:
        return plain[hint]
    arguments = get_args(hint)
    if get_origin(hint) is UnionType:
        return st.one_of(*(values_of(argument, texts) for argument in arguments))
    if get_origin(hint) is tuple and arguments[-1] is Ellipsis:
        return st.lists(values_of(arguments[0]), max_size=4).map(tuple)
    if get_origin(hint) is tuple:
        return st.tuples(*map(values_of, arguments))
    # Values within values are drawn alike: left to itself, hypothesis would sometimes take what equals not even itself.
    return every_field(hint, texts) if isinstance(hint, type) and is_dataclass(hint) else st.from_type(hint)


def every_field(
    kind: type[Any], texts: st.SearchStrategy[str] = TEXTS, **own: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    """Values with every field drawn, also those that are added to the class later."""
    hints = get_type_hints(kind)
    drawn = {each.name: values_of(hints[each.name], texts) for each in fields(kind) if each.name not in own}
    return st.builds(kind, **drawn, **own)
