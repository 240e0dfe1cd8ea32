"""Slurm as it is asked and answers: by its programs and by slurmrestd."""
