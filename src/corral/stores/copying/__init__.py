"""Copies of a whole store: to an archive, from an archive, and from one database to another."""
