"""Scores by user and GPU model with their history, and the few named values of the server itself."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, delete, exists, func, select

from corral.control.records import ScorePoint
from corral.core.people.scores import Score
from corral.stores.database.row_codec import storable
from corral.stores.database.statements import upsert
from corral.stores.schema.tables import meta_rows, score_point_rows, score_rows

_SAVE_SCORE = upsert(score_rows)
_SAVE_POINT = upsert(score_point_rows)
_PUT = upsert(meta_rows)


class SqlScoreTable:
    """Implements `corral.control.ports.ScoreTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> dict[tuple[str, str], Score]:
        rows = self._connection.execute(select(score_rows).order_by(score_rows.c.user_name, score_rows.c.model))
        return {(user, model): Score(value=value, usage=usage, at=at) for user, model, value, usage, at in rows}

    def save(self, scores: Mapping[tuple[str, str], Score]) -> None:
        """Stores scores. Of several points at one time the last one counts."""
        rows = [(user, model, score.value, score.usage, score.at) for (user, model), score in scores.items()]
        _SAVE_SCORE.run(self._connection, rows)
        points = [(user, model, score.at, score.value, score.usage) for (user, model), score in scores.items()]
        _SAVE_POINT.run(self._connection, points)

    def history(self, user: str, model: str, since: float) -> list[ScorePoint]:
        points = score_point_rows.c
        mine = (points.user_name == user, points.model == model)
        # The previous point has the score at `since`.
        before = select(func.max(points.at)).where(*mine, points.at < since).scalar_subquery()
        rows = self._connection.execute(
            select(score_point_rows).where(*mine, points.at >= func.coalesce(before, since)).order_by(points.at)
        )
        return [
            ScorePoint(user=row.user_name, model=row.model, at=row.at, value=row.value, usage=row.usage) for row in rows
        ]

    def prune(self, before: float) -> int:
        points, later = score_point_rows.c, score_point_rows.alias("later").c
        followed = exists().where(
            later.user_name == points.user_name, later.model == points.model, later.at > points.at, later.at < before
        )
        return self._connection.execute(delete(score_point_rows).where(points.at < before, followed)).rowcount


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
