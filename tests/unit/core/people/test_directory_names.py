"""Names in a directory: when two are the same, which may be short, and what cannot be put into them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.people.directory_names import LOGIN, escaped, filled, group_key, short_name, steps_of

GROUPS = "ou=groups,dc=lab,dc=org"


@pytest.mark.parametrize(
    "same",
    [
        "CN=ML Team,OU=Groups,DC=Lab,DC=Org",
        "cn=ml team, ou=groups, dc=lab, dc=org",
        "cn=ml  team,ou=groups,dc=lab,dc=org",
        r"cn=ml\20team,ou=groups,dc=lab,dc=org",
        r"cn=\6dl team,ou=groups,dc=lab,dc=org",
    ],
)
def test_spellings_of_a_group_are_equal(same: str) -> None:
    assert group_key(same) == group_key(f"cn=ml team,{GROUPS}")
    assert short_name(same, GROUPS.upper()) == "ml team"


@pytest.mark.parametrize(
    "other",
    [
        f"cn=admins,ou=students,{GROUPS}",
        "cn=admins,ou=elsewhere,dc=lab,dc=org",
        f"cn=admins+ou=x,{GROUPS}",
        rf"cn=admins\,{GROUPS}",
        GROUPS,
        "admins",
        "",
    ],
)
def test_a_group_in_another_place_has_no_short_name(other: str) -> None:
    assert short_name(other, GROUPS) is None
    assert group_key(other) != group_key(f"cn=admins,{GROUPS}")


def test_a_short_name_never_reads_like_a_whole_one() -> None:
    assert short_name(rf"cn=cn\=admins\,dc\=lab,{GROUPS}", GROUPS) is None
    assert short_name(f"cn=admins,{GROUPS}", "") is None


@given(st.text(min_size=1, max_size=40))
def test_a_value_stays_one_value(value: str) -> None:
    plain = " ".join(value.casefold().split())
    steps = steps_of(f"cn={escaped(value)},{GROUPS}") if plain else ()
    if plain:
        assert len(steps) == 4
        assert len(steps[0]) == 1
        assert steps[1:] == steps_of(GROUPS)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_has_a_key(one: str, other: str) -> None:
    assert group_key(f"cn={escaped(one)},{other}") == group_key(f"CN={escaped(one)},{other}")


@pytest.mark.parametrize("login", ["ann", "Ann.Lee", "ann@lab.org", "svc$", "o'hara", "_x", "1a"])
def test_a_login_is_taken(login: str) -> None:
    assert LOGIN.fullmatch(login)


@pytest.mark.parametrize(
    "login",
    [
        "",
        "*",
        "a*",
        "a)(uid=*",
        "a\\2a",
        "a b",
        " ann",
        "ann ",
        "a,b",
        "a=b",
        "ａｎｎ",
        "ann\u00ad",
        "a\0",
        "a\n",
        "-a",
        "a" * 129,
    ],
)
def test_a_login_is_not_taken(login: str) -> None:
    assert not LOGIN.fullmatch(login)


def test_a_template_is_filled_for_a_name_and_for_an_address() -> None:
    assert filled("{}@lab.org", "ann") == "ann@lab.org"
    assert filled("uid={},dc=lab", "a+b,c=d") == r"uid=a\+b\,c\=d,dc=lab"
