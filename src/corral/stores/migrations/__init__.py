"""Alembic's side of the schema. A change of `tables.py` comes with the next numbered file in `versions/` and a new
`NEWEST` in `migrating.py`; a file that was released is never changed again."""
