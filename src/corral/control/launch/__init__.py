"""Preparing an attempt: the steps from a planned attempt to the order for an engine."""
