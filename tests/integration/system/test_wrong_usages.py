"""Refusals by the server name the flag and give a hint, too: the second list of wrong_usages.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of
from tests.unit.cli.habits.wrong_usages import WrongUsage, wrong_usages

pytestmark = pytest.mark.slow

WITH_SERVER = wrong_usages("with_server")


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    directory: Path = tmp_path_factory.mktemp("wrong-usages")
    with cli_server(directory, "--virtual-gpus", "4xA100-80G") as server:
        yield operator_of(server)


@pytest.mark.parametrize("wrong", WITH_SERVER, ids=[wrong.typed for wrong in WITH_SERVER])
def test_a_bad_value_names_the_flag(operator: Person, wrong: WrongUsage) -> None:
    done = operator.run(*wrong.words)
    wrong.check(done.code, done.out, done.err)
    assert operator.read("jobs", "-a")["items"] == []
