"""Readers of public traces: files in, values of the core out."""
