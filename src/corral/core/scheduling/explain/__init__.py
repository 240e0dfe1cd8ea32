"""Explanations: why a job waits, and what its owner could change."""
