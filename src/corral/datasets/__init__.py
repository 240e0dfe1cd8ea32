"""Versions of files: content-addressed, stored once, never changed, checked when they are read."""
