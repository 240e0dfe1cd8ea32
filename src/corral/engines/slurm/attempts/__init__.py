"""Attempts as Slurm jobs: their files, scripts, reports and ends."""
