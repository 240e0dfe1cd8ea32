"""Commands of web programs that corral knows."""

from __future__ import annotations

import pytest

from corral.core.jobs.apps import KNOWN_APPS, app_command


@pytest.mark.parametrize("name", sorted(KNOWN_APPS))
def test_a_job_that_is_submitted_again_has_the_same_command(name: str) -> None:
    command = app_command(name, ("--some", "argument"))
    assert command == (*KNOWN_APPS[name].command, "--some", "argument")
    assert app_command(name, command) == command


def test_an_unknown_app_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"there is no app 'solitaire'; there are: .*tensorboard"):
        app_command("solitaire", ())
