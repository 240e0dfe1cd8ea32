"""Access to Slurm: through its command-line programs and through slurmrestd."""
