"""Tables that are made equal page beside page, however their pages lie."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine

from corral.stores.copying import table_rows
from corral.stores.copying.table_rows import pages_of
from corral.stores.copying.table_sync import differences, synchronise

TABLE = Table("things", MetaData(), Column("id", Integer, primary_key=True), Column("name", String))
rows = st.dictionaries(st.integers(1, 40), st.sampled_from(["a", "b"]), max_size=40)


@pytest.fixture(autouse=True, scope="module")
def small_pages() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_rows, "PAGE", 3)
        yield


@given(source=rows, target=rows)
def test_the_target_becomes_equal_by_the_differences_only(source: Mapping[int, str], target: Mapping[int, str]) -> None:
    engines = [create_engine("sqlite://") for _ in range(2)]
    with engines[0].connect() as ours, engines[1].connect() as theirs:
        for connection, content in ((ours, source), (theirs, target)):
            TABLE.create(connection)
            for key in content:
                connection.execute(TABLE.insert(), {"id": key, "name": content[key]})
        found = {change.key[0]: change.row for change in differences(ours, theirs, TABLE)}
        wrong = {key for key in {*source, *target} if source.get(key) != target.get(key)}
        assert {*found} == wrong
        assert all((row is None) == (key not in source) for key, row in found.items())
        (copied,) = synchronise(ours, theirs, [TABLE])
        assert (copied.rows, copied.changed) == (len(source), len(wrong))
        assert [row for page in pages_of(theirs, TABLE) for row in page] == sorted(source.items())
        assert list(differences(ours, theirs, TABLE)) == []
    for engine in engines:
        engine.dispose()
