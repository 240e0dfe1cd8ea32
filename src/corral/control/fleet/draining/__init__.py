"""Drains of nodes: by operators and for maintenance, with previews."""
