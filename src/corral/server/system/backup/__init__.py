"""Backups: where they are kept, when they are made, and how one is restored."""
