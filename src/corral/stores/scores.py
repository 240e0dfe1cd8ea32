"""Scores by user and GPU model, and the few named values of the server itself."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, select

from corral.core.model import Score
from corral.stores.codec import storable
from corral.stores.statements import upsert
from corral.stores.tables import meta_rows, score_rows

_SAVE_SCORE = upsert(score_rows)
_PUT = upsert(meta_rows)


class SqlScoreTable:
    """Implements `corral.control.ports.ScoreTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> dict[tuple[str, str], Score]:
        rows = self._connection.execute(select(score_rows).order_by(score_rows.c.user_name, score_rows.c.model))
        return {(user, model): Score(value=value, usage=usage, at=at) for user, model, value, usage, at in rows}

    def save(self, scores: Mapping[tuple[str, str], Score]) -> None:
        rows = [(user, model, score.value, score.usage, score.at) for (user, model), score in scores.items()]
        _SAVE_SCORE.run(self._connection, rows)


class SqlMetaTable:
    """Implements `corral.control.ports.MetaTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, key: str) -> str | None:
        value: str | None = self._connection.execute(
            select(meta_rows.c.value).where(meta_rows.c.key == key)
        ).scalar_one_or_none()
        return value

    def put(self, key: str, value: str) -> None:
        _PUT.run(self._connection, [(storable(key), storable(value))])
