"""The tables, once, for SQLite and PostgreSQL."""
