"""Buckets: how they are reached, and how their files appear as a directory on a node."""
