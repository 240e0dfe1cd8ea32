"""Workbenches: long-lived jobs with Jupyter and SSH."""
