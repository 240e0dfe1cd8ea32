"""Elastic jobs: when they shrink and grow."""
