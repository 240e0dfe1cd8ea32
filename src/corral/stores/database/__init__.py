"""The database: connections, transactions, statements, schema upgrades, for SQLite and PostgreSQL."""
