"""Buckets: access to them, and their files as a directory on a node."""
