"""Submitting jobs: `corral submit`, `corral run`, and the job file of a project folder."""
